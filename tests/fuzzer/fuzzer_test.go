// Package fuzzer sends random commands, made from the server's own table of commands, over several connections at once: with arguments
// that make sense and with such that make none. The server must answer each command once, go on, and know in the end what it keeps.
package fuzzer

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
	"headgate/tests/internal/syntax"
)

var (
	count = flag.Int("fuzzer.n", 100_000, "commands to be sent")
	seed  = flag.Uint64("fuzzer.seed", 0, "seed of the commands; 0 draws one")
	built = flag.Bool("fuzzer.invariants", false, "test a headgate that is built for it, with the checks that cost time: its memory tells when a block is freed twice")
)

const (
	connections = 8
	batch       = 50               // commands sent at once
	patience    = 60 * time.Second // for one reply
	databases   = 16
	shown       = 60 // commands of a batch that are shown when something is wrong with it
)

// binary returns the program under test.
func binary(t *testing.T) string {
	if !*built {
		return harness.Binary(t)
	}
	path := filepath.Join(t.TempDir(), "headgate")
	build := exec.Command("go", "build", "-tags", "invariants", "-o", path, "./cmd/headgate")
	build.Dir = harness.Root(t)
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

// TestCommands sends the commands, and then looks at what is there.
func TestCommands(t *testing.T) {
	seed := cmp.Or(*seed, rand.Uint64())
	t.Logf("-fuzzer.seed %d", seed)
	program := binary(t)
	flags := []string{
		"--appendonly", "yes", "--appendfsync", "no", "--enable-debug-command", "yes", "--enable-restore-command", "yes", "--proto-max-bulk-len", "1mb",
		"--client-query-buffer-limit", "64mb", "--busy-reply-threshold", "0", "--script-time-limit", "2000", "--databases", strconv.Itoa(databases),
	}
	server := harness.StartBinary(t, program, flags...)
	admin := harness.Dial(t, server.Addr)
	empty := emptyArena(admin)
	table := slices.DeleteFunc(syntax.Read(admin), func(c syntax.Command) bool {
		return skipped[c.Name()] != "" || skipped[c.Words[0]] != ""
	})
	require.Greater(t, len(table), 200)

	stop := make(chan struct{})
	var background sync.WaitGroup
	background.Go(func() { unblock(harness.Dial(t, server.Addr), stop) })
	var sent, refused, pushes atomic.Int64
	var connected sync.WaitGroup
	failures := make(chan error, connections)
	for i := range connections {
		connected.Go(func() {
			f := &fuzzer{
				dice: &dice{Rand: rand.New(rand.NewPCG(seed, uint64(i))), commands: table}, addr: server.Addr,
				resp3: i%2 == 1, sent: &sent, refused: &refused, pushes: &pushes,
			}
			if err := f.run(t, *count/connections); err != nil {
				failures <- fmt.Errorf("connection %d: %w", i, err)
			}
		})
	}
	connected.Wait()
	close(stop)
	background.Wait()
	close(failures)
	for err := range failures {
		t.Error(err)
	}
	require.True(t, server.Alive(), "%s", server.Log())
	require.NotContains(t, server.Log(), "panic")
	t.Logf("%d commands of %d kinds, each answered once, %d of them with an error; %d pushes", sent.Load(), len(table), refused.Load(), pushes.Load())
	if t.Failed() {
		return
	}
	lookAtTotals(t, admin)
	before := contents(t, admin)
	require.NoError(t, server.Terminate())
	server = harness.StartBinaryIn(t, program, server.Dir, flags...)
	admin = harness.Dial(t, server.Addr)
	require.Equal(t, before, contents(t, admin), "what the append-only file makes of it")
	lookAtMemory(t, admin, empty)
}

// unblock has clients go on that wait for a key that may never come, until the test ends.
func unblock(c *harness.Client, stop chan struct{}) {
	own, err := strconv.Atoi(c.Ask("CLIENT", "ID").Text)
	if err != nil {
		panic(err)
	}
	for {
		for id := range own + 2*connections { // those of the test came about when this one did, which may be after many others
			c.Ask("CLIENT", "UNBLOCK", strconv.Itoa(id))
		}
		select {
		case <-stop:
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// fuzzer is one connection.
type fuzzer struct {
	*dice
	addr                  string
	resp3                 bool
	sent, refused, pushes *atomic.Int64
	client                *harness.Client
}

func (f *fuzzer) run(t *testing.T, n int) error {
	f.client = harness.Dial(t, f.addr)
	if f.resp3 {
		f.client.Ask("HELLO", "3")
	}
	for done := 0; done < n; {
		f.aggressive = f.one(2)
		first, rest := f.batch()
		if err := f.exchange(first, rest, done); err != nil {
			all := slices.Concat(first, rest)
			return fmt.Errorf("%w\nin the batch of %q", err, all[:min(len(all), shown)])
		}
		done += len(first) + len(rest)
		f.sent.Add(int64(len(first) + len(rest)))
	}
	return nil
}

// batch draws commands: those that subscribe, if there are some, and all others.
func (f *fuzzer) batch() (first, rest [][]string) {
	subscribes := f.resp3 && f.one(3) // in RESP2 messages look like replies
	for len(first)+len(rest) < batch {
		line := f.line()
		switch name := strings.ToLower(line[0]); {
		case !subscribing[name]:
			if !subscribes || !notSubscribed[name] {
				rest = append(rest, line)
			}
		case subscribes && len(line) > 1:
			first = append(first, line)
		}
	}
	return first, rest
}

// exchange sends commands, and behind them what puts the connection back into its first state and marks the end. It wants one reply
// for each, and nothing else but pushes; of those that subscribe, a push for each name.
func (f *fuzzer) exchange(first, rest [][]string, number int) error {
	mark := "the end of batch " + strconv.Itoa(number)
	protocol := "2"
	if f.resp3 {
		protocol = "3"
	}
	var raw []byte
	for _, line := range slices.Concat(first, rest, [][]string{{"RESET"}, {"HELLO", protocol}, {"ECHO", mark}}) {
		raw = append(raw, harness.Command(line...)...)
	}
	failed := make(chan error, 1)
	go func() { failed <- f.client.Send(raw) }()
	for _, line := range first {
		if err := f.confirmed(line); err != nil {
			return fmt.Errorf("%q: %w", line, err)
		}
	}
	for _, line := range rest {
		if _, err := f.reply(); err != nil {
			return fmt.Errorf("%q: %w", line, err)
		}
	}
	if v, err := f.reply(); err != nil || v.Wire() != "+RESET\r\n" {
		return fmt.Errorf("RESET is answered with %q, so that there is a reply too few or too many (%w)", v.Wire(), err)
	}
	if v, err := f.reply(); err != nil || v.Kind == '-' {
		return fmt.Errorf("HELLO is answered with %q (%w)", v.Wire(), err)
	}
	if v, err := f.reply(); err != nil || v.Text != mark {
		return fmt.Errorf("ECHO is answered with %q (%w)", v.Wire(), err)
	}
	return <-failed
}

// reply reads the next reply, pushes aside.
func (f *fuzzer) reply() (harness.Value, error) {
	for {
		v, err := f.client.Read(patience)
		if err != nil || v.Kind != '>' {
			if v.Kind == '-' {
				f.refused.Add(1)
			}
			return v, err
		}
		f.pushes.Add(1)
	}
}

// confirmed reads what answers a command that subscribes: an error, or its word once for each name.
func (f *fuzzer) confirmed(line []string) error {
	for left := len(line) - 1; left > 0; {
		v, err := f.client.Read(patience)
		switch {
		case err != nil:
			return err
		case v.Kind == '-' && left == len(line)-1:
			return nil
		case v.Kind != '>' || len(v.Items) == 0:
			return fmt.Errorf("answered with %q", v.Wire())
		case strings.EqualFold(v.Items[0].Text, line[0]):
			left--
		}
		f.pushes.Add(1)
	}
	return nil
}
