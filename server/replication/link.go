package replication

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"headgate/internal/respcmd"
	"headgate/persistence/rdb"
	"headgate/server/config"
	"headgate/server/exec"
)

// link is one connection to a primary, from its beginning to its end.
type link struct {
	replica *Replica
	follow  *following
	cfg     *config.Config // as it was when the link began
	conn    *Conn
	talk    *dialogue
	lineage []string  // the primary's, as it says
	linked  bool      // the stream came
	since   time.Time // when that began

	follower *exec.Follower
	beats    bool          // beat has been begun
	online   atomic.Bool   // acknowledgements are sent, rather than empty lines
	asked    chan struct{} // of capacity 1: an acknowledgement is wanted now
	over     chan struct{} // closed when the link ends
}

// snapshotError is why a snapshot could not be used. The next one will hardly be better.
type snapshotError struct{ error }

// Unwrap is for package errors.
func (e *snapshotError) Unwrap() error { return e.error }

var (
	errEnded   = errors.New("it is to be followed no more")
	errAwaited = errors.New("its answer is awaited") // the kind of a line that is no error
	errKilled  = errors.New("a client has closed the connection by CLIENT KILL")
	errSelf    = errors.New("this is the server itself, which cannot follow itself: name another one by REPLICAOF")
)

// run follows the primary until that ends, and returns why.
func (l *link) run() error {
	r := l.replica
	l.asked, l.over = make(chan struct{}, 1), make(chan struct{})
	defer close(l.over)
	var known History
	resumes, takesOver, force := false, false, false
	if !r.update(l.follow, func() {
		known, resumes, r.status.state = r.history, r.resumes, StateConnecting
		takesOver, force = r.failover.state == failoverProceeds, r.failover.force
	}) {
		return errEnded
	}
	l.cfg = r.Config.Get()
	nc, err := l.dial()
	if err != nil {
		return err
	}
	defer nc.Close()
	defer context.AfterFunc(l.follow.ctx, func() { nc.Close() })()
	l.conn = NewConn(nc, l.cfg.ReplTimeout)
	l.talk = newDialogue(l.conn)
	if !r.update(l.follow, func() {
		r.status.conn, r.status.state = l.conn, StateHandshake
		l.conn.SetTimeout(r.Config.Get().ReplTimeout) // it may have been changed since
	}) {
		return errEnded
	}
	ignored, lineage, err := l.talk.introduce(l.introduction())
	if err != nil {
		return l.advised(err)
	}
	if !r.update(l.follow, func() { l.tellIgnored(ignored) }) {
		return errEnded
	}
	if l.lineage = lineage; takesOver && len(lineage) > 1 { // it follows nobody then
		l.lineage = lineage[:1]
	}
	if !resumes {
		known.ID = ""
	}
	if takesOver {
		if err := r.askToTakeOver(l.follow); err != nil {
			return err
		}
	}
	answer, err := l.talk.psync(known.ID, known.Offset, takesOver, force)
	if err != nil {
		return err
	}
	if !r.update(l.follow, r.failedOver) {
		return errEnded
	}
	stream := io.Reader(l.talk.in)
	if answer.full {
		stream, err = l.takeSnapshot(answer)
	} else {
		err = l.resume(answer)
	}
	if err != nil {
		return err
	}
	return l.readStream(stream)
}

// tellIgnored has the log say what the primary does not accept, and that its answer is awaited. The executor's lock is held.
func (l *link) tellIgnored(ignored []string) {
	r, told, now := l.replica, l.follow.told, time.Now()
	if len(ignored) > 0 && told.again(errors.New(strings.Join(ignored, ", ")), now) {
		r.Logger.Warn("the primary does not accept all that a replica reports", "primary", l.follow.String(), "errors", ignored)
	}
	if told.again(errAwaited, now) {
		r.Logger.Info("connected to the primary: it is asked for its changes, or for all data, which it may send after its repl-diskless-sync-delay", "primary", l.follow.String())
	}
}

