//go:build !linux

package netpoll

import "time"

// threadTime returns how long the calling thread has had a processor; 0 if that is not known.
func threadTime() time.Duration { return 0 }
