//go:build !linux

package gateway

import "time"

var started = time.Now()

// bootTime is a monotonic time in ns. It may stand still while the machine is suspended: then leases last for longer by that.
func bootTime() int64 { return int64(time.Since(started)) + 1 }
