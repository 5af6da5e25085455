package fleet

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// A call is what became of one call of a limiter.
type call struct {
	at, took  time.Duration // since the load began, and from the request to its reply
	remaining int64         // of a call that passed
	refused   string        // the error
}

func (c call) passed() bool { return c.refused == "" }

// notSent reports whether an error says that the limiter was not asked.
func (c call) notSent() bool { return strings.Contains(c.refused, "resting") }

// A caller has a connection and a key of its own, which it asks at a steady rate, waiting for each reply.
type caller struct {
	shard int
	key   string
	calls []call
	ended error // of its connection, which nothing may end
}

// A load is callers that ask until they are stopped.
type load struct {
	callers []*caller
	began   time.Time
	end     chan struct{}
	working sync.WaitGroup
}

// Of the limiter that callers ask nothing becomes free during a test, so remaining counts what was charged.
const (
	loadLimit  = 100_000
	loadPeriod = 86_400 // seconds for one unit
)

// startLoad has callers on each of a number of shards ask rate times a second all together. keyIn names a caller's key.
func startLoad(t *testing.T, addr string, shards, callersOfEach, rate int, keyIn func(shard, n int) string) *load {
	t.Helper()
	l := &load{began: time.Now(), end: make(chan struct{})}
	every := time.Second * time.Duration(shards*callersOfEach) / time.Duration(rate)
	for n := range shards * callersOfEach {
		c := &caller{shard: n % shards, key: keyIn(n%shards, n/shards)}
		l.callers = append(l.callers, c)
		client := harness.Dial(t, addr)
		offset := every * time.Duration(n) / time.Duration(shards*callersOfEach)
		l.working.Go(func() { c.run(l, client, every, offset) })
	}
	t.Cleanup(func() { l.stop(t) })
	return l
}

func (c *caller) run(l *load, client *harness.Client, every, offset time.Duration) {
	request := harness.Command("CL.THROTTLE", c.key, strconv.Itoa(loadLimit-1), "1", strconv.Itoa(loadPeriod))
	for n := 0; ; n++ {
		due := l.began.Add(offset + time.Duration(n)*every)
		select {
		case <-l.end:
			return
		case <-time.After(time.Until(due)):
		}
		sent := time.Now()
		if c.ended = client.Send(request); c.ended != nil {
			return
		}
		v, err := client.Read(harness.ReplyTimeout)
		if c.ended = err; err != nil {
			return
		}
		made := call{at: sent.Sub(l.began), took: time.Since(sent)}
		switch {
		case v.Kind == '-':
			made.refused = v.Text
		case len(v.Items) == 5 && v.Items[0].Text == "0":
			made.remaining, _ = strconv.ParseInt(v.Items[2].Text, 10, 64)
		default:
			c.ended = fmt.Errorf("%s answers %s", c.key, texts(v))
			return
		}
		c.calls = append(c.calls, made)
	}
}

// stop ends the load, if nobody has, and requires that it has only met what a gateway may answer. What callers have noted may be read then.
func (l *load) stop(t *testing.T) {
	t.Helper()
	select {
	case <-l.end:
		return
	default:
	}
	close(l.end)
	l.working.Wait()
	for _, c := range l.callers {
		require.NoError(t, c.ended, c.key)
		for _, made := range c.calls {
			if !made.passed() {
				require.True(t, strings.HasPrefix(made.refused, "UPSTREAM "), made.refused)
			}
		}
	}
}

// requireChargedOnce requires that no call was charged more than once: what remains is one less with each that passed, and by at most one
// with each of which nobody knows whether it was. A shard that failed over may have forgotten some.
func (l *load) requireChargedOnce(t *testing.T) {
	t.Helper()
	for _, c := range l.callers {
		last, unknown := int64(loadLimit), int64(0)
		for _, made := range c.calls {
			switch {
			case made.passed():
				require.GreaterOrEqual(t, made.remaining, last-1-unknown, "%s was charged twice, at %v", c.key, made.at)
				last, unknown = made.remaining, 0
			case !made.notSent():
				unknown++
			}
		}
	}
}

// took are the times of calls to shards, from one instant of the load to another.
func (l *load) took(from, to time.Duration, shards ...int) (all []time.Duration) {
	for _, c := range l.callers {
		for _, shard := range shards {
			if c.shard != shard {
				continue
			}
			for _, made := range c.calls {
				if made.at >= from && made.at < to {
					all = append(all, made.took)
				}
			}
		}
	}
	return all
}

// errors counts what was answered with an error, by its text.
func (l *load) errors() map[string]int {
	count := make(map[string]int)
	for _, c := range l.callers {
		for _, made := range c.calls {
			if !made.passed() {
				count[made.refused]++
			}
		}
	}
	return count
}
