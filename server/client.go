package server

import (
	"cmp"
	"slices"
	"sync/atomic"

	"headgate/server/acl"
	"headgate/server/netpoll"
	"headgate/server/resp"
	"headgate/store"
)

// Client is one connection's state above the protocol. Its fields are guarded by the executor's lock.
type Client struct {
	id      int64 // 0 while it is not registered
	index   int   // place in clientTable.list
	conn    *netpoll.Conn
	reply   *resp.Writer // the connection's output buffer
	aside   resp.Writer  // messages that came while CLIENT REPLY leaves out what the running command answers
	db      *store.DB
	created int64 // ns
	seen    int64 // ns, when its last command ran
	name    string
	libName string
	libVer  string
	unix    bool // connected through a Unix socket
	user    *acl.User

	authenticated bool // changed only by the client's own commands
	guarded       bool // each command is looked at, since not all are allowed: it has not authenticated, or its user may not do everything
	noEvict       bool
	noTouch       bool
	held          bool // waits for the end of a pause
	heldAt        int  // place in pause.held, if so
	monitorsAt    int  // place in Server.monitors, if it monitors
	replyMode     replyMode
	lastCmd       *Command
	inputErr      error // why its input cannot be read on; its own worker's

	blocked  *blocked      // waits for a key; nil: it does not
	tracking *trackingMode // nil: it does not
	monitors bool
	limited  bool           // it may not run every command, since it subscribes or monitors
	subs     *subscriptions // nil while there are none
	multi    *transaction
	watches  store.Watches
	input    atomic.Int64 // bytes of a command that has not come whole, or of what may not run yet
	hasInput bool         // input is not 0; its own worker's
	softFrom int64        // ns since when the output buffer has been over its soft limit; 0 = it is not
}

// replyMode is what CLIENT REPLY has set.
type replyMode uint8

const (
	replyOn replyMode = iota
	replyOff
	replySkipNext // the next command's reply is left out
	replySkip     // this command's reply is left out
)

// opened registers a new connection, or answers why it cannot stay.
func (s *Server) opened(c *netpoll.Conn) {
	s.Lock()
	defer s.Unlock()
	s.clock.Read()
	cl := &Client{
		conn: c, reply: &c.Out, db: s.keys.DB(0), created: s.clock.Mono(), seen: s.clock.Mono(),
		unix: isUnixAddress(c.Local),
	}
	s.becomeDefault(cl)
	c.Client = cl
	s.stats.connections++
	if refusal := s.refuses(cl); refusal != "" {
		cl.reply.Error(refusal)
		s.stats.rejectedConnections++
		c.CloseAfterReply()
		return
	}
	s.nextClientID++
	cl.id = s.nextClientID
	s.clients.add(cl)
}

// refuses returns the error with which a new connection is turned away, or nothing.
func (s *Server) refuses(cl *Client) string {
	cfg := s.config.Get()
	switch {
	case len(s.clients.list) >= s.maxClients:
		return errMaxClients
	case cfg.ProtectedMode && s.access.users.Default().NoPass() && !cl.unix && !isLoopback(cl.conn.Remote):
		return errProtected
	}
	return ""
}

// closed forgets a connection.
func (s *Server) closed(c *netpoll.Conn) {
	s.Lock()
	defer s.Unlock()
	cl := c.Client.(*Client)
	s.endWait(cl)
	s.pause.release(cl)
	s.endTransaction(cl)
	s.endAllSubscriptions(cl)
	s.untrack(cl)
	s.endMonitoring(cl)
	s.setNoTouch(cl, false)
	s.clients.remove(cl)
}

// readLimits returns what the reader is to accept from a client. The client's own worker calls it, without the lock.
func (s *Server) readLimits(cl *Client) *resp.Limits {
	if cl.mustAuthenticate(s) {
		return s.unauthLimits.Load()
	}
	return s.limits.Load()
}

// mustAuthenticate reports whether the client may not do much yet, since the default user has a password and it has not given one.
func (cl *Client) mustAuthenticate(s *Server) bool {
	return !cl.authenticated && s.access.closed.Load()
}

// maxWatches bounds what one client may watch, so that its memory has a limit.
const maxWatches = 1 << 20

// unwatch forgets the keys that a client watches.
func (s *Server) unwatch(cl *Client) {
	if cl.watches.Len() <= remainsPerClient {
		cl.watches.Release(remainsPerClient)
		return
	}
	let := watchLeftover{cl.watches}
	cl.watches = store.Watches{}
	s.letGo(&let)
}

// watchLeftover is what a client watched.
type watchLeftover struct{ store.Watches }

func (w *watchLeftover) takeOut(_ *Server, n int) int { return w.Release(n) }
func (w *watchLeftover) size() int                    { return w.Bytes() }

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
