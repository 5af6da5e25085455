package limits_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"headgate/server/servertest"
	"headgate/store"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The model of reservations knows what each limit has been asked, and nothing of how anything comes back: it goes through all of it again, with the
// actual costs in the place of what was reserved.

// reservable are the limits of these histories: five pairs of every reservation. A token is a second.
var reservable = []string{"g GCRA 30 1 1s", "f FIXED 30 40s", "s SLIDING 30 50s SLICES 5", "l LOG 30 40s", "p ACQUIRE 6 1h"}

const (
	unitNs      = int64(1e9)
	fixedWindow = 40_000 // ms, as above
	sliceLength = 10_000
	slices5     = 5
	logWindow   = 40_000
)

// reservedEvent is one thing that has happened to the keys. Charges are in units; those of a reservation change when that ends.
type reservedEvent struct {
	at   int64 // ms
	what rune  // c: a charge of all four; b: given back; d: deleted; s: set by somebody else, to the cost
	cost [4]int64
	id   string // of a reservation
	nth  int    // the fixed window
}

// reserver makes one history, and checks what the server has after each step.
type reserver struct {
	*rand.Rand
	t      *rapid.T
	w      *servertest.ClockClient
	now    int64 // ms
	past   []reservedEvent
	open   []openCase
	window int64 // end of the fixed one; 0: none
	nth    int   // which one that is
	drawn  int
}

// openCase is a reservation that has not ended.
type openCase struct {
	event    int // in the past
	deadline int64
}

// backlog goes through the past for the GCRA, in ns.
func (r *reserver) backlog() (ns int64) {
	last := int64(0)
	for _, e := range r.past {
		ns = max(ns-(e.at-last)*1e6, 0)
		switch last = e.at; e.what {
		case 'c':
			ns += e.cost[0] * unitNs
		case 'b':
			ns = max(ns-e.cost[0]*unitNs, 0)
		case 'd':
			ns = 0
		case 's':
			ns = e.cost[0] * unitNs
		}
	}
	return max(ns-(r.now-last)*1e6, 0)
}

// count goes through the past for the fixed window.
func (r *reserver) count() (n int64) {
	for _, e := range r.past {
		switch {
		case e.nth != r.nth:
		case e.what == 'c':
			n += e.cost[1]
		case e.what == 'b':
			n = max(n-e.cost[1], 0)
		case e.what == 's':
			n = e.cost[1]
		}
	}
	return n
}

// sliding adds up what counts of each slice.
func (r *reserver) sliding() (n int64) {
	oldest := r.now - r.now%sliceLength - slices5*sliceLength
	for _, e := range r.past {
		if e.what == 'c' && e.at-e.at%sliceLength >= oldest {
			n += e.cost[2]
		}
	}
	return n
}

// entries counts those of the log.
func (r *reserver) entries() (n int64) {
	for _, e := range r.past {
		if e.what == 'c' && e.at > r.now-logWindow {
			n += e.cost[3]
		}
	}
	return n
}

// number is what the server has at a key.
func (r *reserver) number(key string) (n int64) {
	e, found := r.w.Srv.Keys.DB(0).Look(r.w.Srv.Keys.Key([]byte(key)), r.now)
	if !found || e.Kind() != store.KindString {
		return 0
	}
	n, _ = e.Int()
	return n
}

// call makes a call, which a history that fails shows.
func (r *reserver) call(line string) string {
	reply := r.w.Call(line)
	r.t.Logf("%d %s: %s", r.now, line, reply)
	return reply
}

// check compares.
func (r *reserver) check(what string) {
	if r.now >= r.window {
		r.window = 0
	}
	tat := r.number("g")
	require.Equal(r.t, r.backlog(), max(tat-r.now*1e6, 0), "GCRA after %s", what)
	if r.window != 0 {
		require.Equal(r.t, r.count(), r.number("f"), "FIXED after %s", what)
	}
	sum := int64(0)
	oldest := r.now - r.now%sliceLength - slices5*sliceLength
	for i, field := range strings.Fields(strings.Trim(r.call("HGETALL s"), "[]")) {
		n, _ := strconv.ParseInt(field, 10, 64)
		if i%2 == 0 && n < oldest {
			sum -= 1 << 40 // and what it counts is left out
		}
		if i%2 == 1 {
			if sum < 0 {
				sum += 1 << 40
			} else {
				sum += n
			}
		}
	}
	require.Equal(r.t, r.sliding(), sum, "SLIDING after %s", what)
	require.Equal(r.t, strconv.FormatInt(r.entries(), 10), r.call(fmt.Sprintf("ZCOUNT l (%d +inf", r.now-logWindow)), "LOG after %s", what)
	require.Equal(r.t, strconv.Itoa(len(r.open)), r.call("ZCARD p"), "ACQUIRE after %s", what)
	require.Equal(r.t, len(r.open), r.w.Srv.Reservations.Open(), "open after %s", what)
}

// wait lets time go by, or until about a time-out, an empty bucket or the end of a window.
func (r *reserver) wait() {
	switch r.IntN(7) {
	case 0:
		r.now += r.Int64N(3)
	case 1:
		r.now += r.Int64N(5_000)
	case 2:
		r.now = max(r.now+r.backlog()/1e6+r.Int64N(3)-1, r.now)
	case 3:
		if r.window > r.now {
			r.now = max(r.window+r.Int64N(3)-1, r.now)
		}
	case 4:
		r.now += r.Int64N(60_000)
	}
	r.w.Now = r.now * 1e6
	r.timeOut()
	if r.now >= r.window {
		r.window = 0
	}
}

