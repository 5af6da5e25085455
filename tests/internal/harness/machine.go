package harness

import (
	"cmp"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Stolen is how much processor time the host of a virtual machine has given to others since the machine's start; 0 where nobody counts that.
func Stolen() time.Duration {
	const steal = 8 // user, nice, system, idle, iowait, irq, softirq and steal, after the name
	stat, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(stat), "\n") // that of all processors together
	fields := strings.Fields(line)
	if len(fields) <= steal {
		return 0
	}
	ticks, _ := strconv.ParseInt(fields[steal], 10, 64)
	return time.Duration(ticks) * clockTick
}

// Disturbance is what a machine kept from everything that ran on it.
type Disturbance struct {
	Taken time.Duration // processor time that the host of a virtual machine gave to others, in steps of 10 ms
	Lost  time.Duration // the most that one processor lost within the time that was asked for; 0 where that cannot be seen
}

// WatchMachine watches the machine until stop is called, which returns what it did, Lost being within any time as long as within. On each
// processor a thread sleeps that may run before all others; it looks how late it wakes, and how long it takes to read from memory: not
// even a server that does nothing answers faster. Not every pause is in the host's account.
func WatchMachine(within time.Duration) (stop func() Disturbance) {
	taken, moments := Stolen(), watchProcessors()
	return func() Disturbance {
		d := Disturbance{Taken: Stolen() - taken}
		for _, of := range moments() {
			d.Lost = max(d.Lost, mostLost(of, within))
		}
		return d
	}
}

// A moment is what a thread has seen of its processor.
type moment struct {
	at    time.Duration // when it was to wake
	late  time.Duration // by how much it woke later
	reads time.Duration // what reading took then
}

// watchEvery is the time between two moments.
const watchEvery = time.Millisecond

// mostLost is the most time that a processor lost within a time: it ran nothing while a thread that was to wake did not, and while
// reading took n times as long as usual it got 1/n of its work done.
func mostLost(all []moment, within time.Duration) (most time.Duration) {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.SortedFunc(slices.Values(all), func(a, b moment) int { return cmp.Compare(a.reads, b.reads) })
	usual := sorted[len(sorted)/2].reads
	lost := func(m moment) time.Duration {
		if m.reads <= usual {
			return m.late
		}
		return m.late + watchEvery - watchEvery*usual/m.reads
	}
	sum, from := time.Duration(0), 0
	for _, m := range all {
		for ; m.at-all[from].at > within; from++ {
			sum -= lost(all[from])
		}
		sum += lost(m)
		most = max(most, sum)
	}
	return most
}
