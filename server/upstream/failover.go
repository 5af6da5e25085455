package upstream

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Sentinels count failovers, and say which one their primary comes from: its epoch. The primary in use is remembered with the latest one, so that
// Sentinels which have missed it do not lead back to the former primary, whenever they are the only ones that answer, or answer in time.
//
// But epochs begin anew where Sentinels are set up anew. So a primary of an earlier failover counts, too: once most of the Sentinels that the configuration
// names have named it for doubtMax, or at once if the primary in use says that it is a replica, or none has been in use so far. And whatever is named counts
// if the primary in use has been of no use for doubtMax, and most Sentinels have not named it for as long. What a few tell of later failovers than the one
// that most have led to, or have confirmed since, counts no more.

var errNoPrimary = errors.New("no primary is in use")

const (
	// doubtMax is how long answers of earlier failovers are doubted. Sentinels tell each other of a failover within a few seconds.
	doubtMax = 10 * time.Second
	// unseenMax is how much of the time between two looks counts: a process that was stopped has seen nothing meanwhile.
	unseenMax = doubtMax / 2
)

// doubt is what is remembered while Sentinels name other primaries than the one that is chosen, or that is of no use. The zero value is none.
type doubt struct {
	addr        string // the primary that most Sentinels name, other than at the latest failover
	since, seen int64  // when they have begun to, by Now, and when they last have
	useless     int64  // since when the primary in use has been of no use, likewise; 0: it is of use
	demoted     bool   // it says that it is a replica
	named       int64  // when most Sentinels have last named it; 0: not since it is in use
}

// hears notes what most of a number of Sentinels name other than at the latest failover, "" for nothing, by so many votes for each primary. Those that are silent
// for a while contradict nothing.
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

// isContradicted notes that most Sentinels name the primary in use.
func (d *doubt) isContradicted() { d.addr, d.since, d.seen = "", 0, 0 }

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

// isUseless reports whether the primary in use has been of no use for long, and most Sentinels have not named it for as long: that one of them misses an answer
// leads to no other.
func (d *doubt) isUseless(now int64) bool {
	return d.useless != 0 && now-d.useless >= int64(doubtMax) && (d.named == 0 || now-d.named >= int64(doubtMax))
}

// passOver has a time count for nothing in which there was no look.
func (d *doubt) passOver(unseen int64) {
	if d.useless != 0 {
		d.useless += unseen
	}
	if d.named != 0 {
		d.named += unseen
	}
}

// failover is one that Sentinels know of: its epoch, and the primary that it led to. The zero value is none.
type failover struct {
	epoch int64
	addr  string
}

// failovers is what is remembered of those that Sentinels have told of.
type failovers struct {
	sentinels []string   // the addresses of all
	latest    failover   // that is known; its primary may be of no use as yet
	left      int64      // the epoch of the latest one that has been left for an earlier one
	givenUp   int64      // the same, once most Sentinels name the primary in use: those up to it count only if most name their primary
	refused   []failover // what a few told of when most led to the primary in use
	looked    int64      // when the answers of the last look came
	doubt     doubt
}

// follower is whose calls go to the primary that is chosen: a fleet.
type follower interface {
	used() string                  // the address of the primary in use, "" if there is none; as long as a new configuration has none, that of the former one
	unfit() []error                // why that is of no use, nil if it is
	follow(addrs []string) []error // uses the first of some, or the next if that is a replica; or why it is none of them
}

// claim is primaries that may be the one, the first of them unless it is a replica.
type claim struct {
	addrs  []string
	byMost bool // of the Sentinels
}

// choose has the primary used that answers lead to, if it is of use. silent is why other Sentinels have not answered.
func (k *failovers) choose(answers []sentinelAnswer, silent []error, with follower, now int64) error {
	if unseen := now - k.looked - int64(unseenMax); unseen > 0 {
		k.doubt.passOver(unseen)
	}
	k.looked = now
	if k.doubt.useless != 0 || len(answers) == 0 {
		k.doubt.finds(with.unfit(), now) // it may be of use again
	}
	if len(answers) == 0 {
		return &lookError{failures: silent}
	}
	claims := k.claims(answers, with.used(), now)
	if claims == nil {
		return k.stay(answers, silent, with, now)
	}
	var failures, unused []error
	for _, c := range claims {
		if told := k.heard(answers, c.addrs[0]); k.isLater(told) || k.latest == (failover{}) { // an epoch may be 0
			k.latest = told
		}
		unfit := with.follow(c.addrs)
		if unfit == nil {
			k.settle(with.used(), c.byMost, answers)
			if unused != nil {
				return &lookError{failures: unused, settled: true}
			}
			return nil
		}
		if c.byMost {
			unused = unfit
		}
		failures = append(failures, unfit...)
	}
	if used := with.used(); used != "" && with.follow([]string{used}) == nil {
		k.doubt.finds(nil, now)
		return &lookError{failures: append(silent, failures...), settled: true}
	}
	k.doubt.finds(with.unfit(), now)
	return &lookError{failures: append(silent, failures...)}
}

