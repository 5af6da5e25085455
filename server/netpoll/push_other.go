//go:build !linux

package netpoll

import "net"

// PushParts is how many pieces of memory one push sends at most.
const PushParts = 8

// Pusher sends over a connection what its socket takes at once.
type Pusher struct{}

// NewPusher returns nil: here no loop pushes anything.
func NewPusher(net.Conn) *Pusher { return nil }

// Push is never called.
func (*Pusher) Push([][]byte) (sent int) { return 0 }
