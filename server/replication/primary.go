package replication

import (
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"headgate/internal/number"
	"headgate/server/command"
	"headgate/server/config"
	"headgate/server/exec"
	"headgate/server/journal"
)

// Errors of a primary's commands, in Redis's words.
const (
	errNotConnected  = "NOMASTERLINK Can't SYNC while not connected with my master"
	errPending       = "ERR SYNC and PSYNC are invalid with pending output"
	errFailoverHere  = "ERR PSYNC FAILOVER can't be sent to a master."
	errFailoverOther = "ERR PSYNC FAILOVER replid must match my replid."
	errFailoverLacks = "ERR PSYNC FAILOVER offset is beyond mine: this replica lacks changes."
	errNoReplicas    = "NOREPLICAS Not enough good replicas to write."
)

const (
	streamPing   = "*1\r\n$4\r\nPING\r\n"
	streamGetAck = "*3\r\n$8\r\nREPLCONF\r\n$6\r\nGETACK\r\n$1\r\n*\r\n"
)

// Primary is this server as one that others follow: its replicas, and the stream of changes that they are sent. A server that follows a
// primary itself passes that one's stream on, byte for byte. The executor's lock guards its fields.
//
// As long as nobody has ever followed there is no stream, and nothing of this costs anything.
type Primary struct {
	*command.Core
	exec    *exec.Executor
	journal *journal.Journal
	replica *Replica // which knows the history

	backlog  *Backlog // nil: changes are not counted
	feeds    []*feed  // in the order in which they came
	feeding  sync.WaitGroup
	transfer *transfer // the snapshot that is under way, or nil
	alone    int64     // since when there have been no replicas, by Clock.Mono
	pinged   int64     // when the stream has last had a PING, by Clock.Mono
	waits    []wait    // the clients that wait for replicas
	asked    asked     // the last REPLCONF GETACK
	good     int       // replicas that min-replicas-to-write counts

	pushed atomic.Pointer[Backlog] // backlog, for Push

	sent atomic.Int64 // bytes sent to replicas; safe for concurrent use

	// Counters since the start: replicas that were sent all data, those that went on where they were, and those that could not though they
	// had asked to.
	FullSyncs, PartialSyncs, PartialRefused uint64
}

func newPrimary(r *Replica) *Primary {
	return &Primary{Core: r.Core, exec: r.exec, journal: r.journal, replica: r}
}

// Declarations are those of the commands that replicas send, and of WAIT.
func (p *Primary) Declarations() []*command.Command {
	return []*command.Command{
		{
			Name: "psync", Group: command.GroupServer, Since: "2.8.0", Complexity: "O(1), and a snapshot if the changes wanted are not kept any more",
			Summary: "Become a replica of this server, from an offset on; sent by replicas.",
			Arity:   -3, Flags: command.Admin | command.NoScript | command.NoAsyncLoading | command.NoMulti | command.HomeOnly,
			Args:  []command.Arg{command.Str("replicationid"), command.Integer("offset")},
			Reply: command.ReplyNone, Handler: p.psync,
		},
		{
			Name: "sync", Group: command.GroupServer, Since: "1.0.0", Complexity: "O(n) in the number of keys",
			Summary: "Receive a snapshot and all later changes; sent by old replicas.",
			Arity:   1, Flags: command.Admin | command.NoScript | command.NoAsyncLoading | command.NoMulti | command.HomeOnly, Reply: command.ReplyNone, Handler: p.sync,
		},
		waitCommand(p),
	}
}

// Begin has the server obey changes of the configuration.
func (p *Primary) Begin(live *config.Live) {
	live.OnChange(func(_, cfg *config.Config) error { p.setLimits(cfg); return nil }, "repl-backlog-size", "client-output-buffer-limit")
	live.OnChange(func(_, cfg *config.Config) error { p.checkReplicas(cfg); return nil }, "min-replicas-to-write", "min-replicas-max-lag")
	p.checkReplicas(live.Get())
}

