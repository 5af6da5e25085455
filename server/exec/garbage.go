package exec

import (
	"time"

	"headgate/server/host"
)

const (
	giveBackPeriod = time.Second     // how often it is looked whether there is garbage to give back
	giveBackPause  = 5 * time.Second // how long no collection has run before one is asked for: what a crowd has left is to be back within 10 s
	giveBackMuch   = 16 << 20        // bytes of garbage for which that is done at any time, and
	muchPart       = 8               // the part of the heap that it has to be
	giveBackLittle = 4 << 20         // bytes for which it is done where the last time is giveBackShare times as long ago as it took, and
	littlePart     = 32              // the part of the heap that they have to be
	giveBackFree   = 1 << 20         // bytes of free pages for which it is done then, which nobody but another crowd would take
	giveBackShare  = 50              // so it takes one part in so many of a processor
	trimPeriod     = 3 * time.Second // for how long buffers may be kept that nobody uses: less than giveBackPause, so that they are garbage by then

	// garbageMost is how many bytes of garbage gc-percent may let the heap have. Where much is in use, four times as much garbage would be
	// gigabytes, and the runtime's own tables for them never go back to the system. It may be more where a collection has much to read:
	// garbageScanned times as much as that, and not more than what is in use. Long values cost a collection nothing.
	garbageMost    = 256 << 20
	garbageScanned = 2
	leastPace      = 10 // percent

	// scriptGarbage is how many bytes of garbage a script that makes much of it may have lie about. It may be as much as a collection has
	// to read, if that is more. The collector counts what was made while it ran as live, so that there may be several times as much of it
	// as gc-percent says, and nothing else looks after that before the script ends.
	scriptGarbage = 64 << 20

	// garbageStep is by how many bytes the heap may outgrow at a time what the process has of it already, or by a part of what a collection
	// reads or of the room that there is. New memory is dear: the system clears a page at its first use, and on some machines 64 MiB of
	// them take as long as twenty collections.
	garbageStep = 16 << 20
	stepScanned = 8 // one part in so many
	stepRoom    = 8
)

// Garbage is what the Go heap holds beside what is in use. After a load the collector has no reason to run: with gc-percent 400 the heap
// may stay five times as large as what is in it for minutes. The executor's lock guards it.
type Garbage struct {
	Free    func()            // gives it back, without the lock; nil: it stays
	SetPace func(percent int) // has the collector run when there is so much of it; nil: it runs when it likes
	pace    int               // the last that was set
	paced   uint64            // collections until then
	Busy    bool              // free is running
	looked  int64             // ns, when it was looked last
	trimmed int64             // ns, when buffers were trimmed last
	cycles  uint64            // collections until then
	since   int64             // ns, when that number was first seen
	kept    uint64            // bytes that the heap had left after the last time
	again   bool              // the last time gave back much, so that what was let go of since is looked for once more
	given   int64             // ns, when the last time began
	took    int64             // ns, how long it took
	data    uint64            // bytes of data, when it was looked last
	marked  uint64            // the same when the last collection ran: what has been deleted since still counts as live
}

// trim gives back buffers that nobody has used for a while, and replies. With buffers that may be some hundred system calls, which nobody waits for.
func (x *Executor) trim(mono int64) {
	if mono-x.Garbage.trimmed < int64(trimPeriod) {
		return
	}
	x.Garbage.trimmed = mono
	x.Commands.Described.Trim()
	x.Commands.Documented.Trim()
	go x.Pool.Trim()
}

