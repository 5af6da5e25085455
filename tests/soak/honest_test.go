package soak

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

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
	server    *harness.Server
	count     int  // of clients
	reference bool // the server has no limiters: all limit by transactions and scripts
	verdicts
	phase   atomic.Int64 // which of the times an answer belongs to
	mu      sync.Mutex
	times   [phases][]time.Duration
	recent  []time.Duration // since somebody looked
	shared  atomic.Int64    // calls of shared keys
	epochs  sync.Map        // a shared key's number: *epoch
	clients sync.WaitGroup
}

// The phases of a soak.
const (
	phaseQuiet = iota
	phaseFloods
	phaseLong // beside floods of which a single command takes long
	phaseAfter
	phases
)

// epoch is what the clients know of a key that they share.
type epoch struct{ answered, passed, lost atomic.Int64 }

// startHonest connects so many clients that limit until the context ends.
func startHonest(ctx context.Context, server *harness.Server, count int, reference bool) *honest {
	h := &honest{server: server, count: count, reference: reference}
	for i := range count {
		h.clients.Go(func() { (&honestClient{h: h, index: i}).run(ctx) })
	}
	return h
}

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

// settleShared looks at the keys that the clients shared and whose answers all came: exactly so many passed.
func (h *honest) settleShared() (whole int) {
	h.epochs.Range(func(_, value any) bool {
		e := value.(*epoch)
		if e.answered.Load() != sharedCalls || e.lost.Load() != 0 {
			return true
		}
		whole++
		if passed := e.passed.Load(); passed > sharedPasses {
			atomic.AddInt64(&h.WronglyLetThrough, passed-sharedPasses)
		} else {
			atomic.AddInt64(&h.WronglyRefused, sharedPasses-passed)
		}
		return true
	})
	return whole
}

// honestClient is one of them.
type honestClient struct {
	h     *honest
	index int
	conn  net.Conn
	r     *bufio.Reader
	key   int    // how many keys it has used up
	calls int    // of the present one
	spent string // a key of which the last call was answered, and that is to be removed; "": none
	log   []int64
	clock int64 // ms, the last that was sent
}

func (c *honestClient) run(ctx context.Context) {
	defer func() {
		if c.conn != nil {
			_ = c.conn.Close()
		}
	}()
	kinds := []struct {
		name string
		call func() (passed, right bool, err error)
	}{{"a sliding window in MULTI", c.sliding}, {"a script", c.script}, {"CL.THROTTLE", c.throttle}, {"RL.GCRA", c.gcra}, {"a shared key", c.together}}
	if c.h.reference {
		kinds = kinds[:2]
	}
	kind := kinds[c.index%len(kinds)]
	due := time.Now().Add(time.Duration(c.index) * honestEvery / 200) // not all at once
	for ; ctx.Err() == nil; due = due.Add(honestEvery) {
		time.Sleep(time.Until(due))
		if c.conn == nil && !c.connect(kind.name) {
			due = time.Now()
			continue
		}
		passed, right, err := kind.call()
		if err == nil {
			c.h.note(time.Since(due), passed, right)
			err = c.remove()
		}
		if err != nil {
			c.h.failed(kind.name, err)
			_ = c.conn.Close()
			c.conn, c.log, c.spent = nil, nil, ""
			c.nextKey()
		}
	}
}

// remove removes the key that is spent, if one is: its answer counts like the others.
func (c *honestClient) remove() error {
	if c.spent == "" {
		return nil
	}
	asked := time.Now()
	_, err := c.ask("UNLINK", c.spent)
	c.h.noteTime(time.Since(asked))
	c.spent = ""
	return err
}

func (c *honestClient) connect(what string) bool {
	conn, err := net.DialTimeout("tcp", c.h.server.Addr, honestWait)
	if err == nil {
		c.conn, c.r = conn, bufio.NewReader(conn)
		_, err = c.ask("AUTH", flood.Password)
	}
	if err != nil {
		c.h.failed("connecting for "+what, err)
		c.conn = nil
		time.Sleep(time.Second)
		return false
	}
	return true
}

