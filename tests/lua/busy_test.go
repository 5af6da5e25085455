package lua

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

const (
	busyAfter = "50"             // busy-reply-threshold, in milliseconds
	busyLimit = 10 * time.Second // until a server that runs an endless script must say so, and must have ended it
)

const (
	endless      = "while true do end"
	swallowing   = "while true do pcall(function() while true do end end) end"
	afterWriting = "redis.call('set', KEYS[1], 'v') while true do end"
)

// running is a server with one client in an endless script and another that looks on.
type running struct {
	t              *testing.T
	server         *harness.Server
	caller, looker *harness.Client
	transcript     []string
}

// say sends one command from the onlooker and keeps the answer.
func (r *running) say(args ...string) {
	r.t.Helper()
	r.transcript = append(r.transcript, strings.Join(args, " ")+": "+r.looker.Ask(args...).Wire())
}

// enter starts the command and waits until the server answers BUSY. A PING follows it on the same connection.
func (r *running) enter(args ...string) {
	r.t.Helper()
	require.NoError(r.t, r.caller.Send(append(harness.Command(args...), harness.Command("PING")...)))
	for deadline := time.Now().Add(busyLimit); ; time.Sleep(time.Millisecond) {
		if reply := r.looker.Ask("PING"); reply.Kind == '-' {
			r.transcript = append(r.transcript, "busy: "+reply.Wire())
			return
		}
		require.True(r.t, time.Now().Before(deadline), "%s never said BUSY", r.server.Name)
	}
}

// leave reads what the endless script ended with, and the PING behind it.
func (r *running) leave() {
	r.t.Helper()
	for range 2 {
		reply, err := r.caller.Read(busyLimit)
		require.NoError(r.t, err)
		r.transcript = append(r.transcript, "caller: "+reply.Wire())
	}
	r.say("PING")
}

// passing are the parts of a reply that count time or clients, or tell the version.
var passing = regexp.MustCompile(`(duration_ms\r\n|id\r\n):\d+|(version\r\n)\$\d\r\n[\d.]+`)

// compareBusy runs the scenario on a server of each kind and compares the transcripts.
func compareBusy(t *testing.T, scenario func(r *running)) {
	t.Helper()
	p := startPair(t, "--busy-reply-threshold", busyAfter)
	var transcripts []string
	for _, server := range []*harness.Server{p.reference, p.subject} {
		r := &running{t: t, server: server, caller: harness.Dial(t, server.Addr), looker: harness.Dial(t, server.Addr)}
		scenario(r)
		transcripts = append(transcripts, passing.ReplaceAllString(strings.Join(r.transcript, "\n"), "$1$2*"))
	}
	require.Equal(t, transcripts[0], transcripts[1])
}

// TestBusy: while a script runs too long, others are answered, and told what they may do.
func TestBusy(t *testing.T) {
	compareBusy(t, func(r *running) {
		r.enter("EVAL", endless, "0")
		for _, command := range [][]string{
			{"GET", "k"}, {"SET", "k", "v"}, {"EVAL", "return 1", "0"}, {"INFO"}, {"CONFIG", "GET", "timeout"}, {"CLIENT", "ID"},
			{"NOSUCH"}, {"GET"}, {"SCRIPT", "EXISTS", "x"}, {"SCRIPT", "LOAD", "return 1"}, {"FUNCTION", "LIST"}, {"FUNCTION", "KILL"},
			{"MULTI"}, {"GET", "k"}, {"EXEC"}, {"DISCARD"}, {"WATCH", "k"}, {"UNWATCH"}, {"HELLO", "3"}, {"GET", "k"}, {"HELLO", "2"}, {"RESET"},
			{"SHUTDOWN", "NOSUCH"}, {"SCRIPT", "KILL"},
		} {
			r.say(command...)
		}
		r.leave()
		r.say("SCRIPT", "KILL")
		r.say("FUNCTION", "KILL")
		r.say("EVAL", "return 'as before'", "0")
	})
}

