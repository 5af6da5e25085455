package replication

import (
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"headgate/server/command"
	"headgate/server/netpoll"
)

// feedState is how far a replica has come.
type feedState uint8

const (
	feedNone   feedState = iota // it has only said something of itself
	feedWaits                   // for a snapshot to be begun
	feedCopies                  // one is made: into a file, or to be sent at once
	feedSends                   // it is sent the file
	feedLoads                   // it has been sent all of a snapshot that had no length, and has not said yet that it is done with that
	feedOnline                  // it is sent the changes
)

// String is the state as INFO shows it.
func (s feedState) String() string {
	return [...]string{"", "wait_bgsave", "wait_bgsave", "send_bulk", "send_bulk", "online"}[s]
}

const (
	feedOverhead = 1 << 10          // what a replica takes up beside the stream, in bytes, about
	keepAlive    = time.Second      // between two empty lines to a replica that waits for a snapshot
	quickPart    = time.Millisecond // in which a replica takes a part of a snapshot that keeps nobody waiting

	// hurriedPatience is how long a server that ends by SHUTDOWN NOW waits for a replica that is behind: what is on its way arrives.
	hurriedPatience = 100 * time.Millisecond

	// streamPause is how long the stream rests after a write, unless much of it waits, or a client does: under a load one write for the
	// changes of a millisecond costs the primary a fraction of one for each batch. What comes after a rest is sent at once.
	streamPause = time.Millisecond
)

// Why a replica is sent nothing more, beside what its connection says.
var (
	errHangup    = errors.New("it has closed the connection, or a client has by CLIENT KILL")
	errSilent    = errors.New("nothing has been heard of it for repl-timeout")
	errSoft      = errors.New("it has been too far behind for as long as client-output-buffer-limit replica allows")
	errHurry     = errors.New("it takes the snapshot so slowly that commands would have to wait for it")
	errSnapshot  = errors.New("no snapshot could be made for it")
	errOtherData = errors.New("the history of changes is another one now: it has to ask for them again")
	errNotTaken  = errors.New("it has not taken all that was sent before the server ended")
	errRDBOnly   = errors.New("it has asked for only the snapshot, and has it")
)

// feed is one replica, and what it is sent. The executor's lock guards what is not said to be otherwise. One goroutine, which run is, writes to
// it; what it says comes by its client's front, as commands.
type feed struct {
	primary *Primary
	client  *command.Client

	// What it has said of itself.
	port    int
	ip      string   // "": that of the connection
	eof     bool     // it takes a snapshot whose length is not known
	psync2  bool     // it takes a new name in +CONTINUE
	rdbOnly bool     // it wants a snapshot and nothing behind it
	runID   string   // "": it has not said
	lineage []string // that it was told, if it has

	state   feedState
	synced  bool  // it came by SYNC, and acknowledges nothing
	since   int64 // when it came to that, by Clock.Mono
	acked   int64 // the offset behind what it has
	ackedAt int64 // when it last said so, by Clock.Mono
	heardAt int64 // when it last said that, or that it is there and still loads, by Clock.Mono
	soft    int64 // since when it has been behind by more than the soft limit, by Clock.Mono; 0: it is not
	early   bool  // it has said that it is done with a snapshot of which nobody has noted yet that it was sent
	why     error // why it is sent nothing more

	// These do not change once run has begun.
	conn   net.Conn
	parts  chan part     // what comes before the stream
	result chan error    // what has become of a part that says so
	loaded chan struct{} // closed when the stream may begin
	quit   chan struct{} // closed when nothing more is to be sent
	ended  bool          // end was called
	until  time.Time     // how long a server that ends waits for it; set before its reader drains

	reader *StreamReader // nil before a snapshot is begun for it; set before the first part is sent
	busy   atomic.Int64  // since when a part has been sent, by mono; 0: none is. Safe for concurrent use
}

// part is a part of what a replica is sent before the stream.
type part struct {
	data   []byte
	file   io.ReadCloser // sent behind data, and closed; nil: none
	body   bool          // no empty lines may be sent any more
	last   bool
	answer bool // result is told
}

// Bytes is what the replica takes up, as a part of its client.
func (f *feed) Bytes() int { return feedOverhead }

// address is where the replica says that it listens.
func (f *feed) address() (ip string, port int) {
	ip = f.ip
	if ip == "" {
		ip, _, _ = net.SplitHostPort(f.client.Conn.Remote)
	}
	return ip, f.port
}

// String names the replica in the log.
func (f *feed) String() string {
	ip, port := f.address()
	if port == 0 {
		return f.client.Conn.Remote
	}
	return net.JoinHostPort(ip, strconv.Itoa(port))
}

// drop has the replica's connection closed. The caller holds the executor's lock.
func (f *feed) drop(why error) {
	f.hangUp(why)
	f.end()
}

// tooSlow is drop for a replica whose reader has been ended, within [Backlog.Append].
func (f *feed) tooSlow() {
	f.hangUp(errSlow)
	f.shut()
}

