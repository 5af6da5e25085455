package bench

import (
	"flag"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

var page = flag.Duration("page", 0, "measure for so long and write what is printed, and the plot, into docs/bench.md and docs/bench.svg")

// TestPage writes the output that docs/bench.md shows. The ports are printed as the page's reader would choose them.
func TestPage(t *testing.T) {
	if *page < time.Second {
		t.Skip("only with -page, of a second or more")
	}
	headgate, redisServer := harness.StartPair(t)
	printed := strings.NewReplacer(headgate.Addr, "127.0.0.1:6379", redisServer.Addr, "127.0.0.1:6380")
	show := func(section, command string) {
		words := strings.Fields(strings.NewReplacer("127.0.0.1:6380", redisServer.Addr,
			"latency.svg", filepath.Join(harness.Root(t), "docs", "bench.svg")).Replace(command))
		out, err := exec.Command(harness.Binary(t), append(words[1:], "--addr", headgate.Addr)...).Output()
		require.NoError(t, err)
		writeSection(t, "docs/bench.md", section, "```sh\n"+command+"\n```\n```text\n"+printed.Replace(string(out))+"```\n")
	}
	length := page.String()
	show("one", "headgate bench --load script --pipeline 16 --duration "+length)
	show("versus", "headgate bench --vs 127.0.0.1:6380 --load throttle --rate 20000 --duration "+length+" --svg latency.svg")
}
