package exec

import (
	"headgate/server/command"
	"headgate/server/netpoll"
	"headgate/server/resp"
)

// opened registers a new connection, or answers why it cannot stay. The caller holds the executor's lock.
func (x *Executor) opened(c *netpoll.Conn) {
	x.Clock.Read()
	cl := &command.Client{
		Conn: c, Reply: &c.Out, DB: x.Keys.DB(0), Created: x.Clock.Mono(), Seen: x.Clock.Mono(),
		Unix: c.Unix,
	}
	x.Access.BecomeDefault(cl)
	c.Client = cl
	x.Stats.Connections++
	if refusal := x.refuses(cl); refusal != "" {
		cl.Reply.Error(refusal)
		x.Stats.RejectedConnections++
		c.CloseAfterReply()
		return
	}
	x.nextClientID++
	cl.ID = x.nextClientID
	x.Clients.Add(cl)
}

// refuses returns the error with which a new connection is turned away, or nothing.
func (x *Executor) refuses(cl *command.Client) string {
	cfg := x.Config.Get()
	switch {
	case len(x.Clients.List) >= x.MaxClients:
		return command.ErrMaxClients
	case cfg.ProtectedMode && x.Access.Users.Default().NoPass() && !cl.Unix && !command.IsLoopback(cl.Conn.Remote):
		return command.ErrProtected
	}
	return ""
}

// forget takes a client out of all tables.
func (x *Executor) forget(cl *command.Client) {
	_, stood := cl.Blocked.(command.Waiter)
	x.EndWait(cl)
	if stood {
		x.Soon() // others may have waited behind it
	}
	x.forgetAnswers(cl)
	x.Pause.release(cl)
	x.EndTransaction(cl)
	x.Hub.EndAllSubscriptions(cl)
	x.Hub.Untrack(cl)
	x.Recorder.EndMonitoring(cl)
	x.SetNoTouch(cl, false)
	if cl.Replica != nil && x.above.ReplicaGone != nil {
		x.above.ReplicaGone(cl)
	}
	x.Clients.Remove(cl)
}

// readLimits returns what the reader is to accept from a client. The client's own worker calls it, without the lock.
func (x *Executor) readLimits(cl *command.Client) *resp.Limits {
	if x.MustAuthenticate(cl) {
		return x.unauthLimits.Load()
	}
	return x.limits.Load()
}

// ClientMemory returns the bytes that all clients take up, those included that are gone but not out of the server's tables yet. The
// caller holds the executor's lock.
func (x *Executor) ClientMemory() int {
	n := x.Remains.Bytes
	for _, cl := range x.Clients.List {
		n += cl.Memory()
	}
	return n
}
