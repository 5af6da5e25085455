package scripted_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"headgate/server/limiter"
	"headgate/server/limiter/scripted"
	"headgate/throttle"

	"github.com/stretchr/testify/require"
)

// TestGrant: a charge of the first cost that passes does and answers what calls of these costs do at home, one after the other until one
// passes; for each family, in any state.
func TestGrant(t *testing.T) {
	limits := []string{"GCRA 5 1 20ms", "GCRA 40 7 100ms", "BUCKET 4 3 50ms", "FIXED 5 100ms", "FIXED 30 70ms ALIGNED", "FIXED 8 MINUTE", "SLIDING 5 100ms", "SLIDING 30 90ms SLICES 1", "CL.THROTTLE 4 50 1"}
	w, r := newWorld(t), random(t)
	now := w.Ns
	passed, refused := 0, 0
	for range *calls {
		now += pick(r, 0, 1000, r.Int64N(3)*1e6, r.Int64N(50)*1e6, r.Int64N(1e3)*1e6+r.Int64N(1e3)*1000)
		w.setNow(now)
		limit := pick(r, limits...)
		key := strings.Fields(limit)[0] + strings.Fields(limit)[1]
		var costs []int64
		for cost := 1 + r.Int64N(40); cost > 0 && len(costs) < throttle.MaxLeaseSizes; cost -= 1 + r.Int64N(9) {
			costs = append(costs, cost)
		}
		call := func(cost int64) []string {
			words := strings.Fields(limit)
			if words[0] == "CL.THROTTLE" {
				return append(append([]string{"CL.THROTTLE", key}, words[1:]...), fmt.Sprint(cost))
			}
			return append(append([]string{"RL." + words[0], key}, words[1:]...), "COST", fmt.Sprint(cost))
		}
		var grant scripted.Grant
		reply := w.grant(&grant, limit, key, costs)
		require.False(t, grant.Unclear)
		var home string
		for _, cost := range costs {
			home = w.home.Ask(call(cost)...)
			if grant.Cost == cost {
				break
			}
			require.True(t, strings.HasPrefix(home, "*5\r\n:1\r\n"), "%v has passed, and %d was charged", cost, grant.Cost)
		}
		require.Equal(t, home, reply, "%s by %v at %d", limit, costs, now)
		require.Equal(t, strings.HasPrefix(home, "*5\r\n:0\r\n"), grant.Passed)
		w.same(limit, key)
		if grant.Passed {
			passed++
		} else {
			refused++
			require.Equal(t, costs[len(costs)-1], grant.Cost)
		}
		require.Equal(t, now/1000, grant.ChargedAt/1000)
	}
	require.NotZero(t, passed)
	require.NotZero(t, refused)
}

// grant asks for a charge, and answers as CL.THROTTLE or the limiter would have.
func (w *world) grant(g *scripted.Grant, limit, key string, costs []int64) string {
	w.t.Helper()
	g.NowMs = w.Ns / 1e6
	var request []byte
	words := strings.Fields(limit)
	cell := words[0] == "CL.THROTTLE"
	if cell {
		request = g.AskGCRA(nil, []byte(key), w.cellOf(limit), costs)
	} else {
		p, _, err := limiter.Standard.ParseText(limiter.Words(limit))
		require.NoError(w.t, err)
		require.True(w.t, scripted.MayLease(p.Algorithm))
		request = g.Ask(nil, []byte(key), &p, costs)
	}
	require.NoError(w.t, g.Answer(w.send(request)))
	require.False(w.t, g.Disagrees(), "%q", request)
	w.out.Reset()
	w.out.Array(5)
	if d := &g.Decision; cell {
		w.out.Ints(oneIf(d.Limited), d.Limit, d.Remaining, throttle.RetrySeconds(d.RetryAfter), throttle.Seconds(d.ResetAfter))
	} else {
		w.numbers(&g.Call.Verdict.Verdict)
	}
	return string(w.out.Bytes())
}

// cellOf reads a limit of CL.THROTTLE.
func (w *world) cellOf(limit string) throttle.GCRA {
	words := strings.Fields(limit)
	cell, err := throttle.NewGCRA(throttle.Quota{MaxBurst: parse(w.t, words[1]), Count: parse(w.t, words[2]), Period: parse(w.t, words[3])})
	require.NoError(w.t, err)
	return cell
}

