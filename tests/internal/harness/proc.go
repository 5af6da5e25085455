package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

// clockTick is the unit of CPU time in /proc/PID/stat on every Linux that Go supports.
const clockTick = 10 * time.Millisecond

// RSS is the process's resident memory in bytes.
func (s *Server) RSS() int64 {
	s.t.Helper()
	resident, err := s.Status("VmRSS")
	require.NoError(s.t, err)
	return resident
}

// ResetPeak has the peak of resident memory, VmHWM, start again from what is resident now.
func (s *Server) ResetPeak() error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", s.PID()), []byte("5"), 0o200)
}

// Status is a field of /proc/PID/status that is a size, in bytes. A process that has ended has none.
func (s *Server) Status(field string) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.PID()))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, field+":"); ok {
			kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("no %s in /proc/%d/status", field, s.PID())
}

// CPU is the processor time, user and system, that the process has used since it started, in steps of 10 ms.
func (s *Server) CPU() time.Duration {
	s.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.PID()))
	require.NoError(s.t, err)
	// The second field is the program's name in parentheses and may hold spaces: count from its end.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	var ticks int64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		require.NoError(s.t, err)
		ticks += n
	}
	return time.Duration(ticks) * clockTick
}

// OpenFiles is the number of file descriptors that the process holds.
func (s *Server) OpenFiles() int {
	s.t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.PID()))
	require.NoError(s.t, err)
	return len(entries)
}

// listens reports whether it is this process that listens on its port: while it starts, another one may have taken the port, and answer there.
func (s *Server) listens() bool {
	const listening = "0A"
	sockets := make(map[string]bool)
	fds, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", s.PID()))
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil {
			sockets[to] = true
		}
	}
	suffix := fmt.Sprintf(":%04X", s.Port)
	for _, table := range []string{"tcp", "tcp6"} {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", s.PID(), table))
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line) // number, local address, peer, state, queues, timer, retransmits, user, timeout, inode
			if len(f) > 9 && f[3] == listening && strings.HasSuffix(f[1], suffix) && sockets["socket:["+f[9]+"]"] {
				return true
			}
		}
	}
	return false
}
