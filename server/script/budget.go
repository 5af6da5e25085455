package script

import (
	"runtime"
	"runtime/metrics"
	"time"

	lua "github.com/yuin/gopher-lua"
)

// How a script is stopped: it counts steps (see rewriter and limits.Budget), and
// once per slice check looks at the heap and at Options.OnSlice. To end the
// script it sets run.stopped and panics. Everything that recovers panics for the
// script (pcall, xpcall, coroutines) looks at run.stopped and panics again, and
// the step count stays used up, so that nothing the script does gets far.

const (
	// stepsPerSlice is how many steps a slice has: about a millisecond. Where
	// steps take longer, sliceTime ends it.
	stepsPerSlice = 20000
	sliceTime     = time.Millisecond
	// loadTime is how long the text of a library may run.
	loadTime = 500 * time.Millisecond
	// ticksPerHeapCheck is how many ticks pass between two looks at the heap and
	// at the stack. Eight steps can allocate a table of limits.ArrayMax elements
	// at most, 128 KiB.
	ticksPerHeapCheck = 16
	// ticksPerDepthCheck is how many ticks pass between two looks at how deep
	// functions call each other.
	ticksPerDepthCheck = 4
	// framesMax is how many calls deep the Go stack may be. Each metamethod that
	// runs inside another takes about five.
	framesMax = 4000
	// heapDrift is how much more than at the last script may be alive before it
	// is counted anew: it may be what that script left behind.
	heapDrift = 16 << 20
	// heapSlack is how much of the limit must be free again after a collection.
	heapSlack = 8 << 20
)

// Errors of scripts that are stopped.
const (
	killedText    = "ERR Script killed by user with SCRIPT KILL..."
	timeLimitText = "ERR Script stopped: it ran longer than script-time-limit"
	loadTimeText  = "ERR FUNCTION LOAD timeout"
	memoryText    = "ERR not enough memory"
)

// tick is called by the script when it has counted stepsPerTick steps.
func (e *Engine) tick(L *lua.LState) int {
	e.budget.Spend(stepsPerTick)
	e.heap.ticks++
	if e.heap.ticks%ticksPerDepthCheck == 0 {
		e.checkDepth(L)
	}
	if e.heap.ticks%ticksPerHeapCheck == 0 {
		e.checkHeap()
		if time.Since(e.run.sliced) >= sliceTime {
			e.slice()
		}
		var frame [1]uintptr
		if runtime.Callers(framesMax, frame[:]) > 0 {
			L.RaiseError("C stack overflow")
		}
	}
	L.Push(ticked)
	return 1
}

// checkDepth raises an error before gopher-lua does: when its stack is full
// there is no room to handle an error either, and it words one by walking the
// stack once per call.
func (e *Engine) checkDepth(L *lua.LState) {
	most := threadCalls - callsMargin
	if L == e.eval.L || L == e.library.L {
		most = callsMax
	}
	if f, ok := frameAt(L, 0); ok && int(f.field("Idx").Int()) > most {
		L.RaiseError("stack overflow")
	}
}

// ticked is stepsPerTick as a Lua value.
var ticked lua.LValue = lua.LNumber(stepsPerTick)

// check is limits.Budget.Check: the steps are used up, or a large allocation
// comes.
func (e *Engine) check() {
	if e.run.stopped != "" {
		e.stop(e.run.stopped)
	}
	e.checkHeap()
	if e.budget.Steps > 0 {
		return
	}
	e.budget.Steps = stepsPerSlice
	e.slice()
}

// slice asks whether the script may go on.
func (e *Engine) slice() {
	now := time.Now()
	if e.run.started.IsZero() {
		e.run.started = now
	}
	e.run.sliced = now
	if e.run.loading != nil && now.Sub(e.run.started) > loadTime {
		e.stop(loadTimeText)
	}
	if e.options.OnSlice == nil {
		return
	}
	switch e.options.OnSlice(now.Sub(e.run.started)) {
	case Kill:
		e.stop(killedText)
	case TimeLimit:
		e.stop(timeLimitText)
	}
}

// stop ends the script with an error that it cannot catch.
func (e *Engine) stop(text string) {
	e.run.stopped = text
	e.run.broken = true
	e.budget.Steps = 0
	panic(&lua.ApiError{Type: lua.ApiErrorRun, Object: lua.LString(text)})
}

// heap watches how much memory a script takes.
type heap struct {
	samples [2]metrics.Sample
	ticks   int
	// base is how many bytes were alive when the last script was looked at.
	base uint64
	// limit is how many bytes the heap may hold; 0 before the first look.
	limit uint64
}

func (h *heap) init() {
	h.samples[0].Name = "/memory/classes/heap/objects:bytes"
	h.samples[1].Name = "/gc/heap/live:bytes"
}

// used returns the bytes of objects in the Go heap, dead ones included, and of
// those that were alive when it was collected last.
func (h *heap) used() (all, live uint64) {
	metrics.Read(h.samples[:])
	return h.samples[0].Value.Uint64(), h.samples[1].Value.Uint64()
}

// checkHeap stops the script when it has taken too much memory.
func (e *Engine) checkHeap() {
	used, live := e.heap.used()
	if e.heap.limit == 0 {
		if min(used, live) > e.heap.base+heapDrift {
			runtime.GC()
			used, live = e.heap.used()
		}
		e.heap.base = min(used, live)
		e.heap.limit = e.heap.base + e.options.MaxHeapBytes
	}
	want := uint64(e.budget.Want)
	if used+want <= e.heap.limit {
		return
	}
	runtime.GC()
	if used, _ = e.heap.used(); used+want+heapSlack > e.heap.limit {
		e.stop(memoryText)
	}
}
