package script

import (
	"runtime"
	"runtime/metrics"
	"time"

	lua "github.com/yuin/gopher-lua"

	"headgate/server/script/limits"
)

// How a script is stopped: it counts steps (see rewriter and limits.Budget), and
// once per slice check looks at its memory and at Options.OnSlice. To end the
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
	// ticksPerHeapCheck is how many ticks pass between two looks at the memory and
	// at the stack. Eight steps can allocate a table of limits.ArrayMax elements
	// at most, 128 KiB.
	ticksPerHeapCheck = 16
	// callsPerLook is how many commands a script calls between two looks at the clock: each may take long.
	callsPerLook = 8
	// ticksPerDepthCheck is how many ticks pass between two looks at how deep
	// functions call each other.
	ticksPerDepthCheck = 4
	// openMax is how many variables of the functions that call each other may be
	// used by other functions, and openDepth how deep those are whose variables are
	// counted.
	openMax   = 4096
	openDepth = 20
	// framesMax is how many calls deep the Go stack may be. Each metamethod that
	// runs inside another takes about five.
	framesMax = 4000
	// growthTold is how many bytes are allocated between two calls of Options.OnGrowth.
	growthTold = 16 << 20
	// heapSlack is how much of the limit must be left over when what a script
	// holds has been weighed.
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
	h := e.run.heap
	h.ticks++
	used := limits.UsedRegisters(L)
	limits.GrowByHalf(L)
	if h.ticks%ticksPerDepthCheck == 0 || used > registersMax {
		e.checkDepth(L)
	}
	e.look() // the steps may all take long: they compare long strings, or look them up in tables
	if used > manyRegisters {
		e.checkHeap() // each coroutine may have as many
	}
	if h.ticks%ticksPerHeapCheck == 0 {
		e.checkHeap()
		var frame [1]uintptr
		if runtime.Callers(framesMax, frame[:]) > 0 {
			L.RaiseError(limits.TooDeep)
		}
	}
	L.Push(ticked)
	return 1
}

// many returns how many steps a call of a function with varargs takes besides its own: a whole tick where many registers are in use.
func many(L *lua.LState) int {
	limits.GrowByHalf(L)
	if limits.UsedRegisters(L) > manyRegisters {
		return push(L, ticked)
	}
	return push(L, notMany)
}

// look ends a slice whose time is over.
func (e *Engine) look() {
	if e.run.sliced.IsZero() {
		e.run.sliced = time.Now()
	} else if time.Since(e.run.sliced) >= sliceTime {
		e.slice()
	}
}

// checkDepth raises an error before gopher-lua does: when its stack is full
// there is no room to handle an error either, and it words one by walking the
// stack once per call. So it does for calls whose variables are used by too many
// functions.
func (e *Engine) checkDepth(L *lua.LState) {
	if e.run.sandbox.overflowed {
		if e.isDeep(L, callsMargin+handlerCalls) {
			e.budget.Depth = e.budget.HandlersMax() // nothing handles this one
			e.run.sandbox.exhausted = true
			L.Error(lua.LString(limits.TooDeepInHandler), 0)
		}
		return
	}
	if e.isDeep(L, 0) || callDepth(L) > openDepth && limits.OpenUpvalues(L, openMax) == openMax {
		L.RaiseError("stack overflow")
	}
}

// isDeep reports whether functions call each other deeper in a state than they may, and so many calls more, or use more registers.
func (e *Engine) isDeep(L *lua.LState, more int) bool {
	f, ok := frameAt(L, 0)
	if !ok {
		return false
	}
	calls := threadCalls - handlerCalls - 2*callsMargin
	if L == e.eval.L || L == e.library.L {
		calls = callsMax
	}
	registers := *at[int](f.call(), localBaseAt) + L.GetTop()
	return *at[int](f.call(), depthAt) > calls+more || registers > registersMax+more*callRegisters
}

// callDepth is how many calls the running one stands on.
func callDepth(L *lua.LState) int {
	f, ok := frameAt(L, 0)
	if !ok {
		return 0
	}
	return *at[int](f.call(), depthAt)
}

// ticked is stepsPerTick as a Lua value.
var ticked lua.LValue = lua.LNumber(stepsPerTick)

// notMany is 0 as a Lua value.
var notMany lua.LValue = lua.LNumber(0)

// check is limits.Budget.Check: the steps are used up, or a large allocation
// comes.
func (e *Engine) check() {
	e.stopAgain()
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
	// Nothing runs on that uses these variables, but a library's functions keep them.
	for L := e.run.sandbox.L.G.CurrentThread; L != nil; L = L.Parent {
		limits.CloseUpvalues(L, 0)
	}
	panic(&lua.ApiError{Type: lua.ApiErrorRun, Object: lua.LString(text)})
}

// stopAgain stops a script that has been stopped already.
func (e *Engine) stopAgain() {
	if e.run.stopped != "" {
		e.stop(e.run.stopped)
	}
}