// timeOut has the server cancel what is due, in its own time.
func (r *reserver) timeOut() {
	cron(r.w.Srv)
	r.open = slices.DeleteFunc(r.open, func(o openCase) bool {
		if o.deadline <= r.now {
			r.end(o, [4]int64{})
		}
		return o.deadline <= r.now
	})
}

// end puts the actual costs in the place of those that were reserved, where what was charged still counts.
func (r *reserver) end(o openCase, actual [4]int64) {
	e := &r.past[o.event]
	e.cost[0] = actual[0]
	if r.window != 0 && e.nth == r.nth {
		e.cost[1] = actual[1]
	}
	e.cost[2], e.cost[3] = actual[2], actual[3]
}

// costs draws one for each limit.
func (r *reserver) costs() (c [4]int64) {
	for i := range c {
		c[i] = r.Int64N(12)
	}
	if r.IntN(3) == 0 {
		c[0] = max((30*unitNs-r.backlog())/unitNs, 0) // all that fits
	}
	return c
}

// charge asks for all limits, by a reservation or by a call.
func (r *reserver) charge(reserves bool) {
	c := r.costs()
	call := fmt.Sprintf("RL.TAKE 4 g g f f s s l l COSTS %d %d %d %d", c[0], c[1], c[2], c[3])
	e := reservedEvent{at: r.now, what: 'c', cost: c}
	ttl := 1 + r.Int64N(90_000)
	if reserves {
		r.drawn++
		e.id = strconv.Itoa(r.drawn)
		call = fmt.Sprintf("RL.RESERVE 5 g g f f s s l l p p COSTS %d %d %d %d 1 TTL %dms ID %s", c[0], c[1], c[2], c[3], ttl, e.id)
	}
	if strings.HasPrefix(r.call(call), "[1 ") {
		return
	}
	if c[1] > 0 && r.window == 0 {
		r.window = r.now + fixedWindow
		r.nth++
	}
	if e.nth = r.nth; c[1] == 0 {
		e.nth = -1 // it has nothing there
	}
	r.past = append(r.past, e)
	if reserves {
		r.open = append(r.open, openCase{len(r.past) - 1, r.now + ttl})
	}
}

// settle ends a reservation.
func (r *reserver) settle() {
	if len(r.open) == 0 {
		return
	}
	i := r.IntN(len(r.open))
	o := r.open[i]
	e := r.past[o.event]
	var actual [4]int64
	call := "RL.CANCEL " + e.id
	if r.IntN(3) > 0 {
		for i := range actual {
			actual[i] = r.Int64N(e.cost[i] + 1)
		}
		call = fmt.Sprintf("RL.SETTLE %s ACTUALS %d %d %d %d 0", e.id, actual[0], actual[1], actual[2], actual[3])
	}
	require.Contains(r.t, r.call(call), "1", call)
	r.open = slices.Delete(r.open, i, i+1)
	r.end(o, actual)
}

// meddle is what others do to the numbers.
func (r *reserver) meddle() {
	e := reservedEvent{at: r.now, cost: [4]int64{r.Int64N(20), r.Int64N(20)}, nth: r.nth}
	switch r.IntN(3) {
	case 0:
		e.what = 'b'
		r.call(fmt.Sprintf("RL.TAKE 2 g g f f COSTS %d %d", -e.cost[0], -e.cost[1]))
	case 1:
		e.what = 'd'
		r.call([]string{"DEL g f", "RL.RESET g f"}[r.IntN(2)])
		r.window = 0
	default:
		e.what = 's'
		r.call(fmt.Sprintf("SET g %d", r.now*1e6+e.cost[0]*unitNs))
		if r.window != 0 {
			r.call(fmt.Sprintf("SET f %d KEEPTTL", e.cost[1]))
		}
	}
	r.past = append(r.past, e)
}

// TestReserveHistories goes through random histories of reservations, of other calls, and of what others do to the keys. After each step every
// limit has charged exactly what it would have, had each reservation asked for its actual cost.
func TestReserveHistories(t *testing.T) {
	w := servertest.NewClockClient(t)
	for _, policy := range reservable {
		require.Equal(t, "OK", w.Call("RL.POLICY SET "+policy))
	}
	steps := map[string]int{}
	checkHistories(t, *limiterHistories/5, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		w.Call("DEL g f s l p")
		w.Now += 86_400 * 1e9
		cron(w.Srv)
		r := &reserver{Rand: rand.New(rand.NewPCG(seed, 0)), t: t, w: w, now: w.Now / 1e6}
		w.Call("DEL g f s l p")
		for range 20 {
			r.wait()
			r.check("waiting")
			what := "settling"
			switch n := r.IntN(14); {
			case n < 5:
				what = "reserving"
				r.charge(true)
			case n < 8:
				what = "taking"
				r.charge(false)
			case n < 13:
				r.settle()
			default:
				what = "meddling"
				r.meddle()
			}
			steps[what]++
			r.check(what)
		}
	})
	t.Logf("%d histories: %v; %+v", *limiterHistories/5, steps, w.Srv.Reservations.Counts)
	require.NotZero(t, w.Srv.Reservations.Counts.TimedOut)
}
