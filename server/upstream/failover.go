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
// But epochs begin anew where Sentinels are set up anew. So a primary of an earlier failover counts, too: once most of the Sentinels that the configuration
// names have named it for doubtMax, or at once if the primary in use says that it is a replica. And whatever is named counts if the primary in use has
// been of no use for doubtMax, unless most Sentinels name it. What a few tell of later failovers than the one that most have led to counts no more.

var errNoPrimary = errors.New("no primary is in use")

// doubtMax is how long answers of earlier failovers are doubted. Sentinels tell each other of a failover within a few seconds.
const doubtMax = 10 * time.Second

// doubt is what is remembered while Sentinels name other primaries than the one that is chosen, or that is of no use. The zero value is none.
type doubt struct {
	addr        string // a primary that most Sentinels name, and that is not chosen
	since, seen int64  // when they have begun to, by Now, and when they last have
	useless     int64  // since when the primary in use has been of no use, likewise; 0: it is of use
	demoted     bool   // it says that it is a replica
}

// hears notes what most of a number of Sentinels name, "" if that is no other primary than the chosen one, by so many votes for each primary. Those that are
// silent for a while contradict nothing.
func (d *doubt) hears(most string, votes map[string]int, sentinels int, now int64) {
	others := -votes[d.addr]
	for _, n := range votes {
		others += n
	}
	switch {
	case most != "" && most == d.addr && now-d.seen < int64(doubtMax):
		d.seen = now
	case most != "":
		d.addr, d.since, d.seen = most, now, now
	case others >= sentinels-sentinels/2 || now-d.seen >= int64(doubtMax):
		d.addr, d.since, d.seen = "", 0, 0
	}
}

