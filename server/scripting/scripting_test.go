package scripting_test

import (
	"fmt"
	"strings"
	"testing"

	"headgate/server/scripting"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// TestScriptLendsTheContext: what a script does to the context shows neither in its own arguments nor in the commands after it.
func TestScriptLendsTheContext(t *testing.T) {
	w := servertest.NewWorkerClient(t)
	require.Equal(t, "+OK\r\n", w.Ask("SELECT", "2"))
	const script = `redis.call("select", "3") redis.call("set", KEYS[1], ARGV[1]) redis.pcall("nosuch") return {KEYS[1], ARGV[1]}`
	eval := servertest.EncodeCommand("EVAL", script, "1", "k", "v")
	const reply = "*2\r\n$1\r\nk\r\n$1\r\nv\r\n"
	require.Equal(t, reply, string(w.Run(eval)))
	require.Equal(t, "$-1\r\n", w.Ask("GET", "k"))
	require.Equal(t, reply+"$-1\r\n"+reply, string(w.Run([]byte(string(eval)+"GET k\r\n"+string(eval)))))
	require.Equal(t, "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n"+reply+"$-1\r\n", string(w.Run([]byte("MULTI\r\n"+string(eval)+"GET k\r\nEXEC\r\n"))))
	require.Contains(t, w.Ask("CLIENT", "LIST"), " db=2 ")
	require.Equal(t, "+OK\r\n", w.Ask("SELECT", "3"))
	require.Equal(t, "$1\r\nv\r\n", w.Ask("GET", "k"))
}

// TestScriptErrorsAreCountedOnce: the error of a called command counts for that command and, when the script passes it on, is no
// second one.
func TestScriptErrorsAreCountedOnce(t *testing.T) {
	w := servertest.NewWorkerClient(t)
	w.Ask("SET", "s", "v")
	w.Ask("CONFIG", "RESETSTAT")
	w.Ask("EVAL", `return redis.call("incr", "s")`, "0")
	w.Ask("EVAL", `redis.pcall("incr", "s") redis.pcall("multi") redis.pcall("get")`, "0")
	w.Ask("EVAL", `return {err = "OWN words"}`, "0")
	stats := w.Ask("INFO", "commandstats", "errorstats")
	require.Contains(t, stats, "errorstat_ERR:count=4\r\nerrorstat_OWN:count=1\r\n")
	for name, counts := range map[string]string{
		"incr": "calls=2,rejected_calls=0,failed_calls=2", "eval": "calls=3,rejected_calls=0,failed_calls=2",
		"multi": "calls=0,rejected_calls=1,failed_calls=0", "get": "calls=0,rejected_calls=1,failed_calls=0",
	} {
		_, line, _ := strings.Cut(stats, "cmdstat_"+name+":")
		line, _, _ = strings.Cut(line, "\r\n")
		fields := strings.Split(line, ",")
		require.Len(t, fields, 5, name)
		require.Equal(t, counts, fields[0]+","+fields[3]+","+fields[4], name)
	}
}

// TestRestoreThatFails leaves the libraries what they were, with what their functions remember.
func TestRestoreThatFails(t *testing.T) {
	w := servertest.NewWorkerClient(t)
	counter := "#!lua name=counter\nlocal n = 0 redis.register_function('count', function() n = n + 1 return n end)"
	dumpOf := func() string {
		reply := w.Ask("FUNCTION", "DUMP")
		_, dump, _ := strings.Cut(reply, "\r\n")
		return strings.TrimSuffix(dump, "\r\n")
	}
	w.Ask("FUNCTION", "LOAD", counter)
	same := dumpOf()
	w.Ask("FUNCTION", "DELETE", "counter")
	w.Ask("FUNCTION", "LOAD", "#!lua name=a\nredis.register_function('fa', function() return 1 end)")
	w.Ask("FUNCTION", "LOAD", "#!lua name=b\nredis.register_function('count', function() return 1 end)")
	taken := dumpOf() // of two libraries, the second of which has a function of the counter's name
	w.Ask("FUNCTION", "FLUSH")
	w.Ask("FUNCTION", "LOAD", counter)
	for i, payload := range []string{same, taken, taken[:len(taken)-1]} {
		for _, policy := range []string{"APPEND", "REPLACE"} {
			if payload == same && policy == "REPLACE" {
				continue
			}
			require.Equal(t, byte('-'), w.Ask("FUNCTION", "RESTORE", payload, policy)[0], "%d %s", i, policy)
			require.NotContains(t, w.Ask("FUNCTION", "LIST"), "fa")
		}
	}
	require.Equal(t, ":1\r\n", w.Ask("FCALL", "count", "0"))
	require.Equal(t, byte('-'), w.Ask("FUNCTION", "RESTORE", taken)[0])
	require.Equal(t, ":2\r\n", w.Ask("FCALL", "count", "0"))
	require.Equal(t, "+OK\r\n", w.Ask("FUNCTION", "RESTORE", taken, "FLUSH"))
	require.Equal(t, ":1\r\n", w.Ask("FCALL", "count", "0"))
	require.Equal(t, ":1\r\n", w.Ask("FCALL", "count", "0"))
	require.NotContains(t, w.Ask("FUNCTION", "LIST"), "counter")
}

// TestScriptTimeMovesOn: TIME tells the time while a script runs; expiry sees the time of the script's start until it ends.
func TestScriptTimeMovesOn(t *testing.T) {
	w := servertest.NewWorkerClient(t)
	const script = `redis.call("set", "k", "v", "px", "1")
		local first, last = redis.call("time"), nil
		repeat last = redis.call("time") until (last[1] - first[1]) * 1000000 + last[2] - first[2] > 30000
		return redis.call("get", "k")`
	require.Equal(t, "$1\r\nv\r\n$-1\r\n", string(w.Run([]byte(string(servertest.EncodeCommand("EVAL", script, "0"))+"GET k\r\n"))))
}

func TestScriptMemoryIsShown(t *testing.T) {
	w := servertest.NewWorkerClient(t)
	w.Ask("SCRIPT", "LOAD", "return 1")
	w.Ask("FUNCTION", "LOAD", "#!lua name=one\nredis.register_function('f', function() return 1 end)")
	info := w.Ask("INFO", "memory")
	require.Contains(t, info, "number_of_cached_scripts:1\r\nnumber_of_functions:1\r\nnumber_of_libraries:1\r\n")
}

const endless = "while true do end"

func TestBusyScriptIsKilled(t *testing.T) {
	const library = "#!lua name=l\nredis.register_function('loop', function() " + endless + " end)"
	tests := []struct {
		name         string
		run          []string
		busy         string
		wrong, right string // family whose KILL is refused, and whose is not
		stats        string // first line of FUNCTION STATS while it runs
	}{
		{"script", []string{"EVAL", endless, "0"}, scripting.ErrBusyEval, "FUNCTION", "SCRIPT", "-" + scripting.ErrBusyEval},
		{"function", []string{"FCALL", "loop", "0"}, scripting.ErrBusyFunction, "SCRIPT", "FUNCTION", "*4"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := servertest.NewPipeServer(t)
			runner, other := p.Client(), p.Client()
			require.Equal(t, "+OK", other.Ask("CONFIG", "SET", "lua-time-limit", "10"))
			require.Equal(t, "$1", other.Ask("FUNCTION", "LOAD", library))
			require.Equal(t, "l", other.Line())
			runner.Send("SET", "before", "1")
			require.Equal(t, "+OK", runner.Line())
			runner.Send(test.run...)
			require.Equal(t, "-"+test.busy, other.UntilBusy())
			require.Equal(t, "-"+test.busy, other.Ask(test.wrong, "KILL"))
			require.Equal(t, test.stats, p.Client().Ask("FUNCTION", "STATS"))
			require.Equal(t, "+OK", other.Ask(test.right, "KILL"))
			require.Contains(t, runner.Line(), "-ERR Script killed by user with SCRIPT KILL")
			require.Equal(t, "+PONG", other.Ask("PING"))
			require.Equal(t, "-"+scripting.ErrNotBusy, other.Ask(test.right, "KILL"))
			require.Equal(t, "+PONG", runner.Ask("PING"))
		})
	}
}

