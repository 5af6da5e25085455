package exec_test

import (
	"math"
	"strings"
	"testing"

	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

func TestEffects(t *testing.T) {
	const past, at = "1600000000000", "1700000060123" // at is a minute from now
	tests := []struct {
		name   string
		before []string
		run    []string
		want   []string
	}{
		{"a write as it was called", nil, []string{"set k v"}, []string{"set k v"}},
		{"a read", []string{"SET k v"}, []string{"GET k", "TTL k"}, nil},
		{"a write that changes nothing", nil, []string{"DEL k", "SET k v XX", "PERSIST k", "HDEL h f", "EXPIRE k 10"}, nil},
		{"an error", []string{"SET k v"}, []string{"INCR k", "HSET k f v", "NOSUCH k"}, nil},
		{"SET with a time", nil, []string{"SET k v EX 60", "SET k v PX 60000", "SET k v EXAT 1800000000", "SET k v PXAT 1800000000123"},
			[]string{"SET k v PXAT " + at, "SET k v PXAT " + at, "SET k v PXAT 1800000000000", "SET k v PXAT 1800000000123"}},
		{"SET NX with a time", nil, []string{"SET k v NX EX 60", "SET k v NX EX 60"}, []string{"SET k v PXAT " + at}},
		{"SET NX", nil, []string{"SET k v NX"}, []string{"SET k v NX"}},
		{"SET GET", nil, []string{"SET k v GET", "SET k v GET XX"}, []string{"SET k v", "SET k v"}},
		{"SET KEEPTTL", []string{"SET k v PX 60000"}, []string{"SET k w KEEPTTL", "SET k w KEEPTTL GET"}, []string{"SET k w KEEPTTL", "SET k w KEEPTTL"}},
		{"SETEX, PSETEX, SETNX, GETSET", nil, []string{"SETEX k 60 v", "PSETEX k 60000 v", "SETNX n v", "SETNX n v", "GETSET k w"},
			[]string{"SET k v PXAT " + at, "SET k v PXAT " + at, "SETNX n v", "SET k w"}},
		{"GETDEL", []string{"SET k v"}, []string{"GETDEL k", "GETDEL k"}, []string{"DEL k"}},
		{"GETEX", []string{"SET k v"}, []string{"GETEX k", "GETEX k EX 60", "GETEX k PERSIST", "GETEX k PERSIST", "GETEX k PXAT " + past},
			[]string{"PEXPIREAT k " + at, "PERSIST k", "DEL k"}},
		{"INCRBYFLOAT", nil, []string{"INCRBYFLOAT k 1.5", "INCRBYFLOAT k 2"}, []string{"SET k 1.5 KEEPTTL", "SET k 3.5 KEEPTTL"}},
		{"HINCRBYFLOAT", nil, []string{"HINCRBYFLOAT h f 1.5"}, []string{"HSET h f 1.5"}},
		{"the EXPIRE family", []string{"SET k v"},
			[]string{"EXPIRE k 60", "PEXPIRE k 60000 XX", "EXPIREAT k 1800000000", "PEXPIREAT k 1800000000123", "EXPIRE k 1 GT", "EXPIRE k -1", "EXPIRE k 1"},
			[]string{"PEXPIREAT k " + at, "PEXPIREAT k " + at, "PEXPIREAT k 1800000000000", "PEXPIREAT k 1800000000123", "DEL k"}},
		{"CL.THROTTLE", nil, []string{"CL.THROTTLE k 1 1 30", "CL.THROTTLE k 1 1 30", "CL.THROTTLE k 1 1 30", "CL.THROTTLE k 1 1 30 0", "CL.THROTTLE k 1 1 30 -2"},
			[]string{"SET k 1700000030123000000 PXAT 1700000030123", "SET k 1700000060123000000 PXAT 1700000060123", "DEL k"}},
		{"another database", nil, []string{"SET k v", "SELECT 3", "SET k v", "SET k w", "MOVE k 0", "DEL k", "MOVE k 1", "SELECT 0", "DEL k"},
			[]string{"SET k v", "SELECT 3", "SET k v", "SET k w", "DEL k", "SELECT 0", "DEL k"}},
		{"COPY and SWAPDB", []string{"SET k v"}, []string{"COPY k l DB 2", "COPY k l DB 2", "SWAPDB 0 2", "FLUSHDB", "FLUSHALL"},
			[]string{"COPY k l DB 2", "SWAPDB 0 2", "FLUSHDB", "FLUSHALL"}},
		{"a transaction", nil, []string{"MULTI", "SET a 1", "GET a", "SET b 2 EX 60", "EXEC"},
			[]string{"MULTI", "SET a 1", "SET b 2 PXAT " + at, "EXEC"}},
		{"a transaction of one write", nil, []string{"MULTI", "GET a", "SET a 1", "EXEC"}, []string{"SET a 1"}},
		{"a transaction of none", nil, []string{"MULTI", "GET a", "EXEC"}, nil},
		{"a transaction over databases", nil, []string{"MULTI", "SET a 1", "SELECT 1", "SET b 2", "SELECT 0", "EXEC", "SET c 3"},
			[]string{"MULTI", "SET a 1", "SELECT 1", "SET b 2", "EXEC", "SELECT 0", "SET c 3"}},
		{"a discarded transaction", nil, []string{"MULTI", "SET a 1", "DISCARD"}, nil},
		{"pops that may wait", []string{"RPUSH l a b c d e f g"},
			[]string{"BLPOP l 0", "BRPOP nosuch l 0", "BLMPOP 0 2 nosuch l RIGHT COUNT 2", "BLMOVE l m LEFT RIGHT 0", "BRPOPLPUSH l m 0", "BLPOP m m 0"},
			[]string{"LPOP l", "RPOP l", "RPOP l 2", "LMOVE l m LEFT RIGHT", "LMOVE l m RIGHT LEFT", "LPOP m"}},
		{"pops that find nothing", nil, []string{"LPOP l", "MULTI", "BLPOP l 0", "BLMOVE l m LEFT LEFT 0", "EXEC"}, nil},
		{"SPOP", []string{"SADD s x", "SADD n 5"}, []string{"SPOP s", "SPOP s", "SPOP n 0", "SPOP n 3"}, []string{"SREM s x", "DEL n"}},
		{"sets that are put together", []string{"SADD a 1 2", "SADD b 2"}, []string{"SINTERSTORE c a b", "SUNIONSTORE c a b", "SDIFFSTORE c b a", "SDIFFSTORE c b a", "SMOVE a b 1", "SMOVE a b 1"},
			[]string{"SINTERSTORE c a b", "SUNIONSTORE c a b", "SDIFFSTORE c b a", "SMOVE a b 1"}},
		{"a script", nil, []string{"EVAL redis.call('SET',KEYS[1],1)redis.call('EXPIRE',KEYS[1],60) 1 k"},
			[]string{"MULTI", "SET k 1", "PEXPIREAT k " + at, "EXEC"}},
		{"a script that fails half-way", nil, []string{"EVAL redis.call('SET',KEYS[1],1)redis.call('SET',KEYS[2],1)error('x') 2 k l"},
			[]string{"MULTI", "SET k 1", "SET l 1", "EXEC"}},
		{"a script that would leave the log out", nil, []string{"EVAL redis.set_repl(redis.REPL_NONE)redis.call('SET',KEYS[1],1) 1 k"}, []string{"SET k 1"}},
		{"a script in a transaction", nil, []string{"MULTI", "SET a 1", "EVAL redis.call('SET',KEYS[1],1)redis.call('INCR',KEYS[1]) 1 k", "EXEC"},
			[]string{"MULTI", "SET a 1", "SET k 1", "INCR k", "EXEC"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := servertest.NewEffectsClient(t)
			w.EffectsOf(test.before...)
			require.Equal(t, test.want, w.EffectsOf(test.run...))
		})
	}
}

// TestEffectsOfSpop: what was drawn is logged, not that something was.
func TestEffectsOfSpop(t *testing.T) {
	w := servertest.NewEffectsClient(t)
	for _, members := range []string{"1 2 3 4 5 6", "a b c d e f"} {
		w.EffectsOf("SADD s " + members)
		drawn := strings.Join(strings.Split(string(w.Run(servertest.EncodeCommand("SPOP", "s", "3"))), "\r\n"), " ")
		effects := w.TakeEffects()
		require.Len(t, effects, 1)
		words := strings.Split(effects[0], " ")
		require.Equal(t, []string{"SREM", "s"}, words[:2])
		require.Len(t, words, 5)
		for _, member := range words[2:] {
			require.Contains(t, drawn, " "+member+" ")
		}
		w.EffectsOf("DEL s")
	}
}

func TestEffectsOfFunctions(t *testing.T) {
	w := servertest.NewEffectsClient(t)
	library := "#!lua name=lib\nredis.register_function('f', function(keys) return redis.call('INCR', keys[1]) end)"
	w.Run(servertest.EncodeCommand("FUNCTION", "LOAD", library))
	w.Run(servertest.EncodeCommand("FCALL", "f", "1", "k"))
	w.Run(servertest.EncodeCommand("FCALL", "nosuch", "1", "k"))
	w.Run(servertest.EncodeCommand("FUNCTION", "DELETE", "lib"))
	w.Run(servertest.EncodeCommand("FUNCTION", "FLUSH"))
	require.Equal(t, []string{"FUNCTION LOAD " + library, "INCR k", "FUNCTION DELETE lib", "FUNCTION FLUSH"}, w.TakeEffects())
}

func TestEffectsOfExpiry(t *testing.T) {
	w := servertest.NewEffectsClient(t)
	w.EffectsOf("SET a 1 PX 10", "SET b 1 PX 10", "SET c 1 PX 10", "SELECT 2", "SET d 1 PX 10", "SELECT 0", "SET e 1")
	w.Now += 20 * 1e6
	require.Equal(t, []string{"DEL a"}, w.EffectsOf("GET a", "GET a"), "a key that is found to be past its time")
	require.Equal(t, []string{"MULTI", "DEL b", "INCR b", "EXEC"}, w.EffectsOf("INCR b"), "what a command does after that is one unit with it")
	w.EffectsOf("CL.THROTTLE l 1 1 30", "CL.THROTTLE m 1 1 30")
	w.Now += 40 * 1e9
	set := []string{"SET l 1700000070143000000 PXAT 1700000070143"}
	require.Equal(t, set, w.EffectsOf("CL.THROTTLE l 1 1 30"), "a limiter's new state takes the place of its old one")
	require.Equal(t, []string{"MULTI", "DEL m", "SELECT 1", "SET m 1700000070143000000 PXAT 1700000070143", "EXEC", "SELECT 0"},
		append(w.EffectsOf("MULTI", "GET m", "SELECT 1", "CL.THROTTLE m 1 1 30", "SELECT 0", "EXEC"), "SELECT 0"), "in another database it does not")
	w.EffectsOf("DEL l")
	w.Sweep(w.Now)
	require.Equal(t, []string{"DEL c", "SELECT 2", "DEL d"}, w.TakeEffects(), "background work is no unit")
}

func TestEffectsAreOffUntilWanted(t *testing.T) {
	w := servertest.NewEffectsClient(t)
	w.Srv.Effects.Disable()
	require.Empty(t, w.EffectsOf("SET a 1", "MULTI", "SET a 1", "SET b 1", "EXEC", "SET a 1 EX 10", "CL.THROTTLE t 1 1 30"))
}

func TestTheFirstEffectNamesItsDatabase(t *testing.T) {
	w := servertest.NewEffectsClient(t)
	w.Srv.Effects.Enable(math.MaxInt64)
	require.Equal(t, []string{"SELECT 0", "SET a 1", "SET a 2"}, w.EffectsOf("SET a 1", "SET a 2"))
}

func TestWholeEffectsEndBeforeTheOpenUnit(t *testing.T) {
	w := servertest.NewEffectsClient(t)
	w.Run(servertest.EncodeCommand("SET", "a", "1"))
	e, db := &w.Srv.Effects, w.Srv.Keys.DB(0)
	done := len(e.Buf)
	e.Begin(w.Srv.Keys, db)
	e.Add(0, []any{"SET", "b", 1})
	e.Add(1, []any{"SET", "c", []byte("2")})
	require.Len(t, e.Whole(), done)
	e.Abandon()
	require.Len(t, e.Whole(), done)
	e.End()
	require.Equal(t, []string{"SET a 1"}, w.TakeEffects())
}
