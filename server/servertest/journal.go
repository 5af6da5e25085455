package servertest

import (
	"bytes"
	"flag"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"headgate/persistence"
	"headgate/persistence/crashfs"
	"headgate/server"
	"headgate/server/command"
	"headgate/server/config"
	"headgate/server/exec"
	"headgate/server/journal"
	"headgate/server/limits"
	"headgate/server/netpoll"
	"headgate/store"

	"github.com/stretchr/testify/require"
)

// Feed is ask for input of any length, without its end.
func (w *AOFServer) Feed(input []byte) []byte {
	w.Conn.Out.Reset()
	for len(input) > 0 {
		n := copy(w.Conn.In.Space(&w.Pool), input)
		w.Conn.In.Received(n)
		input = input[n:]
	}
	for more := true; more; more = w.Conn.TakePostponed() {
		w.Worker.Batch(w.Ready)
	}
	w.Conn.In.Compact(&w.Pool)
	return bytes.Clone(w.Conn.Out.Bytes())
}

var aofSeed = flag.Uint64("aof.seed", 0, "seed of the tests that lose power; 0 draws one")

// SeedOf returns the seed of a randomised test, and prints it.
func SeedOf(t *testing.T) uint64 {
	seed := *aofSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-aof.seed %d", seed)
	return seed
}

// AOFServer is a server with an append-only file on a file system of its own, without sockets.
type AOFServer struct {
	WorkerClient
	now    *int64       // ns
	exited *atomic.Bool // the process would have ended
}

// WallAtStart is a time at which the tests begin, in ns since the Unix epoch.
const WallAtStart = 1_700_000_000_000 * 1e6

// StartAOF starts a server in /data of a file system, as after a crash or the first time.
func StartAOF(fsys persistence.FS, policy config.FsyncPolicy, now *int64, change func(*config.Config)) (w *AOFServer, err error) {
	if w, err = StartAOFBy(fsys, policy, func() (wall, mono int64) { return *now, *now }, change); err == nil {
		w.now = now
	}
	return w, err
}

// StartAOFBy is startAOF with a clock of its own.
func StartAOFBy(fsys persistence.FS, policy config.FsyncPolicy, clock func() (wall, mono int64), change func(*config.Config)) (w *AOFServer, err error) {
	cfg := Unsaved()
	cfg.Dir, cfg.AppendOnly, cfg.AppendFsync = "/data", true, policy
	if change != nil {
		change(cfg)
	}
	s := newOrSpareServer(cfg)
	exited := new(atomic.Bool)
	s.Clock, s.FS, s.Exit = command.NewClock(clock), fsys, func(int) {
		exited.Store(true) // before the locks are free, which a process that ends never lets go of
		runtime.Goexit()
	}
	s.BeginLoading()
	if err := s.LoadFiles(); err != nil {
		SpareServer(s)
		return nil, err
	}
	s.Lock()
	s.EndLoading()
	s.Unlock()
	conn := &netpoll.Conn{Remote: "127.0.0.1:1", Local: "127.0.0.1:2", FD: 1}
	w = &AOFServer{WorkerClient: WorkerClient{Srv: s, Worker: s.NewWorker(), Conn: conn, Ready: []*netpoll.Conn{conn}}, exited: exited}
	w.Worker.Opened(conn)
	return w, nil
}

// Kill ends the server as a crash would.
func (w *AOFServer) Kill() {
	w.Srv.EndRewriter()
	if w.Srv.AOF.Log != nil {
		w.Srv.AOF.Syncer.End()
	}
	SpareServer(w.Srv)
}

// SpareServers are servers whose data are gone: tests that start thousands would spend their time on making them.
var SpareServers []*server.Server

func newOrSpareServer(cfg *config.Config) *server.Server {
	live := config.NewLive(cfg)
	if len(SpareServers) == 0 {
		return server.New(live, server.Options{})
	}
	s := SpareServers[0]
	SpareServers = SpareServers[1:]
	s.Config = live
	s.Apply(cfg)
	s.Follow(live)
	return s
}

func SpareServer(s *server.Server) {
	s.Keys.FlushAll()
	s.AOF, s.Effects, s.Loading, s.Saving, s.CronAt = journal.AppendOnly{}, command.Effects{}, journal.Loading{}, journal.Saving{Last: s.Started, LastMono: s.StartedMono}, exec.CronTimes{}
	s.Gate.Refuse(command.GateDisk, "")
	s.Gate.Refuse(command.GateUnsaved, "")
	s.Gate.Refuse(command.GateLoading, "")
	s.Clients = command.ClientTable{ByID: map[int64]*command.Client{}}
	s.Unlogged = limits.InMemory{}
	SpareServers = append(SpareServers, s)
}

