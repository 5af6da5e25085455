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

// Stolen is how much processor time the host of a virtual machine has given to others since the machine's start; 0 where nobody counts that.
func Stolen() time.Duration {
	if all := stolen(); len(all) > 0 {
		return all[0]
	}
	return 0
}

// stolen is that of all processors together, and then of each.
func stolen() (all []time.Duration) {
	const steal = 8 // user, nice, system, idle, iowait, irq, softirq and steal, after the name
	stat, _ := os.ReadFile("/proc/stat")
	for line := range strings.Lines(string(stat)) {
		fields := strings.Fields(line)
		if len(fields) <= steal || !strings.HasPrefix(fields[0], "cpu") {
			break
		}
		ticks, _ := strconv.ParseInt(fields[steal], 10, 64)
		all = append(all, time.Duration(ticks)*clockTick)
	}
	return all
}

// stolenLook is the time between two looks at what the host has taken away.
const stolenLook = 5 * time.Millisecond

// WatchStolen looks at what the host takes away until stop is called, which returns how much that was, and how much of it one processor
// lost at once, to about 10 ms: nothing that ran there could answer for that long.
func WatchStolen() (stop func() (sum, longest time.Duration)) {
	end, longest := make(chan struct{}), make(chan time.Duration)
	first := stolen()
	go func() {
		most := time.Duration(0)
		ticker := time.NewTicker(stolenLook)
		defer ticker.Stop()
		for last := first; ; {
			select {
			case <-end:
				longest <- most
				return
			case <-ticker.C:
			}
			now := stolen()
			for i := 1; i < min(len(now), len(last)); i++ {
				most = max(most, now[i]-last[i])
			}
			last = now
		}
	}()
	return func() (sum, most time.Duration) {
		close(end)
		most = <-longest
		if now := stolen(); len(first) > 0 && len(now) > 0 {
			sum = now[0] - first[0]
		}
		return sum, most
	}
}

// OpenFiles is the number of file descriptors that the process holds.
func (s *Server) OpenFiles() int {
	s.t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.PID()))
	require.NoError(s.t, err)
	return len(entries)
}
