package bench

import (
	"os/exec"
	"syscall"
	"time"
)

// processorTime is what this process has used so far.
func processorTime() time.Duration {
	process, err := syscall.GetCurrentProcess()
	if err != nil {
		return 0
	}
	var created, exited, kernel, user syscall.Filetime
	if syscall.GetProcessTimes(process, &created, &exited, &kernel, &user) != nil {
		return 0
	}
	return filetimeDuration(kernel) + filetimeDuration(user)
}

// filetimeDuration is a length of time, which Windows counts in 100 ns. (Filetime.Nanoseconds is for moments: it subtracts 1601 to 1970.)
func filetimeDuration(t syscall.Filetime) time.Duration {
	return time.Duration(int64(t.HighDateTime)<<32|int64(t.LowDateTime)) * 100
}

// apart keeps Ctrl-C on a terminal from ending the servers before the report is written.
func apart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
