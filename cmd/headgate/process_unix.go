//go:build unix

package main

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// closeOnExec keeps programs that this one starts from getting a descriptor.
func closeOnExec(fd int) { syscall.CloseOnExec(fd) }

// monotonic is the system's monotonic clock, as systemd reads it.
func monotonic() (now time.Duration, ok bool) {
	var t unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	return time.Duration(t.Nano()), err == nil
}

// kill sends this process a signal.
func kill(sig os.Signal) { _ = syscall.Kill(os.Getpid(), sig.(syscall.Signal)) }