// isLater reports whether a failover is later than the latest one that is known, and has not been given up.
func (k *failovers) isLater(told failover) bool { return told.epoch > max(k.latest.epoch, k.givenUp) }

// suffice reports whether answers are worth acting on while others are missing: one tells of a later failover, or most Sentinels name one primary and that in
// use is of use. If it is of none, a Sentinel that is further away may know why.
func (k *failovers) suffice(answers []sentinelAnswer) bool {
	most, _ := mostName(answers, len(k.sentinels))
	return most != "" && k.doubt.useless == 0 || k.latest != failover{} && k.isLater(failover{epoch: latestEpoch(answers)})
}

// claims returns what is to be tried, in turn: what is named by answers that count, or by most of them and not earlier; what most have named for long, or at
// all if there was no primary before; and any other, if all that has been of no use for long. None means that the primary in use stays.
func (k *failovers) claims(answers []sentinelAnswer, used string, now int64) (claims []claim) {
	most, votes := mostName(answers, len(k.sentinels))
	isUsed := most != "" && (most == used || used == "" && most == k.latest.addr)
	if isUsed {
		k.doubt.named = now
	}
	if isUsed && k.heard(answers, most).epoch >= k.latest.epoch {
		k.doubt.isContradicted()
		k.givenUp = max(k.givenUp, k.left)
	} else {
		k.doubt.hears(most, votes, len(k.sentinels), now)
	}
	var current []sentinelAnswer
	for _, a := range answers {
		if k.latest == (failover{}) || a.failover == k.latest || k.isLater(a.failover) || a.addr == most && a.epoch >= k.latest.epoch {
			current = append(current, a)
		}
	}
	if len(current) > 0 {
		claims = append(claims, claim{addrs: ranked(current, used)})
	}
	believed := k.doubt.believes(most, now)
	if believed || most != "" && used == "" {
		claims = append(claims, claim{[]string{most}, true})
		if believed && !k.doubt.demoted { // else it is a later failover, if one is known, that tells why
			slices.Reverse(claims)
		}
	}
	if !k.doubt.isUseless(now) {
		return claims
	}
	var others, last []sentinelAnswer
	for _, a := range answers {
		switch {
		case slices.ContainsFunc(claims, func(c claim) bool { return c.addrs[0] == a.addr }):
		case slices.Contains(k.refused, a.failover): // by most
			last = append(last, a)
		default:
			others = append(others, a)
		}
	}
	return append(append(claims, oneByOne(others)...), oneByOne(last)...)
}

// oneByOne claims all primaries that are named, those of the latest failovers first.
func oneByOne(answers []sentinelAnswer) (claims []claim) {
	for len(answers) > 0 {
		addr := ranked(answers, "")[0]
		claims = append(claims, claim{addrs: []string{addr}})
		answers = slices.DeleteFunc(answers, func(a sentinelAnswer) bool { return a.addr == addr })
	}
	return claims
}

// mostName returns the primary that most of a number of Sentinels name, "" if there is none, and the votes for each primary.
func mostName(answers []sentinelAnswer, sentinels int) (most string, votes map[string]int) {
	votes = map[string]int{}
	for _, a := range answers {
		if votes[a.addr]++; votes[a.addr] > sentinels/2 {
			most = a.addr
		}
	}
	return most, votes
}

// latestEpoch is that of the latest failover that Sentinels know of.
func latestEpoch(answers []sentinelAnswer) (latest int64) {
	for _, a := range answers {
		latest = max(latest, a.epoch)
	}
	return latest
}

// heard returns the latest failover to a primary that Sentinels know of, if it can be one that most have not refused.
func (k *failovers) heard(answers []sentinelAnswer, addr string) failover {
	latest, refused := failover{epoch: -1, addr: addr}, failover{addr: addr}
	for _, a := range answers {
		switch {
		case a.addr != addr:
		case slices.Contains(k.refused, a.failover):
			refused = a.failover
		default:
			latest.epoch = max(latest.epoch, a.epoch)
		}
	}
	if latest.epoch < 0 {
		return refused
	}
	return latest
}

// ranked returns the primaries of the latest failover that answers tell of, the one to be used first: that most of them name, or else that is used, or
// else that the Sentinel tells of that the configuration names first.
func ranked(answers []sentinelAnswer, used string) (addrs []string) {
	votes, latest := map[string]int{}, latestEpoch(answers)
	slices.SortFunc(answers, func(a, b sentinelAnswer) int { return cmp.Compare(a.at, b.at) })
	for _, a := range answers {
		if a.epoch == latest {
			if votes[a.addr]++; votes[a.addr] == 1 {
				addrs = append(addrs, a.addr)
			}
		}
	}
	slices.SortStableFunc(addrs, func(a, b string) int {
		switch {
		case votes[a] != votes[b]:
			return votes[b] - votes[a]
		case a == used:
			return -1
		case b == used:
			return 1
		}
		return 0
	})
	return addrs
}

