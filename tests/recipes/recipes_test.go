package recipes

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

//go:generate go test -run ^TestDocument$ -write .

var writeDocument = flag.Bool("write", false, "bring docs/recipes.md and docs/zh/recipes.md in line with the code")

// included is a recipe's code in the document: its file's name in a comment, then a block.
var included = regexp.MustCompile("(?s)<!-- tests/recipes/([a-z]+\\.(?:go|mjs)) -->\n```(?:go|js)\n.*?```\n")

// TestDocument fails when docs/recipes.md, or its translation, shows other code than these files hold; go generate writes it. Each shows every file.
func TestDocument(t *testing.T) {
	for _, document := range []string{"docs/recipes.md", "docs/zh/recipes.md"} {
		path := filepath.Join(harness.Root(t), document)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		shown := map[string]bool{}
		want := included.ReplaceAllStringFunc(string(text), func(block string) string {
			name := included.FindStringSubmatch(block)[1]
			shown[name] = true
			if strings.HasSuffix(name, ".mjs") {
				script, err := os.ReadFile(name)
				require.NoError(t, err)
				return fmt.Sprintf("<!-- tests/recipes/%s -->\n```js\n%s```\n", name, script)
			}
			return fmt.Sprintf("<!-- tests/recipes/%s -->\n```go\n%s```\n", name, code(t, name))
		})
		if *writeDocument {
			require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
			continue
		}
		require.Equal(t, want, string(text), "run: make generate")
		files, err := filepath.Glob("*.go")
		require.NoError(t, err)
		for _, name := range files {
			require.True(t, shown[name] || strings.HasSuffix(name, "_test.go"), "%s does not show %s", document, name)
		}
		blocks := 0
		for name := range shown {
			if strings.HasSuffix(name, ".go") {
				blocks++
			}
		}
		require.Equal(t, strings.Count(string(text), "```go\n"), blocks, "%s: a block of code is not from a file", document)
	}
}

// code is what stands below a file's imports.
func code(t *testing.T, name string) string {
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, text, parser.ImportsOnly)
	require.NoError(t, err)
	end := file.Name.End()
	for _, d := range file.Decls {
		end = d.(*ast.GenDecl).End()
	}
	return strings.TrimLeft(string(text[files.Position(end).Offset:]), "\n")
}

// serve starts headgate, for one test.
func serve(t *testing.T, flags ...string) (context.Context, *redis.Client) {
	server := harness.Start(t, flags...)
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr})
	t.Cleanup(func() { _ = rdb.Close() })
	return t.Context(), rdb
}

func TestHeaders(t *testing.T) {
	_, rdb := serve(t)
	handler := Limit(rdb, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	get := func() *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		return w
	}
	first := get()
	require.Equal(t, http.StatusNoContent, first.Code)
	require.Equal(t, "20", first.Header().Get("RateLimit-Limit"))
	require.Equal(t, "19", first.Header().Get("RateLimit-Remaining"))
	require.Equal(t, "1", first.Header().Get("RateLimit-Reset"))
	require.Empty(t, first.Header().Get("Retry-After"))
	var limited *httptest.ResponseRecorder
	for range 100 {
		if limited = get(); limited.Code != http.StatusNoContent {
			break
		}
	}
	require.Equal(t, http.StatusTooManyRequests, limited.Code)
	require.Equal(t, "0", limited.Header().Get("RateLimit-Remaining"))
	require.Equal(t, "1", limited.Header().Get("Retry-After"))

	_ = rdb.Close()
	require.Equal(t, http.StatusNoContent, get().Code, "without a limiter requests pass")
	h := http.Header{}
	WriteHeaders(h, Verdict{Limit: -1, Remaining: -1, RetryAfter: -1})
	require.Empty(t, h)
	WriteHeaders(h, Verdict{Limited: true, Limit: 5, RetryAfter: -time.Millisecond})
	require.Empty(t, h.Get("Retry-After"), "it can never pass")
	h = http.Header{}
	WriteHeaders(h, Verdict{Limited: true, Limit: -1, Remaining: -1, RetryAfter: time.Minute})
	require.Equal(t, http.Header{"Retry-After": {"60"}}, h, "a block of a key without a limit")

	// A client that hangs up is charged, and limited, as any other.
	ctx, rdb := serve(t)
	left, leave := context.WithCancel(ctx)
	leave()
	passed := 0
	handler = Limit(rdb, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { passed++ }))
	for range 100 {
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(left, http.MethodGet, "/", nil))
	}
	require.Less(t, passed, 100)
}