func (f *feed) hangUp(why error) {
	if f.why == nil {
		f.why = why
	}
	f.client.Conn.CloseNow()
}

// end has run end, or at the server's end first send what there is. The caller holds the executor's lock.
func (f *feed) end() {
	if f.ended {
		return
	}
	if f.reader != nil && f.state == feedOnline && f.why == nil && f.primary.IsStopping() {
		f.ended = true
		patience := f.patience()
		f.until = time.Now().Add(patience)
		f.reader.Drain()
		time.AfterFunc(patience, func() { f.conn.Close() })
		return
	}
	if f.reader != nil {
		f.reader.Close()
	}
	f.shut()
}

// patience is how long a server that ends waits for the replica: not at all if that has said that it has everything. The caller holds the
// executor's lock.
func (f *feed) patience() time.Duration {
	timeout := f.primary.Config.Get().ShutdownTimeout
	switch {
	case f.acked == f.primary.backlog.End():
		return 0
	case f.primary.Hurry.Load():
		return min(timeout, hurriedPatience)
	}
	return timeout
}

// shut has run end. The bytes that it is sending are nobody's any more when quit is closed.
func (f *feed) shut() {
	if !f.ended {
		f.ended = true
		f.conn.Close()
		close(f.quit)
	}
}

// run sends the replica what it is to have until that ends. greeting is nil if a snapshot comes first.
func (f *feed) run(greeting []byte) {
	p := f.primary
	defer p.feeding.Done()
	err := f.send(greeting)
	if errors.Is(err, errStreamEnd) && !f.linger() {
		err = errNotTaken
	}
	f.conn.Close()
	p.Lock()
	defer p.Unlock()
	if f.why == nil {
		f.why = err
	}
	if f.reader != nil {
		f.reader.Close()
	}
	switch {
	case !f.ended:
		f.client.Conn.CloseNow()
	case errors.Is(err, errStreamEnd):
		p.Logger.Info("a replica was sent all changes, and has closed the connection", "replica", f.String())
	case !f.until.IsZero() && f.acked != p.backlog.End():
		if errors.Is(err, errHangup) { // the server has, since its patience was over
			err = errNotTaken
		}
		p.Logger.Warn("a replica may lack the last changes", "replica", f.String(), "behind", p.backlog.End()-f.acked, "err", err)
	}
}

// linger tells the replica that nothing more comes, and reports whether it has closed the connection, which it does when it has all, before
// shutdown-timeout has passed. What it says meanwhile is read: a socket that is closed with anything unread in it is reset, and the kernel
// throws away what was still on its way.
func (f *feed) linger() (closed bool) {
	half, ok := f.conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil || f.conn.SetReadDeadline(f.until) != nil {
		return false
	}
	_, err := io.Copy(io.Discard, f.conn)
	return err == nil
}

func (f *feed) send(greeting []byte) error {
	if greeting != nil {
		if err := f.write(greeting); err != nil {
			return err
		}
	} else if err := f.sendSnapshot(); err != nil {
		return err
	}
	select {
	case <-f.loaded:
	case <-f.quit:
		return errHangup
	}
	if pusher := netpoll.NewPusher(f.conn); pusher != nil {
		f.reader.SetPush(func(parts [][]byte) int {
			sent := pusher.Push(parts)
			f.primary.sent.Add(int64(sent))
			return sent
		})
	}
	for {
		p, err := f.reader.Next()
		if err != nil {
			return err
		}
		if err := f.write(p); err != nil {
			return err
		}
		f.reader.Rest(streamPause)
	}
}

// sendSnapshot sends the parts as they come, and empty lines while none do.
func (f *feed) sendSnapshot() error {
	tick := time.NewTicker(keepAlive)
	defer tick.Stop()
	for {
		select {
		case <-f.quit:
			return errHangup
		case <-tick.C:
			if err := f.write([]byte("\n")); err != nil {
				return err
			}
		case next := <-f.parts:
			if next.body {
				tick.Stop()
			}
			err := f.sendPart(next)
			if next.answer {
				f.result <- err
			}
			if err != nil || next.last {
				return err
			}
		}
	}
}

func (f *feed) sendPart(next part) error {
	err := f.write(next.data)
	if next.file == nil {
		return err
	}
	defer next.file.Close()
	if err != nil {
		return err
	}
	if _, err = io.Copy(feedWriter{f}, next.file); err != nil {
		return err
	}
	f.primary.fileSent(f)
	return nil
}

// feedWriter is a replica as an io.Writer.
type feedWriter struct{ *feed }

