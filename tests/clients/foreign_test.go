package clients

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

var foreign = flag.Bool("foreign", false, "also run the clients and limiter libraries of other languages, which `make clients` installs")

const (
	foreignTime   = 2 * time.Minute // for one program
	foreignTools  = "foreign"       // where the programs are
	foreignFilter = "not ok "
)

// TestForeignClients runs the clients of other languages, as released: each connects with its defaults, pipelines, runs
// transactions under WATCH, scripts by their digest first, publishes, subscribes, blocks, scans, and sends every byte there is.
func TestForeignClients(t *testing.T) {
	for _, c := range []struct {
		name    string
		program []string
		needs   []string // commands that tell whether it is installed
	}{
		{"ioredis 5", []string{"node", "ioredis.mjs", "ioredis5"}, []string{"test", "-d", "node_modules/ioredis5"}},
		{"ioredis 6", []string{"node", "ioredis.mjs", "ioredis6"}, []string{"test", "-d", "node_modules/ioredis6"}},
		{"node-redis 4", []string{"node", "node-redis.mjs", "redis4"}, []string{"test", "-d", "node_modules/redis4"}},
		{"node-redis 6", []string{"node", "node-redis.mjs", "redis6"}, []string{"test", "-d", "node_modules/redis6"}},
		{"python3-redis", []string{"/usr/bin/python3", "python_redis.py"}, []string{"/usr/bin/python3", "-c", "import redis"}},
		{"php-redis", []string{"php", "php_redis.php"}, []string{"php", "-r", "exit(class_exists('Redis') ? 0 : 1);"}},
		{"ruby-redis", []string{"ruby", "ruby_redis.rb"}, []string{"ruby", "-e", "require 'redis'"}},
		{"libredis-perl", []string{"perl", "perl_redis.pl"}, []string{"perl", "-MRedis", "-e", "1"}},
		{"hiredis", []string{"sh", "-c", `cc -O1 -Wall -Werror -o "$HEADGATE_SCRATCH/hiredis" hiredis.c -lhiredis && exec "$HEADGATE_SCRATCH/hiredis"`},
			[]string{"sh", "-c", "echo '#include <hiredis/hiredis.h>' | cc -E - >/dev/null"}},
	} {
		t.Run(c.name, func(t *testing.T) { runForeign(t, c.needs, 10, c.program...) })
	}
}

// TestForeignClusterClients runs clients of other languages in cluster mode, against a server that answers them as a cluster of one.
func TestForeignClusterClients(t *testing.T) {
	for _, c := range []struct {
		name    string
		program []string
		needs   []string
	}{
		{"ioredis 5", []string{"node", "ioredis_cluster.mjs", "ioredis5"}, []string{"test", "-d", "node_modules/ioredis5"}},
		{"ioredis 6", []string{"node", "ioredis_cluster.mjs", "ioredis6"}, []string{"test", "-d", "node_modules/ioredis6"}},
		{"python3-redis", []string{"/usr/bin/python3", "python_cluster.py"}, []string{"/usr/bin/python3", "-c", "import redis.cluster"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			runForeignOn(t, func() *harness.Server { return harness.Start(t, emulated...) }, c.needs, 4, c.program...)
		})
	}
}

// TestForeignSentinelClients runs clients of other languages that ask sentinels for the primary, while it changes.
func TestForeignSentinelClients(t *testing.T) {
	for _, version := range []string{"ioredis5", "ioredis6"} {
		t.Run(version, func(t *testing.T) {
			start := func() *harness.Server {
				g := harness.StartGuarded(t, 2, 1, harness.Timing{DownAfter: 5 * time.Second, FailoverTimeout: 5 * time.Second}, "--repl-diskless-sync-delay", "0")
				t.Setenv("HEADGATE_SENTINELS", strings.Join(g.SentinelAddrs(), ","))
				t.Setenv("HEADGATE_NAME", g.Name())
				return g.Servers[0]
			}
			runForeignOn(t, start, []string{"test", "-d", "node_modules/" + version}, 4, "node", "ioredis_sentinels.mjs", version)
		})
	}
}

