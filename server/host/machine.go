package host

import (
	"bytes"
	"io/fs"
	"math"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// MemoryLimit returns the bytes of memory that the process may have, by its control group or by its own limits on data and addresses, or 0
// if it may have all there is.
func MemoryLimit() uint64 {
	limit := smallest(cgroupLimit(os.DirFS("/")), processLimit())
	if total := SystemMemory(); total > 0 && limit >= total {
		return 0
	}
	return limit
}

// smallest is the smaller of two limits, of which 0 is none.
func smallest(a, b uint64) uint64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// cgroupLimit returns the smallest limit of the process's control groups, of version 2 or 1 of their interface. Where the process sees only
// a part of the hierarchy, as in a container, its own group is at the top of what it sees.
func cgroupLimit(root fs.FS) (limit uint64) {
	membership, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(membership) {
		parts := strings.SplitN(strings.TrimSpace(string(line)), ":", 3)
		if len(parts) != 3 {
			continue
		}
		switch controllers, group := strings.Split(parts[1], ","), path.Clean("/"+parts[2]); {
		case parts[0] == "0":
			limit = smallest(limit, groupLimit(root, "sys/fs/cgroup", group, "memory.max"))
			limit = smallest(limit, groupLimit(root, "sys/fs/cgroup/unified", group, "memory.max"))
		case slices.Contains(controllers, "memory"):
			limit = smallest(limit, groupLimit(root, "sys/fs/cgroup/memory", group, "memory.limit_in_bytes"))
		}
	}
	return limit
}

// unlimitedGroup is a number that groups of version 1 without a limit show one near of.
const unlimitedGroup = math.MaxInt64 / 2

// groupLimit returns the smallest limit of a group and those that it is in.
func groupLimit(root fs.FS, mount, group, file string) (limit uint64) {
	for {
		if text, err := fs.ReadFile(root, path.Join(mount, group, file)); err == nil {
			if n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil && n < unlimitedGroup {
				limit = smallest(limit, n)
			}
		}
		if group == "/" {
			return limit
		}
		group = path.Dir(group)
	}
}

// The process's own limits count what is mapped, whether it is used or not, and the Go runtime and its threads map more than they use.
const (
	mappingMargin = 128 << 20 // bytes that they may map beside what they have at the start
	leastMapped   = 16        // a part of the limit that data may have even so
)

// processSize returns the bytes of addresses that the process has, of those for data, and of memory behind them; 0 where /proc does not
// tell.
func processSize() (size, data, resident uint64) {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, 0, 0
	}
	var pages [6]uint64 // size, resident, shared, text, nothing, data
	for i, field := range bytes.Fields(statm) {
		if i < len(pages) {
			pages[i], _ = strconv.ParseUint(string(field), 10, 64)
		}
	}
	page := uint64(os.Getpagesize())
	return pages[0] * page, pages[5] * page, pages[1] * page
}