// giveBack has the heap's garbage collected, and its memory given back to the system, once nothing else has done so for a while. It costs
// those who are served a part of one processor for as long as marking what is in use takes. When that was much, it is done once more: what a
// crowd has left behind, as buffers and entries in tables, is let go of by and by, and would be too little to be worth it later.
func (x *Executor) giveBack(mono int64) {
	g := &x.Garbage
	if g.Free == nil {
		return
	}
	due := mono-g.looked >= int64(giveBackPeriod)
	if cycles := host.RuntimeMetric(host.MetricCycles); due || cycles != g.paced {
		g.paced = cycles
		g.keepPace(x.Config.Get().GCPercent, readHeap())
	}
	if !due {
		return
	}
	g.looked = mono
	before := g.data
	g.data = x.Keys.Used()
	if cycles := host.RuntimeMetric(host.MetricCycles); cycles != g.cycles {
		g.cycles, g.since, g.marked = cycles, mono, max(before, g.data)
	}
	if mono-g.since < int64(giveBackPause) || g.Busy {
		return
	}
	held := host.RuntimeMetric(host.MetricTotal) - host.RuntimeMetric(host.MetricHeapReleased)
	least := max(host.RuntimeMetric(host.MetricLive), g.kept)
	deleted := g.marked - min(g.marked, g.data)
	worth := g.worth(least, mono)
	free := host.RuntimeMetric(host.MetricHeapFree) // by collections since the last time, so that the heap is no larger than it was then
	if held+deleted < least+worth && free < g.worthFree(worth, mono) && !g.again {
		return
	}
	g.Busy = true
	g.kept, g.given = 0, mono
	go func() {
		begin := time.Now()
		g.Free()
		took := time.Since(begin)
		x.Lock()
		defer x.Unlock()
		g.took = int64(took)
		g.kept = host.RuntimeMetric(host.MetricTotal) - host.RuntimeMetric(host.MetricHeapReleased)
		g.again = held >= g.kept+muchGarbage(g.kept)
		g.Busy = false
	}()
}

// worth is how many bytes of garbage beside those that are in use, or of free pages, are worth a collection: few if the last one is long ago.
func (g *Garbage) worth(used uint64, mono int64) uint64 {
	if mono-g.given < giveBackShare*g.took {
		return muchGarbage(used)
	}
	return max(giveBackLittle, used/littlePart)
}

// worthFree is how many bytes of free pages are, where worth is how many of garbage.
func (g *Garbage) worthFree(worth uint64, mono int64) uint64 {
	if mono-g.given < giveBackShare*g.took {
		return worth
	}
	return giveBackFree
}

// muchGarbage is how many are worth one at any time.
func muchGarbage(used uint64) uint64 { return max(giveBackMuch, used/muchPart) }

// goHeap is what the Go heap looks like, in bytes.
type goHeap struct {
	live    uint64 // in use when the last collection ran
	scanned uint64 // what a collection reads
	held    uint64 // what the process has, garbage and free places among it
}

func readHeap() goHeap {
	return goHeap{
		live: host.RuntimeMetric(host.MetricLive), scanned: host.RuntimeMetric(host.MetricScanned),
		held: host.RuntimeMetric(host.MetricHeapObjects) + host.RuntimeMetric(host.MetricHeapUnused) + host.RuntimeMetric(host.MetricHeapFree),
	}
}

// garbage is how many bytes of garbage the heap may have before a collection: what there is room for and a step more, up to the most.
func (h goHeap) garbage() uint64 {
	room := h.held - min(h.held, h.live)
	return min(room+max(garbageStep, h.scanned/stepScanned, room/stepRoom), max(garbageMost, min(h.live, garbageScanned*h.scanned)))
}

// keepPace has the collector run when the garbage is percent of the live bytes, or sooner.
func (g *Garbage) keepPace(percent int, h goHeap) { g.bound(percent, h.live, h.garbage()) }

// keepScriptPace is keepPace while a script runs that makes much garbage.
func (g *Garbage) keepScriptPace(percent int, h goHeap) {
	g.bound(percent, h.live, min(h.garbage(), max(scriptGarbage, h.scanned)))
}

// bound has the collector run when there are so many bytes of garbage, or when it is percent of the live bytes.
func (g *Garbage) bound(percent int, live, garbage uint64) {
	pace := percent
	if live > 0 {
		pace = min(pace, max(leastPace, int(100*garbage/live)))
	}
	change := pace - g.pace
	if g.SetPace == nil || pace != percent && max(change, -change) <= g.pace/8 || change == 0 {
		return
	}
	g.pace = pace
	g.SetPace(pace)
}

// BoundScriptGarbage is called when a script has made much that may be garbage. The executor's lock is held, and no collection is waited for:
// setting the pace takes microseconds while one runs, too.
func (x *Executor) BoundScriptGarbage() {
	x.Garbage.keepScriptPace(x.Config.Get().GCPercent, readHeap())
}
