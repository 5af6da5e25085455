package upstream

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Sentinels count failovers, and say which one their primary comes from: its epoch. The primary in use is remembered with the latest one, so that
// Sentinels which have missed it do not lead back to the former primary, whenever they are the only ones that answer, or answer in time.
//
// But epochs begin anew where Sentinels are set up anew. So answers of earlier failovers count, too: once most of the Sentinels that the configuration
// names have given only such for doubtMax, or at once if the primary in use says that it is a replica; and those of fewer of them if the primary in use
// has been of no use for doubtMax.

// doubtMax is how long answers of earlier failovers are doubted. Sentinels tell each other of a failover within a few seconds.
const doubtMax = 10 * time.Second

// doubt is what is remembered while all answers are of earlier failovers than the primary in use. The zero value is none.
type doubt struct {
	most    int64 // since when most Sentinels have given such answers, by Now; 0: they have not
	useless int64 // since when the primary in use has been of no use, likewise; 0: it is
	demoted bool  // it says that it is a replica
}

// believes reports whether so many answers of earlier failovers count, and notes them.
func (d *doubt) believes(answers, sentinels int, now int64) bool {
	if answers <= sentinels/2 {
		d.most = 0
		return d.useless != 0 && now-d.useless >= int64(doubtMax)
	}
	if d.most == 0 {
		d.most = now
	}
	return d.demoted || now-d.most >= int64(doubtMax)
}

// finds notes what was found when the primary in use was asked, nil if that it is one.
func (d *doubt) finds(failures []error, now int64) {
	if len(failures) == 0 {
		d.useless, d.demoted = 0, false
		return
	}
	if d.useless == 0 {
		d.useless = now
	}
	d.demoted = errors.As(errors.Join(failures...), new(demotedError))
}

// latestEpoch is that of the latest failover that Sentinels know of.
func latestEpoch(answers []sentinelAnswer) (latest int64) {
	for _, a := range answers {
		latest = max(latest, a.epoch)
	}
	return latest
}

// stay sees that the primary in use still is one, while Sentinels know only of earlier failovers. That these name another one is a problem to be told.
func (f *fleet) stay(answers []sentinelAnswer, failures []error) error {
	used := *f.primaries.Load()
	var unfit []error
	for _, n := range used {
		unfit = append(unfit, f.follow([]string{n.addr})...)
	}
	if len(used) == 0 {
		unfit = append(unfit, errors.New("no primary is in use"))
	}
	f.doubt.finds(unfit, Now())
	for _, a := range answers {
		if len(used) == 0 || a.addr != used[0].addr {
			unfit = append(unfit, fmt.Errorf("%s: it knows nothing of the latest failover (config-epoch %d, not %d), and names %s, which is not used",
				f.cfg.Addrs[a.at], a.epoch, f.epoch, a.addr))
		}
	}
	if unfit == nil {
		return nil
	}
	return &lookError{append(failures, unfit...)}
}

// remember takes over the latest failover that an earlier configuration knows of, if both ask one of the same Sentinels about the same primary.
func (f *fleet) remember(earlier *fleet) {
	both := func(addr string) bool { return slices.Contains(earlier.cfg.Addrs, addr) }
	if f.cfg.Kind != Sentinel || earlier.cfg.Kind != Sentinel || f.cfg.Master != earlier.cfg.Master || !slices.ContainsFunc(f.cfg.Addrs, both) {
		return
	}
	earlier.looking.Lock()
	epoch := earlier.epoch
	earlier.looking.Unlock()
	f.looking.Lock()
	defer f.looking.Unlock()
	f.epoch = epoch
}