// believes reports whether a primary of an earlier failover counts that most Sentinels name.
func (d *doubt) believes(most string, now int64) bool {
	return most != "" && most == d.addr && (d.demoted || now-d.since >= int64(doubtMax))
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

// isUseless reports whether the primary in use has been of no use for long.
func (d *doubt) isUseless(now int64) bool { return d.useless != 0 && now-d.useless >= int64(doubtMax) }

// failover is one that Sentinels know of: its epoch, and the primary that it led to. The zero value is none.
type failover struct {
	epoch int64
	addr  string
}

// retiredMax is how many failovers are remembered that are not believed any more.
const retiredMax = 2 * addrsMax

// counts reports whether an answer is of the latest failover that is known, or of a later one that has not been given up.
func (f *fleet) counts(a sentinelAnswer) bool {
	return a.failover == f.latest || a.epoch > f.latest.epoch && !slices.Contains(f.retired, a.failover)
}

// claim is primaries that may be the one, the first of them unless it is a replica.
type claim struct {
	addrs  []string
	byMost bool // of the Sentinels
}

// claims returns what is to be tried, in turn: what is named by answers that count, or by most of them and not earlier; what most have named for long; and
// any other, if all that has been of no use for long. None means that the primary in use stays.
func (f *fleet) claims(answers []sentinelAnswer, now int64) (claims []claim) {
	votes := map[string]int{}
	for _, a := range answers {
		votes[a.addr]++
	}
	most := ""
	for addr, n := range votes {
		if n > len(f.cfg.Addrs)/2 {
			most = addr
		}
	}
	confirmed := most != "" && most == f.latest.addr
	if confirmed {
		most = ""
	}
	f.doubt.hears(most, votes, len(f.cfg.Addrs), now)

	var current, others []sentinelAnswer
	for _, a := range answers {
		if f.latest == (failover{}) || f.counts(a) || a.addr == most && a.epoch >= f.latest.epoch {
			current = append(current, a)
		} else {
			others = append(others, a)
		}
	}
	if len(current) > 0 {
		claims = append(claims, claim{addrs: ranked(current, latestEpoch(current), *f.primaries.Load())})
	}
	if f.doubt.believes(most, now) {
		claims = append(claims, claim{[]string{most}, true})
		if !f.doubt.demoted { // else it is a later failover, if one is known, that tells why
			slices.Reverse(claims)
		}
	}
	if len(others) > 0 && !confirmed && f.doubt.isUseless(now) {
		claims = append(claims, claim{addrs: ranked(others, latestEpoch(others), nil)})
	}
	return claims
}

// latestEpoch is that of the latest failover that Sentinels know of.
func latestEpoch(answers []sentinelAnswer) (latest int64) {
	for _, a := range answers {
		latest = max(latest, a.epoch)
	}
	return latest
}

// heard returns the latest failover to a primary that Sentinels know of.
func heard(answers []sentinelAnswer, addr string) failover {
	latest := failover{addr: addr}
	for _, a := range answers {
		if a.addr == addr {
			latest.epoch = max(latest.epoch, a.epoch)
		}
	}
	return latest
}

// settle notes that a primary is in use that Sentinels have named. If most of them have led to it, later failovers that are known of are not believed
// from now on, nor what others tell of such.
func (f *fleet) settle(addr string, byMost bool, answers []sentinelAnswer) {
	former := f.latest
	f.latest = heard(answers, addr)
	f.doubt.useless, f.doubt.demoted = 0, false
	if f.latest.epoch < former.epoch {
		f.doubt = doubt{}
		if byMost {
			f.retire(former)
			for _, a := range answers {
				f.retire(a.failover)
			}
		}
	}
	f.retired = slices.DeleteFunc(f.retired, func(r failover) bool { return r.epoch <= f.latest.epoch })
}

func (f *fleet) retire(r failover) {
	if !slices.Contains(f.retired, r) {
		f.retired = append(f.retired, r)
	}
	f.retired = f.retired[max(0, len(f.retired)-retiredMax):]
}

// unfit returns why the primary in use is of no use, nil if it is.
func (f *fleet) unfit() (failures []error) {
	used := *f.primaries.Load()
	for _, n := range used {
		if err := f.askWhether(n); err != nil {
			failures = append(failures, err)
		}
	}
	if len(used) == 0 {
		failures = append(failures, errNoPrimary)
	}
	return failures
}

// stay sees that the primary in use still is one, while Sentinels know only of earlier failovers. That these name another one is a problem to be told.
func (f *fleet) stay(answers []sentinelAnswer, failures []error) error {
	used := *f.primaries.Load()
	var unfit []error
	for _, n := range used {
		unfit = append(unfit, f.follow([]string{n.addr})...)
	}
	if len(used) == 0 {
		unfit = append(unfit, errNoPrimary)
	}
	f.doubt.finds(unfit, Now())
	for _, a := range answers {
		switch outdated := "it knows nothing of the latest failover"; {
		case len(used) > 0 && a.addr == used[0].addr && a.addr == f.latest.addr:
		case len(used) > 0 && a.addr == used[0].addr:
			unfit = append(unfit, fmt.Errorf("%s: %s (config-epoch %d, not %d), to %s, which is of no use", f.cfg.Addrs[a.at], outdated, a.epoch, f.latest.epoch, f.latest.addr))
		case slices.Contains(f.retired, a.failover):
			unfit = append(unfit, fmt.Errorf("%s: it names %s (config-epoch %d), which most Sentinels have given up", f.cfg.Addrs[a.at], a.addr, a.epoch))
		case a.epoch == f.latest.epoch:
			unfit = append(unfit, fmt.Errorf("%s: it names %s, and not %s, after the same failover (config-epoch %d)", f.cfg.Addrs[a.at], a.addr, f.latest.addr, a.epoch))
		default:
			unfit = append(unfit, fmt.Errorf("%s: %s (config-epoch %d, not %d), and names %s, which is not used", f.cfg.Addrs[a.at], outdated, a.epoch, f.latest.epoch, a.addr))
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
	latest, retired := earlier.latest, slices.Clone(earlier.retired)
	earlier.looking.Unlock()
	f.looking.Lock()
	defer f.looking.Unlock()
	if latest.epoch > f.latest.epoch || f.latest == (failover{}) {
		f.latest, f.retired = latest, retired
	}
}
