package harness

import (
	"os/exec"
	"syscall"
)

// startOwnSession has a command start in a session of its own. What ends a terminal's programs does not reach it there, so it is killed once the thread
// that has started it is gone.
func startOwnSession(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}