// Pass lets time pass for the server.
func (w *AOFServer) Pass(d time.Duration) {
	w.Srv.Lock()
	defer w.Srv.Unlock()
	*w.now += int64(d)
}

// Ask sends input and reports the replies; ended tells that the process has ended without one.
func (w *AOFServer) Ask(input []byte) (reply []byte, ended bool) {
	ended = EndsProcess(func() {
		w.Conn.Out.Reset()
		n := copy(w.Conn.In.Space(&w.Pool), input)
		if n < len(input) {
			panic("no room for the input")
		}
		w.Conn.In.Received(n)
		for more := true; more; more = w.Conn.TakePostponed() {
			w.Worker.Batch(w.Ready)
		}
		w.Conn.In.Compact(&w.Pool)
		reply = bytes.Clone(w.Conn.Out.Bytes())
	})
	return reply, ended || w.exited.Load()
}

// Words is ask for one command, given as words.
func (w *AOFServer) Words(words ...string) string {
	reply, _ := w.Ask(EncodeCommand(words...))
	return string(reply)
}

// Tick does background work, and reports whether the process has ended meanwhile.
func (w *AOFServer) Tick() (ended bool) {
	return EndsProcess(func() {
		w.Srv.Cron()
		w.Srv.CommitDue()
	}) || w.exited.Load()
}

// EndsProcess runs f in a goroutine, which Server.die ends in place of the process, and reports whether it did.
func EndsProcess(f func()) (ended bool) {
	done := make(chan bool)
	go func() {
		ended := true
		defer func() { done <- ended }()
		f()
		ended = false
	}()
	return <-done
}

