package server

import (
	"headgate/server/netpoll"
	"headgate/server/resp"
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
	case cfg.ProtectedMode && s.users.Default().NoPass() && !cl.unix && !isLoopback(cl.conn.Remote):
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
	if s.mustAuthenticate(cl) {
		return s.unauthLimits.Load()
	}
	return s.limits.Load()
}