// setLimits has the stream be bounded as the configuration says. The caller holds the executor's lock.
func (p *Primary) setLimits(cfg *config.Config) {
	if p.backlog != nil {
		p.backlog.SetLimits(int64(cfg.ReplBacklogSize), int64(cfg.OutputLimits.Replica.Hard))
	}
}

// offset is how many bytes of changes there have been. The caller holds the executor's lock.
func (p *Primary) offset() int64 {
	if p.backlog == nil {
		return p.replica.history.Offset
	}
	return p.backlog.End()
}

// keepStream begins to count changes, unless that is done already. The caller holds the executor's lock.
func (p *Primary) keepStream() {
	if p.backlog != nil {
		return
	}
	h := &p.replica.history
	if p.replica.follow == nil { // what has changed so far was not counted, so that nobody can go on from there
		*h = History{ID: command.RandomHex(idLength / 2), Offset: h.Offset}
	}
	p.startStream()
}

// startStream begins the stream where the history is. The caller holds the executor's lock.
func (p *Primary) startStream() {
	cfg := p.Config.Get()
	p.setBacklog(NewBacklog(p.replica.history.Offset, int64(cfg.ReplBacklogSize)))
	p.setLimits(cfg)
	p.alone, p.asked = p.Clock.Mono(), asked{}
	p.streamOwn()
}

// setBacklog has another stream, or nil, be that of the replicas.
func (p *Primary) setBacklog(b *Backlog) {
	p.backlog = b
	p.pushed.Store(b)
}

// Push sends replicas what they are due, for the loops, which call it in each iteration. It returns when to call it again at the latest, in ns; 0: whenever
// that is. The caller does not hold the executor's lock. Safe for concurrent use.
func (p *Primary) Push(now int64) (next int64) {
	if b := p.pushed.Load(); b != nil {
		return b.Push(now, streamPause)
	}
	return 0
}

// streamOwn has the stream be made of what changes here, unless a primary is followed.
func (p *Primary) streamOwn() {
	if p.replica.follow == nil {
		p.Effects.Stream(p.backlog.Append)
	}
}

// endStream counts changes no more. The caller holds the executor's lock.
func (p *Primary) endStream() {
	if p.backlog == nil {
		return
	}
	p.Effects.Stream(nil)
	h := &p.replica.history
	h.Offset = p.backlog.End()
	if p.replica.follow == nil {
		*h = History{ID: command.RandomHex(idLength / 2), Offset: h.Offset}
	}
	p.setBacklog(nil)
}

// stepDown has the stream be made no longer of what changes here, since a primary is to be followed. It reports whether all that has changed
// so far was counted, so that the history names the data. The caller holds the executor's lock.
func (p *Primary) stepDown() bool {
	counted := p.backlog != nil && !p.Effects.Amid() // what a transaction has changed before REPLICAOF is in no stream
	p.Effects.Stream(nil)
	p.checkReplicas(p.Config.Get())
	if p.backlog != nil {
		p.replica.history.Offset = p.backlog.End()
	}
	return counted
}

// stepUp is called when no primary is followed any more, and the history has its new name. The caller holds the executor's lock.
func (p *Primary) stepUp() {
	p.dropAll(errOtherData)
	if p.backlog != nil {
		p.alone = p.Clock.Mono()
		p.streamOwn()
	}
	p.checkReplicas(p.Config.Get())
}

// passOn has the stream be what the follower runs, which goes on where the history is. renamed tells that the replicas know the history
// under another name, or not at all. The caller holds the executor's lock.
func (p *Primary) passOn(follower *exec.Follower, renamed bool) {
	if renamed {
		p.dropAll(errOtherData)
	}
	if p.backlog == nil || p.backlog.End() != p.replica.history.Offset {
		p.dropAll(errOtherData)
		p.startStream()
	}
	follower.Relay = p.backlog.Append
}

// forgetStream drops the stream, since the data are others now. The caller holds the executor's lock.
func (p *Primary) forgetStream() {
	p.dropAll(errOtherData)
	p.setBacklog(nil)
}