// TestSilentLimiter: requests waited for a limiter that did not answer for the client's three seconds, four times.
func TestSilentLimiter(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = ln.Close() })
	var calls atomic.Int64
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go greet(conn, &calls)
		}
	}()
	rdb := NewClient(ln.Addr().String())
	t.Cleanup(func() { _ = rdb.Close() })
	w := httptest.NewRecorder()
	handler := Limit(rdb, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	require.Equal(t, http.StatusNoContent, w.Code)
	require.Empty(t, w.Header())
	require.LessOrEqual(t, calls.Load(), int64(1), "the call is sent once")
}

// greet answers what a client says about itself with errors, and calls of a limiter, which it counts, with nothing.
func greet(conn net.Conn, calls *atomic.Int64) {
	defer conn.Close()
	in := make([]byte, 4096)
	for {
		n, err := conn.Read(in)
		if err != nil {
			return
		}
		if bytes.Contains(in[:n], []byte("RL.GCRA")) {
			calls.Add(1)
			continue
		}
		_, _ = conn.Write(bytes.Repeat([]byte("-ERR unknown command\r\n"), bytes.Count(in[:n], []byte("*"))))
	}
}

func TestLogin(t *testing.T) {
	ctx, rdb := serve(t)
	wait := func() time.Duration {
		d, err := LoginWait(ctx, rdb, "ann")
		require.NoError(t, err)
		return d
	}
	fail := func(n int) {
		for range n {
			require.NoError(t, LoginFailed(ctx, rdb, "ann"))
		}
	}
	fail(4)
	require.Zero(t, wait())
	require.NoError(t, LoginSucceeded(ctx, rdb, "ann"))
	fail(4)
	require.Zero(t, wait())
	for _, lock := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute} {
		fail(1)
		require.LessOrEqual(t, wait(), lock)
		require.Greater(t, wait(), lock-lock/4)
		require.NoError(t, rdb.Del(ctx, "login:locked:ann").Err()) // time passes
		fail(4)
		require.Zero(t, wait())
	}
	for range 40 {
		fail(5)
	}
	require.LessOrEqual(t, wait(), 24*time.Hour)
	require.Greater(t, wait(), 23*time.Hour)
}

func TestTokens(t *testing.T) {
	ctx, rdb := serve(t)
	require.NoError(t, SetTokenLimits(ctx, rdb))
	left := func() int64 {
		v, err := Ask(ctx, rdb, "RL.BUCKET", "rl:llm:tokens:ann", 100_000, 20_000, "1m", "PEEK")
		require.NoError(t, err)
		return v.Remaining
	}
	// Tokens come back while the test runs, some hundred a second.
	about := func(want int64) {
		t.Helper()
		require.InDelta(t, want, left(), 5000)
	}
	uses := func(tokens int64, err error) func(context.Context) (int64, error) {
		return func(context.Context) (int64, error) {
			require.Equal(t, int64(1), rdb.ZCard(ctx, "rl:llm:calls:ann").Val())
			return tokens, err
		}
	}
	require.NoError(t, Complete(ctx, rdb, "ann", 60_000, uses(20_000, nil)))
	about(80_000)
	failed := errors.New("the model has failed")
	require.ErrorIs(t, Complete(ctx, rdb, "ann", 60_000, uses(0, failed)), failed)
	about(80_000)
	require.NoError(t, Complete(ctx, rdb, "ann", 10_000, uses(30_000, nil)))
	about(50_000)
	require.ErrorContains(t, Complete(ctx, rdb, "ann", 90_000, uses(0, nil)), "try again in ")
	require.EqualError(t, Complete(ctx, rdb, "ann", 100_001, uses(0, nil)), "can never pass: the limit is 100000")
	about(50_000)
	require.NoError(t, Complete(ctx, rdb, "ann", 10_000, uses(150_000, nil)))
	about(0)
	id, limited, err := Reserve(ctx, rdb, "ann", 1)
	require.NoError(t, err)
	require.Empty(t, id)
	require.Greater(t, limited.RetryAfter, time.Minute, "the debt drains first")
	require.Zero(t, rdb.ZCard(ctx, "rl:llm:calls:ann").Val())
}

