//go:build !linux

package web

import "net"

// hangUps returns a func that knows of nobody who has hung up: what has arrived stands before that news.
func hangUps(net.Conn) (hungUp func() bool) { return never }
