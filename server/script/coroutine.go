package script

import (
	lua "github.com/yuin/gopher-lua"

	"headgate/server/script/limits"
	"headgate/server/script/lualib/luacall"
)

// threads is what coroutines need of gopher-lua.
type threads struct {
	// next and pairsNext are what ipairs and pairs hand to a loop.
	next, pairsNext *lua.LFunction
	// create, resume, status and running are gopher-lua's functions.
	create, resume, status, running lua.LGFunction
	// body makes what a coroutine runs: a function that calls prepare and then
	// another one.
	body          *lua.LFunction
	prepare, pass *lua.LFunction
}

// bodyText is the source of threads.body. It passes on what f returns, and is there until then: gopher-lua cannot resume a coroutine all of whose
// functions have called another in their place, as by `return coroutine.yield()`.
const (
	bodyText   = "local prepare, pass, f = ... return function(...) prepare() return pass(f(...)) end"
	bodySource = "=[C]"
)

// open readies a new Lua state for coroutines.
func (t *threads) open(s *sandbox) {
	top := s.L.GetTop()
	lua.OpenCoroutine(s.L)
	native := s.L.Get(-1).(*lua.LTable)
	s.L.SetTop(top)
	// It has made itself a global, in front of the read-only table of that name.
	s.env.RawSetString("coroutine", lua.LNil)
	of := func(name string) lua.LGFunction { return native.RawGetString(name).(*lua.LFunction).GFunction }
	t.create, t.resume, t.status, t.running = of("create"), of("resume"), of("status"), of("running")
	body, err := s.compile(bodyText, bodySource, fromScript)
	if err != nil {
		panic(err)
	}
	t.body = s.L.NewFunctionFromProto(body.proto)
	t.pass = s.L.NewFunction(func(L *lua.LState) int { return L.GetTop() })
	t.prepare = s.L.NewFunction(func(L *lua.LState) int {
		// From here on errors of this coroutine are worded as Lua's.
		L.Panic = func(L *lua.LState) {
			panic(&lua.ApiError{Type: lua.ApiErrorRun, Object: s.explain(L, L.Get(-1), 0)})
		}
		return 0
	})
}

// coroutines returns the library.
func (s *sandbox) coroutines() *lua.LTable {
	t := s.L.NewTable()
	for name, fn := range map[string]lua.LGFunction{
		"create": s.coCreate, "resume": s.coResume, "wrap": s.coWrap, "yield": s.coYield, "status": s.coStatus,
		"running": func(L *lua.LState) int {
			L.SetTop(0)
			return s.thread.running(L)
		},
	} {
		t.RawSetString(name, s.L.NewFunction(fn))
	}
	return t
}

// newThread pushes a coroutine that will run the function f.
func (s *sandbox) newThread(L *lua.LState, f *lua.LFunction) *lua.LState {
	s.engine.budget.Spend(threadSteps)
	L.Push(s.thread.body)
	L.Push(s.thread.prepare)
	L.Push(s.thread.pass)
	L.Push(f)
	L.Call(3, 1)
	body := L.Get(-1)
	L.SetTop(0)
	L.Push(body)
	s.thread.create(L)
	thread := L.Get(-1).(*lua.LState)
	L.SetTop(0)
	L.Push(thread)
	return thread
}

// threadSteps is what a new coroutine counts.
const threadSteps = 100

func (s *sandbox) coCreate(L *lua.LState) int {
	s.newThread(L, luaFunction(L, "create"))
	return 1
}

// luaFunction returns argument 1, which must be a function written in Lua.
func luaFunction(L *lua.LState, name string) *lua.LFunction {
	f, ok := L.Get(1).(*lua.LFunction)
	if !ok || f.IsG {
		luacall.ArgError(L, 1, "Lua function expected")
	}
	return f
}

