package upstream

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	failoverSeed = flag.Uint64("failover.seed", 0, "of the first random history of Sentinels; 0 means any")
	failoverRuns = flag.Int("failover.runs", 400, "random histories of Sentinels, of each kind")
)

// condition is that of a server in a history.
type condition int

const (
	isPrimary condition = iota
	isDemoted
	isDead
)

const (
	serversThere  = 4                        // in each history
	epochsThere   = 6                        // epochs of chaos are below
	chaosFor      = time.Minute              //
	calmFor       = 2 * time.Minute          //
	believedAfter = doubtMax + 4*time.Second // most Sentinels, at the latest
	lookFor       = lookSentinel             // from one look to the next
)

// history is a time of Sentinels and servers that are what it says, and what is chosen by what the Sentinels answer.
type history struct {
	t         *testing.T
	seed      uint64
	r         *rand.Rand
	now       int64
	failovers failovers
	told      []failover // by Sentinel
	silent    []bool
	lags      []time.Duration // after which each Sentinel answers; nil: in any order
	servers   map[string]condition
	addrs     []string
	chosen    string
	changes   int
	events    []string
}

func newHistory(t *testing.T, seed uint64) *history {
	h := &history{t: t, seed: seed, r: rand.New(rand.NewPCG(seed, 0)), now: int64(time.Hour), servers: map[string]condition{}}
	for i := range serversThere {
		addr := string(rune('A' + i))
		h.addrs = append(h.addrs, addr)
		h.servers[addr] = condition(h.r.IntN(3))
	}
	h.servers[h.addrs[0]] = isPrimary
	for i := range 1 + h.r.IntN(5) {
		h.failovers.sentinels = append(h.failovers.sentinels, strconv.Itoa(i))
		h.told = append(h.told, failover{1, h.addrs[0]})
	}
	h.silent = make([]bool, len(h.told))
	h.look()
	return h
}

// used, unfit and follow implement follower.
func (h *history) used() string { return h.chosen }

func (h *history) unfit() []error {
	if h.chosen == "" {
		return []error{errNoPrimary}
	}
	return h.ask(h.chosen)
}

func (h *history) ask(addr string) []error {
	switch h.servers[addr] {
	case isDemoted:
		return []error{demotedError(addr + " is a replica")}
	case isDead:
		return []error{errors.New(addr + " is dead")}
	}
	return nil
}

func (h *history) follow(addrs []string) (failures []error) {
	for _, addr := range addrs {
		why := h.ask(addr)
		if why == nil {
			if h.chosen != addr {
				h.changes++
				h.event("%q instead of %q is used", addr, h.chosen)
			}
			h.chosen = addr
			return nil
		}
		failures = append(failures, why...)
		if !errors.As(why[0], new(demotedError)) {
			break
		}
	}
	return failures
}

func (h *history) event(format string, args ...any) {
	h.events = append(h.events, fmt.Sprintf("%7.1f s  ", time.Duration(h.now-int64(time.Hour)).Seconds())+fmt.Sprintf(format, args...))
}

// look is one look. Sentinels answer in any order, and those that are slow may be left out once the others suffice.
func (h *history) look() {
	if h.lags != nil {
		h.lookFar()
		return
	}
	var answers []sentinelAnswer
	var silent []error
	for _, at := range h.r.Perm(len(h.told)) {
		switch {
		case h.silent[at]:
			silent = append(silent, errors.New("no answer"))
		case h.failovers.suffice(answers) && h.r.IntN(2) == 0:
		default:
			answers = append(answers, sentinelAnswer{at: at, failover: h.told[at]})
		}
	}
	_ = h.failovers.choose(answers, silent, h, h.now)
	h.now += int64(lookFor) / 2 * (1 + h.r.Int64N(3)) / 2
}