// spreading are the libraries whose scripts have keys in several slots, so that no cluster serves them as they are used here.
var spreading = []string{"bottleneck", "bullmq"}

// TestForeignLimiters runs the limiter libraries of npm: twenty clients, ten thousand requests, exactly as many admitted as there
// are to be had, also through a gateway before a cluster if that is asked for.
func TestForeignLimiters(t *testing.T) {
	for _, library := range []string{
		"rate-limiter-flexible", "rate-limit-redis", "@fastify/rate-limit", "bottleneck", "bullmq", "ratelimiter", "redis-gcra",
	} {
		t.Run(library, func(t *testing.T) {
			if *throughGateway && slices.Contains(spreading, library) {
				t.Skip("its keys lie in several slots")
			}
			runForeign(t, []string{"test", "-d", "node_modules/" + library}, 1, "node", "limiters.mjs", library)
		})
	}
}

// TestForeignRecipes runs the recipes for Node.js of docs/recipes.md, and compares their header fields with express-rate-limit's.
func TestForeignRecipes(t *testing.T) {
	runForeign(t, []string{"test", "-d", "node_modules/express-rate-limit"}, 4, "node", "recipes.mjs")
}

// TestForeignBlocks: what rate-limiter-flexible's blockDuration does is what the record says, by which server/limits is tested.
func TestForeignBlocks(t *testing.T) {
	if !*foreign {
		t.Skip("run by `make clients`, which installs what it needs")
	}
	root := harness.Root(t)
	cmd := exec.Command("node", "blocks.mjs")
	cmd.Dir = filepath.Join(root, "tests", "clients", foreignTools)
	if _, err := os.Stat(filepath.Join(cmd.Dir, "node_modules", "rate-limiter-flexible")); err != nil {
		t.Skipf("not installed here: %v", err)
	}
	recorded, err := os.ReadFile(filepath.Join(root, "server", "limits", "testdata", "rate-limiter-flexible.txt"))
	require.NoError(t, err)
	out, err := cmd.Output()
	require.NoError(t, err)
	require.Equal(t, string(recorded), string(out))
}

// runForeign runs a program that prints a line for each of its steps, against a server of its own. What is not installed is
// said and skipped.
func runForeign(t *testing.T, needs []string, steps int, program ...string) {
	t.Helper()
	runForeignOn(t, func() *harness.Server {
		server, _ := startServer(t)
		return server
	}, needs, steps, program...)
}

// runForeignOn is runForeign against a server that a test starts.
func runForeignOn(t *testing.T, start func() *harness.Server, needs []string, steps int, program ...string) {
	t.Helper()
	if !*foreign {
		t.Skip("run by `make clients`, which installs what it needs")
	}
	dir := filepath.Join(harness.Root(t), "tests", "clients", foreignTools)
	check := exec.Command(needs[0], needs[1:]...)
	check.Dir = dir
	if out, err := check.CombinedOutput(); err != nil {
		t.Skipf("not installed here: %s: %v %s", strings.Join(needs, " "), err, out)
	}
	_, port, ok := strings.Cut(start().Addr, ":")
	require.True(t, ok)
	ctx, cancel := context.WithTimeout(context.Background(), foreignTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program[0], program[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HEADGATE_PORT="+port, "HEADGATE_SCRATCH="+t.TempDir())
	out, err := cmd.CombinedOutput()
	passed := 0
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		line := lines.Text()
		if strings.HasPrefix(line, foreignFilter) {
			t.Error(line)
		} else if strings.HasPrefix(line, "ok ") {
			passed++
		}
	}
	require.NoError(t, err, "%s", out)
	require.Equal(t, steps, passed, "%s", out)
}
