package replication

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strconv"
	"strings"
	"time"

	"headgate/server/command"
	"headgate/server/config"
	"headgate/server/exec"
	"headgate/server/journal"
)

const (
	firstPause   = 10 * time.Millisecond // from the end of a link over which the stream came to the next
	retryPause   = time.Second           // from one attempt that has failed to the next
	syncPauseMax = time.Minute           // the same after snapshots that could not be used, or from a server that is this one: twice as long each time, up to this
	beatPeriod   = time.Second           // between two acknowledgements
	holdPause    = time.Millisecond      // between two looks whether a primary's commands may be run again
	diskPause    = time.Second           // the same while the append-only file has no room
	dialTimeout  = 10 * time.Second      // to connect, or less if repl-timeout is
)

// Errors of clients' commands while a primary is followed, in Redis's words.
const (
	ErrReadOnly   = "READONLY You can't write against a read only replica."
	ErrMasterDown = "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."
	errUnblocked  = "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)"
)

// State is how far a link to a primary has come.
type State uint8

// The states.
const (
	StateNone       State = iota // no primary is followed
	StateConnect                 // the next attempt is awaited
	StateConnecting              // a connection is being made
	StateHandshake               // both sides introduce themselves
	StateSync                    // a snapshot comes
	StateConnected               // the stream comes
)

// String is the state in the words of ROLE.
func (s State) String() string {
	return [...]string{"", "connect", "connecting", "handshake", "sync", "connected"}[s]
}

// History names the changes that the data have come about by, so that a server which has some of them can be sent the rest. The zero value
// of the second name is none.
type History struct {
	ID      string // of the changes up to Offset, and of those to come
	Offset  int64  // bytes of them
	ID2     string // what the same changes were called below Offset2; "" if they never had another name
	Offset2 int64
}

// rename has the changes to come have another name.
func (h *History) rename(id string) { h.ID2, h.Offset2, h.ID = h.ID, h.Offset+1, id }

// Address is where a primary listens.
type Address struct {
	Host string
	Port int
}

// String is the address as it is dialled.
func (a Address) String() string { return net.JoinHostPort(a.Host, strconv.Itoa(a.Port)) }

// Replica is this server as one that may follow a primary. The executor's lock guards its fields.
type Replica struct {
	*command.Core
	exec    *exec.Executor
	journal *journal.Journal

	// TLS makes the configuration of connections to a primary, for tls-replication.
	TLS func(*config.Config) (*tls.Config, error)

	ready     bool           // data have been loaded, so that a primary can be followed
	follow    *following     // nil: no primary is followed
	follower  *exec.Follower // runs what the primary sends; nil: nothing comes
	link      *link          // that follower is of
	history   History
	above     []string // the lineage of the primary that is followed, or was when a link to it came about last
	synced    bool     // the changes of the primary that is followed have come
	resumes   bool     // the data are what history says, and its changes are those of a primary
	db        int      // that the stream goes on for
	status    linkStatus
	failover  failover
	lastError string // why the last link to the primary has ended or has not come about; "": none has, or there is one now

	Primary *Primary // this server as one that others follow

	// Counters since the start.
	FullSyncs, PartialSyncs, Failed uint64 // snapshots taken into use, streams gone on with, commands of primaries answered with an error
	failedTold                      time.Time
}

// linkStatus is what is told of a link.
type linkStatus struct {
	state         State
	conn          *Conn     // nil: there is none
	total, before int64     // bytes of the snapshot that comes, -1 if that is not known; bytes that had come before it
	down          time.Time // since when nothing has been followed; zero: it is, or never was
}

// following is the following of one primary, from the command that asks for it to the one that ends it.
type following struct {
	Address
	ctx    context.Context
	cancel context.CancelFunc
	over   chan struct{} // closed when its goroutine has ended
	before chan struct{} // the same of the one before, or nil
	told   logThrottle   // guarded by the executor's lock
}

// New returns a server that follows nobody.
func New(exec *exec.Executor, journal *journal.Journal) *Replica {
	r := &Replica{Core: exec.Core, exec: exec, journal: journal, history: History{ID: exec.RunID}}
	r.Primary = newPrimary(r)
	journal.Position, journal.Resume = r.position, r.resume
	return r
}

// Begin has the server be a replica if the configuration says so, and obey changes of it. Nobody is followed before Ready.
func (r *Replica) Begin(live *config.Live) {
	cfg := live.Get()
	if cfg.ReplicaOf != (config.Address{}) {
		r.begin(Address(cfg.ReplicaOf), cfg)
	}
	live.OnChange(func(_, cfg *config.Config) error { r.openGates(cfg); return nil }, "replica-read-only", "replica-serve-stale-data")
	live.OnChange(func(_, cfg *config.Config) error { r.retime(cfg); return nil }, "repl-timeout", "repl-ping-replica-period")
	r.Primary.Begin(live)
}

