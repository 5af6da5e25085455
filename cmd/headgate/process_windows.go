package main

import (
	"os"
	"time"
)

// closeOnExec does nothing: on Windows programs get the handles that they are given, and no others.
func closeOnExec(int) {}

// monotonic is systemd's clock, and there is no systemd.
func monotonic() (now time.Duration, ok bool) { return 0, false }

// kill ends this process as a signal would that it does not handle.
func kill(os.Signal) { os.Exit(killedCode) }

// killedCode is the exit code of a process that Ctrl-C has ended.
const killedCode = 0xC000013A - 1<<32