// lookFar is a look at Sentinels of which each answers after a time of its own.
func (h *history) lookFar() {
	var answers []sentinelAnswer
	var silent []error
	order := h.r.Perm(len(h.told))
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(h.lags[a], h.lags[b]) })
	end, sufficed := askMax, false
	for _, at := range order {
		if h.silent[at] || h.lags[at] > end {
			silent = append(silent, errors.New("no answer"))
			continue
		}
		answers = append(answers, sentinelAnswer{at: at, failover: h.told[at]})
		if !sufficed && h.failovers.suffice(answers) {
			sufficed, end = true, min(end, h.lags[at]+sentinelGrace)
		}
	}
	_ = h.failovers.choose(answers, silent, h, h.now)
	h.now += int64(end) + int64(lookFor)/2*(1+h.r.Int64N(3))/2
}

// during looks again and again for a time, before each of which something may happen.
func (h *history) during(most time.Duration, happens func()) {
	for end := h.now + int64(most); h.now < end; h.look() {
		happens()
	}
}

// chaos is anything.
func (h *history) chaos() {
	if h.r.IntN(3) > 0 {
		return
	}
	at, addr := h.r.IntN(len(h.told)), h.addrs[h.r.IntN(len(h.addrs))]
	switch h.r.IntN(4) {
	case 0:
		h.tell(at, failover{h.r.Int64N(epochsThere), addr})
	case 1:
		h.turn(at)
	case 2:
		h.is(addr, condition(h.r.IntN(3)))
	case 3:
		h.is(addr, isPrimary)
		for _, at := range h.most() {
			h.tell(at, failover{h.r.Int64N(epochsThere), addr})
		}
	}
}

func (h *history) tell(at int, told failover) {
	h.told[at], h.silent[at] = told, false
	h.event("Sentinel %d tells of %v", at, told)
}

func (h *history) turn(at int) {
	h.silent[at] = !h.silent[at]
	h.event("Sentinel %d is silent: %v", at, h.silent[at])
}

func (h *history) is(addr string, c condition) {
	h.servers[addr] = c
	h.event("%s is %s", addr, [...]string{"a primary", "a replica", "dead"}[c])
}

// most returns more than half of the Sentinels.
func (h *history) most() []int { return h.r.Perm(len(h.told))[:len(h.told)/2+1] }

func (h *history) require(holds bool, format string, args ...any) {
	h.t.Helper()
	require.True(h.t, holds, "-failover.seed %d: %s; %q is used, %+v, told %v, silent %v\n%q", h.seed, fmt.Sprintf(format, args...), h.chosen, h.failovers, h.told, h.silent,
		h.events[max(0, len(h.events)-40):])
}

// histories runs random ones, the first of which has the seed that is printed.
func histories(t *testing.T, run func(h *history)) {
	seed := cmp.Or(*failoverSeed, rand.Uint64N(1<<32))
	t.Logf("-failover.seed %d", seed)
	for i := range uint64(*failoverRuns) {
		run(newHistory(t, seed+i))
	}
}

// TestMostSentinelsAreBelieved whatever was before, and neither silence nor short failures of the primary lead away from what they name.
func TestMostSentinelsAreBelieved(t *testing.T) {
	histories(t, func(h *history) {
		h.during(chaosFor, h.chaos)
		addr := h.addrs[h.r.IntN(len(h.addrs))]
		h.is(addr, isPrimary)
		most := h.most()
		for _, at := range most {
			h.tell(at, failover{h.r.Int64N(epochsThere), addr})
		}
		h.during(believedAfter, func() {
			if at := h.r.IntN(len(h.told)); !slices.Contains(most, at) && h.r.IntN(3) == 0 {
				h.turn(at)
			}
		})
		h.require(h.chosen == addr, "most name %s", addr)
		failed := h.now
		h.during(calmFor, func() {
			h.require(h.chosen == addr, "most name %s", addr)
			if h.r.IntN(6) == 0 {
				h.turn(h.r.IntN(len(h.told)))
			}
			lasted := time.Duration(h.now - failed)
			switch {
			case h.servers[addr] == isDead && lasted > doubtMax/2:
				h.is(addr, isPrimary)
				failed = h.now
			case h.servers[addr] == isPrimary && lasted > doubtMax/3 && h.r.IntN(20) == 0:
				h.is(addr, isDead)
				failed = h.now
			}
		})
	})
}

