package gateway_test

import (
	"bufio"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"headgate/internal/reference"
	"headgate/server/config"
	"headgate/server/limiter"

	"github.com/stretchr/testify/require"
)

// callsOfEveryLimiter need each right that a gateway's user upstream has to have, as they stand: the keys are unused when they begin.
const callsOfEveryLimiter = `
	CL.THROTTLE rl:a 15 30 60
	CL.THROTTLE rl:a 15 30 60 -20
	RL.FIXED rl:f 10 60s
	RL.FIXED rl:f 10 60s PEEK
	RL.SLIDING rl:s 2 1s
	RL.SLIDING rl:s 2 1s COST -1
	RL.LOG rl:l 10 60s
	RL.LOG rl:l 10 60s COST 2
	RL.LOG rl:l 10 60s COST -1
	RL.ACQUIRE rl:lease 2 60s MEMBER me
	RL.RENEW rl:lease me 60s
	RL.ACQUIRE rl:lease 2 60s MEMBER you
	RL.RELEASE rl:lease me
	INCREX rl:i EX 60
	RL.POLICY SET user GCRA 10 5 1s
	RL.POLICY SET log LOG 10 1h
	RL.POLICY SET window FIXED 10 1h
	RL.POLICY SET slices SLIDING 10 1h
	RL.POLICY SET lease ACQUIRE 10 1h
	RL.TAKE 3 user rl:u window rl:w log rl:tl
	RL.TAKE 2 slices rl:ts lease rl:tlease COSTS 1 1
	RL.TAKE 5 user rl:u window rl:w log rl:tl slices rl:ts lease rl:tlease PEEK
	RL.POLICY DEL user
	RL.RESET rl:a rl:f rl:s rl:l rl:lease rl:i rl:u rl:w rl:tl rl:ts rl:tlease`

func dialUnix(t testing.TB, path string) *client {
	t.Helper()
	conn, err := net.Dial("unix", path)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return &client{t, path, conn, bufio.NewReader(conn)}
}

// TestRightsMissingUpstream: whose rights they are is told, and what needs them leaves nothing half done.
func TestRightsMissingUpstream(t *testing.T) {
	redis := reference.Start(t)
	owner := dialUnix(t, socketOf(redis))
	require.Equal(t, "OK", owner.ask("ACL SETUSER gateway on >secret ~* +@all -pexpireat -getdel"))
	srv, gate := startGateway(t, "redis+unix://gateway@"+socketOf(redis), func(cfg *config.Config) { cfg.UpstreamPassword = "secret" })
	const lacking = "NOPERM upstream: The user executing the script can't run this command or subcommand"
	gate.converse(`
		RL.SLIDING s 5 1h             | ` + lacking + `
		RL.LOG l 5 1h                 | ` + lacking + `
		RL.ACQUIRE a 5 1h             | ` + lacking + `
		EXISTS s l a                  | 0
		GETDEL k                      | NOPERM upstream: this user has no permissions to run the 'getdel' command
		MULTI                         | OK
		SET k v                       | QUEUED
		RL.SLIDING s 5 1h             | QUEUED
		EXEC                          | [OK ` + lacking + `]
	`)
	require.Equal(t, "OK", owner.ask("ACL SETUSER gateway -eval"))
	gate.converse(`
		MULTI                         | OK
		SET k w                       | QUEUED
		RL.SLIDING s 5 1h             | QUEUED
		EXEC                          | EXECABORT Transaction discarded because of: NOPERM upstream: this user has no permissions to run the 'eval' command
		GET k                         | v
	`)
	for range 5 {
		require.Equal(t, lacking, gate.ask("RL.SLIDING s 5 1h"))
	}
	require.Equal(t, "degraded", stateOf(srv))
	require.Contains(t, gate.ask("RL.UPSTREAM NODES"), " state refusing why ERR The user executing the script can't run this command or subcommand")
	require.Equal(t, "[0 2 1 -1 36000]", gate.ask("CL.THROTTLE t 1 1 36000"))
	require.Equal(t, "up", stateOf(srv))
}

// TestSortOfLimitedUsers is as free as at home: a BY that names no keys, and keys that are called as options are, need no further rights.
func TestSortOfLimitedUsers(t *testing.T) {
	_, admin := overRedis(t)
	require.Equal(t, "OK", admin.ask("ACL SETUSER u on nopass ~l ~by ~get +@all"))
	u := dial(t, admin.addr)
	u.converse(`
		AUTH u x                | OK
		RPUSH l b a             | 2
		SORT l BY nosort        | [b a]
		SORT l ALPHA STORE by   | 2
		SORT by BY nosort STORE get | 2
		SORT l BY w*            | ERR BY option of SORT denied due to insufficient ACL permissions.
		SORT l GET #            | ERR GET option of SORT denied due to insufficient ACL permissions.
	`)
}