// Memory returns how many bytes the stream takes up: up to repl-backlog-size, and what is kept beyond that for replicas that are behind, which is
// bounded by client-output-buffer-limit, and a few blocks to be used again. No key has to go for what is beyond. The caller holds the executor's lock.
func (p *Primary) Memory() (kept, behind uint64) {
	if p.backlog == nil {
		return 0, 0
	}
	all := uint64(p.backlog.Bytes())
	kept = min(all, uint64(p.Config.Get().ReplBacklogSize)+blockSize)
	return kept, all - kept
}

// dropAll has all replicas closed, which come back. The caller holds the executor's lock.
func (p *Primary) dropAll(why error) {
	for _, f := range p.feeds {
		f.drop(why)
	}
}

// feedOf returns what is known of a client as a replica.
func (p *Primary) feedOf(cl *command.Client) *feed {
	f, _ := cl.Replica.(*feed)
	if f == nil {
		f = &feed{primary: p, client: cl}
		cl.Replica = f
	}
	return f
}

// Gone is told that a client has gone which has said that it is a replica. The caller holds the executor's lock.
func (p *Primary) Gone(cl *command.Client) {
	f, _ := cl.Replica.(*feed)
	cl.Replica = nil
	if f == nil || f.state == feedNone {
		return
	}
	f.end()
	p.feeds = slices.DeleteFunc(p.feeds, func(have *feed) bool { return have == f })
	if len(p.feeds) == 0 {
		p.alone = p.Clock.Mono()
	}
	p.checkReplicas(p.Config.Get())
	why := f.why
	if why == nil && !f.until.IsZero() {
		if behind := p.backlog.End() - f.acked; behind > 0 {
			p.Logger.Info("the server ends: a replica is sent what it lacks", "replica", f.String(), "behind", behind)
		}
		return
	}
	if why == nil {
		why = errHangup
	}
	if errors.Is(why, errRDBOnly) {
		p.Logger.Info("a client has been sent a snapshot", "client", f.String())
		return
	}
	p.Logger.Warn("a replica has disconnected", "replica", f.String(), "err", why, "connected", len(p.feeds))
}

// Close returns when nothing is sent to replicas any more. All clients have gone. The caller does not hold the executor's lock.
func (p *Primary) Close() { p.feeding.Wait() }

// psync implements PSYNC id offset, which replicas send, and PSYNC id offset FAILOVER, by which a primary has its replica take its place.
func (p *Primary) psync(c *command.Ctx) {
	if c.Client.Replicates || c.Client.Monitors {
		return // as in Redis
	}
	if len(c.Args) > 3 && c.Is(3, "FAILOVER") {
		if !p.replica.takeOver(c) {
			return
		}
	} else if !p.replica.admitsAsker(c) {
		return
	}
	first, ok := number.ParseInt(c.Args[2])
	if !ok {
		c.Err(command.ErrNotInteger)
		return
	}
	f := p.admit(c)
	if f == nil {
		return
	}
	id := string(c.Args[1])
	if p.goesOn(f, id, first) {
		return
	}
	if id[:min(len(id), 1)] != "?" {
		p.PartialRefused++
	}
	p.sendAll(f)
}

// sync implements SYNC.
func (p *Primary) sync(c *command.Ctx) {
	if c.Client.Replicates || c.Client.Monitors {
		return
	}
	if f := p.admit(c); f != nil {
		f.synced = true
		p.sendAll(f)
	}
}

// wordForce stands behind PSYNC … FAILOVER if the replica is to take over though it lacks changes. Redis does not look at a replica's offset then.
const wordForce = "FORCE"

// lacks reports whether this server has not all changes before the one of that number. The caller holds the executor's lock.
func (r *Replica) lacks(first []byte) bool {
	n, ok := number.ParseInt(first)
	return ok && n-1 > r.Status().Offset
}

// takeOver has a replica that its primary asks to take its place do so, or sends the error and returns false.
func (r *Replica) takeOver(c *command.Ctx) bool {
	switch {
	case r.follow == nil:
		c.Err(errFailoverHere)
	case string(c.Args[1]) != r.history.ID:
		c.Err(errFailoverOther)
	case r.lacks(c.Args[2]) && !(len(c.Args) > 4 && c.Is(4, wordForce)):
		c.Err(errFailoverLacks)
	default:
		r.Promote()
		return true
	}
	return false
}