// TestFewSentinelsAreEnough: whatever was before, if the primary in use has gone for good, any that is one is used that a Sentinel names, unless most name
// the one that has gone.
func TestFewSentinelsAreEnough(t *testing.T) {
	histories(t, func(h *history) {
		h.during(chaosFor, h.chaos)
		if h.chosen == "" {
			return
		}
		gone, addr := h.chosen, h.addrs[h.r.IntN(len(h.addrs))]
		for _, other := range h.addrs {
			h.is(other, isDead)
		}
		h.is(gone, isDemoted+condition(h.r.IntN(2)))
		if addr == gone {
			return
		}
		h.is(addr, isPrimary)
		named := 0
		for at := range h.told {
			h.silent[at] = h.r.IntN(2) == 0
			if !h.silent[at] && h.told[at].addr == gone {
				named++
			}
		}
		if named > len(h.told)/2 {
			return
		}
		at := h.r.IntN(len(h.told))
		h.silent[at] = false
		if h.told[at].addr = addr; h.r.IntN(2) == 0 {
			h.told[at].epoch = 0
		}
		h.during(believedAfter, func() {})
		h.require(h.chosen == addr, "only %s is of use", addr)
	})
}

// TestNothingChangesByItself: while Sentinels and servers stay as they are, nothing changes, a while after they have become so.
func TestNothingChangesByItself(t *testing.T) {
	histories(t, func(h *history) {
		h.during(chaosFor/2, h.chaos)
		h.event("nothing happens from now on")
		h.during(2*believedAfter, func() {})
		h.changes = 0
		h.during(calmFor, func() {})
		h.require(h.changes == 0, "it has changed %d times", h.changes)
	})
}

// TestFailoversAreFollowed: of Sentinels as they are, which hear of each failover within some seconds, none leads back to a former primary, although that is
// one for some seconds more.
func TestFailoversAreFollowed(t *testing.T) {
	const hearWithin, demotedWithin, between = 2500 * time.Millisecond, 10 * time.Second, 12 * time.Second
	histories(t, func(h *history) {
		epoch, current, next := int64(1), h.addrs[0], h.now+int64(between)
		since := map[string]int64{current: epoch} // by epoch
		var todo []func() bool                    // it reports whether it is done
		at := func(latest time.Duration, do func()) {
			due := h.now + h.r.Int64N(int64(latest))
			todo = append(todo, func() bool {
				if h.now >= due {
					do()
				}
				return h.now >= due
			})
		}
		latest := epoch // of what was used
		h.during(3*calmFor, func() {
			h.require(since[h.chosen] >= latest, "it was led back from the failover %d", latest)
			latest = since[h.chosen]
			if h.now >= next {
				next = h.now + int64(between) + h.r.Int64N(int64(between))
				former := current
				for current == former {
					current = h.addrs[h.r.IntN(len(h.addrs))]
				}
				epoch++
				told := failover{epoch, current}
				since[current] = epoch
				h.is(current, isPrimary)
				if h.r.IntN(3) == 0 {
					h.is(former, isDead)
				}
				h.tell(h.r.IntN(len(h.told)), told)
				for other := range h.told {
					at(hearWithin, func() { h.told[other] = told })
				}
				at(demotedWithin, func() {
					if current != former {
						h.is(former, isDemoted)
					}
				})
			}
			todo = slices.DeleteFunc(todo, func(do func() bool) bool { return do() })
			if other := h.r.IntN(len(h.told)); h.r.IntN(8) == 0 {
				if h.turn(other); 2*len(slices.DeleteFunc(slices.Clone(h.silent), func(silent bool) bool { return silent })) <= len(h.told) {
					h.turn(other)
				}
			}
		})
	})
}

// told returns a history of three Sentinels that tell of these failovers, and servers of which all are primaries.
func told(t *testing.T, what ...failover) *history {
	h := newHistory(t, 1)
	for _, addr := range h.addrs {
		h.servers[addr] = isPrimary
	}
	h.chosen, h.told, h.silent = "", what, make([]bool, len(what))
	h.failovers = failovers{sentinels: []string{"0", "1", "2"}[:len(what)]}
	h.look()
	return h
}