// dial connects to the primary.
func (l *link) dial() (net.Conn, error) {
	ctx, cancel := context.WithTimeout(l.follow.ctx, min(dialTimeout, l.cfg.ReplTimeout))
	defer cancel()
	nc, err := (&net.Dialer{}).DialContext(ctx, "tcp", l.follow.String())
	if err != nil {
		return nil, fmt.Errorf("it cannot be reached: %w", err)
	}
	if isSelf(nc, l.cfg) {
		nc.Close()
		return nil, errSelf
	}
	if !l.cfg.TLSReplication {
		return nc, nil
	}
	made, err := l.replica.TLS(l.cfg)
	if err != nil {
		nc.Close()
		return nil, fmt.Errorf("no TLS to a primary: %w", err)
	}
	secure := tls.Client(nc, made)
	if err := secure.HandshakeContext(ctx); err != nil {
		nc.Close()
		return nil, fmt.Errorf("the primary's TLS: %w%s", err, handshakeAdvice(err))
	}
	return secure, nil
}

// handshakeAdvice ends the error of a handshake that a peer without TLS has not answered, or has not answered by one.
func handshakeAdvice(err error) string {
	var timeout net.Error
	var noTLS tls.RecordHeaderError
	if errors.Is(err, io.EOF) || errors.As(err, &noTLS) || errors.As(err, &timeout) && timeout.Timeout() {
		return ": its port may be one without TLS, see tls-replication"
	}
	return ""
}

// tlsAlert is how many bytes a peer with TLS sends at most before it closes a connection without.
const tlsAlert = 7

// advised is an error of the handshake, which tells of the likely cause if the primary has closed the connection without an answer.
func (l *link) advised(err error) error {
	var lost *lostError
	if l.cfg.TLSReplication || l.conn.bytes.Load() > tlsAlert || !errors.As(err, &lost) || lost.what == whatSilent {
		return err
	}
	return &lostError{lost.Error() + ": its port may be one for TLS, see tls-replication", nil}
}

// introduction is what the primary is told.
func (l *link) introduction() Introduction {
	cfg := l.cfg
	who := Introduction{User: cfg.MasterUser, Password: cfg.MasterAuth, Port: cfg.ReplicaAnnouncePort, IP: cfg.ReplicaAnnounceIP, RunID: l.replica.RunID}
	switch {
	case who.Port != 0:
	case cfg.TLSReplication && cfg.TLSPort != 0:
		who.Port = cfg.TLSPort
	default:
		who.Port = cfg.Port
	}
	return who
}

// resume goes on behind what is known already.
func (l *link) resume(a answer) error {
	r := l.replica
	if !r.update(l.follow, func() {
		renamed := a.id != "" && a.id != r.history.ID
		if renamed {
			r.history.rename(a.id)
		}
		r.PartialSyncs++
		l.attach(renamed)
		r.Logger.Info("replication resumes where the link was cut", "primary", l.follow.String(), "offset", r.history.Offset)
	}) {
		return errEnded
	}
	return nil
}

// attach has the stream be run, from where history says, and be passed on to this server's own replicas. renamed tells that they know it under
// another name. The executor's lock is held.
func (l *link) attach(renamed bool) {
	r := l.replica
	l.follower = r.exec.NewFollower(l.conn.RemoteAddr().String(), l.conn.LocalAddr().String(), r.history.Offset, r.db)
	r.Primary.passOn(l.follower, renamed)
	if !slices.Equal(r.above, l.lineage) {
		r.above = l.lineage
		r.Primary.dropMoved()
	}
	r.follower, r.link, r.resumes, r.synced = l.follower, l, true, true
	r.status.state, r.status.down, r.lastError = StateConnected, time.Time{}, ""
	l.linked, l.since = true, time.Now()
}

// takeSnapshot has the data be those of a snapshot that the primary sends, and returns the stream behind it.
func (l *link) takeSnapshot(a answer) (stream io.Reader, err error) {
	r := l.replica
	if !r.update(l.follow, func() { r.status.state, r.status.total = StateSync, -1 }) {
		return nil, errEnded
	}
	l.beats = true
	go l.beat()
	r.Logger.Info("all data come from the primary: waiting for its snapshot", "primary", l.follow.String())
	p, err := l.talk.announced()
	if err != nil {
		return nil, err
	}
	begun, before := time.Now(), 0 // keys here before
	if !r.update(l.follow, func() { r.status.total, r.status.before = p.size, l.conn.bytes.Load() }) {
		return nil, errEnded
	}
	loaded, err := r.journal.LoadBeside(p.body(unended{l.talk.in}), func(int64) error { return l.follow.ctx.Err() })
	if err != nil {
		return nil, unusable(err)
	}
	defer loaded.Discard()
	if stream, err = p.behind(l.talk.in, loaded.Rest, loaded.Bytes); err != nil {
		return nil, err
	}
	wanted := func() bool {
		before = r.Keys.Stats().Keys
		return r.follow == l.follow && l.follow.ctx.Err() == nil && !r.IsStopping()
	}
	err = r.journal.Replace(loaded, wanted, func() {
		r.history.ID, r.history.Offset, r.history.ID2, r.history.Offset2 = a.id, a.offset, "", 0
		r.db = loaded.StreamDB
		r.FullSyncs++
		r.Primary.forgetStream()
		l.attach(false)
		r.openGates(r.Config.Get())
	})
	if err != nil {
		return nil, &snapshotError{err}
	}
	if loaded.Keys == 0 && before > 0 {
		r.Logger.Warn("the primary has no keys, and so all keys here are gone: has it restarted without its data?", "primary", l.follow.String(), "keys", before)
	}
	r.Logger.Info("the primary's data are loaded", "primary", l.follow.String(), "keys", loaded.Keys, "bytes", loaded.Bytes, "offset", a.offset,
		"took", time.Since(begun).Round(time.Millisecond))
	return stream, nil
}

