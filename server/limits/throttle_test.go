package limits_test

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"headgate/server/command"
	"headgate/server/exec"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// TestThrottleVectors runs the calls of redis-cell's clients on one key each, within one instant.
func TestThrottleVectors(t *testing.T) {
	for _, tc := range []struct{ name, calls, want string }{
		{"first of a burst", "15 30 60", "0 16 15 -1 2"},
		{"more than the limit", "4 1 1 6", "1 5 5 -1 0"},
		{"all of the limit", "15 30 60 16", "0 16 0 -1 32"},
		{"giving back more than was taken", "15 30 60 5; 15 30 60 -2; 15 30 60 -3", "0 16 16 -1 0"},
		{"a changed limit holds at once", "9 1 1 10; 1 1 1 1", "1 2 0 9 10"},
		{"a look does not limit", "1 1 10 2; 1 1 10 0", "0 2 0 -1 20"},
		{"negative burst", "-5 30 60", "1 -4 0 -1 0"},
		{"negative rate", "15 -30 60", "1 16 0 -1 0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := servertest.NewWorkerClient(t)
			var request []byte
			calls := strings.Split(tc.calls, "; ")
			for _, call := range calls {
				request = append(request, servertest.EncodeCommand(append([]string{"CL.THROTTLE", "key"}, strings.Fields(call)...)...)...)
			}
			replies := strings.SplitAfter(string(w.Run(request)), "*5\r\n")
			want := ":" + strings.ReplaceAll(tc.want, " ", "\r\n:") + "\r\n"
			require.Equal(t, want, replies[len(calls)])
		})
	}
}

func TestThrottleErrors(t *testing.T) {
	w := servertest.NewWorkerClient(t)
	w.Run(servertest.EncodeCommand("HSET", "hash", "f", "v"))
	w.Run(servertest.EncodeCommand("SET", "text", "no number"))
	const (
		usage     = "-Cell error: Store error: Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]\r\n"
		zeroRates = "-Cell error: Store error: Zero rates are not supported\r\n"
	)
	for _, tc := range []struct{ call, want string }{
		{"CL.THROTTLE", usage},
		{"CL.THROTTLE k 1 1", usage},
		{"RL.THROTTLE k 1 1 1 1 1", usage},
		{"CL.THROTTLE k x 1 1", "-Cell error: Store error: Couldn't parse as integer: x\r\n"},
		{"CL.THROTTLE k 1 1.5 1", "-Cell error: Store error: Couldn't parse as integer: 1.5\r\n"},
		{"CL.THROTTLE k 1 0 x", "-Cell error: Store error: Couldn't parse as integer: x\r\n"},
		{"CL.THROTTLE k 1 1 9223372036854775808", "-Cell error: Store error: Couldn't parse as integer: 9223372036854775808\r\n"},
		{"CL.THROTTLE k 1 0 1", zeroRates},
		{"CL.THROTTLE hash 1 0 1", zeroRates},
		{"CL.THROTTLE k 1 1 0", zeroRates},
		{"CL.THROTTLE k 9223372036854775807 1 1", "-" + command.ErrNotInteger + "\r\n"},
		{"CL.THROTTLE hash 1 1 1", "-" + command.ErrWrongType + "\r\n"},
		{"CL.THROTTLE text 1 1 1", "-" + command.ErrNotInteger + "\r\n"},
		{"CL.THROTTLE k +1 +1 +1 +1", "*5\r\n:0\r\n:2\r\n:1\r\n:-1\r\n:1\r\n"},
	} {
		t.Run(tc.call, func(t *testing.T) {
			require.Equal(t, tc.want, string(w.Run(servertest.EncodeCommand(strings.Fields(tc.call)...))))
		})
	}
}

// TestThrottleIsReadAnewAfterConfigSet: within one batch, a call that repeats those before CONFIG SET is answered by what that has set. The
// worker keeps what such calls say.
func TestThrottleIsReadAnewAfterConfigSet(t *testing.T) {
	const calls = 4 // after which the worker has kept them
	var request []byte
	throttle := func() { request = append(request, servertest.EncodeCommand("CL.THROTTLE", "k", "9", "1", "1", "0")...) }
	for range calls {
		throttle()
	}
	for _, limit := range []string{"capacity", "burst+1"} {
		request = append(request, servertest.EncodeCommand("CONFIG", "SET", "cl-throttle-limit", limit)...)
		throttle()
	}
	const ten, nine = "*5\r\n:0\r\n:10\r\n:10\r\n:-1\r\n:0\r\n", "*5\r\n:0\r\n:9\r\n:9\r\n:-1\r\n:0\r\n"
	const attempts = 50 // on a loaded machine the turn may end within the request, and the rest of it is read for itself
	for range attempts {
		w := servertest.NewWorkerClient(t)
		require.Equal(t, strings.Repeat(ten, calls)+"+OK\r\n"+nine+"+OK\r\n"+ten, string(w.Run(request)))
		if c := &w.Worker.(*exec.Worker).Ctx; c.Shape != 0 {
			require.NotNil(t, c.Turn.Limits)
			return
		}
	}
	require.Fail(t, "the last call was never read as one that repeats others")
}

// TestThrottleAtTheEdgesOfInt64 calls the command with every combination of edge values, on keys that hold edge values too. Each
// answer is an error, or five numbers of which the third, what remains, lies between 0 and the limit.
func TestThrottleAtTheEdgesOfInt64(t *testing.T) {
	edges := []string{
		"-9223372036854775808", "-9223372036854775807", "-9223372036", "-1000000000", "-2", "-1", "0", "1", "2", "60",
		"1000000000", "9223372036", "9223372037", "9223372036854775806", "9223372036854775807",
	}
	stored := []string{"", "-9223372036854775808", "0", "9223372036854775807"}
	w := servertest.NewWorkerClient(t)
	answered := 0
	for _, tat := range stored {
		for _, burst := range edges {
			for _, count := range edges {
				for _, period := range edges {
					for _, quantity := range edges {
						w.Run(servertest.EncodeCommand("DEL", "k"))
						if tat != "" {
							w.Run(servertest.EncodeCommand("SET", "k", tat))
						}
						reply := w.Run(servertest.EncodeCommand("CL.THROTTLE", "k", burst, count, period, quantity))
						call := fmt.Sprintf("%s %s %s %s on %q: %q", burst, count, period, quantity, tat, reply)
						if reply[0] == '-' {
							continue
						}
						answered++
						lines := strings.Split(string(bytes.TrimSpace(reply)), "\r\n:")
						if len(lines) != 6 {
							require.Fail(t, call)
						}
						limit, err1 := strconv.ParseInt(lines[2], 10, 64)
						remaining, err2 := strconv.ParseInt(lines[3], 10, 64)
						if err1 != nil || err2 != nil || remaining < 0 || remaining > max(limit, 0) {
							require.Fail(t, call)
						}
					}
				}
			}
		}
	}
	require.Greater(t, answered, 1000, "most combinations being errors, some must not be")
	t.Logf("%d calls, %d answered without an error", len(stored)*len(edges)*len(edges)*len(edges)*len(edges), answered)
}
