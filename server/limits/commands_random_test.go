package limits_test

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"headgate/server/command"
	"headgate/server/limits"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// limiterHistories is how many random histories the commands are compared on; -rapid.seed repeats a run.
var limiterHistories = flag.Int("limiter.histories", 2000, "random histories for each limiter command, and for RL.TAKE; make limits takes a million")

func checkLimiterHistories(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	checkHistories(t, *limiterHistories, property)
}

func checkHistories(t *testing.T, histories int, property func(*rapid.T)) {
	t.Helper()
	require.NoError(t, flag.Set("rapid.checks", strconv.Itoa(histories)))
	rapid.Check(t, property)
}

// charged is one unit-bearing request of a model, in ms.
type charged struct{ at, units int64 }

// listModel answers by a list of everything that was charged.
type listModel struct {
	limit, window int64
	requests      []charged
	used          func(m *listModel, at int64) int64
	fixed         bool
	end           int64 // of a fixed window
}

func logUsed(m *listModel, at int64) int64 {
	total := int64(0)
	for _, r := range m.requests {
		if r.at > at-m.window && r.at <= at {
			total += r.units
		}
	}
	return total
}

func fixedUsed(m *listModel, at int64) int64 {
	total := int64(0)
	for _, r := range m.requests {
		if at < m.end {
			total += r.units
		}
	}
	return total
}

// twoWindowsUsed is the sliding window of one slice: what this window has, and the last one's share that is still inside, rounded up.
func twoWindowsUsed(m *listModel, at int64) int64 {
	current, last := int64(0), int64(0)
	for _, r := range m.requests {
		switch at/m.window - r.at/m.window {
		case 0:
			current += r.units
		case 1:
			last += r.units
		}
	}
	return current + (last*(m.window-at%m.window)+m.window-1)/m.window
}

// takes reports whether a call that was allowed takes room: for an entry or a slice, of which there may be one more than before, or for
// a counter's key, which is alive up to the last millisecond.
func (m *listModel) takes(before *listModel, now int64) bool {
	return len(m.requests) > 0 && (!m.fixed || len(before.requests) == 0 || now > before.end)
}

// ask charges the model and answers as the command does, by trying one millisecond after another.
func (m *listModel) ask(now, cost int64, peek bool) string {
	limited, retry := int64(0), int64(-1)
	switch used := m.used(m, now); {
	case used+cost > m.limit:
		limited = 1
		for d := int64(1); cost <= m.limit; d++ {
			if m.used(m, now+d)+cost <= m.limit {
				retry = d
				break
			}
		}
	case !peek && cost > 0:
		if now >= m.end {
			m.end = now + m.window
			if m.fixed {
				m.requests = nil
			}
		}
		m.requests = append(m.requests, charged{now, cost})
	}
	reset := int64(0)
	for m.used(m, now+reset) > 0 {
		reset++
	}
	return fmt.Sprintf("[%d %d %d %d %d]", limited, m.limit, max(m.limit-m.used(m, now), 0), retry, reset)
}