// TestBusyScriptThatWroteGoesOn until it ends by itself, and what it did is seen whole.
func TestBusyScriptThatWroteGoesOn(t *testing.T) {
	p := servertest.NewPipeServer(t)
	runner, other := p.Client(), p.Client()
	require.Equal(t, "+OK", other.Ask("CONFIG", "SET", "busy-reply-threshold", "10", "script-time-limit", "20"))
	runner.Send("EVAL", `redis.call("incr", "n")
		local function ms() local t = redis.call("time") return t[1] * 1000 + t[2] / 1000 end
		local limit = ms() + 1000 -- enough for a busy machine to notice
		while ms() < limit do end
		return redis.call("incr", "n")`, "0")
	other.UntilBusy()
	require.Equal(t, "-"+scripting.ErrUnkillable, other.Ask("SCRIPT", "KILL"))
	require.Equal(t, ":2", runner.Line())
	require.Equal(t, "$1", other.Ask("GET", "n"))
	require.Equal(t, "2", other.Line())
}

// TestScriptTimeLimit: a script that has written nothing is stopped without anybody asking for it, within pcall too.
func TestScriptTimeLimit(t *testing.T) {
	w := servertest.NewWorkerClient(t)
	require.Equal(t, "+OK\r\n", w.Ask("CONFIG", "SET", "script-time-limit", "20"))
	for _, script := range []string{endless, "while true do pcall(function() " + endless + " end) end"} {
		require.Contains(t, w.Ask("EVAL", script, "0"), "-ERR ")
	}
	require.Equal(t, ":1\r\n", w.Ask("EVAL", "return 1", "0"))
}

