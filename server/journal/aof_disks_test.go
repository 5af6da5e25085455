package journal_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"headgate/persistence/aof"
	"headgate/persistence/crashfs"
	"headgate/server/config"
	"headgate/server/exec"
	"headgate/server/journal"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

var badDisks = flag.Int("aof.disks", 2, "servers whose disk goes bad, for each way in which it does")

// badDisk is a way in which a disk goes bad.
type badDisk struct {
	name string
	// goBad has the disk go bad; room is how much it may still have.
	goBad func(disk *crashfs.FS, room int64)
	// certain tells that no call is answered that its change may stand.
	certain bool
}

// failsBy fails operations with an error.
func failsBy(err error, operations string) func(*crashfs.FS, int64) {
	return func(disk *crashfs.FS, _ int64) {
		disk.SetFault(func(op crashfs.Op) error {
			if strings.Contains(operations, op.Name) {
				return err
			}
			return nil
		})
	}
}

var badDisksList = []badDisk{
	{"full", func(disk *crashfs.FS, room int64) { disk.Limit(disk.Used()+room, syscall.ENOSPC) }, true},
	{"over quota", func(disk *crashfs.FS, room int64) { disk.Limit(disk.Used()+room, syscall.EDQUOT) }, true},
	{"read-only", failsBy(syscall.EROFS, "create append truncate mkdir rename remove write reserve"), false},
	{"broken", failsBy(syscall.EIO, "write reserve truncate"), false},
	{"full, without a promise", func(disk *crashfs.FS, room int64) {
		failsBy(errors.ErrUnsupported, "reserve")(disk, 0)
		disk.Limit(disk.Used()+room, syscall.ENOSPC)
	}, false},
}

// TestNoRefusedCallStays: whatever is wrong with the disk, a call that is answered MISCONF has changed nothing, neither in memory nor after a
// restart, unless the error says that it may; and what was acknowledged is there.
func TestNoRefusedCallStays(t *testing.T) {
	seed := servertest.SeedOf(t)
	for _, kind := range badDisksList {
		t.Run(kind.name, func(t *testing.T) {
			refused, unsure := 0, 0
			for i := range *badDisks {
				r := &diskRun{rnd: rand.New(rand.NewPCG(seed, uint64(i))), kind: kind, fills: i == 0}
				r.live(t)
				r.check(t, fmt.Sprintf("run %d", i))
				refused, unsure = refused+len(r.refused), unsure+len(r.unsure)
			}
			t.Logf("%d calls were refused, and %d answered that they may stand", refused, unsure)
			require.NotZero(t, refused)
			if kind.certain {
				require.Zero(t, unsure)
			}
		})
	}
}

// diskRun is a server whose disk goes bad, with what its calls were answered by their numbers.
type diskRun struct {
	rnd   *rand.Rand
	kind  badDisk
	fills bool // its disk has no room left and no rewrite makes any, whatever is drawn, so that something is refused
	disk  *crashfs.FS
	now   int64
	next  int

	done, refused, unsure []string
}

// live has a server run while its disk goes bad, perhaps mends, and is killed.
func (r *diskRun) live(t *testing.T) {
	r.disk, r.now = crashfs.New("/data"), int64(servertest.WallAtStart)
	policy := []config.FsyncPolicy{config.FsyncNo, config.FsyncEverysec, config.FsyncAlways}[r.rnd.IntN(3)]
	w, err := servertest.StartAOF(r.disk, policy, &r.now, nil)
	require.NoError(t, err)
	defer w.Kill()
	for range 1 + r.rnd.IntN(3) {
		r.batches(t, w, 1+r.rnd.IntN(20))
		room := aof.Headroom + r.rnd.Int64N(4<<20)
		if r.fills {
			room = 0
		}
		r.kind.goBad(r.disk, room)
		if r.rnd.IntN(2) == 0 || r.fills { // what was kept before is used up at the latest now
			r.pad(w, 20<<20)
		}
		r.batches(t, w, 10+r.rnd.IntN(20))
		if r.rnd.IntN(2) == 0 {
			r.disk.SetFault(nil)
			r.disk.Limit(0, nil)
			require.False(t, w.Tick())
		}
		r.compare(t, w, "in memory")
	}
}

