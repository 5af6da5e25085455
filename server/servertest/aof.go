package servertest

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
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

	"github.com/stretchr/testify/require"
)

// AOFServer is a server with an append-only file on a file system that the test gives it, with a client that needs no socket. A crash
// ends it by Kill; the next one starts from what the file system has kept.
type AOFServer struct {
	WorkerClient
	now    *int64       // ns
	exited *atomic.Bool // the process would have ended
}

// WallAtStart is a time at which the tests begin, in ns since the Unix epoch.
const WallAtStart = 1_700_000_000_000 * 1e6

// StartAOF starts a server in /data of a file system, as after a crash or the first time. Its time is what now points to, in ns. The error
// is that of loading.
func StartAOF(fsys persistence.FS, policy config.FsyncPolicy, now *int64, change func(*config.Config)) (w *AOFServer, err error) {
	if w, err = StartAOFBy(fsys, policy, func() (wall, mono int64) { return *now, *now }, change); err == nil {
		w.now = now
	}
	return w, err
}

// StartAOFBy is StartAOF with any clock; Pass is of no use then.
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
	if err := s.LoadAOF(); err != nil {
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

// StartUnlessEnded is StartAOF, with ErrPowerOff for a process that ends while it starts.
func StartUnlessEnded(disk *crashfs.FS, policy config.FsyncPolicy, now *int64) (w *AOFServer, err error) {
	if EndsProcess(func() { w, err = StartAOF(disk, policy, now, nil) }) {
		return nil, ErrPowerOff
	}
	return w, err
}

// Kill ends the server as a crash would.
func (w *AOFServer) Kill() {
	w.Srv.EndRewriter()
	if w.Srv.AOF.Log != nil {
		w.Srv.AOF.Syncer.End()
	}
	SpareServer(w.Srv)
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

// Feed is Ask for input of any length, by a server that does not end.
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

// Words is Ask for one command, given as words.
func (w *AOFServer) Words(words ...string) string {
	reply, _ := w.Ask(EncodeCommand(words...))
	return string(reply)
}

// Pass lets time pass for the server.
func (w *AOFServer) Pass(d time.Duration) {
	w.Srv.Lock()
	defer w.Srv.Unlock()
	*w.now += int64(d)
}

// Tick does background work, and reports whether the process has ended meanwhile.
func (w *AOFServer) Tick() (ended bool) {
	return EndsProcess(func() {
		w.Srv.Cron()
		w.Srv.CommitDue()
	}) || w.exited.Load()
}

// EndsProcess runs f in a goroutine, which Options.Exit of an AOFServer ends in place of the process, and reports whether it did.
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

// Fill has the disk be full, with no room that was kept before. The server knows of it.
func (w *AOFServer) Fill(disk *crashfs.FS) {
	disk.SetFault(NoSpace)
	w.Srv.Lock()
	w.Srv.Propagate(w.Srv.Keys.DB(0), "DEL", "none")
	w.Srv.Unlock()
	w.Tick() // fails to write that, and gives back what was reserved
}

// RefusedFull is what writes are answered with while the disk is full.
const RefusedFull = "-MISCONF Errors writing to the AOF file: No space left on device\r\n"

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

// Logging reports whether there is an append-only file that is written to.
func (w *AOFServer) Logging() bool {
	w.Srv.Lock()
	defer w.Srv.Unlock()
	return w.Srv.AOF.Open
}

// How long tests wait for what another goroutine does, and how often they look.
const (
	WaitLong = 20 * time.Second
	WaitStep = time.Millisecond
)

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

// SpareServers are servers whose data are gone, for StartAOF: tests that start thousands would spend their time on making them.
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

// SpareServer has a server forget its data and what it knew of files, and keeps it for the next StartAOF.
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
