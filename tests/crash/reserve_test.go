package crash

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

var reserveKills = flag.Int("crash.reserve", 4, "how often the server is killed under callers that reserve")

const (
	callers     = 200
	reserveLife = 150 * time.Millisecond // of each server, in the mean

	// The limits that all callers share: tokens a second, and calls at a time.
	tokenCapacity, tokenRate = 5_000, 20_000
	parallelCalls            = 50
	ownLimit                 = 1_000_000_000 // of each caller's counter, which limits nobody
)

// caller reserves and settles, one call after the other, in three dimensions: a counter of its own, tokens and calls at a time.
type caller struct {
	number  int
	rnd     *rand.Rand
	next    int // number of its next reservation
	settled int // what its own counter has to be but for an open reservation
	open    *reserved
	done    []*reserved
}

// reserved is one reservation, as its caller knows it. Times are the caller's; the server's lie between sending and hearing.
type reserved struct {
	id               string
	cost, actual     int
	sent, heard, end time.Time // end: when it was sent that it is over
	timeout          time.Time // before which the server does not cancel it
	phase            phase
	charged          int // in the end
}

// clockStep is what the server's time of a command may be before the caller's of sending it: it counts whole milliseconds.
const clockStep = time.Millisecond

type phase int

const (
	reserving phase = iota // whether there is a reservation is not known
	held
	settling // whether it was settled is not known
	cancelling
)

// readBoth is the reservation and the counter at one moment.
const readBoth = "return {redis.call('EXISTS',KEYS[1]),redis.call('GET',KEYS[2]) or '0'}"

func (c *caller) counter() string { return "own:" + strconv.Itoa(c.number) }

// resume finds out what has become of the reservation during which the server was killed.
func (c *caller) resume(t *testing.T, client *harness.Client) {
	key := "rl:reservation:{none}"
	if c.open != nil {
		key = "rl:reservation:{" + c.open.id + "}"
	}
	v := client.Ask("EVAL", readBoth, "2", key, c.counter())
	require.Len(t, v.Items, 2, v.Wire())
	count, r := number(t, v.Items[1]), c.open
	if r == nil {
		require.Equal(t, c.settled, count, "caller %d", c.number)
		return
	}
	if v.Items[0].Text == "1" {
		require.Equal(t, c.settled+r.cost, count, "%s is open, and was %d", r.id, r.phase)
		if r.phase == reserving {
			r.heard = time.Now()
		}
		r.phase, r.actual, r.end = held, 0, time.Time{} // whatever was sent, it has not happened
		return
	}
	switch {
	case r.phase == settling && count == c.settled+r.actual:
		r.charged = r.actual
	case count == c.settled:
		require.True(t, r.phase == reserving || r.phase == cancelling || time.Now().After(r.timeout), "%s is gone before its time, and was %d", r.id, r.phase)
	default:
		require.Failf(t, "charged wrongly", "%s of %d, used %d: the counter has %d, and had %d; it was %d", r.id, r.cost, r.actual, count, c.settled, r.phase)
	}
	c.close()
}

// close notes a reservation that is over.
func (c *caller) close() {
	c.settled += c.open.charged
	if !c.open.heard.IsZero() {
		c.done = append(c.done, c.open)
	}
	c.open = nil
}

// run makes calls until the server is gone.
func (c *caller) run(t *testing.T, client *harness.Client) {
	defer client.Close()
	for {
		if c.open == nil && !c.reserve(t, client) {
			return
		}
		if c.open != nil && !c.finish(t, client) {
			return
		}
	}
}

// say sends a command and returns its reply, or false when the server is gone.
func say(client *harness.Client, words ...string) (harness.Value, bool) {
	if client.Send(harness.Command(words...)) != nil {
		return harness.Value{}, false
	}
	v, err := client.Read(harness.ReplyTimeout)
	return v, err == nil
}

func (c *caller) reserve(t *testing.T, client *harness.Client) bool {
	c.next++
	ttl := time.Duration(100+c.rnd.IntN(400)) * time.Millisecond
	now := time.Now()
	r := &reserved{id: fmt.Sprintf("%d-%d", c.number, c.next), cost: 1 + c.rnd.IntN(400), sent: now, timeout: now.Add(ttl - clockStep)}
	c.open = r
	cost := strconv.Itoa(r.cost)
	v, ok := say(client, "RL.RESERVE", "3", "own", c.counter(), "tokens", "tokens", "parallel", "calls", "COSTS", cost, cost, "1", "TTL", ttl.String(), "ID", r.id)
	if !ok {
		return false
	}
	require.Len(t, v.Items, 4, v.Wire())
	if v.Items[0].Text == "1" {
		c.open = nil
		time.Sleep(time.Duration(1+c.rnd.IntN(10)) * time.Millisecond)
		return true
	}
	require.Equal(t, r.id, v.Items[2].Text)
	require.Equal(t, ownLimit-c.settled-r.cost, number(t, v.Items[3].Items[0].Items[2]), "%s", r.id)
	r.phase, r.heard = held, time.Now()
	return true
}