// Ready tells that the data have been loaded. The caller does not hold the executor's lock.
func (r *Replica) Ready() {
	r.Lock()
	defer r.Unlock()
	r.ready = true
	if r.follow != nil {
		go r.keepFollowing(r.follow)
	}
}

// Follow has the server follow a primary, in the place of another if there is one. Until its data have come the old ones stay. The caller
// holds the executor's lock.
func (r *Replica) Follow(primary Address) {
	cfg := r.Config.Get()
	r.begin(primary, cfg)
	r.Config.SetReplicaOf(config.Address(primary))
	r.unblockAll()
	r.Logger.Info("this server becomes a replica", "primary", primary.String())
	if r.ready {
		go r.keepFollowing(r.follow)
	}
}

// begin is Follow, but for what nobody waits for yet at the start.
func (r *Replica) begin(primary Address, cfg *config.Config) {
	f := &following{Address: primary, over: make(chan struct{}), told: logThrottle{}}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	if r.follow == nil {
		r.resumes = r.Primary.stepDown() // what this server has changed by itself a primary may know that was its replica, if it was counted
		r.synced = false
	} else {
		f.before = r.follow.over
		r.end()
	}
	r.follow, r.status, r.lastError = f, linkStatus{state: StateConnect}, ""
	r.openGates(cfg)
	r.Primary.checkReplicas(cfg)
}

// Promote has the server follow nobody any more, and go on with the data that it has. The caller holds the executor's lock.
func (r *Replica) Promote() {
	if r.follow == nil {
		return
	}
	r.end()
	r.follow, r.status, r.lastError, r.above = nil, linkStatus{}, "", nil
	if r.resumes || r.synced || r.Primary.backlog == nil {
		r.history.rename(command.RandomHex(idLength / 2))
	} else { // the data are this server's own, and something was changed that is in no stream: nobody can go on from there
		r.history = History{ID: command.RandomHex(idLength / 2), Offset: r.history.Offset}
		r.Primary.forgetStream()
	}
	r.Primary.stepUp()
	r.openGates(r.Config.Get())
	r.Config.SetReplicaOf(config.Address{})
	r.Logger.Info("no longer following a primary: this server is a primary now", "offset", r.history.Offset)
	r.exec.Soon() // keys past their time go again
}

// end ends the following of the present primary. The caller holds the executor's lock.
func (r *Replica) end() {
	r.follow.cancel()
	r.detach()
	if !r.ready {
		close(r.follow.over)
	}
}

// Close ends the following, and returns when that is done. The caller does not hold the executor's lock.
func (r *Replica) Close() {
	r.Lock()
	f := r.follow
	if f != nil {
		f.cancel()
		r.detach()
	}
	ready := r.ready
	r.Unlock()
	if f != nil && ready {
		<-f.over
	}
}

// detach notes how far the stream has been run, and runs no more of it. The caller holds the executor's lock.
func (r *Replica) detach() {
	if r.follower == nil {
		return
	}
	r.history.Offset, r.db = r.follower.Applied(), r.follower.Client.DB.Index()
	r.follower.Close()
	r.follower, r.link = nil, nil
	r.status = linkStatus{state: StateConnect, down: time.Now()}
}

// openGates has clients refused what they may not do while a primary is followed. The caller holds the executor's lock, or nothing runs yet.
func (r *Replica) openGates(cfg *config.Config) {
	follows := r.follow != nil
	readOnly, stale := "", ""
	if follows && cfg.ReplicaReadOnly {
		readOnly = ErrReadOnly
	}
	if follows && !cfg.ReplicaServeStaleData && r.status.state != StateConnected {
		stale = ErrMasterDown
	}
	r.Gate.Set(command.GateFollows, follows)
	r.Gate.Refuse(command.GateReadOnly, readOnly)
	r.Gate.Refuse(command.GateStale, stale)
	r.Gate.Set(command.GateOwnWrites, follows && readOnly == "")
	r.Gate.Set(command.GateUnsynced, follows && !(r.resumes && r.synced))
	r.Gate.Set(command.GateMoved, follows && cfg.ClusterEmulated)
	r.Keys.KeepExpired(readOnly != "") // clients that write have to remove what has expired before they can add it
}

// retime has the link that is there be given up after repl-timeout. The caller holds the executor's lock.
func (r *Replica) retime(cfg *config.Config) {
	if cfg.PingsTooSeldom() {
		r.Logger.Warn("repl-timeout: "+config.TooSeldom, "repl-timeout", cfg.ReplTimeout.String(), "repl-ping-replica-period", cfg.ReplPingReplicaPeriod.String())
	}
	if r.status.conn != nil {
		r.status.conn.SetTimeout(cfg.ReplTimeout)
	}
}

// unblockAll ends the waits of clients for what they could not be given any more. The caller holds the executor's lock.
func (r *Replica) unblockAll() {
	now := r.Clock.Read()
	for _, cl := range r.Clients.Sorted() {
		if cl.Blocked != nil {
			r.exec.GiveUp(cl, errUnblocked, now)
			cl.Conn.CloseAfterReply()
		}
	}
}