// heap watches how much memory the values of a script take. What has been
// allocated in sum since they were weighed last, by whomever, is more than they
// can have grown by. Only when that passes the room that was left then are they
// weighed again, by walking over them: no collection is waited for, and what the
// script has stored, or what others hold, does not count.
//
// A script's begins anew with it. A library has one for all of its functions, from one
// call to the next, since they may keep what they took.
type heap struct {
	sample [1]metrics.Sample
	steps  int64 // that are left until a slice ends, between scripts
	ticks  int
	// looked is set when there was a first look.
	looked bool
	// mark is what had been allocated at the last weighing, or the first look.
	mark uint64
	// room is how much more the script may have taken by then.
	room uint64
	// left is what had been allocated when the last function of a library ended that keeps much, else 0.
	left uint64
	// told is what had been allocated when Options.OnGrowth was called last.
	told uint64
	// rests is until when a library that was full counts as full without being weighed.
	rests time.Time
}

func (h *heap) reset() {
	h.sample[0].Name = "/gc/heap/allocs:bytes"
	h.steps, h.ticks, h.looked, h.rests = stepsPerSlice, 0, false, time.Time{}
}

// allocated returns the bytes that the process has ever allocated.
func (h *heap) allocated() uint64 {
	metrics.Read(h.sample[:])
	return h.sample[0].Value.Uint64()
}

// keptMuch is from how many bytes on that a library keeps it is looked at what has been allocated whenever one of its functions begins and ends: what
// others allocate in between would have all that be weighed each time on a busy server, for a millisecond or more.
const keptMuch = 4 << 20

// resume has what others have allocated since the last function of a library ended count nothing.
func (h *heap) resume() {
	if h.left > 0 {
		h.mark += h.allocated() - h.left
		h.left = 0
	}
}

// leave notes that a function has ended whose library keeps so many bytes.
func (h *heap) leave(kept int) {
	if kept >= keptMuch {
		h.left = h.allocated()
	}
}

// checkHeap stops the script when it has taken too much memory.
func (e *Engine) checkHeap() {
	e.run.looked = true
	h := e.run.heap
	allocated := h.allocated()
	if !h.looked {
		h.looked, h.mark, h.room, h.told = true, allocated, e.heapLimit(), allocated
	}
	if allocated-h.told >= growthTold && e.options.OnGrowth != nil {
		h.told = allocated
		e.options.OnGrowth()
	}
	want := uint64(e.budget.Want)
	if allocated-h.mark+want < h.room {
		return
	}
	if time.Now().Before(h.rests) {
		e.stop(memoryText)
	}
	begun := time.Now()
	held, limit := e.weigh(), e.heapLimit()
	if held+want+heapSlack > limit {
		if lib := e.run.library; lib != nil && uint64(lib.kept)+heapSlack > limit {
			h.mark, h.room = h.allocated(), (limit-min(held, limit))/fullShare
			h.rests = time.Now().Add(fullRest * time.Since(begun))
		}
		e.stop(memoryText)
	}
	h.mark, h.room, h.rests = h.allocated(), limit-held, time.Time{}
}

// isFull reports whether what a library keeps was too much when it was weighed last.
func (h *heap) isFull() bool { return !h.rests.IsZero() }

const (
	// fullShare is by what part of heapSlack the functions of a full library may allocate until it is weighed again: those that take next to nothing go on,
	// and those that take more come no nearer to the limit than this lets them.
	fullShare = 8
	// fullRest is for how many times as long as a weighing took a full library is refused what is more than that: each function that asks for more
	// would have it weighed, which takes a third of a second if it keeps closures.
	fullRest = 10
)

// heapLimit is what the script's values may take: its arguments, which it did not
// choose, come on top.
func (e *Engine) heapLimit() uint64 {
	limit := e.options.MaxHeapBytes
	for _, list := range e.run.given {
		for _, arg := range list {
			limit += uint64(len(arg))
		}
	}
	return limit
}

// weigh returns how many bytes the script holds, together with what its library
// keeps. It ends early when they are too many.
func (e *Engine) weigh() uint64 {
	s := limits.Scale{Most: int(e.heapLimit()), Pause: e.look}
	s.Know(e.run.proto)
	L := e.run.sandbox.L
	if e.run.library != nil {
		e.run.library.weigh(&s)
	}
	s.Weigh(L)
	s.Weigh(L.G.CurrentThread)
	if e.run.keys != nil {
		s.Weigh(e.run.keys)
		s.Weigh(e.run.argv)
	}
	for _, v := range e.budget.Held {
		s.Weigh(v)
	}
	for _, name := range e.run.sources {
		s.Weigh(lua.LString(name))
	}
	if lib := e.run.library; lib != nil && !s.Full() {
		lib.removed = s.Left // of the others the tables are gone
	}
	if w := e.run.reply; w != nil {
		s.Bytes += w.Len() - e.run.replyStart
	}
	return uint64(s.Bytes + e.budget.HeldBytes)
}
