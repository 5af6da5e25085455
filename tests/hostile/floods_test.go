package hostile

import (
	"flag"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/flood"
	"headgate/tests/internal/harness"
)

var (
	floodWhole = flag.Bool("flood.whole", false, "whole floods, beside redis-server's figures")
	floodTime  = flag.Duration("flood.time", 5*time.Second, "how long each whole flood goes on")
	floodOnly  = flag.String("flood.only", "", "a regular expression: the floods whose name it matches")
	floodRedis = flag.Bool("flood.redis", true, "measure redis-server as well")
)

// floodRow is a line of the table.
type floodRow struct {
	name           string
	subject, redis flood.Result
	compared       bool
	verdict        string
	memory         int64
}

// How long a short flood goes on. It is tried again when it takes too much memory, as the cases are.
const shortTime = 60 * time.Millisecond

// drawnFloods is how many are let loose in a run that is short.
const drawnFloods = 20

// TestShortFloods lets floods loose for a moment, twenty of them that are drawn or those that -flood.only names: the server lives, answers others, and takes no more memory than it may. How long the
// others wait is for TestFloods to judge, on a machine that does nothing else.
func TestShortFloods(t *testing.T) {
	only := regexp.MustCompile(*floodOnly)
	var floods []*flood.Flood
	for i := range flood.All {
		if only.MatchString(flood.All[i].Name) {
			floods = append(floods, &flood.All[i])
		}
	}
	if *floodOnly == "" && !*floodWhole {
		floods = harness.Draw(t, floods, drawnFloods)
	}
	for _, f := range floods {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			server := f.Start(t)
			var r flood.Result
			for range attempts {
				r = f.Measure(t, server, flood.Short, shortTime)
				require.True(t, r.Alive, "the server ended")
				require.Empty(t, r.Pings.Problem, "the client beside it")
				require.False(t, r.Refused, "a new client is not answered afterwards")
				if r.Growth() <= f.Memory(flood.Short) {
					break
				}
			}
			t.Log(describe(r))
			require.LessOrEqual(t, r.Growth(), f.Memory(flood.Short), "bytes of resident memory in each of %d attempts", attempts)
		})
	}
}

// TestFloods lets each flood loose on headgate and on redis-server in turn, and compares.
func TestFloods(t *testing.T) {
	if !*floodWhole {
		t.Skip("TestShortFloods runs some for a moment, make hostile for longer and beside redis-server")
	}
	only := regexp.MustCompile(*floodOnly)
	var rows []floodRow
	for i := range flood.All {
		f := &flood.All[i]
		if !only.MatchString(f.Name) {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			row := floodRow{name: f.Name, memory: f.Memory(flood.Whole)}
			if *floodRedis && !f.Alone {
				server := f.StartReference(t)
				row.redis, row.compared = f.Measure(t, server, flood.Whole, *floodTime), true
				t.Logf("redis-server %s", describe(row.redis))
				server.Kill()
			}
			server := f.Start(t)
			row.subject = f.Measure(t, server, flood.Whole, *floodTime)
			t.Logf("headgate     %s", describe(row.subject))
			row.verdict = judge(f, row)
			rows = append(rows, row)
			if row.verdict != "" {
				t.Error(row.verdict)
			}
		})
	}
	t.Log(table(rows))
	require.NotEmpty(t, rows, "no flood is called so")
}

// judge says what is wrong with what a flood did, or "".
func judge(f *flood.Flood, row floodRow) string {
	var wrong []string
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	r := row.subject
	if r.Killed {
		add("it was killed, since it took %s", mebibytes(r.Peak))
	} else if !r.Alive {
		add("it ended")
	}
	if r.Pings.Problem != "" {
		add("the client beside it: %s", r.Pings.Problem)
	}
	if r.Refused {
		add("a new client is not answered afterwards")
	}
	pause := f.Pause
	if pause == 0 {
		pause = flood.DefaultPause
	}
	if row.compared {
		factor := flood.DefaultFactor
		if f.Factor > 0 {
			factor = f.Factor
			row.memory = max(row.memory, int64(factor*float64(row.redis.Growth())))
		}
		pause = max(pause, time.Duration(factor*float64(row.redis.Pings.P999)))
	}
	if r.Pings.P999 > pause {
		add("PING p99.9 %v, above %v", ms(r.Pings.P999), ms(pause))
	}
	if r.Growth() > row.memory {
		add("memory grew by %s, above %s", mebibytes(r.Growth()), mebibytes(row.memory))
	}
	if f.Back > 0 && r.Alive && r.BackIn < 0 {
		add("memory is not back %v later: %s of %s", f.Back, mebibytes(r.After-r.Before), mebibytes(r.Growth()))
	}
	return strings.Join(wrong, "; ")
}

func describe(r flood.Result) string {
	text := fmt.Sprintf("%d PINGs: p50 %v, p99 %v, p99.9 %v, slowest %v (sent up to %v late); memory %s, peak %s, then %s",
		r.Pings.Sent, ms(r.Pings.P50), ms(r.Pings.P99), ms(r.Pings.P999), ms(r.Pings.Slowest), ms(r.Pings.Late), mebibytes(r.Before), mebibytes(r.Peak), mebibytes(r.After))
	if r.Tally.Complaint != "" {
		text += "; answered -" + r.Tally.Complaint
	}
	text += fmt.Sprintf("; sent %s, read %s, %d connections, %d cut off, %d not taken, %d done", mebibytes(r.Tally.Sent), mebibytes(r.Tally.Received),
		r.Tally.Conns, r.Tally.Cut, r.Tally.Refused, r.Tally.Rounds)
	if r.Killed {
		text += "; KILLED"
	} else if !r.Alive {
		text += "; DIED"
	}
	return text
}

func table(rows []floodRow) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%d floods, attackers on one processor, server and PING on the other\n%-20s %22s %22s %30s  %s\n", len(rows), "flood", "PING p99.9 headgate", "redis-server",
		"memory headgate / redis-server", "verdict")
	for _, row := range rows {
		redis, redisMemory, verdict := "-", "-", "ok"
		if row.compared {
			redis, redisMemory = ms(row.redis.Pings.P999).String(), mebibytes(row.redis.Growth())
		}
		if row.verdict != "" {
			verdict = row.verdict
		}
		fmt.Fprintf(&out, "%-20s %22v %22s %15s %14s  %s\n", row.name, ms(row.subject.Pings.P999), redis, mebibytes(row.subject.Growth()), redisMemory, verdict)
	}
	return out.String()
}

func ms(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }

func mebibytes(n int64) string { return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20)) }