// TestBusyTransaction: a script that overruns within EXEC keeps its place, and its neighbours run.
func TestBusyTransaction(t *testing.T) {
	p := servertest.NewPipeServer(t)
	runner, other := p.Client(), p.Client()
	require.Equal(t, "+OK", other.Ask("CONFIG", "SET", "busy-reply-threshold", "10"))
	for _, command := range [][]string{{"MULTI"}, {"INCR", "n"}, {"EVAL", endless, "0"}, {"INCR", "n"}} {
		runner.Ask(command...)
	}
	runner.Send("EXEC")
	other.UntilBusy()
	require.Equal(t, "-"+fmt.Sprintf("EXECABORT Transaction discarded because of: %s", scripting.ErrBusyEval), other.Ask("EXEC"))
	require.Equal(t, "+OK", other.Ask("SCRIPT", "KILL"))
	require.Equal(t, "*3", runner.Line())
	require.Equal(t, ":1", runner.Line())
	require.Contains(t, runner.Line(), "-ERR Script killed")
	require.Equal(t, ":2", runner.Line())
}

// TestBusyScriptKeepsItsReplies: what a client is not to be answered is taken back behind a script that yielded too, even when
// somebody has the connection's replies sent meanwhile.
func TestBusyScriptKeepsItsReplies(t *testing.T) {
	for mode, want := range map[string]string{"SKIP": "+PONG", "OFF": "+OK", "ON": "+OK"} {
		t.Run(mode, func(t *testing.T) {
			p := servertest.NewPipeServer(t)
			runner, other := p.Client(), p.Client()
			require.Equal(t, "+OK", other.Ask("CONFIG", "SET", "busy-reply-threshold", "10"))
			var commands []byte
			for _, words := range [][]string{
				{"ECHO", strings.Repeat("x", 1000)}, {"CLIENT", "REPLY", mode}, {"EVAL", endless, "0"}, {"PING"}, {"CLIENT", "REPLY", "ON"},
			} {
				commands = append(commands, servertest.EncodeCommand(words...)...)
			}
			_, err := runner.Conn.Write(commands)
			require.NoError(t, err)
			other.UntilBusy()
			p.Srv.Lock()
			for _, cl := range p.Srv.Clients.List {
				cl.Conn.Wake()
			}
			p.Srv.Unlock()
			require.Equal(t, "-"+scripting.ErrBusyEval, other.Ask("PING"))
			require.Equal(t, "+OK", other.Ask("SCRIPT", "KILL"))
			require.Equal(t, "$1000", runner.Line())
			require.Equal(t, strings.Repeat("x", 1000), runner.Line())
			require.Equal(t, want, runner.Line())
			if mode == "ON" {
				require.Contains(t, runner.Line(), "-ERR Script killed")
				require.Equal(t, "+PONG", runner.Line())
			}
			if mode != "OFF" {
				require.Equal(t, "+OK", runner.Line())
			}
			require.Equal(t, "+PONG", runner.Ask("PING"))
		})
	}
}