// Digest is the whole content of the databases, as text. Tests make hundreds of thousands of them.
func Digest(s *server.Server) string {
	var all []string
	for i := range s.Keys.Databases() {
		db := s.Keys.DB(i)
		var names [][]byte
		db.Each(0, func(e *store.Entry) bool {
			names = append(names, bytes.Clone(e.Name()))
			return true
		})
		for _, name := range names {
			all = append(all, string(appendDigest(nil, s, db, name)))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// appendDigest appends what a key holds. Names and texts stand behind their lengths.
func appendDigest(text []byte, s *server.Server, db *store.DB, name []byte) []byte {
	bulk := func(text, b []byte) []byte {
		text = append(strconv.AppendInt(text, int64(len(b)), 10), ':')
		return append(append(text, b...), ' ')
	}
	k := s.Keys.Key(name)
	e, _ := db.Peek(k)
	text = append(strconv.AppendInt(text, int64(db.Index()), 10), ' ')
	text = append(strconv.AppendInt(bulk(text, name), e.ExpireAt(), 10), ' ')
	switch e.Kind() {
	case store.KindString:
		var digits command.IntegerText
		text = bulk(text, e.Bytes(digits[:]))
	case store.KindHash:
		h, _, _ := db.Hash(k, 0)
		var fields []string
		h.Each(func(field, v []byte) bool { fields = append(fields, string(bulk(bulk(nil, field), v))); return true })
		slices.Sort(fields)
		text = append(text, strings.Join(fields, "")...)
	case store.KindZSet:
		z, _, _ := db.ZSet(k, 0)
		z.Range(0, z.Len()-1, false, func(m []byte, score float64) bool {
			text = append(strconv.AppendFloat(bulk(text, m), score, 'g', -1, 64), ' ')
			return true
		})
	}
	return text
}

// RandomUnit returns what a client may send as one unit, over a few keys.
func RandomUnit(rnd *rand.Rand) []byte {
	key := "k" + strconv.Itoa(rnd.IntN(6))
	switch rnd.IntN(10) {
	case 0:
		return EncodeCommand("SET", key, randomValue(rnd), "PX", strconv.Itoa(1+rnd.IntN(100_000)))
	case 1:
		return EncodeCommand("INCR", "n"+key)
	case 2:
		return EncodeCommand("HSET", "h"+key, "f"+strconv.Itoa(rnd.IntN(4)), randomValue(rnd))
	case 3:
		return EncodeCommand("ZADD", "z"+key, strconv.Itoa(rnd.IntN(1000)), "m"+strconv.Itoa(rnd.IntN(4)))
	case 4:
		return EncodeCommand("DEL", key, "h"+key)
	case 5, 6:
		return EncodeCommand("CL.THROTTLE", "t"+key, "10000", "10", "60")
	case 7:
		return slices.Concat(EncodeCommand("MULTI"), EncodeCommand("SET", "a", randomValue(rnd)), EncodeCommand("INCR", "multi"),
			EncodeCommand("SET", "b", randomValue(rnd)), EncodeCommand("EXEC"))
	case 8:
		return EncodeCommand("EVAL", "redis.call('SET',KEYS[1],ARGV[1]) redis.call('INCR',KEYS[2])", "2", "e"+key, "eval", randomValue(rnd))
	default:
		return EncodeCommand("SET", key, randomValue(rnd))
	}
}

// randomValue returns text that may be long, and may have zero bytes.
func randomValue(rnd *rand.Rand) string {
	b := make([]byte, rnd.IntN(40))
	if rnd.IntN(8) == 0 {
		b = make([]byte, rnd.IntN(3000))
	}
	for i := range b {
		if rnd.IntN(10) > 0 {
			b[i] = byte(rnd.IntN(256))
		}
	}
	return string(b)
}

// History is what a server's data were after each unit.
type History struct {
	last map[string]int // the last unit after which they were so
	N    int            // units so far
}

func NewHistory(start string) *History { return &History{last: map[string]int{start: 0}} }

func (h *History) Add(state string) {
	h.N++
	h.last[state] = h.N
}

// Require checks that a state is one of the history, after unit number acknowledged or later.
func (h *History) Require(t *testing.T, state string, acknowledged int, what string) {
	t.Helper()
	at, known := h.last[state]
	require.True(t, known, "%s: the data are as they never were", what)
	require.GreaterOrEqual(t, at, acknowledged, "%s: acknowledged writes are lost", what)
}

// ErrPowerOff is the error of everything that is done without power.
var ErrPowerOff = syscall.EIO

// How long tests wait for what another goroutine does, and how often they look.
const (
	WaitLong = 20 * time.Second
	WaitStep = time.Millisecond
)

// StartUnlessEnded is startAOF, with an error for a process that ends.
func StartUnlessEnded(disk *crashfs.FS, policy config.FsyncPolicy, now *int64) (w *AOFServer, err error) {
	if EndsProcess(func() { w, err = StartAOF(disk, policy, now, nil) }) {
		return nil, ErrPowerOff
	}
	return w, err
}

// Live sends units until the power is off, and returns the number of the last one that must not be lost.
func (w *AOFServer) Live(rnd *rand.Rand, past *History, policy config.FsyncPolicy) (kept int) {
	for range 200 {
		*w.now += rnd.Int64N(50) * 1e6
		reply, ended := w.Ask(RandomUnit(rnd))
		past.Add(Digest(w.Srv))
		switch {
		case ended || len(reply) == 0 || w.Srv.Gate.Has(command.GateDisk):
			return kept
		case policy == config.FsyncAlways:
			kept = past.N
		case rnd.IntN(4) == 0:
			if w.Srv.AOF.Log.Sync() != nil {
				return kept
			}
			kept = past.N
		}
	}
	return kept
}

// Rewriting reports whether a rewrite is under way or asked for.
func (w *AOFServer) Rewriting() bool {
	w.Srv.Lock()
	defer w.Srv.Unlock()
	k := &w.Srv.AOF.Rewriter
	if !k.Running || k.Err != nil {
		return false
	}
	select {
	case <-k.Over: // the process has ended, as far as the rewriter knows
		return false
	default:
		return k.Asked || k.Rewriting
	}
}

// Settle does background work until the log is as the configuration asks for, and no rewrite is under way or asked for.
func (w *AOFServer) Settle(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(WaitLong); ; time.Sleep(WaitStep / 10) {
		w.Pass(time.Duration(exec.SamplePeriod))
		require.False(t, w.Tick())
		w.Srv.Lock()
		k := &w.Srv.AOF.Rewriter
		settled := !k.Asked && !k.Rewriting && w.Srv.AOF.Open == w.Srv.Config.Get().AppendOnly
		w.Srv.Unlock()
		if settled {
			return
		}
		require.True(t, time.Now().Before(deadline), "the log is not as it should be after %v", WaitLong)
	}
}
