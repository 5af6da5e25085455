package harness

import (
	"context"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	watchPriority = 50      // in the middle of those of real-time threads
	readAtOnce    = 32      // places that are read at each moment,
	readFrom      = 8 << 20 // of so many: more than the caches of a processor's own hold
	watchedAtMost = 600_000 // moments, ten minutes; later ones are not kept
)

// watchProcessors returns what ends the watching and tells what was seen of each processor: nothing without the right to real-time
// priority.
func watchProcessors() (stop func() [][]moment) {
	var all unix.CPUSet
	if unix.SchedGetaffinity(0, &all) != nil {
		return func() [][]moment { return nil }
	}
	places := make([]uint64, readFrom)
	for i := range places {
		places[i] = rand.Uint64N(readFrom)
	}
	var end atomic.Bool
	var watchers sync.WaitGroup
	seen := make([][]moment, all.Count())
	for cpu, i := 0, 0; i < len(seen); cpu++ {
		if all.IsSet(cpu) {
			of := &seen[i]
			watchers.Go(func() { *of = watchProcessor(cpu, places, &end) })
			i++
		}
	}
	return func() [][]moment {
		end.Store(true)
		watchers.Wait()
		return seen
	}
}

// watchProcessor keeps the moments of a processor.
func watchProcessor(cpu int, places []uint64, end *atomic.Bool) (all []moment) {
	if !watchesAlone(cpu) {
		return nil
	}
	place := uint64(cpu)
	for !end.Load() && len(all) < watchedAtMost {
		due, woken := sleepMoment()
		for range readAtOnce {
			place = (places[place%readFrom] + place*0x9E3779B97F4A7C15>>20) % readFrom // each read needs the one before it
		}
		all = append(all, moment{at: due, late: woken - due, reads: monotonic() - woken})
	}
	return all
}

// watchesAlone gives the goroutine a thread of its own on a processor, which may run before all others there.
func watchesAlone(cpu int) (ok bool) {
	runtime.LockOSThread() // and no unlocking: the thread ends with the goroutine, and nothing else runs with its priority
	var own unix.CPUSet
	own.Set(cpu)
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Flags: unix.SCHED_FLAG_RESET_ON_FORK, Policy: unix.SCHED_FIFO, Priority: watchPriority}
	return unix.SchedSetaffinity(0, &own) == nil && unix.SchedSetAttr(0, &attr, 0) == nil
}

// sleepMoment sleeps until the next moment, and returns when that was due and when the thread woke.
func sleepMoment() (due, woken time.Duration) {
	due = monotonic() + watchEvery
	until := unix.NsecToTimespec(int64(due))
	for unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &until, nil) == unix.EINTR {
	}
	return due, monotonic()
}

// monotonic is the time of the clock that nobody sets.
func monotonic() time.Duration {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // Linux has this clock everywhere
	return time.Duration(now.Nano())
}

// WatchPace looks at the speed of the processors until the context ends. What it takes of each is a two-thousandth.
func WatchPace(ctx context.Context) *Pace {
	p := newPace()
	for cpu := range runtime.NumCPU() {
		go p.watch(ctx, cpu)
	}
	return p
}

// watch looks at one processor.
func (p *Pace) watch(ctx context.Context, cpu int) {
	runtime.LockOSThread() // and no unlocking: the thread ends with the goroutine
	var own unix.CPUSet
	own.Set(cpu)
	if unix.SchedSetaffinity(0, &own) != nil {
		return
	}
	tick := time.NewTicker(paceEvery)
	defer tick.Stop()
	for n := uint64(cpu); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		began := ownTime()
		for range paceSteps {
			n = n*0x9E3779B97F4A7C15 ^ n>>29
		}
		if took := ownTime() - began; took > 0 && n != 0 {
			p.note(cpu, took)
		}
	}
}

// ownTime is how long this thread has run.
func ownTime() time.Duration {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now) // Linux has this clock everywhere
	return time.Duration(now.Nano())
}

// PinSelf keeps this process on one processor from now on, with all the threads that it has and those that they start.
func PinSelf(cpu int) error {
	var own unix.CPUSet
	own.Set(cpu)
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err != nil {
			return err
		}
		if err := unix.SchedSetaffinity(id, &own); err != nil && err != unix.ESRCH {
			return err
		}
	}
	return nil
}
