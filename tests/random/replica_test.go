package random

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

var replicated = flag.Int("random.replicated", 30_000, "commands that a primary is sent, whose replicas are compared with it")

// notReplicated are commands that change nothing, or what a replica cannot have: WAIT and MIGRATE reach beyond the keys, XSETID lets
// redis-server keep entries out of order, and what stands for a payload here is none.
var notReplicated = map[string]bool{
	"wait": true, "waitaof": true, "migrate": true, "restore": true, "restore-asking": true, "object": true, "xsetid": true,
	"pfdebug": true, "pfselftest": true, "scan": true, "keys": true, "sort_ro": true,
}

const (
	compareEach  = 20_000                 // commands between two comparisons
	cutPause     = 150 * time.Millisecond // between two cuts of the link, at most
	expiresSoon  = 2000                   // ms from now within which keys are not compared: one side may have them still
	backlogBytes = "200mb"                // so that every cut is followed by a partial resync, unless the test takes it away
)

// TestReplicaHasWhatThePrimaryHas sends random commands to a redis-server whose link to a headgate is cut again and again, and compares all
// keys with their times in the end; then what the replica has logged, and what it has after it has been started anew.
func TestReplicaHasWhatThePrimaryHas(t *testing.T) {
	first := *seed
	if first == 0 {
		first = rand.Uint64()
	}
	t.Logf("seed %d, %d commands", first, *replicated)
	primary := harness.StartReference(t, "--repl-diskless-sync-delay", "0", "--repl-backlog-size", backlogBytes)
	proxy := harness.StartProxy(t, primary.Addr)
	replica := harness.Start(t, append(logged, "--replicaof", "127.0.0.1 "+strconv.Itoa(proxy.Port))...)
	client, watcher := harness.Dial(t, primary.Addr), harness.Dial(t, replica.Addr)
	s := &stream{
		dice:     &dice{rand.New(rand.NewPCG(first, 1)), time.Now().Unix()},
		commands: commandsBut(t, notReplicated, harness.Dial(t, primary.Addr), harness.Dial(t, replica.Addr)),
	}
	_, stop := cutAgainAndAgain(first, cut{proxy, cutPause})
	compared := 0
	for done := 0; done < *replicated; {
		if done-compared >= compareEach {
			compared = done
			harness.AwaitSame(t, client, watcher)
			requireAlike(t, fmt.Sprintf("the replica, after %d commands", done), contents(t, primary), contents(t, replica))
		}
		var out []byte
		n := 0
		for n < batch || len(s.queued) > 0 {
			args := s.next().args
			neverFailing(args)
			out = append(out, harness.Command(args...)...)
			n++
		}
		go func() { _ = client.Send(out) }()
		for range n {
			_, err := client.Read(replyTime)
			require.NoError(t, err)
		}
		done += n
	}
	stop()
	harness.AwaitSame(t, client, watcher)
	info := watcher.Info("replication")
	require.Equal(t, "0", info["replica_failed_commands"], replica.Log())
	stats := client.Info("stats")
	t.Logf("%d links, %s full and %s partial syncs, offset %s", proxy.Connections(), stats["sync_full"], stats["sync_partial_ok"], info["master_repl_offset"])
	require.NotEqual(t, "0", stats["sync_partial_ok"])

	want := contents(t, primary)
	requireAlike(t, "the replica", want, contents(t, replica))
	replica.Kill()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(replica.Dir)))
	proxy.Refuse(true)
	alone := harness.StartIn(t, dir, logged...)
	requireAlike(t, "a server on the replica's log", want, contents(t, alone))
}

// neverFailing has a BITFIELD not fail when a number would overflow: redis-server makes the key or its value longer for it all the same, and tells neither its
// log nor its replicas.
func neverFailing(args []string) {
	if !strings.EqualFold(args[0], "bitfield") {
		return
	}
	for i, word := range args {
		if strings.EqualFold(word, "fail") {
			args[i] = "SAT"
		}
	}
}

// cut is a proxy whose links are cut, and how long one lasts at most.
type cut struct {
	*harness.Proxy
	pause time.Duration
}

// cutAgainAndAgain cuts the links through proxies at random moments until stop is called, which has whole ones made. calm does something while
// none is cut.
func cutAgainAndAgain(seed uint64, proxies ...cut) (calm func(do func()), stop func()) {
	var cutting sync.WaitGroup
	var calmly sync.RWMutex
	end := make(chan struct{})
	for i, proxy := range proxies {
		cutting.Go(func() {
			pauses := rand.New(rand.NewPCG(seed, 2+uint64(i)))
			for {
				select {
				case <-end:
					return
				case <-time.After(time.Duration(pauses.Int64N(int64(proxy.pause)))):
				}
				calmly.RLock()
				if pauses.IntN(4) == 0 {
					proxy.Limit(int64(pauses.IntN(20_000))) // the next one breaks off somewhere by itself
				} else {
					proxy.Limit(-1)
				}
				proxy.Cut()
				calmly.RUnlock()
			}
		})
	}
	whole := func() {
		for _, proxy := range proxies {
			proxy.Limit(-1)
		}
	}
	calm = func(do func()) {
		calmly.Lock()
		defer calmly.Unlock()
		whole()
		do()
	}
	return calm, func() {
		close(end)
		cutting.Wait()
		whole()
		for _, proxy := range proxies {
			proxy.Cut()
		}
	}
}

// requireAlike compares all keys but those whose time comes while it does.
func requireAlike(t *testing.T, what string, want, got map[string]kept) {
	t.Helper()
	now := time.Now().UnixMilli()
	soon := func(k kept) bool { return k.expires > 0 && k.expires < now+expiresSoon }
	for name, k := range want {
		if !soon(k) {
			require.Contains(t, got, name, "%s, where it is %+v", what, k)
			require.Equal(t, k, got[name], "%s: %s", what, name)
		}
	}
	for name, k := range got {
		if !soon(k) {
			require.Contains(t, want, name, "%s has %+v", what, k)
		}
	}
	t.Logf("%s: %d keys", what, len(got))
}