// Write implements io.Writer.
func (w feedWriter) Write(p []byte) (int, error) {
	if err := w.write(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// write sends bytes, for which the replica has as long as repl-timeout says.
func (f *feed) write(p []byte) error {
	if err := f.conn.SetWriteDeadline(time.Now().Add(f.primary.Config.Get().ReplTimeout)); err != nil {
		return err
	}
	n, err := f.conn.Write(p)
	f.primary.sent.Add(int64(n))
	if errors.Is(err, net.ErrClosed) {
		return errHangup
	}
	return err
}

// transfer is a snapshot on its way to replicas, which all get the same bytes.
type transfer struct {
	primary *Primary
	id      string
	offset  int64
	to      []*feed       // who gets it; guarded by the executor's lock
	pin     *StreamReader // keeps the changes since it began for those who join; nil: nobody may join
	file    snapshotFile  // where it is written first; nil: it is sent as it is made
	mark    string        // of markLength bytes, that end it if it has no length
	live    []*feed       // those of to who are still sent parts; the snapshot's goroutine's
	begun   bool          // the first part was sent; likewise
}

// snapshotFile is what [journal.SendFile] is.
type snapshotFile interface {
	io.Writer
	Finish(err error) error
	Open() (io.ReadCloser, int64, error)
	Remove() error
}

// greeting is the answer to a replica that is sent all data; nothing for one that came by SYNC.
func (t *transfer) greeting(f *feed) []byte {
	if f.synced {
		return []byte{}
	}
	return []byte("+FULLRESYNC " + t.id + " " + strconv.FormatInt(t.offset, 10) + "\r\n")
}

// take has a replica be sent the snapshot. The caller holds the executor's lock, and has given it its reader.
func (t *transfer) take(f *feed) {
	t.to = append(t.to, f)
	f.state = feedCopies
	f.parts <- part{data: t.greeting(f)} // there is room for one, and it is the first
}

// Write takes a part of the snapshot, for [journal.Receiver].
func (t *transfer) Write(p []byte) error {
	if t.file != nil {
		_, err := t.file.Write(p)
		return err
	}
	if !t.begun {
		t.begun = true
		if err := t.pass(part{data: []byte(eofPrefix + t.mark + "\r\n"), body: true}); err != nil {
			return err
		}
	}
	return t.pass(part{data: p, body: true})
}

// pass has a part sent to all who are there, and returns when they have it. Those who cannot be sent it are left out from then on.
func (t *transfer) pass(next part) error {
	next.answer = true
	for _, f := range t.live {
		f.busy.Store(mono())
		select {
		case f.parts <- next:
		case <-f.quit:
		}
	}
	kept := t.live[:0]
	for _, f := range t.live {
		select {
		case err := <-f.result:
			if f.busy.Store(0); err == nil {
				kept = append(kept, f)
			}
		case <-f.quit:
		}
	}
	if t.live = kept; len(kept) == 0 {
		return errNoReplica
	}
	return nil
}

var errNoReplica = errors.New("no replica is left that wants it")

// Finish ends what is written, for [journal.Receiver]. Whoever gives the snapshot up waits for it with the executor's lock, which it must not take therefore.
func (t *transfer) Finish(err error) error {
	switch {
	case t.file != nil:
		return t.file.Finish(err)
	case err != nil:
		return err
	}
	return t.pass(part{data: []byte(t.mark), body: true, last: true})
}

// done has the file sent, or what follows the snapshot, or ends the sending, for [journal.Receiver]. The caller holds the executor's lock.
func (t *transfer) done(err error) {
	p := t.primary
	if t.pin != nil {
		t.pin.Close()
		t.pin = nil
	}
	switch {
	case err != nil:
		t.abort()
	case t.file == nil:
		for _, f := range t.live {
			p.snapshotSent(f)
		}
	default:
		for _, f := range t.to {
			if opening := t.sendFile(f); opening != nil && err == nil {
				err = opening
			}
		}
		err = errors.Join(err, t.file.Remove())
	}
	p.transferred(err)
}

// sendFile has a replica be sent the file. The caller holds the executor's lock.
func (t *transfer) sendFile(f *feed) error {
	if f.ended {
		return nil
	}
	file, size, err := t.file.Open()
	if err != nil {
		f.drop(errSnapshot)
		return err
	}
	f.state = feedSends
	go func() {
		select {
		case f.parts <- part{data: []byte("$" + strconv.FormatInt(size, 10) + "\r\n"), file: file, body: true, last: true}:
		case <-f.quit:
			file.Close()
		}
	}()
	return nil
}

// hurry cuts off those who keep the snapshot waiting, and not those who take it quickly, for [journal.Receiver].
func (t *transfer) hurry() {
	if t.file == nil {
		for _, f := range t.to {
			if since := f.busy.Load(); since != 0 && mono()-since > int64(quickPart) {
				f.drop(errHurry)
			}
		}
	}
}

// abort cuts off all who wait for the snapshot, for [journal.Receiver]. The caller holds the executor's lock.
func (t *transfer) abort() {
	for _, f := range t.to {
		f.drop(errSnapshot)
	}
}

// shownAddress is an address as INFO shows it: its parts are separated by commas there.
func shownAddress(ip string) string { return strings.ReplaceAll(ip, ",", "_") }
