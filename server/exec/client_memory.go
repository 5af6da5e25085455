package exec

// ClientMemory returns the bytes that all clients take up, those included that are gone but not out of the server's tables yet.
func (x *Executor) ClientMemory() int {
	n := x.Remains.Bytes
	for _, cl := range x.Clients.List {
		n += cl.Memory()
	}
	return n
}
