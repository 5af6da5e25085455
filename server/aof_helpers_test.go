package server

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

	"github.com/stretchr/testify/require"

	"headgate/persistence"
	"headgate/server/config"
	"headgate/server/netpoll"
	"headgate/store"
)

var aofSeed = flag.Uint64("aof.seed", 0, "seed of the tests that lose power; 0 draws one")

// seedOf returns the seed of a randomised test, and prints it.
func seedOf(t *testing.T) uint64 {
	seed := *aofSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-aof.seed %d", seed)
	return seed
}

// aofServer is a server with an append-only file on a file system of its own, without sockets.
type aofServer struct {
	workerClient
	now    *int64       // ns
	exited *atomic.Bool // the process would have ended
}

// wallAtStart is a time at which the tests begin, in ns since the Unix epoch.
const wallAtStart = 1_700_000_000_000 * 1e6

// startAOF starts a server in /data of a file system, as after a crash or the first time.
func startAOF(fsys persistence.FS, policy config.FsyncPolicy, now *int64, change func(*config.Config)) (w *aofServer, err error) {
	if w, err = startAOFBy(fsys, policy, func() (wall, mono int64) { return *now, *now }, change); err == nil {
		w.now = now
	}
	return w, err
}

// startAOFBy is startAOF with a clock of its own.
func startAOFBy(fsys persistence.FS, policy config.FsyncPolicy, clock func() (wall, mono int64), change func(*config.Config)) (w *aofServer, err error) {
	cfg := unsaved()
	cfg.Dir, cfg.AppendOnly, cfg.AppendFsync = "/data", true, policy
	if change != nil {
		change(cfg)
	}
	s := newOrSpareServer(cfg)
	exited := new(atomic.Bool)
	s.clock, s.fs, s.exit = NewClock(clock), fsys, func(int) {
		exited.Store(true) // before the locks are free, which a process that ends never lets go of
		runtime.Goexit()
	}
	s.beginLoading()
	if err := s.load(); err != nil {
		spareServer(s)
		return nil, err
	}
	s.Lock()
	s.endLoading()
	s.Unlock()
	conn := &netpoll.Conn{Remote: "127.0.0.1:1", Local: "127.0.0.1:2", FD: 1}
	w = &aofServer{workerClient: workerClient{srv: s, worker: s.NewWorker(), conn: conn, ready: []*netpoll.Conn{conn}}, exited: exited}
	w.worker.Opened(conn)
	return w, nil
}

// kill ends the server as a crash would.
func (w *aofServer) kill() {
	w.srv.endRewriter()
	if w.srv.aof.log != nil {
		w.srv.aof.syncer.end()
	}
	spareServer(w.srv)
}

// spareServers are servers whose data are gone: tests that start thousands would spend their time on making them.
var spareServers []*Server

func newOrSpareServer(cfg *config.Config) *Server {
	live := config.NewLive(cfg)
	if len(spareServers) == 0 {
		return New(live, Options{})
	}
	s := spareServers[0]
	spareServers = spareServers[1:]
	s.config = live
	s.apply(cfg)
	s.follow(live)
	return s
}

func spareServer(s *Server) {
	s.keys.FlushAll()
	s.aof, s.effects, s.loading, s.saving, s.cronAt = appendOnly{}, effects{}, loading{}, saving{last: s.started, lastMono: s.startedMono}, cronTimes{}
	s.gate.refuse(gateDisk, "")
	s.gate.refuse(gateUnsaved, "")
	s.gate.refuse(gateLoading, "")
	s.clients = clientTable{byID: map[int64]*Client{}}
	s.unlogged = inMemory{}
	spareServers = append(spareServers, s)
}

// pass lets time pass for the server.
func (w *aofServer) pass(d time.Duration) {
	w.srv.Lock()
	defer w.srv.Unlock()
	*w.now += int64(d)
}

// ask sends input and reports the replies; ended tells that the process has ended without one.
func (w *aofServer) ask(input []byte) (reply []byte, ended bool) {
	ended = endsProcess(func() {
		w.conn.Out.Reset()
		n := copy(w.conn.In.Space(&w.pool), input)
		if n < len(input) {
			panic("no room for the input")
		}
		w.conn.In.Received(n)
		for more := true; more; more = w.conn.TakePostponed() {
			w.worker.Batch(w.ready)
		}
		w.conn.In.Compact(&w.pool)
		reply = bytes.Clone(w.conn.Out.Bytes())
	})
	return reply, ended || w.exited.Load()
}