// TestKillBeatsPcall: a script that catches all errors is stopped as well.
func TestKillBeatsPcall(t *testing.T) {
	for name, script := range map[string]string{
		"a loop of pcall": swallowing,
		"a coroutine":     "local co = coroutine.wrap(function() while true do end end) while true do pcall(co) end",
		"an xpcall":       "xpcall(function() while true do end end, function() while true do end end)",
		"a sort":          "local t = {} for i = 1, 100 do t[i] = i end table.sort(t, function(a, b) while true do end end)",
		"a gsub":          "return (('x'):rep(100):gsub('x', function() while true do end end))",
	} {
		t.Run(name, func(t *testing.T) {
			if harness.SubjectIsReference(t) && name != "a loop of pcall" {
				t.Skip("redis-server is hooked into its main coroutine only, or calls the handler again")
			}
			server := harness.Start(t, "--busy-reply-threshold", busyAfter)
			r := &running{t: t, server: server, caller: harness.Dial(t, server.Addr), looker: harness.Dial(t, server.Addr)}
			r.enter("EVAL", script, "0")
			r.say("SCRIPT", "KILL")
			r.leave()
			require.Contains(t, strings.Join(r.transcript, "\n"), "Script killed by user with SCRIPT KILL")
		})
	}
}

// TestBusyFunction: the same for a function of a library.
func TestBusyFunction(t *testing.T) {
	compareBusy(t, func(r *running) {
		r.say("FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function('endless', function() while true do end end)")
		r.enter("FCALL", "endless", "1", "key", "argument")
		r.say("FUNCTION", "STATS")
		r.say("SCRIPT", "KILL")
		r.say("FUNCTION", "KILL")
		r.leave()
		r.say("FUNCTION", "KILL")
		r.say("FUNCTION", "STATS")
	})
}

// TestUnkillable: a script that has written can only be ended together with the server.
func TestUnkillable(t *testing.T) {
	compareBusy(t, func(r *running) {
		r.enter("EVAL", afterWriting, "1", "k")
		r.say("SCRIPT", "KILL")
		r.say("FUNCTION", "KILL")
		r.say("SHUTDOWN")
		r.say("PING")
		r.shutdown()
	})
}

// TestShutdownWhileBusy ends a server whose script has written nothing.
func TestShutdownWhileBusy(t *testing.T) {
	compareBusy(t, func(r *running) {
		r.enter("EVAL", endless, "0")
		r.shutdown()
	})
}

// shutdown sends SHUTDOWN NOSAVE and wants the connections closed and the process gone.
func (r *running) shutdown() {
	r.t.Helper()
	require.NoError(r.t, r.looker.Send(harness.Command("SHUTDOWN", "NOSAVE")))
	rest, closed := r.looker.Drain(busyLimit)
	require.True(r.t, closed, "%s goes on after SHUTDOWN NOSAVE and says %q", r.server.Name, rest)
	rest, closed = r.caller.Drain(busyLimit)
	require.True(r.t, closed, "%s keeps the caller after SHUTDOWN NOSAVE and says %q", r.server.Name, rest)
	require.Empty(r.t, rest)
	require.Eventually(r.t, func() bool { return !r.server.Alive() }, busyLimit, time.Millisecond)
}

// TestTimeLimitSparesWriters: script-time-limit ends what has written nothing, and nothing else.
func TestTimeLimitSparesWriters(t *testing.T) {
	if harness.SubjectIsReference(t) {
		t.Skip("redis-server has no script-time-limit")
	}
	const timeLimit, waited = "200", 600 * time.Millisecond
	server := harness.Start(t, "--busy-reply-threshold", busyAfter, "--script-time-limit", timeLimit)
	r := &running{t: t, server: server, caller: harness.Dial(t, server.Addr), looker: harness.Dial(t, server.Addr)}
	r.enter("EVAL", endless, "0")
	r.leave()
	require.Contains(t, r.transcript[1], "caller: -")
	r.enter("EVAL", afterWriting, "1", "k")
	time.Sleep(waited)
	require.EqualValues(t, '-', r.looker.Ask("PING").Kind, "a script that has written goes on")
	r.shutdown()
}