// TestLimiterCommandsAgainstLists makes random calls and compares all five numbers of each with a model that keeps every request. What
// a foreign hand has written into the future, which never comes, counts nowhere. At times
// no memory is left: the answer is then the same, or OOM, which changes nothing and is for calls alone that take room.
func TestLimiterCommandsAgainstLists(t *testing.T) {
	for _, limiter := range []struct {
		call, foreign string
		used          func(m *listModel, at int64) int64
	}{
		{"RL.LOG k %d %dms", "ZADD k %d later", logUsed},
		{"RL.FIXED k %d %d", "", fixedUsed},
		{"RL.SLIDING k %d %d SLICES 1", "HSET k %d 3", twoWindowsUsed},
	} {
		t.Run(strings.Fields(limiter.call)[0], func(t *testing.T) {
			w := servertest.NewClockClient(t)
			checkLimiterHistories(t, func(r *rapid.T) {
				w.Call("DEL k")
				w.Now += rapid.Int64Range(0, 999).Draw(r, "start") * 1e6
				m := &listModel{
					limit: rapid.Int64Range(0, 7).Draw(r, "limit"), window: rapid.Int64Range(1, 40).Draw(r, "window"), used: limiter.used, fixed: strings.HasPrefix(limiter.call, "RL.FIXED"),
				}
				call := fmt.Sprintf(limiter.call, m.limit, m.window)
				for range rapid.IntRange(1, 25).Draw(r, "calls") {
					w.Now += rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 2), rapid.Int64Range(0, m.window*5/4+1)).Draw(r, "step") * 1e6
					cost, peek := rapid.Int64Range(0, 4).Draw(r, "cost"), rapid.IntRange(0, 5).Draw(r, "peek") == 0
					line := fmt.Sprintf("%s COST %d", call, cost)
					if peek {
						line += " PEEK"
					}
					if limiter.foreign != "" && rapid.IntRange(0, 9).Draw(r, "foreign") == 0 {
						w.SetShort(false)
						w.Call(fmt.Sprintf(limiter.foreign, w.Now/1e6+1e6+rapid.Int64Range(0, 3).Draw(r, "later")))
					}
					short := rapid.IntRange(0, 2).Draw(r, "short") == 0
					w.SetShort(short)
					size := w.Elements("k")
					before := *m
					want, got := m.ask(w.Now/1e6, cost, peek), w.Call(line)
					switch {
					case short && got == servertest.WireOOM:
						if peek || cost == 0 || want[1] == '1' || !m.takes(&before, w.Now/1e6) || w.Elements("k") != size {
							r.Fatalf("%s\nmodel: %s\ngot:   %s", line, want, got)
						}
						*m = before
					case want != got:
						r.Fatalf("%s\nmodel: %s\ngot:   %s", line, want, got)
					case short && w.Elements("k") > size:
						r.Fatalf("%s\nhas %d elements without room, and had %d", line, w.Elements("k"), size)
					}
				}
			})
		})
	}
}

// TestTakeAllOrNothing asks the same limits at once, and on another server one by one: if all pass, both come to the same state and
// numbers; if one limits, nothing has changed and the numbers are those of the single peeks. At times no memory is left, and then it may
// be refused where a key or an entry would be new, and nothing has changed either.
func TestTakeAllOrNothing(t *testing.T) {
	texts := map[string]string{
		"a": "GCRA %s 3 1 10ms", "b": "FIXED %s 4 25ms", "c": "LOG %s 3 30ms", "d": "SLIDING %s 5 20ms SLICES 4", "e": "BUCKET %s 2 1 7ms", "f": "GCRA %s -1 1 1s",
	}
	at, single := servertest.NewClockClient(t), servertest.NewClockClient(t)
	for name, text := range texts {
		require.Equal(t, "OK", at.Call("RL.POLICY SET "+name+" "+fmt.Sprintf(text, "")))
	}
	checkLimiterHistories(t, func(r *rapid.T) {
		at.Now += 1e12
		for range rapid.IntRange(1, 15).Draw(r, "calls") {
			at.Now += rapid.Int64Range(0, 12).Draw(r, "step") * 1e6
			single.Now = at.Now
			short := rapid.IntRange(0, 2).Draw(r, "short") == 0
			names := rapid.Permutation([]string{"a", "b", "c", "d", "e", "f"}).Draw(r, "policies")[:rapid.IntRange(1, 6).Draw(r, "pairs")]
			take, costs := fmt.Sprintf("RL.TAKE %d", len(names)), " COSTS"
			index, peeks, charges := -1, []string{}, []string{}
			for i, name := range names {
				cost := strconv.Itoa(rapid.IntRange(-1, 3).Draw(r, "cost"))
				take += " " + name + " k:" + name
				costs += " " + cost
				call := "RL." + fmt.Sprintf(texts[name], "k:"+name) + " COST " + cost
				peek := single.Call(call + " PEEK")
				if peek[1] == '1' && index < 0 {
					index = i
				}
				peeks, charges = append(peeks, peek), append(charges, call)
			}
			at.SetShort(short)
			before := at.Contents()
			got := at.Call(take + costs)
			if got == servertest.WireOOM && short && index < 0 && slices.Equal(before, at.Contents()) && slices.ContainsFunc(names, func(name string) bool {
				return name == "c" || name == "d" || at.Elements("k:"+name) == 0
			}) {
				continue
			}
			if index < 0 {
				for i, call := range charges {
					peeks[i] = single.Call(call)
				}
			}
			limited := 0
			if index >= 0 {
				limited = 1
			}
			want := fmt.Sprintf("[%d %d [%s]]", limited, index, strings.Join(peeks, " "))
			if want != got {
				r.Fatalf("%s\none by one: %s\nat once:    %s", take+costs, want, got)
			}
		}
		got := slices.DeleteFunc(at.Contents(), func(line string) bool { return strings.HasPrefix(line, limits.PoliciesKey) })
		if want := single.Contents(); !slices.Equal(want, got) {
			r.Fatalf("states differ:\n%v\n%v", want, got)
		}
	})
}