// TestSentinelsAnewOfTheSamePrimary: a new configuration uses it at once, and the next failover counts at once when most tell of it.
func TestSentinelsAnewOfTheSamePrimary(t *testing.T) {
	h := told(t, failover{5, "A"}, failover{5, "A"}, failover{5, "A"})
	h.look()
	require.Zero(t, h.failovers.doubt, "there is none")
	h.told = []failover{{0, "A"}, {0, "A"}, {0, "A"}}
	h.look()
	h.require(h.chosen == "A", "A stays")
	h.during(believedAfter, func() {})
	h.told[1], h.told[2] = failover{1, "B"}, failover{1, "B"}
	h.look()
	h.require(h.chosen == "B", "there was a failover")

	h = told(t, failover{5, "A"}, failover{5, "A"}, failover{5, "A"})
	h.told = []failover{{0, "A"}, {0, "A"}, {0, "A"}}
	h.during(believedAfter, func() {})
	h.told[1], h.told[2] = failover{1, "B"}, failover{1, "B"}
	h.look()
	h.require(h.chosen == "B", "there was a failover")
}

// TestMostNameThePrimaryThatHasGone: then no other is used, though it is of no use for long.
func TestMostNameThePrimaryThatHasGone(t *testing.T) {
	for _, gone := range []condition{isDemoted, isDead} {
		h := told(t, failover{5, "A"}, failover{5, "A"}, failover{4, "B"})
		h.is("A", gone)
		h.during(3*doubtMax, func() { h.require(h.chosen == "A", "most name A") })
	}
}

// TestAFailoverByHearsay: what one has told of, whose primary was of no use, does not keep the gateway from that primary once most name it.
func TestAFailoverByHearsay(t *testing.T) {
	for _, gone := range []condition{isDemoted, isDead} {
		h := told(t, failover{5, "A"}, failover{5, "A"}, failover{5, "A"})
		h.is("B", isDead)
		h.told[0] = failover{6, "B"}
		h.look()
		h.require(h.chosen == "A" && h.failovers.latest == h.told[0], "B is of no use")
		h.is("B", isPrimary)
		h.is("A", gone)
		h.told = []failover{{0, "B"}, {0, "B"}, {0, "B"}}
		h.during(believedAfter, func() {})
		h.require(h.chosen == "B", "all name it")
	}
}

// TestWhichAnswersSuffice: slow Sentinels are waited for until most name one primary, or one tells of a later failover than the latest that is known.
func TestWhichAnswersSuffice(t *testing.T) {
	h := told(t, failover{5, "A"}, failover{5, "A"}, failover{5, "A"})
	suffice := func(told ...failover) bool {
		var answers []sentinelAnswer
		for at, f := range told {
			answers = append(answers, sentinelAnswer{at: at, failover: f})
		}
		return h.failovers.suffice(answers)
	}
	require.False(t, suffice(failover{5, "A"}), "it may be outdated")
	require.False(t, suffice(failover{5, "A"}, failover{4, "B"}), "they do not agree")
	require.True(t, suffice(failover{5, "A"}, failover{4, "A"}))
	require.True(t, suffice(failover{6, "B"}))
	h.failovers.doubt.useless = h.now
	require.False(t, suffice(failover{5, "A"}, failover{4, "A"}), "A is of no use, and the third may know why")
	require.True(t, suffice(failover{5, "A"}, failover{6, "B"}))
	h.failovers.givenUp = 6
	require.False(t, suffice(failover{6, "B"}), "most have given it up")
	h.failovers.latest = failover{}
	require.False(t, suffice(failover{7, "B"}), "nothing is known to compare it with")
}