// admit returns what is known of the client as a replica, with a connection to write to, or sends the error and returns nil.
func (p *Primary) admit(c *command.Ctx) *feed {
	cl := c.Client
	switch {
	case p.replica.follow != nil && p.replica.status.state != StateConnected:
		c.Err(errNotConnected)
		return nil
	case cl.Conn.Unsent() > 0 || cl.Subs != nil || cl.Tracking != nil:
		c.Err(errPending)
		return nil
	case p.journal.Saving.Partial:
		c.Err(journal.ErrNotWhole)
		return nil
	}
	conn, err := cl.Conn.Direct()
	if err != nil {
		p.Logger.Warn("a replica cannot be sent anything", "addr", cl.Conn.Remote, "err", err)
		c.Errf("ERR %s", err)
		return nil
	}
	f := p.feedOf(cl)
	f.conn = conn
	return f
}

// goesOn has a replica be sent the changes from one on, if that is known under the name that it has, and still kept.
func (p *Primary) goesOn(f *feed, id string, first int64) bool {
	h := &p.replica.history
	known := p.backlog != nil && (id == h.ID || id == h.ID2 && h.ID2 != "" && first <= h.Offset2)
	if !known {
		return false
	}
	p.Effects.Feed()
	reader, ok := p.backlog.Read(first-1, f.tooSlow)
	if !ok {
		return false
	}
	f.reader, f.state = reader, feedOnline
	f.acked, f.ackedAt = first-1, p.Clock.Mono()
	f.heardAt = f.ackedAt
	greeting := "+CONTINUE\r\n"
	if f.psync2 {
		greeting = "+CONTINUE " + h.ID + "\r\n"
	}
	p.PartialSyncs++
	p.begin(f, []byte(greeting))
	close(f.loaded)
	p.Logger.Info("a replica resumes where it was", "replica", f.String(), "offset", first-1, "behind", p.backlog.End()-first+1)
	return true
}

// sendAll has a replica be sent all data as soon as there is a snapshot.
func (p *Primary) sendAll(f *feed) {
	p.FullSyncs++
	p.keepStream()
	f.state = feedWaits
	f.parts, f.result = make(chan part, 1), make(chan error, 1)
	p.begin(f, nil)
	p.Logger.Info("a replica asks for all data", "replica", f.String())
	p.join(f)
	p.exec.Soon()
}

// begin has a client be a replica, to which run writes.
func (p *Primary) begin(f *feed, greeting []byte) {
	cl := f.client
	f.since = p.Clock.Mono()
	f.loaded, f.quit = make(chan struct{}), make(chan struct{})
	cl.Replicates, cl.Limited, cl.ReplyMode = true, true, command.ReplyModeOff
	p.feeds = append(p.feeds, f)
	p.feeding.Add(1)
	go f.run(greeting)
	p.checkReplicas(p.Config.Get())
}

// join has a replica be sent the file that is being written for others.
func (p *Primary) join(f *feed) {
	t := p.transfer
	if t == nil || t.pin == nil {
		return
	}
	if reader, ok := t.pin.Fork(f.tooSlow); ok {
		f.reader = reader
		t.take(f)
	}
}

// Job is the background work of a primary, an [exec.Job].
func (p *Primary) Job(now int64) (next int64) {
	if p.backlog == nil && len(p.feeds) == 0 {
		return 0
	}
	mono, cfg := p.Clock.Mono(), p.Config.Get()
	p.ping(mono, cfg)
	p.lookAfter(mono, cfg)
	p.beginTransfer(mono, cfg)
	p.forgetWaits()
	p.checkReplicas(cfg)
	if len(p.feeds) == 0 && p.replica.follow == nil && cfg.ReplBacklogTTL > 0 && mono-p.alone >= int64(cfg.ReplBacklogTTL) {
		p.endStream()
		p.Logger.Info("the replication backlog is freed: no replica has been connected for repl-backlog-ttl")
	}
	return 0
}

