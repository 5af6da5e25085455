package server

import (
	"headgate/server/netpoll"
	"headgate/server/resp"
)

// opened registers a new connection, or answers why it cannot stay.
func (x *Executor) opened(c *netpoll.Conn) {
	x.Lock()
	defer x.Unlock()
	x.clock.Read()
	cl := &Client{
		conn: c, reply: &c.Out, db: x.keys.DB(0), created: x.clock.Mono(), seen: x.clock.Mono(),
		unix: isUnixAddress(c.Local),
	}
	x.access.becomeDefault(cl)
	c.Client = cl
	x.stats.connections++
	if refusal := x.refuses(cl); refusal != "" {
		cl.reply.Error(refusal)
		x.stats.rejectedConnections++
		c.CloseAfterReply()
		return
	}
	x.nextClientID++
	cl.id = x.nextClientID
	x.clients.add(cl)
}

// refuses returns the error with which a new connection is turned away, or nothing.
func (x *Executor) refuses(cl *Client) string {
	cfg := x.config.Get()
	switch {
	case len(x.clients.list) >= x.maxClients:
		return errMaxClients
	case cfg.ProtectedMode && x.access.users.Default().NoPass() && !cl.unix && !isLoopback(cl.conn.Remote):
		return errProtected
	}
	return ""
}

// closed forgets a connection.
func (x *Executor) closed(c *netpoll.Conn) {
	x.Lock()
	defer x.Unlock()
	cl := c.Client.(*Client)
	x.endWait(cl)
	x.pause.release(cl)
	x.endTransaction(cl)
	x.hub.endAllSubscriptions(cl)
	x.hub.untrack(cl)
	x.recorder.endMonitoring(cl)
	x.setNoTouch(cl, false)
	x.clients.remove(cl)
}

// readLimits returns what the reader is to accept from a client. The client's own worker calls it, without the lock.
func (x *Executor) readLimits(cl *Client) *resp.Limits {
	if x.mustAuthenticate(cl) {
		return x.unauthLimits.Load()
	}
	return x.limits.Load()
}
