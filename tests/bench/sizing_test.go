package bench

import (
	"flag"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

var sizing = flag.Int("sizing", 0, "measure what so many keys of each algorithm take, and write docs/operations.md's table")

// sizes are what limiters keep. @ stands for a number of twelve digits, so that names are 21 bytes long.
var sizes = []struct{ name, command string }{
	{"CL.THROTTLE, RL.GCRA, RL.BUCKET, RL.QUEUE", "RL.GCRA limit:us:@ 100 100 100000s"},
	{"RL.FIXED", "RL.FIXED limit:us:@ 100 100000s"},
	{"RL.SLIDING, one slice of ten in use", "RL.SLIDING limit:us:@ 100 100000s"},
	{"RL.LOG, one request in its window", "RL.LOG limit:us:@ 100 100000s"},
	{"RL.LOG, ten requests in its window", "RL.LOG limit:us:@ 100 100000s COST 10"},
	{"RL.LOG, a thousand requests in its window", "RL.LOG limit:us:@ 10000 100000s COST 1000"},
	{"RL.ACQUIRE, one holder of a 16-byte name", "RL.ACQUIRE limit:us:@ 10 100000s MEMBER 0123456789abcdef"},
	{"INCR and PEXPIRE", "INCR limit:us:@ ; PEXPIRE limit:us:@ 100000000"},
	{"a bucket in a hash of two fields", "HSET limit:us:@ tokens 12.5 at 1732100000000 ; PEXPIRE limit:us:@ 100000000"},
	{"a window as a sorted set of ten ids of 16 bytes", "ZADD limit:us:@ 1 aaaaaaaaaaaaaaaa 2 aaaaaaaaaaaaaaab 3 aaaaaaaaaaaaaaac 4 aaaaaaaaaaaaaaad 5 aaaaaaaaaaaaaaae 6 aaaaaaaaaaaaaaaf 7 aaaaaaaaaaaaaaag 8 aaaaaaaaaaaaaaah 9 aaaaaaaaaaaaaaai 10 aaaaaaaaaaaaaaaj"},
}

// fill sends the command for n keys in pipelines.
func fill(t *testing.T, addr, command string, n int) {
	t.Helper()
	const pipeline = 500
	c := harness.Dial(t, addr)
	commands := strings.Split(command, " ; ")
	for at := 0; at < n; {
		var out []byte
		sent := 0
		for ; at < n && sent < pipeline*len(commands); at++ {
			for _, one := range commands {
				out = append(out, harness.Command(strings.Fields(strings.ReplaceAll(one, "@", fmt.Sprintf("%012d", at)))...)...)
				sent++
			}
		}
		require.NoError(t, c.Send(out))
		for range sent {
			require.NotEqual(t, byte('-'), c.Value().Kind, command)
		}
	}
	require.Equal(t, strconv.Itoa(n), c.Ask("DBSIZE").Text)
}

// TestSizing measures resident bytes per key over the empty server. Without -sizing it only shows that the commands are right.
func TestSizing(t *testing.T) {
	n, drawn := *sizing, sizes
	if n == 0 {
		n, drawn = 100, harness.Draw(t, sizes, 3)
	}
	var table strings.Builder
	fmt.Fprintf(&table, "| what a key holds | resident bytes per key |\n|---|---|\n")
	for _, size := range drawn {
		keys := n
		if strings.Contains(size.command, "COST 1000") {
			keys = max(n/100, 1)
		}
		server := harness.Start(t)
		before := server.RSS()
		fill(t, server.Addr, size.command, keys)
		fmt.Fprintf(&table, "| %s | %d |\n", size.name, (server.RSS()-before)/int64(keys))
	}
	fmt.Fprintf(&table, "\nNames of 21 bytes, %s keys (a hundredth of it for the longest log), over what the empty server takes: `make sizing`.\n", thousands(float64(n)))
	t.Logf("\n%s", table.String())
	if *sizing > 0 {
		writeSection(t, "docs/operations.md", "sizing", table.String())
	}
}