// TestStaticSentinels: whatever is remembered, and however far the Sentinels are, a primary is used that is one if any of them names such, that which most name
// if it is one, and no other later on. If most name one that is none, no other is.
func TestStaticSentinels(t *testing.T) {
	const settled = 40 * time.Second
	seed := cmp.Or(*failoverSeed, rand.Uint64N(1<<32))
	t.Logf("-failover.seed %d", seed)
	for i := range uint64(10 * *failoverRuns) {
		h := &history{t: t, seed: seed + i, r: rand.New(rand.NewPCG(seed+i, 0)), now: int64(time.Hour), servers: map[string]condition{}}
		for i := range serversThere {
			h.addrs = append(h.addrs, string(rune('A'+i)))
			h.servers[h.addrs[i]] = condition(h.r.IntN(3))
		}
		some := func() failover { return failover{h.r.Int64N(4), h.addrs[h.r.IntN(len(h.addrs))]} }
		for at := range 1 + h.r.IntN(5) {
			h.failovers.sentinels = append(h.failovers.sentinels, strconv.Itoa(at))
			h.told = append(h.told, some())
			h.lags = append(h.lags, time.Duration(h.r.Int64N(int64(askMax))))
			h.silent = append(h.silent, h.r.IntN(4) == 0)
		}
		known := h.r.IntN(3)
		if known > 0 { // by an earlier configuration
			h.failovers.latest = some()
			h.failovers.left = h.r.Int64N(4)
			h.failovers.givenUp = h.r.Int64N(h.failovers.left + 1)
		}
		if known > 1 {
			h.chosen = h.failovers.latest.addr
		}
		h.during(settled, func() {})
		h.changes = 0
		h.during(settled, func() {})
		var answers []sentinelAnswer
		lives := false
		for at, told := range h.told {
			if !h.silent[at] {
				answers = append(answers, sentinelAnswer{at: at, failover: told})
				lives = lives || h.servers[told.addr] == isPrimary
			}
		}
		most, _ := mostName(answers, len(h.told))
		used := h.chosen != "" && h.servers[h.chosen] == isPrimary
		switch {
		case most != "" && h.servers[most] == isPrimary:
			h.require(h.chosen == most, "most name %s", most)
		case lives && (most == "" || most != h.chosen && h.chosen != ""):
			h.require(used, "Sentinels name one that is of use")
		}
		h.require(h.changes == 0, "it has changed %d times", h.changes)
	}
}

// fresh is told of a gateway that has just started, before its first look.
func fresh(t *testing.T, what ...failover) *history {
	h := told(t, what...)
	h.chosen, h.failovers = "", failovers{sentinels: h.failovers.sentinels}
	return h
}

// TestOneMissedAnswer: that one of the Sentinels which name the primary that has gone does not answer for once leads to no other.
func TestOneMissedAnswer(t *testing.T) {
	h := told(t, failover{2, "B"}, failover{2, "B"}, failover{1, "A"})
	h.is("B", isDead)
	h.during(3*doubtMax, func() {
		h.silent[1] = h.r.IntN(4) == 0
		h.require(h.chosen == "B", "most name B")
	})
	h.silent[1] = true
	h.during(believedAfter, func() {})
	h.require(h.chosen == "A", "A is all that is left")
}

// TestStartWithoutEpochs: the first primary that is named is of no use, and another one is; the epochs may be 0.
func TestStartWithoutEpochs(t *testing.T) {
	for _, epoch := range []int64{0, 1} {
		h := fresh(t, failover{epoch, "B"}, failover{epoch, "A"}, failover{epoch, "A"})
		h.is("B", isDead)
		h.silent[2] = true
		h.during(believedAfter, func() {})
		h.require(h.chosen == "A", "it is the only one")
	}
}

// TestStartWhileThePrimaryIsDead: what most name stays the only one, as it does where it was in use.
func TestStartWhileThePrimaryIsDead(t *testing.T) {
	h := fresh(t, failover{2, "B"}, failover{2, "B"}, failover{1, "A"})
	h.is("B", isDead)
	h.during(3*doubtMax, func() { h.require(h.chosen == "", "most name B") })
}

// TestStartBesideAHigherEpoch: one Sentinel tells of a failover to what is none, and most name another one.
func TestStartBesideAHigherEpoch(t *testing.T) {
	for _, c := range []condition{isDemoted, isDead} {
		h := fresh(t, failover{9, "D"}, failover{2, "A"}, failover{2, "A"})
		h.is("D", c)
		h.look()
		h.require(h.chosen == "A", "most name it")
	}
}

