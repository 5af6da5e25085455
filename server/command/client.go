package command

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"

	"headgate/server/acl"
	"headgate/server/netpoll"
	"headgate/server/resp"
	"headgate/store"
)

// Client is one connection's state above the protocol. Its fields are guarded by the executor's lock.
type Client struct {
	ID      int64 // 0 while it is not registered
	Conn    *netpoll.Conn
	Reply   *resp.Writer // the connection's output buffer
	Aside   resp.Writer  // messages that came while CLIENT REPLY leaves out what the running command answers
	DB      *store.DB
	Created int64  // ns
	Seen    int64  // ns, when its last command ran, or its input or output was seen to move
	Moved   [2]int // its input and its output when timeout was last looked at
	Unix    bool   // connected through a Unix socket
	User    *acl.User
	clientNames

	Authenticated bool // changed only by the client's own commands
	Guarded       bool // each command is looked at, since not all are allowed: it has not authenticated, or its user may not do everything
	Limited       bool // it may not run every command, since it replicates, subscribes or monitors
	Replicates    bool // it is a replica: what changes is sent to it by somebody else than its front, and it is answered nothing
	Primary       bool // what it sends are the changes of the server that this one follows; nothing of it is refused
	NoEvict       bool
	NoTouch       bool
	ReadsReplica  bool // a replica answers its reads, instead of sending it on to the primary
	Held          bool // waits for the end of a pause
	Monitors      bool
	ReplyMode     ReplyMode
	LastCmd       *Command
	SoftFrom      int64 // ns since when the output buffer has been over its soft limit; 0 = it is not
	Watches       store.Watches

	clientInput
	clientParts
	clientPlaces
}

// clientNames is what a client has said of itself.
type clientNames struct{ Name, LibName, LibVer string }

// clientInput is what is known of a client's input. Its own worker's are all but the number of bytes.
type clientInput struct {
	Input    atomic.Int64 // bytes that its worker has left, of a command that has not come whole or may not run yet; see Client.Waiting
	HasInput bool         // input is not 0
	InputErr error        // why the input cannot be read on
	Pinged   atomic.Bool  // a replica has sent an empty line since somebody looked: it is there, and does something that takes long
}

// clientParts are what other parts of the server keep for a client, each nil while there is nothing. What more they are than their size is
// known to those parts alone.
type clientParts struct {
	Blocked  Sized // the wait for a key
	Tracking Sized // what CLIENT TRACKING has set
	Subs     Sized // what it has subscribed to
	Multi    Sized // what is queued since MULTI
	Deferred Sized // the answers that come later
	Replica  Sized // what it has said of itself as a replica, and what it has been sent
}

// Sized is something that takes up memory.
type Sized interface {
	Bytes() int // about
}

// clientPlaces are a client's places in the lists that it is in.
type clientPlaces struct {
	index      int // in ClientTable.List
	HeldAt     int // among the clients that a pause holds
	MonitorsAt int // among the clients that monitor
}

// Memory returns the bytes that a client's names, its transaction, its replies and its entries in the server's tables take up.
func (cl *Client) Memory() int {
	n := max(cl.Reply.Cap(), cl.Conn.Unsent()) + len(cl.Name) + len(cl.LibName) + len(cl.LibVer)
	for _, part := range [...]Sized{cl.Blocked, cl.Tracking, cl.Subs, cl.Multi, cl.Deferred, cl.Replica} {
		if part != nil {
			n += part.Bytes()
		}
	}
	return n + cl.Watches.Bytes() + cl.Waiting()
}

// Waiting is how many bytes of the client's input are noted: those of a command that has not come whole, or of what may not run yet.
func (cl *Client) Waiting() int { return max(int(cl.Input.Load()), cl.Conn.Resting()) }

// NoteInput notes how much has come that is not run: an unfinished command, or what a client has sent that waits. The client's own worker
// calls it, without the lock.
func (cl *Client) NoteInput(n int) {
	cl.HasInput = n > 0
	cl.Input.Store(int64(n))
}

// Local reports whether the client is on this machine.
func (cl *Client) Local() bool { return cl.Unix || IsLoopback(cl.Conn.Remote) }

// MustAuthenticate reports whether a client may not do much yet, since the default user has a password and it has not given one. The
// client's own worker may ask without the lock.
func (s *Core) MustAuthenticate(cl *Client) bool {
	return !cl.Authenticated && s.Gate.Has(GatePassword)
}

// ClientTable holds the registered clients: by ID for CLIENT KILL and its like, and in a list for walks in slices.
type ClientTable struct {
	ByID map[int64]*Client
	List []*Client
	Hand int // where the next slice of the walk begins
}

// Add registers a client, which has its ID. The caller holds the executor's lock, as for Remove.
func (t *ClientTable) Add(cl *Client) {
	cl.index = len(t.List)
	t.List = append(t.List, cl)
	t.ByID[cl.ID] = cl
}

// Remove takes a client out, if it is registered.
func (t *ClientTable) Remove(cl *Client) {
	if cl.ID == 0 {
		return
	}
	last := len(t.List) - 1
	t.List[cl.index] = t.List[last]
	t.List[cl.index].index = cl.index
	t.List[last] = nil
	t.List = t.List[:last]
	delete(t.ByID, cl.ID)
}

// Sorted returns the clients by ID, oldest first.
func (t *ClientTable) Sorted() []*Client {
	list := slices.Clone(t.List)
	slices.SortFunc(list, func(a, b *Client) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// ClientType is a class of clients as the TYPE filters name it.
type ClientType uint8

// The classes of clients.
const (
	ClientTypeAny ClientType = iota
	ClientTypeNormal
	ClientTypePubSub
	ClientTypeMaster  // the primary, if one is followed
	ClientTypeReplica // those that this server sends its changes to
)

// Type returns the class that a client is of.
func (cl *Client) Type() ClientType {
	if cl.Primary {
		return ClientTypeMaster
	}
	if cl.Replicates {
		return ClientTypeReplica
	}
	if cl.Subs != nil {
		return ClientTypePubSub
	}
	return ClientTypeNormal
}

// IsLoopback reports whether a client's address is of this machine: a loopback address, a Unix socket's, or that of a pipe in a test. What has a
// port and cannot be read is not.
func IsLoopback(addr string) bool {
	if strings.HasPrefix(addr, "/") || !strings.Contains(addr, ":") { // a path, or what has no port
		return true
	}
	at, err := netip.ParseAddrPort(addr)
	return err == nil && at.Addr().Unmap().IsLoopback()
}

// LastCommandName returns the full name of the command that the client ran last, as CLIENT LIST shows it: "NULL" if it has run none.
func (cl *Client) LastCommandName() string {
	if cl.LastCmd == nil {
		return "NULL"
	}
	return cl.LastCmd.FullName
}
