package soak

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/flood"
	"headgate/tests/internal/harness"
)

const (
	honestEvery  = 50 * time.Millisecond // each client limits something, whether or not it is late
	honestWait   = time.Minute           // for an answer
	passesAtMost = 20                    // of a key whose limit is low,
	callsOfKey   = 30                    // which is asked about so often,
	sharedPasses = 500                   // and the same of a key that all clients share
	sharedCalls  = 700
	slidingLimit = 8
	slidingTime  = 400 // ms
)

// honestScript is a fixed window, as people write it.
const honestScript = `local n = redis.call('INCR', KEYS[1])
if n == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
if n > tonumber(ARGV[1]) then return 0 end
return 1`

// verdicts are what the honest were told.
type verdicts struct {
	Calls, Refused      int64 // answers in all, and of these refusals
	WronglyRefused      int64
	WronglyLetThrough   int64
	Errors              int64
	mu                  sync.Mutex
	firstError, firstOf string
}

// honest are clients that limit, each by keys whose answers are known.
type honest struct {
	count int // of clients
	verdicts
	phase   atomic.Int64 // which of the times an answer belongs to
	mu      sync.Mutex
	times   [phases][]time.Duration
	recent  []time.Duration // since somebody looked
	clients sync.WaitGroup

	// Those of the goroutine that serves them.
	shared int           // calls of shared keys
	epochs map[int]epoch // by a shared key's number
}

// The phases of a soak.
const (
	phaseQuiet = iota
	phaseFloods
	phaseLong // beside floods of which a single command takes long
	phaseAfter
	phases
)

// epoch is what the clients know of a key that they share: of how many calls the answers came, and how many passed.
type epoch struct{ answered, passed int }

// startHonest connects so many clients that limit until the context ends.
func startHonest(ctx context.Context, t *testing.T, server *harness.Server, count int, reference bool) *honest {
	h := &honest{count: count, epochs: map[int]epoch{}}
	for i := range h.times { // a slice that grows is copied, which takes as long as a slow answer
		h.times[i] = make([]time.Duration, 0, callsIn(count, *hostileQuiet+*hostileTime+settleFor))
	}
	kinds := kindsOfHonest
	if reference {
		kinds = kinds[:kindsOfRedis]
	}
	loop, err := newHonestLoop(h)
	require.NoError(t, err)
	begin := time.Now()
	for i := range count {
		c := &honestClient{h: h, index: i, kind: &kinds[i%len(kinds)], due: begin.Add(time.Duration(i) * honestEvery / 200)} // not all at once
		require.NoError(t, loop.add(c, server.Addr), "a client that limits")
	}
	h.clients.Go(func() { loop.run(ctx) })
	return h
}

// callsIn is about how many calls so many clients make in a time.
func callsIn(count int, d time.Duration) int { return count * int(d/honestEvery+1) * 11 / 10 }

// note takes down one answer.
func (h *honest) note(took time.Duration, passed, right bool) {
	atomic.AddInt64(&h.Calls, 1)
	if !passed {
		atomic.AddInt64(&h.Refused, 1)
	}
	switch {
	case right:
	case passed:
		atomic.AddInt64(&h.WronglyLetThrough, 1)
	default:
		atomic.AddInt64(&h.WronglyRefused, 1)
	}
	h.noteTime(took)
}

// noteTime takes down what was waited for an answer.
func (h *honest) noteTime(took time.Duration) {
	phase := h.phase.Load()
	h.mu.Lock()
	h.times[phase] = append(h.times[phase], took)
	h.recent = append(h.recent, took)
	h.mu.Unlock()
}

func (h *honest) failed(what string, err error) {
	atomic.AddInt64(&h.Errors, 1)
	h.verdicts.mu.Lock()
	defer h.verdicts.mu.Unlock()
	if h.firstError == "" {
		h.firstError, h.firstOf = err.Error(), what
	}
}

// look returns what was waited for since the last look, in no order.
func (h *honest) look() []time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	recent := h.recent
	h.recent = nil
	return recent
}

