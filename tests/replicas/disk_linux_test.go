package replicas

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"headgate/tests/internal/harness"
)

const (
	longestFile = 24 << 20 // of the replica's files; what it reserves at the start fits
	longValue   = 1 << 20
)

// TestFullDisk: while the append-only file cannot grow, what the primary sends waits, and reads are answered; when there is room again nothing is
// missing, neither in memory nor in the file.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	primary := harness.StartReference(t, append(diskless, "--repl-backlog-size", "200mb")...)
	flags := append(follow(primary.Port), "--appendonly", "yes", "--auto-aof-rewrite-percentage", "0")
	replica := harness.Start(t, flags...)
	p, r := harness.Dial(t, primary.Addr), harness.Dial(t, replica.Addr)
	p.Ask("SET", "first", "1")
	harness.AwaitSame(t, p, r)
	awaitLog(t, replica, "the append-only file has been rewritten")
	limit := func(bytes uint64) {
		t.Helper()
		require.NoError(t, unix.Prlimit(replica.PID(), unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: bytes, Max: unix.RLIM_INFINITY}, nil))
	}
	limit(longestFile)
	for i := range 40 {
		p.Ask("SET", "k"+strconv.Itoa(i%3), strings.Repeat(strconv.Itoa(i%10), longValue))
		p.Ask("INCR", "n")
	}
	awaitLog(t, replica, "what the primary sends waits")
	require.Equal(t, "$1\r\n1\r\n", string(r.Do("GET", "first")))
	n, err := strconv.Atoi(r.Ask("GET", "n").Text)
	require.NoError(t, err)
	require.Less(t, n, 40)
	limit(unix.RLIM_INFINITY)
	harness.AwaitSame(t, p, r)
	awaitLog(t, replica, "what the primary sends is run again")
	want := digest(p)
	require.Equal(t, want, digest(r))
	replica.Kill()
	require.Equal(t, want, digest(harness.Dial(t, harness.StartIn(t, replica.Dir, "--appendonly", "yes").Addr)))
}
