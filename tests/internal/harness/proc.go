package harness

import (
	"fmt"
	"os"
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
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.PID()))
	require.NoError(s.t, err)
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			require.NoError(s.t, err)
			return kib << 10
		}
	}
	require.FailNow(s.t, "no VmRSS in /proc/PID/status")
	return 0
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
