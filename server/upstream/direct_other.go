//go:build !unix

package upstream

import (
	"io"
	"net"
)

// direct is nil where sockets are no file descriptors: the writer goroutine writes.
type direct struct{}

func newDirect(net.Conn) *direct { return nil }

func directTo(*socket) *direct { return nil }

func (*direct) write([]byte) (int, error) { return 0, nil }

func newInput(conn net.Conn) io.Reader { return conn }
