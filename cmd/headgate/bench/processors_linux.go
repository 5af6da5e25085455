package bench

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// processors are those that something may run on; nil = all.
type processors struct{ set *unix.CPUSet }

// splitProcessors is the first processor that this process may use, and the others. With a single one nothing is split.
func splitProcessors() (first, rest processors) {
	var all unix.CPUSet
	if unix.SchedGetaffinity(0, &all) != nil || all.Count() < 2 {
		return processors{}, processors{}
	}
	one, others := &unix.CPUSet{}, all
	for cpu := 0; one.Count() == 0; cpu++ {
		if all.IsSet(cpu) {
			one.Set(cpu)
			others.Clear(cpu)
		}
	}
	return processors{one}, processors{&others}
}

// start starts a program on these processors: it inherits them from the thread that starts it.
func (p processors) start(cmd *exec.Cmd) error {
	if p.set == nil {
		return cmd.Start()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return err
	}
	if err := unix.SchedSetaffinity(0, p.set); err != nil {
		return err
	}
	defer unix.SchedSetaffinity(0, &before)
	return cmd.Start()
}

// confineSelf keeps this process on these processors until the function that it returns is called. Threads that are new meanwhile inherit them.
func (p processors) confineSelf() (release func()) {
	var before unix.CPUSet
	if p.set == nil || unix.SchedGetaffinity(0, &before) != nil {
		return func() {}
	}
	setAllThreads(p.set)
	return func() { setAllThreads(&before) }
}

// setAllThreads sets the processors of each thread of this process. One that has ended meanwhile is passed over.
func setAllThreads(set *unix.CPUSet) {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, thread := range threads {
		if id, err := strconv.Atoi(thread.Name()); err == nil {
			_ = unix.SchedSetaffinity(id, set)
		}
	}
}