// finish works for a while, and then settles, cancels or forgets.
func (c *caller) finish(t *testing.T, client *harness.Client) bool {
	r := c.open
	time.Sleep(time.Duration(c.rnd.IntN(20)) * time.Millisecond)
	words := []string{"RL.CANCEL", r.id}
	switch choice := c.rnd.IntN(10); {
	case choice < 7:
		r.phase, r.actual = settling, c.rnd.IntN(r.cost+1)
		used := strconv.Itoa(r.actual)
		words = []string{"RL.SETTLE", r.id, "ACTUALS", used, used, "1"}
	case choice < 9:
		r.phase = cancelling
	default:
		return c.forget(t, client)
	}
	r.end = time.Now()
	v, ok := say(client, words...)
	if !ok {
		return false
	}
	ended := v.Text == "1"
	if r.phase == settling {
		require.NotEmpty(t, v.Items, v.Wire())
		if ended = v.Items[0].Text == "1"; ended {
			require.Equal(t, ownLimit-c.settled-r.actual, number(t, v.Items[1].Items[0].Items[2]), "%s", r.id)
		}
	}
	if ended {
		r.charged = r.actual
	} else {
		require.True(t, time.Now().After(r.timeout), "%s is gone before its time", r.id)
	}
	c.close()
	return true
}

// forget waits until the server has given back all that a reservation had charged.
func (c *caller) forget(t *testing.T, client *harness.Client) bool {
	key := "rl:reservation:{" + c.open.id + "}"
	for deadline := time.Now().Add(harness.ReplyTimeout); ; time.Sleep(10 * time.Millisecond) {
		v, ok := say(client, "EVAL", readBoth, "2", key, c.counter())
		if !ok {
			return false
		}
		if v.Items[0].Text == "0" {
			require.True(t, time.Now().After(c.open.timeout), "%s is gone %v before its time", c.open.id, time.Until(c.open.timeout))
			require.Equal(t, c.settled, number(t, v.Items[1]), "%s", c.open.id)
			c.close()
			return true
		}
		require.Equal(t, c.settled+c.open.cost, number(t, v.Items[1]), "%s", c.open.id)
		require.True(t, time.Now().Before(deadline), "%s has not timed out", c.open.id)
	}
}

// TestReserveUnderKill9 has callers race for what is less than they want while the server is killed again and again: never is more used
// than any limit allows, and each reservation is settled, cancelled or timed out exactly once.
func TestReserveUnderKill9(t *testing.T) {
	drawn := *seed
	if drawn == 0 {
		drawn = rand.Uint64()
	}
	t.Logf("-crash.seed %d", drawn)
	rnd := rand.New(rand.NewPCG(drawn, 99))
	all := make([]*caller, callers)
	for i := range all {
		all[i] = &caller{number: i, rnd: rand.New(rand.NewPCG(drawn, uint64(i)))}
	}
	dir := t.TempDir()
	start := time.Now()
	for life := range *reserveKills + 1 {
		s := harness.StartIn(t, dir, "--appendonly", "yes", "--appendfsync", "everysec", "--auto-aof-rewrite-min-size", "256kb",
			"--policy", fmt.Sprintf("own FIXED %d 1d", ownLimit), "--policy", fmt.Sprintf("tokens GCRA %d %d 1s", tokenCapacity, tokenRate), "--policy", fmt.Sprintf("parallel ACQUIRE %d 1h", parallelCalls))
		first := harness.Dial(t, s.Addr)
		for _, c := range all {
			c.resume(t, first)
		}
		if life == *reserveKills {
			for _, c := range all {
				if c.open != nil {
					require.True(t, c.forget(t, first))
				}
			}
			require.Equal(t, "0", first.Ask("EXISTS", "calls").Text, "leases are left")
			break
		}
		var running sync.WaitGroup
		for _, c := range all {
			client, err := harness.TryDial(t, s.Addr)
			require.NoError(t, err)
			running.Go(func() { c.run(t, client) })
		}
		time.Sleep(reserveLife/2 + time.Duration(rnd.Int64N(int64(reserveLife))))
		s.Kill()
		running.Wait()
	}
	var done []*reserved
	for _, c := range all {
		done = append(done, c.done...)
	}
	t.Logf("%d kills in %v: %d reservations", *reserveKills, time.Since(start).Round(time.Second), len(done))
	require.NotEmpty(t, done)
	checkTokens(t, done)
	checkParallel(t, done)
}

// mostStarts is from how many reservations on the tokens are added up.
const mostStarts = 3000

// checkTokens: within any time no more is used than the capacity and what the rate brings.
func checkTokens(t *testing.T, done []*reserved) {
	slices.SortFunc(done, func(a, b *reserved) int { return a.heard.Compare(b.heard) })
	most := 0.0
	for i := 0; i < len(done); i += max(len(done)/mostStarts, 1) {
		first, used := done[i], 0
		for _, r := range done[max(i-callers, 0):] {
			if r.sent.Before(first.sent) {
				continue
			}
			used += r.charged
			allowed := tokenCapacity + tokenRate*r.heard.Sub(first.sent).Seconds()
			most = max(most, float64(used)/allowed)
			if float64(used) > allowed+1 { // asked here, since there are many of these
				require.Failf(t, "too many tokens", "%d from %s to %s, and %.0f are allowed", used, first.id, r.id, allowed)
			}
		}
	}
	t.Logf("at most %.1f %% of the tokens that any time allows were used", 100*most)
}

// checkParallel: at no instant more calls are under way than there may be.
func checkParallel(t *testing.T, done []*reserved) {
	type edge struct {
		at time.Time
		by int
	}
	var edges []edge
	for _, r := range done {
		end := r.timeout
		if !r.end.IsZero() && r.end.Before(end) {
			end = r.end
		}
		if r.heard.Before(end) {
			edges = append(edges, edge{r.heard, 1}, edge{end, -1})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int {
		if c := a.at.Compare(b.at); c != 0 {
			return c
		}
		return a.by - b.by
	})
	now, most := 0, 0
	for _, e := range edges {
		now += e.by
		most = max(most, now)
	}
	t.Logf("at most %d of %d calls at a time", most, parallelCalls)
	require.LessOrEqual(t, most, parallelCalls)
}