// unusable is why a snapshot could not be loaded, without the advice that goes with files.
func unusable(err error) error {
	var wrong *rdb.Error
	if errors.As(err, &wrong) {
		text := fmt.Sprintf("its snapshot cannot be used: %s, at byte %d", wrong.What, wrong.Offset)
		if errors.Is(err, rdb.ErrNoSuchType) || wrong.Offset == 0 {
			text += "; " + wrong.Hint
		}
		return &snapshotError{errors.New(text)}
	}
	return err
}

// unended reads what must not end yet.
type unended struct{ io.Reader }

// Read implements io.Reader.
func (u unended) Read(p []byte) (int, error) {
	n, err := u.Reader.Read(p)
	if err != nil {
		err = lost(err)
	}
	return n, err
}

// readStream runs what the primary sends until it sends no more.
func (l *link) readStream(stream io.Reader) error {
	f := l.follower
	defer f.Release()
	l.online.Store(true)
	l.askBeat() // a primary that sends a snapshot as it makes it sends nothing before it hears that it was loaded
	if !l.beats {
		go l.beat()
	}
	for {
		n, err := stream.Read(f.Space())
		f.Take(n)
		if n > 0 {
			if err := l.apply(); err != nil {
				return err
			}
		}
		switch {
		case err != nil && l.killed():
			return errKilled
		case err != nil:
			return lost(err)
		}
	}
}

// apply runs what has come, and waits while that is not possible.
func (l *link) apply() error {
	r, waits := l.replica, false
	for {
		why, err := l.follower.Run()
		pause := holdPause
		switch {
		case err != nil:
			r.update(l.follow, func() { r.detach(); r.resumes = false })
			return fmt.Errorf("the primary sent something that is not a command, so all data are requested again: %w", err)
		case why == exec.HoldNone:
			if waits {
				r.Logger.Info("the append-only file has room again: what the primary sends is run again", "primary", l.follow.String())
			}
			return nil
		case why == exec.HoldEnded:
			return errKilled
		case why == exec.HoldDisk:
			if pause = diskPause; !waits {
				waits = true
				r.Logger.Error("the append-only file has no room: what the primary sends waits, and reads are answered meanwhile", "primary", l.follow.String(),
					"again", diskPause.String())
			}
		}
		select {
		case <-l.follow.ctx.Done():
			return errEnded
		case <-time.After(pause):
		}
	}
}

// askBeat has an acknowledgement sent without delay.
func (l *link) askBeat() {
	select {
	case l.asked <- struct{}{}:
	default:
	}
}

// beat tells the primary every second, and when it asks, how far the stream has been run; before there is one, that somebody is there.
func (l *link) beat() {
	tick := time.NewTicker(beatPeriod)
	defer tick.Stop()
	for {
		select {
		case <-l.over:
			return
		case <-l.asked:
		case <-tick.C:
		}
		message := []byte("\n")
		if l.online.Load() {
			message = respcmd.Append(nil, "REPLCONF", "ACK", strconv.FormatInt(l.follower.Applied(), 10))
			if l.killed() {
				l.conn.Close()
				return
			}
		}
		if _, err := l.conn.Write(message); err != nil {
			l.conn.Close() // the reader says why
			return
		}
	}
}

// killed reports whether a client has asked for the connection to be closed.
func (l *link) killed() bool {
	l.replica.Lock()
	defer l.replica.Unlock()
	return l.follower.Client.Conn.Closing()
}
