package harness

import (
	"os/exec"
	"syscall"
)

// ownSession has a server run in a session of its own, as service managers and containers give each a group of its own: Linux's scheduler otherwise
// takes all servers, their clients and the test for one program, and spreads a call that goes from one to the next over the processors. What ends a
// terminal's programs does not reach it there, so it is killed once the thread that has started it is gone.
func ownSession(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}
