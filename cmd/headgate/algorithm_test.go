package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/cmd/headgate/bench"
	"headgate/server"
	"headgate/server/config"
	"headgate/server/limiter"
	"headgate/throttle"
)

// patient is an algorithm that there is in this file alone: so many calls pass, until there has been none for a while.
var patient = limiter.Algorithm{
	Name: "PATIENT", Since: "headgate 0.1.0", Complexity: "O(1)",
	Summary:   "Count until nobody has called for a while.",
	Guarantee: "at most limit between two pauses", Burst: "the whole limit", Memory: "55 bytes", Seen: "nothing passes before a pause",
	Example: "3 10s", Says: "3 before a pause of 10 s",
	Args:  []limiter.Arg{{Name: "limit", Type: "integer", Error: "ERR limit '%s' must be a number"}, {Name: "pause", Type: "string", Error: limiter.InvalidDuration}},
	Words: 2, Errors: []limiter.Error{limiter.ErrSyntax, limiter.ErrNotInteger, limiter.ErrWrongType}, Kind: limiter.Number,
	Read: func(p *limiter.Policy, words [][]byte) (err error) {
		if p.Limit, err = strconv.ParseInt(string(words[0]), 10, 64); err != nil {
			return p.Algorithm.BadArgument(0, words[0])
		}
		p.Window, err = limiter.ParseDuration(words[1])
		return err
	},
	Decide: func(c *limiter.Call) error {
		used, call := c.Found.Number, c.Request.Call
		if !c.Found.Exists {
			used = 0
		}
		v := throttle.Verdict{Limit: c.Policy.Limit, Limited: used+call.Cost > c.Policy.Limit, RetryAfter: throttle.NoRetry}
		switch {
		case v.Limited:
			v.RetryAfter = c.Policy.Window
		case !call.Peek && call.Cost > 0:
			used += call.Cost
			c.Change = limiter.Change{Write: throttle.Set, Number: used, ExpireAtMs: c.NowMs + c.Policy.Window}
		}
		if v.Remaining = c.Policy.Limit - used; used > 0 {
			v.ResetAfter = c.Policy.Window
		}
		c.Verdict = limiter.Verdict{Verdict: v}
		return nil
	},
}

// TestAnAlgorithmIsOneDeclaration: what is declared above is a command, a policy, part of RL.TAKE, of the metrics, of INFO, of the page, of
// the documentation and of headgate bench, and nothing else says a word of it.
func TestAnAlgorithmIsOneDeclaration(t *testing.T) {
	table := limiter.Standard.With(patient)
	ask, get := serveWith(t, table)

	require.Equal(t, "[0 3 2 -1 10000]", ask("RL.PATIENT k 3 10s"))
	require.Equal(t, "[0 3 2 -1 10000]", ask("RL.PATIENT k 3 10s PEEK"))
	require.Equal(t, "[1 3 2 10000 10000]", ask("RL.PATIENT k 3 10s COST 3"))
	require.Equal(t, "-ERR limit 'x' must be a number", ask("RL.PATIENT k x 10s"))
	require.Equal(t, "-ERR syntax error, try RL.PATIENT key limit pause [COST n] [PEEK] [WAIT duration] (unknown word 'x')", ask("RL.PATIENT k 3 10s x"))
	require.Equal(t, "-WRONGTYPE Operation against a key holding the wrong kind of value", ask("RPUSH list x", "RL.PATIENT list 3 10s"))
	require.Contains(t, ask("COMMAND DOCS rl.patient"), "summary Count until nobody has called for a while since")

	require.Equal(t, "OK", ask("RL.POLICY SET p patient 3 10s WHEN-UNWRITABLE memory"))
	require.Equal(t, "PATIENT 3 10s WHEN-UNWRITABLE MEMORY", ask("RL.POLICY GET p"))
	require.Equal(t, "OK", ask("RL.POLICY SET g GCRA 9 1 1s"))
	require.Equal(t, "[0 -1 [[0 3 0 -1 10000] [0 9 7 -1 2000]]]", ask("RL.TAKE 2 p k g other COST 2"))
	require.Regexp(t, `^\[1 0 \[\[1 3 0 10000 10000\] \[0 9 7 -1 \d+\]\]\]$`, ask("RL.TAKE 2 p k g other COST 1"))

	require.Contains(t, ask("INFO limiters"), "algorithm_patient:allowed=2,near_limit=1,limited=2")
	require.Contains(t, get("/metrics"), `headgate_limiter_calls_total{algorithm="patient",result="limited"} 2`)
	require.Contains(t, get("/data"), `{"name":"patient",`)
	require.Contains(t, get("/lookup?key=k&limit=p"), `"algorithm":"patient"`)

	require.Contains(t, table.Markdown(), "| `RL.PATIENT key limit pause` | at most limit between two pauses |")
	loads := bench.LoadsOf(table)
	i := slices.IndexFunc(loads, func(l bench.Load) bool { return l.Name == "patient" })
	require.GreaterOrEqual(t, i, 0)
	require.Equal(t, "RL.PATIENT, 3 before a pause of 10 s", loads[i].Help)
	require.Equal(t, "[0 3 2 -1 10000]", ask(strings.Join(loads[i].Commands[0], " ")))
}

// serveWith runs a server with these algorithms. ask sends command lines and returns the last reply, in RESP2, as text; get reads a path of
// the HTTP port.
func serveWith(t *testing.T, table *limiter.Table) (ask func(lines ...string) string, get func(path string) string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	cfg := config.Default()
	cfg.Save, cfg.MetricsPort = nil, free.Addr().(*net.TCPAddr).Port
	require.NoError(t, free.Close())
	s := server.New(config.NewLive(cfg), server.Options{Algorithms: table, Inherited: []net.Listener{listener}})
	require.NoError(t, s.Listen())
	ended := make(chan struct{})
	go func() {
		s.Run()
		close(ended)
	}()
	conn, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, conn.Close())
		s.Stop()
		<-ended
	})
	replies := bufio.NewReader(conn)
	ask = func(lines ...string) (last string) {
		for _, line := range lines {
			require.NoError(t, conn.SetDeadline(time.Now().Add(startLimit)))
			_, err := fmt.Fprintf(conn, "%s\r\n", line)
			require.NoError(t, err)
			last = readReply(t, replies)
		}
		return last
	}
	get = func(path string) string {
		reply, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d%s", cfg.MetricsPort, path))
		require.NoError(t, err)
		defer reply.Body.Close()
		body, err := io.ReadAll(reply.Body)
		require.NoError(t, err)
		return string(body)
	}
	return ask, get
}

// readReply reads a reply of RESP2 and renders it.
func readReply(t *testing.T, r *bufio.Reader) string {
	line, err := r.ReadString('\n')
	require.NoError(t, err)
	line = strings.TrimRight(line, "\r\n")
	n, _ := strconv.Atoi(line[1:])
	switch line[0] {
	case '*':
		parts := make([]string, max(n, 0))
		for i := range parts {
			parts[i] = readReply(t, r)
		}
		return "[" + strings.Join(parts, " ") + "]"
	case '$':
		if n < 0 {
			return "nil"
		}
		text := make([]byte, n+2)
		_, err := io.ReadFull(r, text)
		require.NoError(t, err)
		return string(text[:n])
	case '-':
		return line
	}
	return line[1:]
}