// TestLimitersWithoutRoom makes random calls of every limiter to two servers, of which one has at times no memory left. What that answers
// is what the other does, or OOM, and then nothing has changed. The calls come by themselves, from scripts and in transactions.
func TestLimitersWithoutRoom(t *testing.T) {
	calls := []string{
		"CL.THROTTLE t 3 10 1 %d", "RL.THROTTLE t 2 5 1 %d", "GCRA g 2 10 0.5 TOKENS 1", "RL.GCRA g 3 10 1s COST %d", "RL.BUCKET b 3 10 1s COST %d",
		"RL.QUEUE q 3 10 1s COST %d", "RL.FIXED f 4 300ms COST %d", "RL.FIXED f 4 200ms ALIGNED COST %d", "RL.SLIDING s 5 400ms SLICES 4 COST %d",
		"RL.SLIDING s 4 500ms SLICES 2 COST %d", "RL.SLIDING s 5 400ms SLICES 1 PEEK", "RL.LOG l 4 300ms COST %d", "RL.LOG m 3 300ms MEMBER id%d",
		"RL.LOG m 2 400ms MEMBER id%d PEEK", "RL.LOG m 3 300ms MEMBER id0 COST -1", "RL.ACQUIRE a 2 300ms MEMBER id%d", "RL.ACQUIRE a 1 200ms PEEK",
		"RL.RENEW a id%d 400ms", "RL.RELEASE a id%d", "RL.TAKE 3 pg tg pf tf ps ts COST %d", "RL.TAKE 2 pl tl pg tg COST %d",
	}
	w, roomy := servertest.NewClockClient(t), servertest.NewClockClient(t)
	checkHistories(t, *limiterHistories/10, func(r *rapid.T) { // each of which compares the servers after every call
		w.SetShort(false)
		w.Now += 1e9
		roomy.Now = w.Now
		for _, c := range []*servertest.ClockClient{w, roomy} {
			c.Call("FLUSHALL")
			for _, policy := range []string{"pg GCRA 3 10 1s", "pf FIXED 4 300ms", "ps SLIDING 5 400ms", "pl LOG 4 300ms"} {
				require.Equal(t, "OK", c.Call("RL.POLICY SET "+policy))
			}
		}
		for range rapid.IntRange(1, 30).Draw(r, "calls") {
			w.Now += rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 150)).Draw(r, "step") * 1e6
			roomy.Now = w.Now
			w.SetShort(rapid.Bool().Draw(r, "short"))
			call := rapid.SampledFrom(calls).Draw(r, "call")
			if strings.Contains(call, "%d") {
				call = fmt.Sprintf(call, rapid.IntRange(-1, 3).Draw(r, "number"))
			}
			before, got := w.Contents(), ""
			switch rapid.IntRange(0, 3).Draw(r, "way") {
			case 0:
				got = w.Ask(append([]string{"EVAL", "local r = redis.pcall(unpack(ARGV)) if type(r) == 'table' and r.err then return {err = r.err} end return r", "0"}, strings.Fields(call)...)...)
			case 1:
				w.Call("MULTI")
				require.Equal(t, "QUEUED", w.Call(call))
				got = strings.TrimSuffix(strings.TrimPrefix(w.Call("EXEC"), "["), "]")
			default:
				got = w.Call(call)
			}
			if w.Srv.Gate.Has(command.GateShort) && strings.HasPrefix(got, servertest.WireOOM) {
				if !slices.Equal(before, w.Contents()) {
					r.Fatalf("%s was refused and has changed something:\n%v\n%v", call, before, w.Contents())
				}
				continue
			}
			if want := roomy.Call(call); want != got {
				r.Fatalf("%s\nwith room: %s\ngot:       %s", call, want, got)
			}
			if want, got := roomy.Contents(), w.Contents(); !slices.Equal(want, got) {
				r.Fatalf("%s: states differ\n%v\n%v", call, want, got)
			}
		}
	})
}