// TestRefusedFailoversComeLast: what most have left is tried behind a failover that is counted anew.
func TestRefusedFailoversComeLast(t *testing.T) {
	h := told(t, failover{5, "A"}, failover{5, "A"}, failover{5, "A"})
	h.told[1], h.told[2] = failover{0, "B"}, failover{0, "B"} // set up anew
	h.during(believedAfter, func() {})
	h.told[1], h.told[2] = failover{1, "C"}, failover{1, "C"}
	h.look()
	h.require(h.chosen == "C", "most name it")
	h.told[1], h.told[2] = failover{2, "D"}, failover{2, "D"}
	h.is("C", isDead)
	h.silent[2] = true
	h.during(believedAfter, func() {})
	h.require(h.chosen == "D", "A was left")
}

// TestATieOfDeadPrimaries: one Sentinel names a primary that lives, after the failover with the highest epoch, and two name one that is dead, after the same.
func TestATieOfDeadPrimaries(t *testing.T) {
	h := told(t, failover{4, "C"}, failover{4, "C"}, failover{4, "C"})
	h.is("B", isDead)
	h.told[2] = failover{5, "B"}
	h.during(doubtMax, func() {})
	h.is("C", isDead)
	h.is("A", isDead)
	h.told[0], h.told[1] = failover{5, "A"}, failover{5, "A"}
	h.during(2*doubtMax, func() {})
	h.is("B", isPrimary)
	h.during(believedAfter, func() {})
	h.require(h.chosen == "B", "it is the only one")
}

// TestTimeWithoutLooks: a process that was stopped has not seen that the primary was of no use all the time.
func TestTimeWithoutLooks(t *testing.T) {
	h := told(t, failover{2, "B"}, failover{2, "B"}, failover{1, "A"})
	h.is("B", isDead)
	h.during(doubtMax/4, func() {})
	h.now += int64(time.Hour)
	h.silent[0] = true
	h.look()
	h.require(h.chosen == "B", "most have named it")
}

// TestAnEpochThatWasGivenUp stays given up, also if a Sentinel that was left behind tells of it again and names the primary that most name.
func TestAnEpochThatWasGivenUp(t *testing.T) {
	h := told(t, failover{5, "A"}, failover{5, "A"}, failover{5, "A"})
	move := func(epoch int64, from, to string) {
		h.is(from, isDead)
		h.is(to, isPrimary)
		h.told[1], h.told[2] = failover{epoch, to}, failover{epoch, to}
		begin := h.now
		for h.chosen != to {
			h.look()
			h.require(h.now-begin < int64(believedAfter), "it goes to %s", to)
		}
		if epoch > 0 {
			h.require(h.now-begin < int64(4*time.Second), "to %s only after %v", to, time.Duration(h.now-begin))
		}
		h.during(time.Minute, func() {})
	}
	h.told[1], h.told[2] = failover{0, "B"}, failover{0, "B"} // set up anew; Sentinel 0 is left behind
	h.during(believedAfter, func() {})
	h.require(h.chosen == "B", "most name B")
	move(1, "B", "C")
	move(2, "C", "A")
	move(3, "A", "B")
}

// TestAFailoverBesideTheFormerPrimary: a gateway that has none in use goes where the latest failover has led, though the former primary is back.
func TestAFailoverBesideTheFormerPrimary(t *testing.T) {
	for name, epoch := range map[string]int64{"as it was known": 5, "of Sentinels set up anew": 2} {
		t.Run(name, func(t *testing.T) {
			h := fresh(t, failover{5, "D"}, failover{5, "D"}, failover{5, "D"})
			h.is("D", isDead)
			h.during(3*time.Second, func() {})
			h.require(h.chosen == "", "D is dead")
			h.told = []failover{{6, "B"}, {epoch, "D"}, {epoch, "D"}}
			h.is("D", isPrimary)
			h.is("B", isPrimary)
			var answers []sentinelAnswer
			for at := range h.told {
				answers = append(answers, sentinelAnswer{at: at, failover: h.told[at]})
			}
			_ = h.failovers.choose(answers, nil, h, h.now)
			h.require(h.chosen == "B", "the failover to B is the latest")
		})
	}
}