// words is ask for one command, given as words.
func (w *aofServer) words(words ...string) string {
	reply, _ := w.ask(encodeCommand(words...))
	return string(reply)
}

// tick does background work, and reports whether the process has ended meanwhile.
func (w *aofServer) tick() (ended bool) {
	return endsProcess(func() {
		w.srv.cron()
		w.srv.CommitDue()
	}) || w.exited.Load()
}

// endsProcess runs f in a goroutine, which Server.die ends in place of the process, and reports whether it did.
func endsProcess(f func()) (ended bool) {
	done := make(chan bool)
	go func() {
		ended := true
		defer func() { done <- ended }()
		f()
		ended = false
	}()
	return <-done
}

// digest is the whole content of the databases, as text. Tests make hundreds of thousands of them.
func digest(s *Server) string {
	var all []string
	for i := range s.keys.Databases() {
		db := s.keys.DB(i)
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
func appendDigest(text []byte, s *Server, db *store.DB, name []byte) []byte {
	bulk := func(text, b []byte) []byte {
		text = append(strconv.AppendInt(text, int64(len(b)), 10), ':')
		return append(append(text, b...), ' ')
	}
	k := s.keys.Key(name)
	e, _ := db.Peek(k)
	text = append(strconv.AppendInt(text, int64(db.Index()), 10), ' ')
	text = append(strconv.AppendInt(bulk(text, name), e.ExpireAt(), 10), ' ')
	switch e.Kind() {
	case store.KindString:
		var digits integerText
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

// randomUnit returns what a client may send as one unit, over a few keys.
func randomUnit(rnd *rand.Rand) []byte {
	key := "k" + strconv.Itoa(rnd.IntN(6))
	switch rnd.IntN(10) {
	case 0:
		return encodeCommand("SET", key, randomValue(rnd), "PX", strconv.Itoa(1+rnd.IntN(100_000)))
	case 1:
		return encodeCommand("INCR", "n"+key)
	case 2:
		return encodeCommand("HSET", "h"+key, "f"+strconv.Itoa(rnd.IntN(4)), randomValue(rnd))
	case 3:
		return encodeCommand("ZADD", "z"+key, strconv.Itoa(rnd.IntN(1000)), "m"+strconv.Itoa(rnd.IntN(4)))
	case 4:
		return encodeCommand("DEL", key, "h"+key)
	case 5, 6:
		return encodeCommand("CL.THROTTLE", "t"+key, "10000", "10", "60")
	case 7:
		return slices.Concat(encodeCommand("MULTI"), encodeCommand("SET", "a", randomValue(rnd)), encodeCommand("INCR", "multi"),
			encodeCommand("SET", "b", randomValue(rnd)), encodeCommand("EXEC"))
	case 8:
		return encodeCommand("EVAL", "redis.call('SET',KEYS[1],ARGV[1]) redis.call('INCR',KEYS[2])", "2", "e"+key, "eval", randomValue(rnd))
	default:
		return encodeCommand("SET", key, randomValue(rnd))
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

// history is what a server's data were after each unit.
type history struct {
	last map[string]int // the last unit after which they were so
	n    int            // units so far
}

func newHistory(start string) *history { return &history{last: map[string]int{start: 0}} }

func (h *history) add(state string) {
	h.n++
	h.last[state] = h.n
}

// require checks that a state is one of the history, after unit number acknowledged or later.
func (h *history) require(t *testing.T, state string, acknowledged int, what string) {
	t.Helper()
	at, known := h.last[state]
	require.True(t, known, "%s: the data are as they never were", what)
	require.GreaterOrEqual(t, at, acknowledged, "%s: acknowledged writes are lost", what)
}

// errPowerOff is the error of everything that is done without power.
var errPowerOff = syscall.EIO

// How long tests wait for what another goroutine does, and how often they look.
const (
	waitLong = 20 * time.Second
	waitStep = time.Millisecond
)