// pad writes to the log what is of no interest.
func (r *diskRun) pad(w *servertest.AOFServer, n int) {
	const length = 512 << 10
	pad := servertest.EncodeCommand("SET", "pad", strings.Repeat("p", length))
	for ; n > 0; n -= length {
		w.Feed(pad)
	}
}

// batches sends pipelines of calls.
func (r *diskRun) batches(t *testing.T, w *servertest.AOFServer, n int) {
	for range n {
		if r.rnd.IntN(10) == 0 && !r.fills {
			w.Words("BGREWRITEAOF")
		}
		var input []byte
		var replies []int // of each call
		for range 1 + r.rnd.IntN(exec.BatchCommands+10) {
			call, n := r.call("#" + strconv.Itoa(r.next+len(replies)))
			input, replies = append(input, call...), append(replies, n)
		}
		answers := w.Feed(input)
		for _, n := range replies {
			var all string
			for range n {
				var answer string
				answer, answers = nextReply(answers)
				all += answer
			}
			r.sort(t, strconv.Itoa(r.next), all)
			r.next++
		}
		require.Empty(t, answers)
		w.Pass(time.Second)
		require.False(t, w.Tick())
	}
}

// call returns a call, or a transaction, that pushes a number to a list, and how many replies it has.
func (r *diskRun) call(number string) (input []byte, replies int) {
	pad := strings.Repeat("p", r.rnd.IntN(20_000))
	switch r.rnd.IntN(5) {
	case 0:
		return servertest.EncodeCommand("EVAL", "redis.call('SET','pad',ARGV[2]) return redis.call('RPUSH',KEYS[1],ARGV[1])", "1", "list", number, pad), 1
	case 1:
		return slices.Concat(servertest.EncodeCommand("MULTI"), servertest.EncodeCommand("SET", "pad", pad), servertest.EncodeCommand("RPUSH", "list", number), servertest.EncodeCommand("EXEC")), 4
	default:
		return servertest.EncodeCommand("RPUSH", "list", number, "pad:"+pad), 1
	}
}

// sort takes down what a call was answered.
func (r *diskRun) sort(t *testing.T, number, answer string) {
	switch {
	case strings.Contains(answer, journal.MayStand):
		r.unsure = append(r.unsure, number)
	case strings.Contains(answer, "MISCONF"):
		r.refused = append(r.refused, number)
	default:
		require.NotContains(t, answer, "-", number)
		r.done = append(r.done, number)
	}
}

// check has another server load what the killed one has left, on a disk that is well again.
func (r *diskRun) check(t *testing.T, what string) {
	left := r.disk.Clone()
	left.Limit(0, nil)
	w, err := servertest.StartAOF(left, config.FsyncAlways, &r.now, nil)
	require.NoError(t, err, what)
	defer w.Kill()
	r.compare(t, w, what)
}

// compare requires what was acknowledged to be there, and nothing that was refused.
func (r *diskRun) compare(t *testing.T, w *servertest.AOFServer, what string) {
	there := map[string]bool{}
	for _, word := range strings.Split(string(w.Feed(servertest.EncodeCommand("LRANGE", "list", "0", "-1"))), "\r\n") {
		there[word] = true
	}
	for _, number := range r.done {
		require.True(t, there["#"+number], "%s: call %s was acknowledged", what, number)
	}
	for _, number := range r.refused {
		require.False(t, there["#"+number], "%s: call %s was refused", what, number)
	}
}

// nextReply cuts off a reply.
func nextReply(b []byte) (reply string, rest []byte) {
	line, rest, _ := bytes.Cut(b, []byte("\r\n"))
	reply = string(line) + "\r\n"
	n, _ := strconv.Atoi(string(line[1:]))
	switch line[0] {
	case '*':
		for range n {
			var part string
			part, rest = nextReply(rest)
			reply += part
		}
	case '$':
		reply, rest = reply+string(rest[:n+2]), rest[n+2:]
	}
	return reply, rest
}