// TestGrantOfOtherStates: what scripts do not decide on is not charged, and errors are the server's.
func TestGrantOfOtherStates(t *testing.T) {
	w := newWorld(t)
	ask := func(limit string) (*scripted.Grant, error) {
		p, _, err := limiter.Standard.ParseText(limiter.Words(limit))
		require.NoError(t, err)
		g := &scripted.Grant{}
		g.NowMs = w.Ns / 1e6
		return g, g.Answer(w.send(g.Ask(nil, []byte("k"), &p, []int64{3, 1})))
	}
	w.there.Ask("SET", "k", "007")
	for _, limit := range []string{"GCRA 5 1 1s", "FIXED 5 1s"} {
		g, err := ask(limit)
		require.NoError(t, err)
		require.True(t, g.Unclear)
		require.False(t, g.Passed)
	}
	_, err := ask("SLIDING 5 1s")
	require.Equal(t, limiter.ErrWrongType, err)
	require.Equal(t, "$3\r\n007\r\n", w.there.Ask("GET", "k"))
	for _, a := range limiter.Standard.All() {
		require.Equal(t, slices.Contains([]string{"GCRA", "BUCKET", "FIXED", "SLIDING"}, a.Name), scripted.MayLease(a), a.Name)
	}
	p, _, err := limiter.Standard.ParseText(limiter.Words("GCRA 5 1 1s"))
	require.NoError(t, err)
	require.Empty(t, new(scripted.Grant).Ask(nil, []byte(scripted.PoliciesKey), &p, []int64{1}))
	cell, err := throttle.NewGCRA(throttle.Quota{MaxBurst: 4, Count: 1, Period: 1})
	require.NoError(t, err)
	require.Empty(t, new(scripted.Grant).AskGCRA(nil, []byte("k"), cell, []int64{1 << 62, 1}), "such a cost has no charge")
}

// TestReturnOfGrants: what is left of a charge is given back as package throttle says, whenever that arrives.
func TestReturnOfGrants(t *testing.T) {
	w, r := newWorld(t), random(t)
	now := w.Ns
	for range *calls / 3 {
		limit := pick(r, "GCRA 40 7 100ms", "FIXED 30 70ms ALIGNED", "SLIDING 30 90ms SLICES 3", "CL.THROTTLE 39 50 1")
		w.there.Ask("DEL", "k")
		now += r.Int64N(1e9)/1000*1000 + 1e6
		w.setNow(now)
		var first, second scripted.Grant
		w.grant(&first, limit, "k", []int64{1 + r.Int64N(30)})
		require.True(t, first.Passed)
		now += pick(r, 0, 1000, r.Int64N(30e6)/1000*1000, r.Int64N(1e9)/1000*1000)
		w.setNow(now)
		w.grant(&second, limit, "k", []int64{1 + r.Int64N(40), 1})
		back := throttle.LeaseReturn{Units: 1 + r.Int64N(first.Cost), ChargedAt: first.ChargedAt, WindowEnd: first.WindowEnd}
		var p *limiter.Policy
		var cell throttle.GCRA
		var want string
		before := w.there.Ask("GET", "k")
		if words := strings.Fields(limit); words[0] == "CL.THROTTLE" {
			cell = w.cellOf(limit)
			want = rateAfter(t, before, now, func(tat int64, exists bool) (throttle.Write, int64) {
				return cell.GiveBack(now, tat, exists, back.ChargedAt, back.Units)
			})
		} else {
			read, _, err := limiter.Standard.ParseText(limiter.Words(limit))
			require.NoError(t, err)
			p = &read
			switch words[0] {
			case "GCRA":
				want = rateAfter(t, before, now, func(tat int64, exists bool) (throttle.Write, int64) {
					return p.Rate.GiveBack(now, tat, exists, back.ChargedAt, back.Units)
				})
			case "FIXED":
				if want = before; before == "$-1\r\n" {
					break // it has expired
				}
				expires := parse(t, strings.Trim(w.there.Ask("PEXPIRETIME", "k"), ":\r\n"))
				s := throttle.FixedState{Count: parse(t, strings.Split(before, "\r\n")[1]), ExpireAtMs: expires, Exists: true}
				count, _ := s.GiveBack(now/1e6, back.WindowEnd, back.Units)
				digits := fmt.Sprint(count)
				want = fmt.Sprintf("$%d\r\n%s\r\n", len(digits), digits)
			case "SLIDING":
				start := fmt.Sprint(back.WindowEnd - p.Sliding.Length())
				count := int64(0) // if the key has expired
				if there := w.there.Ask("HGET", "k", start); there != "$-1\r\n" {
					count = parse(t, strings.Split(there, "\r\n")[1])
				}
				w.giveBackGrant(p, cell, back)
				after := w.there.Ask("HGET", "k", start)
				if left := count - back.Units; left > 0 {
					require.Equal(t, fmt.Sprint(left), strings.Split(after, "\r\n")[1])
				} else {
					require.Equal(t, "$-1\r\n", after)
				}
				continue
			}
		}
		w.giveBackGrant(p, cell, back)
		require.Equal(t, want, w.there.Ask("GET", "k"), "%s: %+v at %d", limit, back, now)
	}
}

func (w *world) giveBackGrant(p *limiter.Policy, cell throttle.GCRA, back throttle.LeaseReturn) {
	w.t.Helper()
	var g scripted.Grant
	require.NoError(w.t, g.AnswerReturn(w.send(g.AskReturn(nil, []byte("k"), p, cell, back))))
}

// rateAfter is what GET answers after a giveback.
func rateAfter(t *testing.T, before string, now int64, giveBack func(tat int64, exists bool) (throttle.Write, int64)) string {
	tat, exists := int64(0), before != "$-1\r\n"
	if exists {
		tat = parse(t, strings.Split(before, "\r\n")[1])
	}
	switch write, after := giveBack(tat, exists); write {
	case throttle.Set:
		return fmt.Sprintf("$19\r\n%d\r\n", after)
	case throttle.Delete:
		return "$-1\r\n"
	}
	if exists && tat <= now {
		return "$-1\r\n" // it has expired
	}
	return before
}