// TestUserUpstream: the user that docs/operations.md gives a gateway upstream may do what limiters need, and no more than that.
func TestUserUpstream(t *testing.T) {
	document, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	found := regexp.MustCompile(`(?m)^redis-cli ACL SETUSER gateway (on .*)$`).FindSubmatch(document)
	require.NotNil(t, found, "docs/operations.md has no ACL SETUSER gateway")
	text := strings.ReplaceAll(string(found[1]), "'", "")
	rules := strings.Fields(text)
	redis := reference.Start(t)
	owner := dialUnix(t, socketOf(redis))
	require.Equal(t, "OK", owner.ask("ACL SETUSER gateway "+text))
	_, gate := startGateway(t, "redis+unix://gateway@"+socketOf(redis), func(cfg *config.Config) {
		cfg.UpstreamPassword = strings.TrimPrefix(rules[1], ">")
	})
	run := func() (refused []string) {
		require.Equal(t, "OK", owner.ask("FLUSHALL"))
		require.Equal(t, "OK", owner.ask("SCRIPT FLUSH"))
		for call := range strings.Lines(callsOfEveryLimiter) {
			call = strings.TrimSpace(call)
			if call == "" {
				continue
			}
			reply := gate.ask(call)
			if strings.HasPrefix(reply, "ERR") || strings.HasPrefix(reply, "NOPERM") || strings.HasPrefix(reply, "UPSTREAM") || strings.HasPrefix(reply, "WRONGTYPE") {
				refused = append(refused, call+": "+reply)
			}
		}
		return refused
	}
	require.Eventually(t, func() bool { return !strings.HasPrefix(gate.ask("RL.POLICY LIST"), "UPSTREAM") }, 10*time.Second, 10*time.Millisecond)
	require.Empty(t, run())
	for _, rule := range rules {
		right, granted := strings.CutPrefix(rule, "+")
		switch {
		case !granted, right == "info": // which tells a headgate from a Redis
			continue
		}
		require.Equal(t, "OK", owner.ask("ACL SETUSER gateway -"+right))
		require.NotEmpty(t, run(), "nothing needs %s", rule)
		require.Equal(t, "OK", owner.ask("ACL SETUSER gateway "+rule))
	}
	require.Empty(t, run())
	require.True(t, strings.HasPrefix(gate.ask("SET rl:x 1"), "NOPERM") || gate.ask("GET other") != "nil", "it may touch no other keys")
}

// TestDatabasesRefusedUpstream: a database that the gateway's user may not select, or that is not there, is an error in every mode, since nothing has
// failed. It is no matter of the other databases'.
func TestDatabasesRefusedUpstream(t *testing.T) {
	redis := reference.Start(t, "--databases", "4")
	owner := dialUnix(t, socketOf(redis))
	require.Equal(t, "OK", owner.ask("ACL SETUSER gateway on >secret ~* +@all -select"))
	_, home := startServer(t)
	homeOwner := dial(t, home)
	require.Equal(t, "OK", homeOwner.ask("ACL SETUSER gateway on >secret ~* +@all -select"))
	const lacking = "NOPERM upstream: this user has no permissions to run the 'select' command"
	for _, url := range []string{"redis+unix://gateway@" + socketOf(redis), "redis://gateway@" + home} {
		for mode := range limiter.Failures {
			srv, gate := startGateway(t, url, func(cfg *config.Config) {
				cfg.UpstreamPassword, cfg.UpstreamFailure, cfg.UpstreamRest = "secret", limiter.Failure(mode), time.Millisecond
			})
			gate.converse(`
				RL.POLICY SET p FIXED 5 1h   | OK
				SELECT 1                     | OK
				CL.THROTTLE rl:c 15 30 60    | ` + lacking + `
				RL.GCRA rl:g 10 1 1m         | ` + lacking + `
				RL.ACQUIRE rl:a 10 1m        | ` + lacking + `
				RL.RELEASE rl:a me           | ` + lacking + `
				RL.TAKE 1 p rl:p             | ` + lacking + `
				RL.RESET rl:c                | ` + lacking + `
				INCREX rl:i                  | ` + lacking + `
				SET rl:s v                   | ` + lacking + `
				MULTI                        | OK
				SET rl:s v                   | QUEUED
				RL.GCRA rl:g 10 1 1m         | QUEUED
				EXEC                         | ` + lacking + `
			`)
			require.Equal(t, "up", stateOf(srv))
			if srv.Gateway.Up.Headgate() {
				gate.converse("RL.GCRA rl:g 10 1 1m WAIT 1s | " + lacking)
			}
			gate.converse(`
				SELECT 0                     | OK
				RL.POLICY DEL p              | 1
			`)
		}
	}
	require.Equal(t, "OK", owner.ask("ACL SETUSER gateway +select"))
	_, gate := startGateway(t, "redis+unix://gateway@"+socketOf(redis), func(cfg *config.Config) {
		cfg.UpstreamPassword, cfg.UpstreamFailure = "secret", limiter.FailOpen
	})
	gate.converse(`
		SELECT 3             | OK
		RL.FIXED rl:g 10 1m  | [0 10 9 -1 60000]
		SELECT 10            | OK
		RL.FIXED rl:g 10 1m  | ERR DB index is out of range
		MULTI                | OK
		GET rl:s             | QUEUED
		EXEC                 | ERR DB index is out of range
	`)
}
