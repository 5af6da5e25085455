package gateway_test

import (
	"crypto/sha1"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPoliciesWithinATransaction lie in database 0, whichever the client's is, and what follows is the client's again.
func TestPoliciesWithinATransaction(t *testing.T) {
	redis, gate := overRedis(t)
	gate.converse(`
		SELECT 1                     | OK
		MULTI                        | OK
		SET a 1                      | QUEUED
		RL.POLICY SET p FIXED 2 1h   | QUEUED
		INCR a                       | QUEUED
		RL.POLICY DEL nosuch         | QUEUED
		INCR a                       | QUEUED
		EXEC                         | [OK OK 2 0 3]
		GET a                        | 3
		EXISTS rl:policies           | 0
		SELECT 0                     | OK
		EXISTS a                     | 0
	`)
	text, err := redis.Text("HGET", "rl:policies", "p")
	require.NoError(t, err)
	require.Equal(t, "FIXED 2 1h", text)
}

// TestWhatOneScriptCannotDecide makes a transaction an error before anything of it has run.
func TestWhatOneScriptCannotDecide(t *testing.T) {
	_, gate := overRedis(t)
	gate.converse(`
		RL.POLICY SET p FIXED -1 1h        | OK
		MULTI                              | OK
		SET a 1                            | QUEUED
		INCREX x BYFLOAT 1.5               | QUEUED
		EXEC                               | EXECABORT Transaction discarded because of: 'increx' with these arguments is not served within MULTI while upstream is set
		EXISTS a x                         | 0
		MULTI                              | OK
		INCREX x BYINT 2                   | QUEUED
		EXEC                               | [[2 2]]
	`)
}

// TestScriptsWithinATransaction are run by nodes that do not know them, too.
func TestScriptsWithinATransaction(t *testing.T) {
	redis, gate := overRedis(t)
	const script = "return(redis.call('incr',KEYS[1]))"
	sum := sha1.Sum([]byte(script))
	sha := hex.EncodeToString(sum[:])
	require.Equal(t, sha, gate.ask("SCRIPT LOAD "+script))
	_, err := redis.Do("SCRIPT", "FLUSH")
	require.NoError(t, err)
	gate.converse(`
		MULTI                   | OK
		EVALSHA ` + sha + ` 1 k | QUEUED
		EXEC                    | [1]
	`)
	_, err = redis.Do("SCRIPT", "FLUSH")
	require.NoError(t, err)
	require.Equal(t, "2", gate.ask("EVALSHA "+sha+" 1 k"))

	// Who has them forgotten here finds them forgotten.
	require.Equal(t, "OK", gate.ask("SCRIPT FLUSH"))
	require.Equal(t, "NOSCRIPT No matching script. Please use EVAL.", gate.ask("EVALSHA "+sha+" 1 k"))
	gate.converse(`
		CL.THROTTLE t 1 1 36000  | [0 2 1 -1 36000]
		MULTI                    | OK
		EVALSHA ` + sha + ` 1 k  | QUEUED
		EXEC                     | [NOSCRIPT No matching script. Please use EVAL.]
	`)
}

// TestMultiThatIsRefusedUpstream is told as what it is: the commands were not queued there.
func TestMultiThatIsRefusedUpstream(t *testing.T) {
	redis, gate := overRedis(t)
	_, err := redis.Do("ACL", "SETUSER", "default", "-multi")
	require.NoError(t, err)
	gate.converse(`
		MULTI   | OK
		SET a 1 | QUEUED
		EXEC    | UPSTREAM MULTI was refused, so that the commands may have run one by one: NOPERM this user has no permissions to run the 'multi' command
		GET a   | 1
	`)
}

// TestDeepRepliesWithinATransaction pass as they do outside of one.
func TestDeepRepliesWithinATransaction(t *testing.T) {
	_, gate := overRedis(t)
	const deep = "EVAL local--[[]]t=1;for--[[]]i=1,200--[[]]do--[[]]t={t}end;return--[[]]t 1 k"
	alone := gate.ask(deep)
	require.Contains(t, alone, "[[[")
	gate.converse(`
		MULTI        | OK
		` + deep + ` | QUEUED
		EXEC         | [` + alone + `]
	`)
}

// TestScriptsRunOnce, whatever code a script gives to an error of its own.
func TestScriptsRunOnce(t *testing.T) {
	redis, gate := overRedis(t)
	for _, code := range []string{"TRYAGAIN", "LOADING", "CLUSTERDOWN", "READONLY", "MASTERDOWN", "MOVED", "ASK", "NOSCRIPT"} {
		script := "redis.call('incr',KEYS[1])return{err='" + code + `\32of\32mine'}`
		want := code + " of mine"
		require.Equal(t, want, gate.ask("EVAL "+script+" 1 "+code))
		require.Equal(t, want, gate.ask("EVALSHA "+gate.ask("SCRIPT LOAD "+script)+" 1 "+code))
		runs, err := redis.Text("GET", code)
		require.NoError(t, err)
		require.Equal(t, "2", runs, code)
	}
}

// TestShortRepliesDoNotKeepLongOnes of the same transaction in memory.
func TestShortRepliesDoNotKeepLongOnes(t *testing.T) {
	redis, gate := overRedis(t)
	const clients, long = 20, 2 << 20
	_, err := redis.Do("MSET", "short", "x", "long", strings.Repeat("x", long))
	require.NoError(t, err)
	var others [clients]*client
	for i := range others {
		others[i] = dial(t, gate.addr)
	}
	before := heapInUse()
	for _, other := range others {
		other.send("MULTI", "GET long", "GET short", "EXEC")
	}
	for _, other := range others {
		other.raw()
		other.raw()
		other.raw()
		require.Len(t, other.raw(), len("*2\r\n$2097152\r\n\r\n$1\r\nx\r\n")+long)
	}
	require.Less(t, heapInUse()-before, 4*long)
}
