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
// names have given such for doubtMax, or at once if the primary in use says that it is a replica; and those of fewer of them if the primary in use
// has been of no use for doubtMax. What a few tell of later failovers then counts no more, until most of them tell the same.

// doubtMax is how long answers of earlier failovers are doubted. Sentinels tell each other of a failover within a few seconds.
const doubtMax = 10 * time.Second

// doubt is what is remembered while answers are of earlier failovers than the latest. The zero value is none.
type doubt struct {
	most    int64 // since when most Sentinels have given such answers, by Now; 0: they have not
	useless int64 // since when the primary in use has been of no use and no other answers have come, likewise; 0: that is not so
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

// failover is one that Sentinels know of: its epoch, and the primary that it led to.
type failover struct {
	epoch int64
	addr  string
}

// retiredMax is how many failovers are remembered that are not believed any more.
const retiredMax = 2 * addrsMax

// neverCounted is what the epoch of an answer counts as that is outvoted.
const neverCounted = -1

func (a *sentinelAnswer) counted() int64 {
	if a.outvoted {
		return neverCounted
	}
	return a.epoch
}

// discount marks the answers that count as the earliest of all: of failovers that are not believed any more, as long as no more than half of the Sentinels
// tell of the same.
func (f *fleet) discount(answers []sentinelAnswer) {
	votes := map[failover]int{}
	for _, a := range answers {
		votes[failover{a.epoch, a.addr}]++
	}
	for i, a := range answers {
		answers[i].outvoted = f.isOutvoted(a) && votes[failover{a.epoch, a.addr}] <= len(f.cfg.Addrs)/2
	}
}

// isOutvoted reports whether an answer is of a failover that is not believed any more.
func (f *fleet) isOutvoted(a sentinelAnswer) bool {
	return slices.Contains(f.retired, failover{a.epoch, a.addr})
}

// byFailover divides answers into those of the latest failover that is known, or of later ones, and those of earlier ones.
func (f *fleet) byFailover(answers []sentinelAnswer) (current, earlier []sentinelAnswer) {
	for _, a := range answers {
		if a.counted() >= f.epoch {
			current = append(current, a)
		} else {
			earlier = append(earlier, a)
		}
	}
	return current, earlier
}

// latestEpoch is that of the latest failover that Sentinels know of.
func latestEpoch(answers []sentinelAnswer) int64 {
	latest := int64(neverCounted)
	for _, a := range answers {
		latest = max(latest, a.counted())
	}
	return latest
}

// heardOf notes the latest failover, also before its primary is of use.
func (f *fleet) heardOf(epoch int64, addr string) { f.epoch, f.chosen = epoch, addr }

// settle notes the failover that the primary in use comes from, by answers of some Sentinels. If these are most of them, later failovers that are known of
// are not believed from now on, nor what others tell of such.
func (f *fleet) settle(epoch int64, addr string, by, others []sentinelAnswer) {
	f.doubt.useless, f.doubt.demoted = 0, false
	epoch = max(epoch, 0)
	if epoch < f.epoch {
		f.doubt = doubt{}
		if len(by) > len(f.cfg.Addrs)/2 {
			f.retire(failover{f.epoch, f.chosen})
			for _, a := range others {
				f.retire(failover{a.epoch, a.addr})
			}
		}
	}
	f.retired = slices.DeleteFunc(f.retired, func(r failover) bool { return r.epoch <= epoch })
	f.heardOf(epoch, addr)
}

func (f *fleet) retire(r failover) {
	if !slices.Contains(f.retired, r) {
		f.retired = append(f.retired, r)
	}
	f.retired = f.retired[max(0, len(f.retired)-retiredMax):]
}

// isDemoted reports whether the primary in use says that it is a replica.
func (f *fleet) isDemoted() bool {
	return slices.ContainsFunc(*f.primaries.Load(), func(n *node) bool { return errors.As(f.askWhether(n), new(demotedError)) })
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
		switch outdated := "it knows nothing of the latest failover"; {
		case len(used) > 0 && a.addr == used[0].addr && a.addr == f.chosen:
		case len(used) > 0 && a.addr == used[0].addr:
			unfit = append(unfit, fmt.Errorf("%s: %s (config-epoch %d, not %d), to %s, which is of no use", f.cfg.Addrs[a.at], outdated, a.epoch, f.epoch, f.chosen))
		case a.outvoted:
			unfit = append(unfit, fmt.Errorf("%s: it names %s (config-epoch %d), which most Sentinels have given up", f.cfg.Addrs[a.at], a.addr, a.epoch))
		default:
			unfit = append(unfit, fmt.Errorf("%s: %s (config-epoch %d, not %d), and names %s, which is not used", f.cfg.Addrs[a.at], outdated, a.epoch, f.epoch, a.addr))
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
	latest, retired := failover{earlier.epoch, earlier.chosen}, slices.Clone(earlier.retired)
	earlier.looking.Unlock()
	f.looking.Lock()
	defer f.looking.Unlock()
	if latest.epoch > f.epoch {
		f.heardOf(latest.epoch, latest.addr)
		f.retired = retired
	}
}
