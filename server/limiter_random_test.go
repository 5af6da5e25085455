package server

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// limiterHistories is how many random histories the commands are compared on; -rapid.seed repeats a run.
var limiterHistories = flag.Int("limiter.histories", 5000, "random histories for each limiter command, and for RL.TAKE; make limits takes a million")

func checkLimiterHistories(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	require.NoError(t, flag.Set("rapid.checks", strconv.Itoa(*limiterHistories)))
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

// TestLimiterCommandsAgainstLists makes random calls and compares all five numbers of each with a model that keeps every request.
func TestLimiterCommandsAgainstLists(t *testing.T) {
	for _, limiter := range []struct {
		call string
		used func(m *listModel, at int64) int64
	}{
		{"RL.LOG k %d %dms", logUsed},
		{"RL.FIXED k %d %d", fixedUsed},
		{"RL.SLIDING k %d %d SLICES 1", twoWindowsUsed},
	} {
		t.Run(strings.Fields(limiter.call)[0], func(t *testing.T) {
			w := newClockClient(t)
			checkLimiterHistories(t, func(r *rapid.T) {
				w.call("DEL k")
				w.now += rapid.Int64Range(0, 999).Draw(r, "start") * 1e6
				m := &listModel{
					limit: rapid.Int64Range(0, 7).Draw(r, "limit"), window: rapid.Int64Range(1, 40).Draw(r, "window"), used: limiter.used, fixed: strings.HasPrefix(limiter.call, "RL.FIXED"),
				}
				call := fmt.Sprintf(limiter.call, m.limit, m.window)
				for range rapid.IntRange(1, 25).Draw(r, "calls") {
					w.now += rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 2), rapid.Int64Range(0, m.window*5/4+1)).Draw(r, "step") * 1e6
					cost, peek := rapid.Int64Range(0, 4).Draw(r, "cost"), rapid.IntRange(0, 5).Draw(r, "peek") == 0
					line := fmt.Sprintf("%s COST %d", call, cost)
					if peek {
						line += " PEEK"
					}
					if want, got := m.ask(w.now/1e6, cost, peek), w.call(line); want != got {
						r.Fatalf("%s\nmodel: %s\ngot:   %s", line, want, got)
					}
				}
			})
		})
	}
}

// TestTakeAllOrNothing asks the same limits at once, and on another server one by one: if all pass, both come to the same state and
// numbers; if one limits, nothing has changed and the numbers are those of the single peeks.
func TestTakeAllOrNothing(t *testing.T) {
	limits := map[string]string{
		"a": "GCRA %s 3 1 10ms", "b": "FIXED %s 4 25ms", "c": "LOG %s 3 30ms", "d": "SLIDING %s 5 20ms SLICES 4", "e": "BUCKET %s 2 1 7ms", "f": "GCRA %s -1 1 1s",
	}
	at, single := newClockClient(t), newClockClient(t)
	for name, text := range limits {
		require.Equal(t, "OK", at.call("RL.POLICY SET "+name+" "+fmt.Sprintf(text, "")))
	}
	checkLimiterHistories(t, func(r *rapid.T) {
		at.now += 1e12
		for range rapid.IntRange(1, 15).Draw(r, "calls") {
			at.now += rapid.Int64Range(0, 12).Draw(r, "step") * 1e6
			single.now = at.now
			names := rapid.Permutation([]string{"a", "b", "c", "d", "e", "f"}).Draw(r, "policies")[:rapid.IntRange(1, 6).Draw(r, "pairs")]
			take, costs := fmt.Sprintf("RL.TAKE %d", len(names)), " COSTS"
			index, peeks, charges := -1, []string{}, []string{}
			for i, name := range names {
				cost := strconv.Itoa(rapid.IntRange(-1, 3).Draw(r, "cost"))
				take += " " + name + " k:" + name
				costs += " " + cost
				call := "RL." + fmt.Sprintf(limits[name], "k:"+name) + " COST " + cost
				peek := single.call(call + " PEEK")
				if peek[1] == '1' && index < 0 {
					index = i
				}
				peeks, charges = append(peeks, peek), append(charges, call)
			}
			if index < 0 {
				for i, call := range charges {
					peeks[i] = single.call(call)
				}
			}
			limited := 0
			if index >= 0 {
				limited = 1
			}
			want := fmt.Sprintf("[%d %d [%s]]", limited, index, strings.Join(peeks, " "))
			if got := at.call(take + costs); want != got {
				r.Fatalf("%s\none by one: %s\nat once:    %s", take+costs, want, got)
			}
		}
		got := slices.DeleteFunc(at.contents(), func(line string) bool { return strings.HasPrefix(line, policiesKey) })
		if want := single.contents(); !slices.Equal(want, got) {
			r.Fatalf("states differ:\n%v\n%v", want, got)
		}
	})
}