// phaseTimes are the percentiles of a phase.
func (h *honest) phaseTimes(phase int) (count int, p50, p99, p999, slowest time.Duration) {
	h.mu.Lock()
	times := slices.Clone(h.times[phase])
	h.mu.Unlock()
	p50, p99, p999, slowest = flood.Quantiles(times)
	return len(times), p50, p99, p999, slowest
}

// settleShared looks at the keys that the clients shared and whose answers all came: exactly so many passed. Call it when the clients are done.
func (h *honest) settleShared() (whole int) {
	for _, e := range h.epochs {
		if e.answered != sharedCalls {
			continue
		}
		whole++
		if e.passed > sharedPasses {
			h.WronglyLetThrough += int64(e.passed - sharedPasses)
		} else {
			h.WronglyRefused += int64(sharedPasses - e.passed)
		}
	}
	return whole
}

// honestClient is one of them.
type honestClient struct {
	h      *honest
	index  int
	kind   *honestKind
	conn   honestConn
	due    time.Time // of the call that is under way, or of the next one
	asked  time.Time // when what is under way was sent; zero: nothing is
	waits  int       // replies that are still to come of it
	spent  string    // a key of which the last call was answered, and that is to be removed; "": none
	key    int       // how many keys it has used up
	calls  int       // of the present one
	log    []int64
	clock  int64 // ms, the last that was sent
	shared int   // the number of the shared key that it has called last
}

// honestKind is a way of limiting.
type honestKind struct {
	name string
	// call returns the commands of the next call.
	call func(c *honestClient) [][]string
	// judge returns what the replies to these say.
	judge func(c *honestClient, replies []harness.Value) (passed, right bool, err error)
}

// kindsOfHonest are the ways in which the clients limit, those first that redis-server has, too.
var kindsOfHonest = []honestKind{
	{"a sliding window in MULTI", (*honestClient).slidingCall, (*honestClient).slidingAnswer},
	{"a script", (*honestClient).scriptCall, (*honestClient).scriptAnswer},
	{"CL.THROTTLE", (*honestClient).throttleCall, (*honestClient).throttleAnswer},
	{"RL.GCRA", (*honestClient).gcraCall, (*honestClient).gcraAnswer},
	{"a shared key", (*honestClient).sharedCall, (*honestClient).sharedAnswer},
}

const kindsOfRedis = 2

// next sends the call that is due, or removes the key that is spent, if one is: the answer to that counts like the others.
func (c *honestClient) next() error {
	commands := [][]string{{"UNLINK", c.spent}}
	if c.spent == "" {
		commands = c.kind.call(c)
	}
	var request []byte
	for _, command := range commands {
		request = append(request, harness.Command(command...)...)
	}
	c.asked, c.waits = time.Now(), len(commands)
	return c.conn.send(request)
}

// answer takes the replies to what is under way.
func (c *honestClient) answer(replies []harness.Value) error {
	for _, v := range replies {
		if v.Kind == '-' {
			return errors.New(v.Text)
		}
	}
	asked := c.asked
	c.asked, c.waits = time.Time{}, 0
	if c.spent != "" {
		c.spent = ""
		c.h.noteTime(time.Since(asked))
		c.due = c.due.Add(honestEvery)
		return nil
	}
	passed, right, err := c.kind.judge(c, replies)
	if err != nil {
		return err
	}
	c.h.note(time.Since(c.due), passed, right)
	if c.spent != "" {
		return c.next()
	}
	c.due = c.due.Add(honestEvery)
	return nil
}

// name is that of the present key.
func (c *honestClient) name() string { return fmt.Sprintf("honest:%d:%d", c.index, c.key) }

func (c *honestClient) nextKey() { c.key, c.calls = c.key+1, 0 }

// count takes note of a call of a key of which exactly passesAtMost pass, and goes on to a new key after so many.
func (c *honestClient) count(passed bool) (bool, bool, error) {
	c.calls++
	right := passed == (c.calls <= passesAtMost)
	if c.calls == callsOfKey {
		c.spent = c.name()
		c.nextKey()
	}
	return passed, right, nil
}

