package lua

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// TestScriptsThatStoreMuch: what a script stores, and what goes to the log on its behalf, is not bounded by what it may hold. A script that
// was stopped by that left its work half done. The log has all of it as one unit.
func TestScriptsThatStoreMuch(t *testing.T) {
	small := 30_000
	if *calls >= wholeCalls {
		small = 2_000_000
	}
	for name, c := range map[string]struct {
		script string
		sizes  map[string]string
	}{
		"long values": {
			"local s = string.rep('x', 1e6) for i = 1, 100 do redis.call('SET', 'k' .. i, s) end return redis.call('DBSIZE')",
			map[string]string{"DBSIZE": "100", "STRLEN k100": "1000000"},
		},
		"one large hash": {
			"for i = 1, ARGV[1] do redis.call('HSET', 'h', i, i) end return redis.call('HLEN', 'h')",
			map[string]string{"HLEN h": strconv.Itoa(small)},
		},
		"many small values": {
			"for i = 1, ARGV[1] do redis.call('SET', 'k' .. i, i) end return redis.call('DBSIZE')",
			map[string]string{"DBSIZE": strconv.Itoa(small)},
		},
	} {
		for _, log := range []string{"no", "yes"} {
			t.Run(name+", appendonly "+log, func(t *testing.T) {
				dir := t.TempDir()
				flags := []string{"--appendonly", log, "--appendfsync", "no", "--save", ""}
				server := harness.StartIn(t, dir, flags...)
				client := harness.Dial(t, server.Addr)
				reply := client.Ask("EVAL", c.script, "0", strconv.Itoa(small))
				require.EqualValues(t, ':', reply.Kind, reply.Wire())
				if log == "yes" {
					require.NoError(t, server.Terminate())
					client = harness.Dial(t, harness.StartIn(t, dir, flags...).Addr)
				}
				for command, want := range c.sizes {
					require.Equal(t, ":"+want, strings.TrimSpace(client.Ask(strings.Fields(command)...).Wire()), command)
				}
			})
		}
	}
}
