package crash

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"headgate/tests/internal/harness"
)

var fullDisks = flag.Int("crash.disks", 1, "servers whose disk gets full, for each way in which it does")

const (
	diskWriters  = 4
	longestBatch = 100     // calls in a pipeline
	longestPad   = 8 << 10 // bytes that a call writes beside its number
	enoughErrors = 300     // refused calls of a writer until it ends
	diskLife     = time.Minute
	smallestDisk = 6 << 20 // of the tmpfs that gets full
	largestDisk  = 28 << 20
	keptAtStart  = 21 << 20 // what a server has kept for it before a limit on its files is set
)

// TestFullDisk: however a disk gets full, and whenever the server is killed then, no call that was refused is there after a restart, and none
// that was acknowledged is gone; no call is answered that its change may stand.
func TestFullDisk(t *testing.T) {
	drawn := *seed
	if drawn == 0 {
		drawn = rand.Uint64()
	}
	t.Logf("-crash.seed %d", drawn)
	for i, kind := range []struct {
		name string
		fill func(t *testing.T, dir string, rnd *rand.Rand) (full func(*harness.Server))
	}{
		{"tmpfs", smallTmpfs},
		{"ulimit -f", fileLimit},
	} {
		t.Run(kind.name, func(t *testing.T) {
			for run := range *fullDisks {
				t.Run(strconv.Itoa(run), func(t *testing.T) {
					rnd, dir := rand.New(rand.NewPCG(drawn, uint64(run*10+i))), t.TempDir()
					fillDisk(t, dir, rnd, kind.fill(t, dir, rnd))
				})
			}
		})
	}
}

// smallTmpfs mounts a tmpfs on a directory, which is full by and by.
func smallTmpfs(t *testing.T, dir string, rnd *rand.Rand) (full func(*harness.Server)) {
	size := smallestDisk + rnd.Int64N(largestDisk-smallestDisk)
	if err := unix.Mount("headgate-test", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		t.Skipf("no file system can be mounted here: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, 0)) })
	return func(*harness.Server) {}
}

// fileLimit has the files of a server that runs get no longer than they may, by and by.
func fileLimit(t *testing.T, _ string, rnd *rand.Rand) (full func(*harness.Server)) {
	size := uint64(keptAtStart + rnd.Int64N(largestDisk-smallestDisk))
	return func(s *harness.Server) {
		require.NoError(t, unix.Prlimit(s.PID(), unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: size, Max: size}, nil))
	}
}

// answers are the numbers of a writer's calls by what they were answered.
type answers struct{ acknowledged, refused []string }

// fillDisk has clients write until the disk is full, or the server is killed, and looks at what the next server finds.
func fillDisk(t *testing.T, dir string, rnd *rand.Rand, full func(*harness.Server)) {
	policy := []string{"always", "everysec", "no"}[rnd.IntN(3)]
	flags := []string{"--dir", dir, "--appendonly", "yes", "--appendfsync", policy}
	s := harness.Start(t, flags...)
	full(s)
	var all sync.WaitGroup
	var got [diskWriters]answers
	for i := range got {
		c, err := harness.TryDial(t, s.Addr)
		require.NoError(t, err)
		own := rand.New(rand.NewPCG(rnd.Uint64(), rnd.Uint64()))
		all.Go(func() { got[i] = fillOn(t, c, fmt.Sprint(i), own) })
	}
	if rnd.IntN(4) == 0 {
		time.Sleep(time.Duration(rnd.Int64N(int64(longestLife)))) // when it happens is what is random
		s.Kill()
	}
	all.Wait()
	s.Kill()

	c := harness.Dial(t, harness.Start(t, flags...).Addr)
	list := c.Ask("LRANGE", "list", "0", "-1")
	for deadline := time.Now().Add(diskLife); list.Kind == '-' && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		list = c.Ask("LRANGE", "list", "0", "-1") // a PING is refused as soon as the disk is known to be full, and be it while data are loaded
	}
	require.EqualValues(t, '*', list.Kind, list.Wire())
	there := map[string]bool{}
	for _, v := range list.Items {
		there[v.Text] = true
	}
	acknowledged, refused := 0, 0
	for _, a := range got {
		acknowledged, refused = acknowledged+len(a.acknowledged), refused+len(a.refused)
		for _, number := range a.acknowledged {
			require.True(t, there[number], "%s was acknowledged", number)
		}
		for _, number := range a.refused {
			require.False(t, there[number], "%s was refused", number)
		}
	}
	t.Logf("appendfsync %s: %d calls were acknowledged, %d refused", policy, acknowledged, refused)
}

// fillOn sends pipelines of calls, each with a number of its own, until enough are refused or the server is gone.
func fillOn(t *testing.T, c *harness.Client, name string, rnd *rand.Rand) (a answers) {
	defer c.Close()
	deadline := time.Now().Add(diskLife)
	for n := 0; len(a.refused) < enoughErrors && time.Now().Before(deadline); {
		var batch []byte
		first := n
		for range 1 + rnd.IntN(longestBatch) {
			pad := strings.Repeat("p", rnd.IntN(longestPad))
			batch = append(batch, harness.Command("EVAL", "redis.call('SET', KEYS[2], ARGV[2]) return redis.call('RPUSH', KEYS[1], ARGV[1])",
				"2", "list", "pad:"+name, name+":"+strconv.Itoa(n), pad)...)
			n++
		}
		if c.Send(batch) != nil {
			return a
		}
		for ; first < n; first++ {
			reply, err := c.Read(harness.ReplyTimeout)
			if err != nil {
				return a
			}
			number := name + ":" + strconv.Itoa(first)
			switch {
			case reply.Kind == ':':
				a.acknowledged = append(a.acknowledged, number)
			case strings.HasPrefix(reply.Text, "MISCONF") && !strings.Contains(reply.Text, "may stand"):
				a.refused = append(a.refused, number)
			default:
				t.Errorf("%s was answered %s", number, reply.Wire())
			}
		}
	}
	return a
}
