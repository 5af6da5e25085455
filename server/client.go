package server

import (
	"cmp"
	"net"
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
	id      int64 // 0 while it is not registered
	conn    *netpoll.Conn
	reply   *resp.Writer // the connection's output buffer
	aside   resp.Writer  // messages that came while CLIENT REPLY leaves out what the running command answers
	db      *store.DB
	created int64 // ns
	seen    int64 // ns, when its last command ran
	unix    bool  // connected through a Unix socket
	user    *acl.User
	clientNames

	authenticated bool // changed only by the client's own commands
	guarded       bool // each command is looked at, since not all are allowed: it has not authenticated, or its user may not do everything
	limited       bool // it may not run every command, since it subscribes or monitors
	noEvict       bool
	noTouch       bool
	held          bool // waits for the end of a pause
	monitors      bool
	replyMode     replyMode
	lastCmd       *Command
	softFrom      int64 // ns since when the output buffer has been over its soft limit; 0 = it is not
	watches       store.Watches

	clientInput
	clientParts
	clientPlaces
}

// clientNames is what a client has said of itself.
type clientNames struct{ name, libName, libVer string }

// clientInput is what is known of a client's input. Its own worker's are all but the number of bytes.
type clientInput struct {
	input    atomic.Int64 // bytes of a command that has not come whole, or of what may not run yet
	hasInput bool         // input is not 0
	inputErr error        // why the input cannot be read on
}

// clientParts are what other parts of the server keep for a client, each nil while there is nothing. What more they are than their size is
// known to those parts alone.
type clientParts struct {
	blocked  sized // the wait for a key
	tracking sized // what CLIENT TRACKING has set
	subs     sized // what it has subscribed to
	multi    sized // what is queued since MULTI
}

// sized is something that takes up memory.
type sized interface {
	Bytes() int // about
}

// clientPlaces are a client's places in the lists that it is in.
type clientPlaces struct {
	index      int // in clientTable.list
	heldAt     int // in pause.held
	monitorsAt int // in Recorder.monitors
}

// replyMode is what CLIENT REPLY has set.
type replyMode uint8

const (
	replyOn replyMode = iota
	replyOff
	replySkipNext // the next command's reply is left out
	replySkip     // this command's reply is left out
)

// memory returns the bytes that a client's names, its transaction, its replies and its entries in the server's tables take up.
func (cl *Client) memory() int {
	n := max(cl.reply.Cap(), cl.conn.Unsent()) + len(cl.name) + len(cl.libName) + len(cl.libVer)
	for _, part := range [...]sized{cl.blocked, cl.tracking, cl.subs, cl.multi} {
		if part != nil {
			n += part.Bytes()
		}
	}
	return n + cl.watches.Bytes() + int(cl.input.Load())
}

// noteInput notes how much has come that is not run: an unfinished command, or what a client has sent that waits. The client's own worker
// calls it, without the lock.
func (cl *Client) noteInput(n int) {
	cl.hasInput = n > 0
	cl.input.Store(int64(n))
}

// local reports whether the client is on this machine.
func (cl *Client) local() bool { return cl.unix || isLoopback(cl.conn.Remote) }

// mustAuthenticate reports whether a client may not do much yet, since the default user has a password and it has not given one. The
// client's own worker may ask without the lock.
func (s *Core) mustAuthenticate(cl *Client) bool {
	return !cl.authenticated && s.gate.has(gatePassword)
}

// clientTable holds the registered clients: by ID for CLIENT KILL and its like, and in a list for walks in slices.
type clientTable struct {
	byID map[int64]*Client
	list []*Client
	hand int // where the next slice of the walk begins
}

func (t *clientTable) add(cl *Client) {
	cl.index = len(t.list)
	t.list = append(t.list, cl)
	t.byID[cl.id] = cl
}

func (t *clientTable) remove(cl *Client) {
	if cl.id == 0 {
		return
	}
	last := len(t.list) - 1
	t.list[cl.index] = t.list[last]
	t.list[cl.index].index = cl.index
	t.list[last] = nil
	t.list = t.list[:last]
	delete(t.byID, cl.id)
}

// sorted returns the clients by ID, oldest first.
func (t *clientTable) sorted() []*Client {
	list := slices.Clone(t.list)
	slices.SortFunc(list, func(a, b *Client) int { return cmp.Compare(a.id, b.id) })
	return list
}

// clientType is a class of clients as the TYPE filters name it.
type clientType uint8

const (
	typeAny clientType = iota
	typeNormal
	typePubSub
	typeOther // replicas and masters, of which there are none
)

// class returns the class that a client is of.
func (cl *Client) class() clientType {
	if cl.subs != nil {
		return typePubSub
	}
	return typeNormal
}

// isLoopback reports whether a client's address is of this machine.
func isLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return true // a Unix socket, or a pipe in a test
	}
	ip := net.ParseIP(host)
	return ip == nil || ip.IsLoopback()
}

func isUnixAddress(addr string) bool {
	return strings.HasPrefix(addr, "/") || !strings.Contains(addr, ":")
}

// lastCommandName is the full name of the command that the client ran last, as CLIENT LIST shows it.
func (cl *Client) lastCommandName() string {
	if cl.lastCmd == nil {
		return "NULL"
	}
	return cl.lastCmd.fullName
}