// resumed resumes the coroutine at 1 with the arguments above it, and reports
// whether it went well. The results are all that is left on the stack.
func (s *sandbox) resumed(L *lua.LState, thread *lua.LState) bool {
	b := s.engine.budget
	b.Spend(callSteps + int64(L.GetTop()))
	if status := threadStatus(L, thread); status != "suspended" {
		return s.refuseResume(L, "cannot resume "+status+" coroutine")
	}
	if b.Depth > b.MaxDepth {
		return s.refuseResume(L, limits.TooDeep)
	}
	if n, fixed := resultsOfYield(thread); fixed {
		L.SetTop(1 + n)
	}
	mark, outer, catching := b.Mark(), s.handler, s.catching
	b.Depth++
	s.handler, s.catching = s.caught, 0 // nothing yields that is about to catch errors
	n := s.thread.resume(L)
	s.handler, s.catching = outer, catching
	b.Return(mark)
	if thread.Dead {
		limits.End(thread)
	}
	s.engine.stopAgain()
	first := L.GetTop() - n + 1
	ok := lua.LVAsBool(L.Get(first))
	for i := 1; i < n; i++ {
		L.Replace(i, L.Get(first+i))
	}
	L.SetTop(n - 1)
	return ok
}

// resultsOfYield returns how many results a coroutine that has yielded takes of coroutine.yield, unless it takes all there are. gopher-lua gives it as
// many as it is resumed with, and leaves it without the rest.
func resultsOfYield(thread *lua.LState) (n int, fixed bool) {
	f, ok := frameAt(thread, 0)
	if !ok || f.fn.IsG {
		return 0, false // it has not begun
	}
	in := decode(f.fn.Proto.Code[f.pc])
	return in.c - 1, in.op == lua.OP_CALL && in.c > 0
}

func (s *sandbox) refuseResume(L *lua.LState, text string) bool {
	L.SetTop(0)
	L.Push(lua.LString(text))
	return false
}

func (s *sandbox) coResume(L *lua.LState) int {
	thread, ok := L.Get(1).(*lua.LState)
	if !ok {
		luacall.ArgError(L, 1, "coroutine expected")
	}
	went := s.resumed(L, thread)
	L.Insert(lua.LBool(went), 1)
	return L.GetTop()
}

func (s *sandbox) coWrap(L *lua.LState) int {
	thread := s.newThread(L, luaFunction(L, "wrap"))
	L.Push(L.NewClosure(func(L *lua.LState) int {
		L.Insert(thread, 1)
		if s.resumed(L, thread) {
			return L.GetTop()
		}
		v := L.Get(1)
		if message, ok := toText(v); ok {
			v = lua.LString(position(L, 1) + message)
		}
		raise(L, v)
		return 0
	}, thread))
	return 1
}

// coYield is yield. gopher-lua cannot leave a coroutine through a function
// written in Go, and does not notice.
func (s *sandbox) coYield(L *lua.LState) int {
	if L.Parent == nil || !s.yields(L) {
		raise(L, lua.LString("attempt to yield across metamethod/C-call boundary"))
	}
	return -1
}

// yields reports whether all calls of a coroutine are calls of Lua functions by
// Lua functions, but for that of yield.
func (s *sandbox) yields(L *lua.LState) bool {
	f, ok := frameAt(L, 0)
	if !ok {
		return false
	}
	walked, all := int64(0), true
	for call := callerOf(f.call()); all && call != nil; call = callerOf(call) {
		walked++
		all = callsByLua(functionOf(call), *at[int](call, pcAt)-1)
	}
	s.engine.budget.Spend(walked / callsPerStep)
	return all
}

// callsByLua reports whether fn is a Lua function whose instruction at pc is a call.
func callsByLua(fn *lua.LFunction, pc int) bool {
	if fn.IsG {
		return false
	}
	op := decode(fn.Proto.Code[pc]).op
	return op == lua.OP_CALL || op == lua.OP_TAILCALL
}

func (s *sandbox) coStatus(L *lua.LState) int {
	thread, ok := L.Get(1).(*lua.LState)
	if !ok {
		luacall.ArgError(L, 1, "coroutine expected")
	}
	L.Push(lua.LString(threadStatus(L, thread)))
	return 1
}

// threadStatus returns what coroutine.status calls the state of a coroutine.
func threadStatus(L, thread *lua.LState) string {
	status := L.Status(thread)
	if status == "suspended" && thread.Parent != nil {
		return "normal"
	}
	return status
}
