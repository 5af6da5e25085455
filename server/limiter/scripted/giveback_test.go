package scripted_test

import (
	"fmt"
	"strconv"
	"testing"

	"headgate/server/limiter/scripted"

	"github.com/stretchr/testify/require"
)

// charge charges one pair at the other server by a Take.
func (w *world) charge(take *scripted.Take, policy, key string, cost int64) (limited bool) {
	w.t.Helper()
	take.NowMs = w.Ns / 1e6
	p := take.Pairs(1)[0]
	p.Policy, p.Key = w.policy(policy), []byte(key)
	p.Request.Call.Cost = cost
	require.NoError(w.t, w.exchange(take.Ask(nil), take.Answer, take.Next, take.Disagrees))
	return take.Limiting >= 0
}

// giveBack gives back what a Take was charged, and reports whether there was something.
func (w *world) giveBack(take *scripted.Take) bool {
	w.t.Helper()
	request := take.AskGiveBack(nil)
	if len(request) > 0 {
		require.NoError(w.t, take.AnswerGiveBack(w.send(request)))
	}
	return len(request) > 0
}

// TestGiveBackAtOnce: what is given back at the time of the charge leaves the state as it was, for every algorithm, and also beside other
// entries; a second time nothing is given back.
func TestGiveBackAtOnce(t *testing.T) {
	w := newTakeWorld(t)
	for _, policy := range []string{"gcra", "bucket", "queue", "fixed", "aligned", "minute", "sliding", "one", "log", "lease"} {
		for _, before := range []int64{0, 2} {
			t.Run(fmt.Sprint(policy, before), func(t *testing.T) {
				w.t = t
				var first, second, third scripted.Take
				w.pass(1e9)
				if before > 0 {
					require.False(t, w.charge(&first, policy, policy, before-oneIf(policy == "lease")))
				}
				was := state(w.there.Ask, policy)
				require.False(t, w.charge(&second, policy, policy, 1))
				require.False(t, w.charge(&third, policy, policy, 1))
				require.True(t, w.giveBack(&third))
				require.True(t, w.giveBack(&second))
				require.False(t, w.giveBack(&second))
				if before == 0 && (policy == "fixed" || policy == "aligned" || policy == "minute") {
					require.Equal(t, "$1\r\n0\r\n", w.there.Ask("GET", policy))
				} else {
					require.Equal(t, was, state(w.there.Ask, policy))
				}
				second.Look()
				v := second.Pairs(1)[0].Call.Verdict
				require.False(t, v.Limited)
				require.Nil(t, v.ID)
				require.Equal(t, v.Limit-before+oneIf(policy == "lease" && before > 0), v.Remaining, "as a look before the charge")
			})
			w.t = t
			w.there.Ask("DEL", policy)
		}
	}
}

// TestGiveBackMintsNothing: what comes late gives back only what has not been paid off since, and only to the window and the entries that were
// charged. Giving back the whole charge would let more pass than without it.
func TestGiveBackMintsNothing(t *testing.T) {
	w := newTakeWorld(t)
	w.policies = map[string]string{"gcra": "GCRA 100 10 1s", "fixed": "FIXED 5 100ms", "sliding": "SLIDING 5 100ms", "log": "LOG 5 100ms"}
	var late, fresh scripted.Take

	// Fifty units of 100 ms are paid off in 5 s, and a fresh charge of 100 stands before them.
	w.charge(&late, "gcra", "k", 50)
	w.pass(5e9)
	require.False(t, w.charge(&fresh, "gcra", "k", 100))
	require.True(t, w.giveBack(&late))
	require.True(t, w.charge(&fresh, "gcra", "k", 1))

	// Of twenty units some 15 are left after 500 ms; to the nanosecond.
	w.there.Ask("DEL", "k")
	w.charge(&late, "gcra", "k", 20)
	charged := w.Ns
	w.pass(500_001_000)
	require.False(t, w.charge(&fresh, "gcra", "k", 85))
	require.True(t, w.charge(&fresh, "gcra", "k", 1))
	before := parse(t, w.there.Ask("GET", "k")[5:24])
	require.True(t, w.giveBack(&late))
	require.Equal(t, before-(2e9-(w.Ns-charged)), parse(t, w.there.Ask("GET", "k")[5:24]))

	// Another window has begun.
	w.charge(&late, "fixed", "f", 3)
	w.pass(150e6)
	w.charge(&fresh, "fixed", "f", 4)
	require.True(t, w.giveBack(&late))
	require.Equal(t, "$1\r\n4\r\n", w.there.Ask("GET", "f"))

	// Only the slice that was charged is given back to.
	w.charge(&late, "sliding", "s", 2)
	w.pass(50e6)
	w.charge(&fresh, "sliding", "s", 3)
	require.True(t, w.giveBack(&late))
	require.Equal(t, "*2\r\n$13\r\n"+strconv.FormatInt(w.Ns/1e6/10*10, 10)+"\r\n$1\r\n3\r\n", w.there.Ask("HGETALL", "s"))

	// And only the entries that were.
	w.charge(&late, "log", "l", 2)
	w.charge(&fresh, "log", "l", 1)
	w.pass(1e6)
	w.charge(&fresh, "log", "l", 1)
	require.True(t, w.giveBack(&late))
	require.Equal(t, ":2\r\n", w.there.Ask("ZCARD", "l"))
	require.Equal(t, "$-1\r\n", w.there.Ask("ZSCORE", "l", fmt.Sprintf("%d-0", w.Ns/1e6-1)))
	require.Equal(t, "$-1\r\n", w.there.Ask("ZSCORE", "l", fmt.Sprintf("%d-1", w.Ns/1e6-1)))
}

// TestGiveBackNeverAdmitsMore: charges that are given back, at any time and in any order, let no more pass than if they had never been made.
func TestGiveBackNeverAdmitsMore(t *testing.T) {
	w, r := newTakeWorld(t), random(t)
	const unit = 20e6
	for range max(20, *calls/60) {
		w.there.Ask("DEL", "k")
		ideal := int64(0) // the TAT without what was given back or will be
		var open []*scripted.Take
		for range 40 {
			w.pass(pick(r, 0, 1000, r.Int64N(2*unit)/1000*1000, r.Int64N(10*unit)/1000*1000))
			switch cost := 1 + r.Int64N(4); {
			case r.IntN(3) == 0 && len(open) > 0:
				i := r.IntN(len(open))
				require.True(t, w.giveBack(open[i]))
				open = append(open[:i], open[i+1:]...)
			case r.IntN(2) == 0:
				if take := new(scripted.Take); !w.charge(take, "gcra", "k", cost) {
					open = append(open, take)
				}
			default:
				var take scripted.Take
				if !w.charge(&take, "gcra", "k", cost) {
					ideal = max(ideal, w.Ns) + cost*unit
				}
			}
			tat := w.Ns
			if text := w.there.Ask("GET", "k"); text != "$-1\r\n" {
				tat = max(tat, parse(t, text[5:24]))
			}
			require.GreaterOrEqual(t, tat, ideal, "a charge that is to be given back must not bring the others forward")
			require.LessOrEqual(t, ideal-w.Ns, int64(5*unit), "more has passed than the limit")
		}
	}
}
