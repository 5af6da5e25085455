package server

// clientMemory returns the bytes that all clients take up, those included that are gone but not out of the server's tables yet.
func (x *Executor) clientMemory() int {
	n := x.remains.bytes
	for _, cl := range x.clients.list {
		n += cl.memory()
	}
	return n
}