// TestWaiting: calls beyond the burst are sent in their turn, without an error, and work goes on one behind the other.
func TestWaiting(t *testing.T) {
	ctx, rdb := serve(t)
	waiting := NewWaiting(rdb.Options().Addr)
	defer waiting.Close()
	var sent, atWork atomic.Int64
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			assert.NoError(t, Send(ctx, waiting, func(context.Context) error { sent.Add(1); return nil }))
			assert.NoError(t, HoldInTurn(ctx, waiting, "pool", 1, func(context.Context) error {
				assert.Equal(t, int64(1), atWork.Add(1))
				atWork.Add(-1)
				return nil
			}))
		})
	}
	all.Wait()
	require.Equal(t, int64(10), sent.Load())
	limited, err := rdb.Do(ctx, "RL.GCRA", "api:orders", 5, 10, "1s", "COST", 6, "WAIT", "10s").Int64Slice()
	require.NoError(t, err)
	require.Equal(t, int64(1), limited[0], "a cost above the capacity is not waited for")
}

func TestSpread(t *testing.T) {
	ctx, rdb := serve(t)
	admitted := 0
	for range 400 {
		v, err := Spread(ctx, rdb, "hot", 4, 100, 4)
		require.NoError(t, err)
		if !v.Limited {
			admitted++
		}
	}
	require.GreaterOrEqual(t, admitted, 90)
	require.LessOrEqual(t, admitted, 200, "with what comes back while the test runs")
	keys, err := rdb.DBSize(ctx).Result()
	require.NoError(t, err)
	require.EqualValues(t, 4, keys)
}

func TestServerFor(t *testing.T) {
	servers := []string{"10.0.0.1:6379", "10.0.0.2:6379", "10.0.0.3:6379", "10.0.0.4:6379"}
	const users = 20_000
	shares := map[string]int{}
	moved := 0
	for i := range users {
		user := fmt.Sprintf("user:%d", i)
		before := ServerFor(user, servers)
		shares[before]++
		require.Equal(t, before, ServerFor(user, []string{servers[3], servers[1], servers[0], servers[2]}), "in any order")
		after := ServerFor(user, servers[:3])
		if after != before {
			moved++
			require.Equal(t, servers[3], before, "only its own users move")
		}
	}
	require.Equal(t, shares[servers[3]], moved)
	for _, server := range servers {
		require.InDelta(t, users/4, shares[server], users/40)
	}
	require.Empty(t, ServerFor("ann", nil))
}

func TestLocal(t *testing.T) {
	ctx, rdb := serve(t)
	const instances, calls = 20, 600
	var admitted, asked atomic.Int64
	rdb.AddHook(counter{&asked})
	start := time.Now()
	var group sync.WaitGroup
	errs := make(chan error, instances)
	for range instances {
		l := NewLocal(rdb, 10)
		group.Go(func() {
			for range calls {
				ok, err := l.Allow(ctx)
				if err != nil {
					errs <- err
					return
				}
				if ok {
					admitted.Add(1)
				}
			}
		})
	}
	group.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	bound := sharedCapacity + sharedRate*(time.Since(start)+time.Millisecond).Seconds()
	require.LessOrEqual(t, float64(admitted.Load()), bound)
	require.GreaterOrEqual(t, admitted.Load(), int64(sharedCapacity-instances*10))
	t.Logf("%d of %d requests passed, for %d calls of the server", admitted.Load(), instances*calls, asked.Load())
	require.Less(t, asked.Load(), int64(instances*calls))
}

// counter is a hook that counts commands.
type counter struct{ n *atomic.Int64 }

func (counter) DialHook(next redis.DialHook) redis.DialHook { return next }
func (counter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
func (c counter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.n.Add(1)
		return next(ctx, cmd)
	}
}
