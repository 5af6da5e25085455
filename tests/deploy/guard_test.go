package deploy

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// TestGuardsAreShown: docs/operations.md has the code that the tests below run.
func TestGuardsAreShown(t *testing.T) {
	page := read(t, "docs", "operations.md")
	_, code, _ := strings.Cut(read(t, "tests", "deploy", "guard.go"), ")\n\n")
	require.Contains(t, page, "```go\n"+code+"```\n")
	require.Contains(t, page, "```python\n"+read(t, "tests", "deploy", "testdata", "guard.py")+"```\n")
}

// TestGuard limits while the server is there, and decides as it was told when it has gone.
func TestGuard(t *testing.T) {
	server := harness.Start(t)
	ctx := context.Background()
	open, closed := NewGuard(server.Addr, true), NewGuard(server.Addr, false)
	for _, g := range []*Guard{open, closed} {
		require.Eventually(t, func() bool { // until a call was not answered too late
			ok, _ := g.Allow(ctx, fmt.Sprint(g.Open))
			return ok && g.again.Load() == 0
		}, 10*time.Second, time.Millisecond)
	}
	left, leave := context.WithCancel(ctx)
	leave()
	require.Eventually(t, func() bool {
		open.again.Store(0)
		open.Allow(left, "left")
		return open.again.Load() == 0
	}, 10*time.Second, time.Millisecond, "a user who hangs up is no failure of the limiter")
	limited := false
	for range 1000 {
		ok, retryAfter := closed.Allow(ctx, "busy")
		if limited = !ok && closed.again.Load() == 0; limited {
			require.Positive(t, retryAfter)
			break
		}
	}
	require.True(t, limited)
	require.NoError(t, server.Terminate())
	for _, g := range []*Guard{open, closed} {
		ok, _ := g.Allow(ctx, "somebody")
		require.Equal(t, g.Open, ok)
		require.NotZero(t, g.again.Load(), "and it is not asked again for a while")
	}
}

// TestPythonGuard does the same with redis-py.
func TestPythonGuard(t *testing.T) {
	python := ""
	for _, name := range []string{"python3", "/usr/bin/python3"} { // Debian's redis-py is Debian's Python's
		if exec.Command(name, "-c", "import redis").Run() == nil {
			python = name
		}
	}
	if python == "" {
		t.Skip("redis-py is not installed")
	}
	server := harness.Start(t)
	script := `
import sys, os, signal
sys.path.insert(0, sys.argv[1])
from guard import Guard
opened, closed = (Guard("127.0.0.1", int(sys.argv[2]), o) for o in (True, False))
def first(g):
    for _ in range(1000):
        ok, _ = g.allow(str(g.open))
        if ok and g.again == 0.0:
            return
        g.again = 0.0
    raise SystemExit("no call was answered in time")
first(opened)
first(closed)
for _ in range(1000):
    ok, after = closed.allow("busy")
    if not ok and closed.again == 0.0:
        assert after > 0
        break
    closed.again = 0.0
else:
    raise SystemExit("nothing was limited")
print("gone?", flush=True)
sys.stdin.readline()
assert opened.allow("u")[0] is True
assert closed.allow("u")[0] is False
assert opened.again > 0 and closed.again > 0
`
	cmd := exec.Command(python, "-c", script, filepath.Join(harness.Root(t), "tests", "deploy", "testdata"), fmt.Sprint(server.Port))
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	require.NoError(t, cmd.Start())
	line := make([]byte, 6)
	_, err = out.Read(line)
	require.NoError(t, err, complaints.String())
	require.NoError(t, server.Terminate())
	_, err = in.Write([]byte("\n"))
	require.NoError(t, err)
	require.NoError(t, cmd.Wait(), complaints.String())
}
