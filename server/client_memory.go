package server

// memory returns the bytes that a client's names, its transaction, its replies and its entries in the server's tables take up.
func (cl *Client) memory() int {
	n := max(cl.reply.Cap(), cl.conn.Unsent()) + len(cl.name) + len(cl.libName) + len(cl.libVer)
	if cl.multi != nil {
		n += cl.multi.size()
	}
	if cl.blocked != nil {
		n += cl.blocked.held
	}
	n += cl.subs.bytes() + cl.watches.Bytes()
	if cl.tracking != nil && cl.tracking.listener != nil {
		n += cl.tracking.listener.bytes
	}
	return n + int(cl.input.Load())
}

// clientMemory returns the bytes that all clients take up, those included that are gone but not out of the server's tables yet.
func (s *Server) clientMemory() int {
	n := s.remains.bytes
	for _, cl := range s.clients.list {
		n += cl.memory()
	}
	return n
}