// ask sends a command and returns its reply, which may not be an error.
func (c *honestClient) ask(args ...string) (harness.Value, error) {
	all, err := c.askAll(args)
	if err != nil {
		return harness.Value{}, err
	}
	return all[0], nil
}

// askAll sends commands together.
func (c *honestClient) askAll(commands ...[]string) ([]harness.Value, error) {
	var request []byte
	for _, command := range commands {
		request = append(request, harness.Command(command...)...)
	}
	_ = c.conn.SetDeadline(time.Now().Add(honestWait))
	if _, err := c.conn.Write(request); err != nil {
		return nil, err
	}
	values := make([]harness.Value, len(commands))
	for i := range commands {
		v, err := harness.Parse(c.r)
		if err != nil {
			return nil, err
		}
		if v.Kind == '-' {
			return nil, errors.New(v.Text)
		}
		values[i] = v
	}
	return values, nil
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

// throttle has a burst and nothing to speak of after it: one unit in ten days.
func (c *honestClient) throttle() (bool, bool, error) {
	v, err := c.ask("CL.THROTTLE", c.name(), strconv.Itoa(passesAtMost-1), "1", "864000")
	if err != nil {
		return false, false, err
	}
	limited, err := first(v)
	if err != nil {
		return false, false, err
	}
	return c.count(limited == 0)
}

// gcra is never refused in every other call, and in those between as throttle is.
func (c *honestClient) gcra() (bool, bool, error) {
	all, err := c.askAll([]string{"RL.GCRA", fmt.Sprintf("honest:%d:high", c.index), "1000000", "1000000", "1000"},
		[]string{"RL.GCRA", c.name(), strconv.Itoa(passesAtMost), "1", "864000000"})
	if err != nil {
		return false, false, err
	}
	high, err := first(all[0])
	if err != nil {
		return false, false, err
	}
	limited, err := first(all[1])
	if err != nil {
		return false, false, err
	}
	passed, right, err := c.count(limited == 0)
	if high != 0 {
		return false, false, err
	}
	return passed, right, err
}

// sliding is a window of times in a sorted set, as people write it. The times are the client's own, so that it knows the answer.
func (c *honestClient) sliding() (bool, bool, error) {
	c.clock = max(c.clock+1, time.Now().UnixMilli())
	now, from := strconv.FormatInt(c.clock, 10), strconv.FormatInt(c.clock-slidingTime, 10)
	key := fmt.Sprintf("honest:%d:window:%d", c.index, c.key)
	all, err := c.askAll([]string{"MULTI"}, []string{"ZREMRANGEBYSCORE", key, "-inf", from}, []string{"ZCARD", key},
		[]string{"ZADD", key, now, now}, []string{"PEXPIRE", key, "600000"}, []string{"EXEC"})
	if err != nil {
		return false, false, err
	}
	results := all[len(all)-1].Items
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
	passed := within < slidingLimit
	return passed, passed == (expected < slidingLimit) && within == expected, nil
}

// script is refused after so many calls.
func (c *honestClient) script() (bool, bool, error) {
	v, err := c.ask("EVAL", honestScript, "1", c.name(), strconv.Itoa(passesAtMost), "86400000")
	if err != nil {
		return false, false, err
	}
	passed, err := first(v)
	if err != nil {
		return false, false, err
	}
	return c.count(passed == 1)
}

// together limits by a key that all clients share: how many of all their calls passed is looked at when all have been answered.
func (c *honestClient) together() (bool, bool, error) {
	n := (c.h.shared.Add(1) - 1) / sharedCalls
	value, _ := c.h.epochs.LoadOrStore(n, new(epoch))
	e := value.(*epoch)
	v, err := c.ask("CL.THROTTLE", fmt.Sprintf("honest:shared:%d", n), strconv.Itoa(sharedPasses-1), "1", "864000")
	if err != nil {
		e.lost.Add(1)
		return false, false, err
	}
	limited, err := first(v)
	if err != nil {
		return false, false, err
	}
	if limited == 0 {
		e.passed.Add(1)
	}
	if e.answered.Add(1) == sharedCalls {
		c.spent = fmt.Sprintf("honest:shared:%d", n)
	}
	return limited == 0, true, nil
}