// settle notes that a primary is in use that Sentinels have named. If most of them have led to it, the later failovers that are known of are given up.
func (k *failovers) settle(addr string, byMost bool, answers []sentinelAnswer) {
	former := k.latest
	k.latest = k.heard(answers, addr)
	k.doubt.useless, k.doubt.demoted, k.doubt.named = 0, false, 0
	if k.latest.epoch >= former.epoch {
		return
	}
	k.left = max(k.left, former.epoch)
	if byMost {
		k.doubt = doubt{}
		k.givenUp = max(k.left, latestEpoch(answers))
		k.refused = nil
		for _, a := range answers {
			if a.addr != addr {
				k.refused = append(k.refused, a.failover)
			}
		}
	}
}

// stay sees that the primary in use still is one, while Sentinels know only of earlier failovers. That these name another one is a problem to be told.
func (k *failovers) stay(answers []sentinelAnswer, silent []error, with follower, now int64) error {
	used := with.used()
	unfit := []error{errNoPrimary}
	if used != "" {
		unfit = with.follow([]string{used})
	}
	settled := unfit == nil
	if settled {
		k.doubt.finds(nil, now)
	} else {
		k.doubt.finds(with.unfit(), now) // which a new configuration may find otherwise than the former one, whose primary it is
	}
	for _, a := range answers {
		const outdated = "it knows nothing of the latest failover"
		named := k.sentinels[a.at]
		switch {
		case a.addr == used && a.addr == k.latest.addr:
		case a.addr == used:
			unfit = append(unfit, fmt.Errorf("%s: %s (config-epoch %d, not %d), to %s, which is of no use", named, outdated, a.epoch, k.latest.epoch, k.latest.addr))
		case a.epoch > k.latest.epoch:
			unfit = append(unfit, fmt.Errorf("%s: it names %s (config-epoch %d), which most Sentinels have given up", named, a.addr, a.epoch))
		case a.epoch == k.latest.epoch:
			unfit = append(unfit, fmt.Errorf("%s: it names %s, and not %s, after the same failover (config-epoch %d)", named, a.addr, k.latest.addr, a.epoch))
		default:
			unfit = append(unfit, fmt.Errorf("%s: %s (config-epoch %d, not %d), and names %s, which is not used", named, outdated, a.epoch, k.latest.epoch, a.addr))
		}
	}
	if unfit == nil {
		return nil
	}
	return &lookError{failures: append(silent, unfit...), settled: settled}
}

// used returns the address of the primary in use, "" if there is none.
func (f *fleet) used() string {
	if used := *f.primaries.Load(); len(used) > 0 {
		return used[0].addr
	}
	if f.former != nil {
		return f.former.used()
	}
	return ""
}

// unfit returns why the primary in use is of no use, nil if it is.
func (f *fleet) unfit() (failures []error) {
	used := *f.primaries.Load()
	if len(used) == 0 && f.former != nil {
		return f.former.unfit()
	}
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

// succeed has a new configuration begin with what the one in use knows of failovers, and with its primary, if both ask one of the same Sentinels about the same
// primary.
func (f *fleet) succeed(former *fleet) {
	shared := func(addr string) bool { return slices.Contains(former.cfg.Addrs, addr) }
	if f.cfg.Kind != Sentinel || former.cfg.Kind != Sentinel || f.cfg.Master != former.cfg.Master || !slices.ContainsFunc(f.cfg.Addrs, shared) {
		return
	}
	known := former.knownFailovers()
	f.looking.Lock()
	defer f.looking.Unlock()
	f.former, f.heard = former, known.latest
	known.sentinels = f.failovers.sentinels
	f.failovers = known
}

// catchUp takes over the failover that the former configuration, which goes on looking, has heard of since the last time. It reports whether there was one.
func (f *fleet) catchUp() bool {
	if f.former == nil {
		return false
	}
	known := f.former.knownFailovers()
	f.looking.Lock()
	defer f.looking.Unlock()
	if known.latest == f.heard {
		return false
	}
	if f.heard = known.latest; !known.isLater(f.failovers.latest) {
		known.sentinels = f.failovers.sentinels
		f.failovers = known
		f.setPrimaries(nil) // the former one's counts again
	}
	return true
}

// stands has a configuration that is in use now forget the former one.
func (f *fleet) stands() {
	f.looking.Lock()
	defer f.looking.Unlock()
	f.former = nil
}

// knownFailovers returns what is known of failovers.
func (f *fleet) knownFailovers() failovers {
	f.looking.Lock()
	defer f.looking.Unlock()
	return f.failovers
}