// ping has the stream say now and then that the server is there.
func (p *Primary) ping(mono int64, cfg *config.Config) {
	if p.replica.follow == nil && len(p.feeds) > 0 && mono-p.pinged >= int64(cfg.ReplPingReplicaPeriod) {
		p.pinged = mono
		p.say(streamPing)
	}
}

// say puts into the stream what is no effect.
func (p *Primary) say(text string) {
	p.Effects.Feed()
	p.backlog.Append([]byte(text))
}

// lookAfter closes the replicas that have not been heard of for too long, or have been too far behind.
func (p *Primary) lookAfter(mono int64, cfg *config.Config) {
	limit := cfg.OutputLimits.Replica
	for _, f := range p.feeds {
		if f.ended || f.reader == nil {
			continue
		}
		if f.client.Pinged.Swap(false) {
			f.heardAt = mono
		}
		if (f.state == feedOnline && !f.synced || f.state == feedLoads) && mono-f.heardAt > int64(cfg.ReplTimeout) {
			f.drop(errSilent)
			continue
		}
		behind := p.backlog.End() - f.reader.At()
		switch {
		case limit.Soft == 0 || behind <= int64(max(limit.Soft, cfg.ReplBacklogSize)):
			f.soft = 0
		case f.soft == 0:
			f.soft = mono
		case mono-f.soft > int64(limit.SoftTime):
			f.drop(errSoft)
		}
	}
}

// beginTransfer begins a snapshot for those who wait for one, if it may begin.
func (p *Primary) beginTransfer(mono int64, cfg *config.Config) {
	var to []*feed
	since, diskless := int64(math.MaxInt64), cfg.ReplDisklessSync
	for _, f := range p.feeds {
		if f.state == feedWaits && !f.ended {
			to = append(to, f)
			since, diskless = min(since, f.since), diskless && f.eof
		}
	}
	switch most := cfg.ReplDisklessSyncMaxReplicas; {
	case len(to) == 0 || p.transfer != nil:
		return
	case diskless && mono-since < int64(cfg.ReplDisklessSyncDelay) && (most == 0 || len(to) < most):
		return
	}
	t := &transfer{primary: p, mark: command.RandomHex(markLength / 2)}
	t.live = slices.Clone(to)
	if !diskless {
		t.file = p.journal.NewSendFile()
	}
	if !p.journal.Send(journal.Receiver{DB: p.streamDB(), Write: t.Write, Finish: t.Finish, Done: t.done, Hurry: t.hurry, Abort: t.abort}) {
		return
	}
	p.Effects.Feed()
	p.Effects.NameDatabase()
	t.id, t.offset = p.replica.history.ID, p.backlog.End()
	if !diskless {
		t.pin, _ = p.backlog.Read(t.offset, func() {})
	}
	for _, f := range to {
		f.reader, _ = p.backlog.Read(t.offset, f.tooSlow)
		t.take(f)
	}
	p.transfer = t
	p.Logger.Info("a snapshot is being created for replicas", "replicas", len(to), "offset", t.offset, "diskless", diskless)
}

// streamDB is the database that the stream is for behind the last byte.
func (p *Primary) streamDB() int {
	if p.replica.follower != nil {
		return p.replica.follower.Client.DB.Index()
	}
	return 0 // and the next effect names its own
}

// transferred is told that a snapshot is over, with the executor's lock held.
func (p *Primary) transferred(err error) {
	p.transfer = nil
	if err != nil {
		p.Logger.Error("the snapshot for replicas has failed", "err", err)
	}
	p.exec.Soon() // for those who have come since
}

// snapshotSent is told that a replica has been sent all of a snapshot, with the executor's lock held.
func (p *Primary) snapshotSent(f *feed) {
	switch {
	case f.ended:
	case f.rdbOnly:
		f.why = errRDBOnly
		f.client.Conn.CloseAfterReply()
	default:
		if f.state, f.heardAt = feedLoads, p.Clock.Mono(); f.early {
			p.online(f)
		}
	}
}