func first(v harness.Value) (int64, error) {
	if len(v.Items) > 0 {
		v = v.Items[0]
	}
	return strconv.ParseInt(v.Text, 10, 64)
}

// throttleCall has a burst and nothing to speak of after it: one unit in ten days.
func (c *honestClient) throttleCall() [][]string {
	return [][]string{{"CL.THROTTLE", c.name(), strconv.Itoa(passesAtMost - 1), "1", "864000"}}
}

func (c *honestClient) throttleAnswer(replies []harness.Value) (passed, right bool, err error) {
	limited, err := first(replies[0])
	if err != nil {
		return false, false, err
	}
	return c.count(limited == 0)
}

// gcraCall is never refused by the first of its limits, and by the second as throttleCall is.
func (c *honestClient) gcraCall() [][]string {
	return [][]string{{"RL.GCRA", fmt.Sprintf("honest:%d:high", c.index), "1000000", "1000000", "1000"},
		{"RL.GCRA", c.name(), strconv.Itoa(passesAtMost), "1", "864000000"}}
}

func (c *honestClient) gcraAnswer(replies []harness.Value) (passed, right bool, err error) {
	high, err := first(replies[0])
	if err != nil {
		return false, false, err
	}
	limited, err := first(replies[1])
	if err != nil {
		return false, false, err
	}
	passed, right, err = c.count(limited == 0)
	if high != 0 {
		return false, false, err
	}
	return passed, right, err
}

// slidingCall is a window of times in a sorted set, as people write it. The times are the client's own, so that it knows the answer.
func (c *honestClient) slidingCall() [][]string {
	c.clock = max(c.clock+1, time.Now().UnixMilli())
	now, from := strconv.FormatInt(c.clock, 10), strconv.FormatInt(c.clock-slidingTime, 10)
	key := fmt.Sprintf("honest:%d:window", c.index)
	return [][]string{{"MULTI"}, {"ZREMRANGEBYSCORE", key, "-inf", from}, {"ZCARD", key}, {"ZADD", key, now, now}, {"PEXPIRE", key, "600000"}, {"EXEC"}}
}

func (c *honestClient) slidingAnswer(replies []harness.Value) (passed, right bool, err error) {
	results := replies[len(replies)-1].Items
	if len(results) != 4 {
		return false, false, fmt.Errorf("EXEC was answered with %d results", len(results))
	}
	within, err := first(results[1])
	if err != nil {
		return false, false, err
	}
	for len(c.log) > 0 && c.log[0] <= c.clock-slidingTime {
		c.log = c.log[1:]
	}
	expected := int64(len(c.log))
	c.log = append(c.log, c.clock)
	passed = within < slidingLimit
	return passed, passed == (expected < slidingLimit) && within == expected, nil
}

// scriptCall is refused after so many calls.
func (c *honestClient) scriptCall() [][]string {
	return [][]string{{"EVAL", honestScript, "1", c.name(), strconv.Itoa(passesAtMost), "86400000"}}
}

func (c *honestClient) scriptAnswer(replies []harness.Value) (passed, right bool, err error) {
	one, err := first(replies[0])
	if err != nil {
		return false, false, err
	}
	return c.count(one == 1)
}

// sharedCall limits by a key that several clients share: how many of all their calls passed is looked at when all have been answered.
func (c *honestClient) sharedCall() [][]string {
	c.shared = c.h.shared / sharedCalls
	c.h.shared++
	return [][]string{{"CL.THROTTLE", c.sharedName(), strconv.Itoa(sharedPasses - 1), "1", "864000"}}
}

func (c *honestClient) sharedName() string { return fmt.Sprintf("honest:shared:%d", c.shared) }

func (c *honestClient) sharedAnswer(replies []harness.Value) (passed, right bool, err error) {
	limited, err := first(replies[0])
	if err != nil {
		return false, false, err
	}
	e := c.h.epochs[c.shared]
	if limited == 0 {
		e.passed++
	}
	if e.answered++; e.answered == sharedCalls {
		c.spent = c.sharedName()
	}
	c.h.epochs[c.shared] = e
	return limited == 0, true, nil
}