// Refused notes an error that a primary's command was answered with: what it was to change differs from now on. It is called with the
// executor's lock held.
func (r *Replica) Refused(c *command.Ctx, text string) {
	r.Failed++
	if time.Since(r.failedTold) < repeatLog {
		return
	}
	r.failedTold = time.Now()
	if c.Cmd == nil {
		text = "there is no such command" // and not what it was called with, which may be anybody's secret
	}
	r.Logger.Error("a command from the primary failed here, so the data may differ from the primary's; to load them again, run REPLICAOF NO ONE and then REPLICAOF with the primary",
		"command", shown(string(c.Args[0])), "err", text, "failed", r.Failed)
}

// update changes what is known of a primary that is followed. It reports false if that is over.
func (r *Replica) update(f *following, change func()) bool {
	r.Lock()
	defer r.Unlock()
	if r.follow != f || f.ctx.Err() != nil {
		return false
	}
	change()
	r.openGates(r.Config.Get())
	return true
}

// keepFollowing makes one link to the primary after the other, until nobody wants that any more.
func (r *Replica) keepFollowing(f *following) {
	defer close(f.over)
	if f.before != nil {
		<-f.before
	}
	unusable := 0 // attempts in a row that have shown what will hardly be better soon
	for {
		l := &link{replica: r, follow: f}
		err := l.run()
		if f.ctx.Err() != nil || r.IsStopping() {
			return
		}
		pause := retryPause
		switch {
		case errors.As(err, new(*snapshotError)), errors.Is(err, errSelf):
			pause = min(retryPause<<min(unusable, 16), syncPauseMax)
			unusable++
		case l.linked:
			unusable, pause = 0, firstPause
		}
		if !r.update(f, func() {
			if l.linked && time.Since(l.since) >= steady {
				clear(f.told)
			}
			r.failed(err, pause)
			if r.failover.over && !errors.Is(err, errRejected) {
				err = errNoAnswer
			}
			if errors.Is(err, errRejected) || errors.Is(err, errNoAnswer) {
				r.abortFailover(err)
			}
		}) {
			return
		}
		select {
		case <-f.ctx.Done():
			return
		case <-r.Stopping():
			return
		case <-time.After(pause):
		}
	}
}

// failed notes why a link has ended or has not come about. The caller holds the executor's lock.
func (r *Replica) failed(err error, pause time.Duration) {
	r.detach()
	down := r.status.down
	r.status = linkStatus{state: StateConnect, down: down}
	if down.IsZero() {
		r.status.down = time.Now()
	}
	r.lastError = command.OneLine(err.Error())
	if !r.follow.told.again(err, time.Now()) {
		return
	}
	r.Logger.Warn("replication from the primary failed: the data stay as they are, and the server will try again", "primary", r.follow.String(), "again", pause.String(), "err", err)
}

// Status is what is told of the primary that is followed, and of the changes that the data have come about by.
type Status struct {
	History
	Following  bool
	Primary    Address
	State      State
	Received   int64         // offset behind what has come
	Silence    time.Duration // since something last came; below 0: there is no link
	Down       time.Duration // since when there has been none; below 0: there is one, or never was
	Total      int64         // bytes of the snapshot that comes, 0 if that is not known
	Read       int64         // bytes of it that have come
	Resumes    bool          // the data are some of the primary's
	Failover   string        // how far a failover to a replica has come, as INFO shows it
	LastError  string        // why the last link to this primary has ended or has not come about; "": none has, or there is one now
	FullSyncs  uint64
	PartSyncs  uint64
	FailedHere uint64
}

// Status returns what is told. The caller holds the executor's lock.
func (r *Replica) Status() Status {
	s := Status{History: r.history, Silence: -1, Down: -1, FullSyncs: r.FullSyncs, PartSyncs: r.PartialSyncs, FailedHere: r.Failed, Resumes: r.resumes, LastError: r.lastError, Failover: r.failover.state.String()}
	if s.ID2 == "" {
		s.ID2, s.Offset2 = strings.Repeat("0", idLength), -1
	}
	if r.follow == nil {
		s.Offset = r.Primary.offset()
		s.Received = s.Offset
		return s
	}
	s.Received = s.Offset
	s.Following, s.Primary, s.State = true, r.follow.Address, r.status.state
	if r.follower != nil {
		s.Offset, s.Received = r.follower.Applied(), r.follower.Received()
	}
	if conn := r.status.conn; conn != nil {
		s.Silence = conn.silence()
		if s.State == StateSync {
			s.Total, s.Read = max(r.status.total, 0), conn.bytes.Load()-r.status.before
		}
	}
	if !r.status.down.IsZero() && s.State != StateConnected {
		s.Down = time.Since(r.status.down)
	}
	return s
}