// fileSent is told that a replica has been sent all of a file, without the executor's lock.
func (p *Primary) fileSent(f *feed) {
	p.Lock()
	defer p.Unlock()
	switch {
	case f.ended:
	case f.rdbOnly:
		f.why = errRDBOnly
		f.client.Conn.CloseAfterReply()
	default:
		p.online(f)
	}
}

// online has a replica be sent the stream behind its snapshot. The caller holds the executor's lock.
func (p *Primary) online(f *feed) {
	f.state, f.ackedAt = feedOnline, p.Clock.Mono()
	f.heardAt = f.ackedAt
	close(f.loaded)
	p.checkReplicas(p.Config.Get())
	p.Logger.Info("a replica has all data and now receives changes", "replica", f.String(), "behind", p.backlog.End()-f.reader.At())
}

// acknowledge is told by a replica how far it has come. The caller holds the executor's lock.
func (p *Primary) acknowledge(f *feed, offset int64) {
	f.acked, f.ackedAt = max(f.acked, offset), p.Clock.Mono()
	f.heardAt = f.ackedAt
	switch {
	case f.ended:
	case f.state == feedCopies:
		f.early = true
	case f.state == feedLoads:
		p.online(f)
	}
	p.checkReplicas(p.Config.Get())
	p.serveWaits()
	if p.replica.failover.state == failoverWaits {
		p.exec.Soon()
	}
}

// checkReplicas has writes refused while too few replicas are near enough. The caller holds the executor's lock.
func (p *Primary) checkReplicas(cfg *config.Config) {
	refusal := ""
	if p.good = p.goodReplicas(cfg); p.countsReplicas(cfg) && p.replica.follow == nil && p.good < cfg.MinReplicasToWrite {
		refusal = errNoReplicas
	}
	p.Gate.Refuse(command.GateReplicas, refusal)
}

// countsReplicas reports whether writes depend on replicas.
func (p *Primary) countsReplicas(cfg *config.Config) bool {
	return cfg.MinReplicasToWrite > 0 && cfg.MinReplicasMaxLag > 0
}

// goodReplicas counts the replicas that have acknowledged something lately.
func (p *Primary) goodReplicas(cfg *config.Config) (good int) {
	mono := p.Clock.Mono()
	for _, f := range p.feeds {
		if f.state == feedOnline && !f.ended && mono-f.ackedAt <= int64(cfg.MinReplicasMaxLag) {
			good++
		}
	}
	return good
}

// ReplicaStatus is what is told of one replica.
type ReplicaStatus struct {
	IP     string
	Port   int
	State  string        // as INFO shows it
	Online bool          // it is sent the changes
	Offset int64         // behind what it has acknowledged
	Behind int64         // bytes that it has not acknowledged
	Lag    time.Duration // since it last did; 0 before it is online
}

// PrimaryStatus is what is told of the replicas, and of the stream to them.
type PrimaryStatus struct {
	Replicas []ReplicaStatus // in the order in which they came
	Good     int             // of them, that min-replicas-to-write counts
	Active   bool            // changes are kept for replicas
	From, To int64           // the offsets before and behind those that are kept for replicas which come back
	Bytes    int64           // memory that the stream takes up
	Sent     int64           // bytes that replicas were sent
}

// Status returns what is told. The caller holds the executor's lock.
func (p *Primary) Status() PrimaryStatus {
	s := PrimaryStatus{Good: p.good, Sent: p.sent.Load()}
	mono := p.Clock.Mono()
	if p.backlog != nil {
		s.Active, s.Bytes = true, p.backlog.Bytes()
		s.From, s.To = p.backlog.Extent()
	}
	for _, f := range p.feeds {
		if f.ended {
			continue
		}
		ip, port := f.address()
		one := ReplicaStatus{IP: shownAddress(ip), Port: port, State: f.state.String(), Online: f.state == feedOnline, Offset: f.acked, Behind: s.To - f.acked}
		if f.state == feedOnline {
			one.Lag = time.Duration(max(mono-f.ackedAt, 0))
		}
		s.Replicas = append(s.Replicas, one)
	}
	return s
}
