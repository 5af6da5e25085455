package server

// clientMemory returns the bytes that all clients take up, those included that are gone but not out of the server's tables yet.
func (s *Server) clientMemory() int {
	n := s.remains.bytes
	for _, cl := range s.clients.list {
		n += cl.memory()
	}
	return n
}
