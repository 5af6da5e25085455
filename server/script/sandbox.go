package script

import (
	lua "github.com/yuin/gopher-lua"

	"headgate/server/script/limits"
)

// purpose says what a sandbox is for.
type purpose int

const (
	forScripts   purpose = iota
	forFunctions         // of libraries
)

// Sizes of the Lua states, in the units of lua.Options.
const (
	// callsMax is how deep Lua functions may call each other, as in the C
	// implementation (LUAI_MAXCALLS).
	callsMax = 20000
	// callsMargin is how much deeper they may be until that is noticed: one tick
	// more than ticksPerDepthCheck.
	callsMargin = (ticksPerDepthCheck + 1) * stepsPerTick
	// handlerCalls is how many calls more, at least, what handles an error beyond callsMax may make.
	handlerCalls = 500
	// registersMax is how many registers the functions of a state may use, and callRegisters how many one may at most.
	registersMax  = 1 << 20
	callRegisters = 1 << 8
	// manyRegisters is how many registers of a state are so many that each call of a
	// function with varargs is looked at.
	manyRegisters = 1 << 16
	// registryMin and registryMax are the sizes of a state's registers at first
	// and at most. A register is 16 bytes. From one look at them to the next they may become
	// twice as many: a call may pass on as many varargs as there are registers.
	registryMin  = 1 << 12
	registryMax  = 2 * (registersMax + (handlerCalls+2*callsMargin)*callRegisters)
	registryStep = 1 << 15
	// threadCalls, threadMin and threadStep are those of coroutines, of which a
	// script may have many.
	threadCalls = 5000
	threadMin   = 128
	threadStep  = 1 << 10
)

// sandbox is everything a script can reach: a Lua state and the values that its
// global names stand for.
//
// Tables that scripts must not change are shown to them as empty ones, whose
// __index is the real table and whose __newindex refuses. The functions of ours
// that look into tables know the real ones (see real).
type sandbox struct {
	engine  *Engine
	purpose purpose
	L       *lua.LState
	// ready is set when L is one that runs scripts.
	ready bool
	heap  heap // of scripts
	// countGiven is called before a function that is given much.
	countGiven *lua.LFunction
	// globals holds all global names; env is what scripts see of it.
	globals, env *lua.LTable
	// names says which names the rewriter may replace, and values by what: the
	// globals, the fields of libraries ("redis.call") and functions that only
	// the rewriter knows, whose names are in parentheses.
	names  map[string]bool
	values map[string]lua.LValue
	// called is how an error message calls a value that took a name's place.
	called map[lua.LValue]string
	// readOnly maps what is shown to the real table.
	readOnly map[*lua.LTable]*lua.LTable
	// metatables are those that getmetatable shows for tables above.
	metatables map[*lua.LTable]*lua.LTable
	// strings is the metatable of strings that the machine uses, and
	// shownStrings the one that scripts see.
	strings, shownStrings *lua.LTable
	// unseen is the upvalue of functions whose calls scripts do not see.
	unseen lua.LValue
	// outermost and caught translate errors, see errors.go.
	outermost, caught *lua.LFunction
	// pcall, xpcall and load are the functions that catch errors.
	pcall, xpcall, load *lua.LFunction
	// handler is what an error goes through at this moment. Where that is outermost,
	// errors that load returns go through read.
	handler, read *lua.LFunction
	// fields is fieldsOf.
	fields *lua.LFunction
	// tooDeep raises the error of calls that are nested too deep.
	tooDeep *lua.LFunction
	// overflowed is set while an error is handled that was raised where isDeep.
	overflowed bool
	// exhausted is set when what handles it has used up what is left for handlers.
	exhausted bool
	// catching is how many calls of pcall, xpcall and load, in the thread that runs, are
	// about to catch errors.
	catching int
	// reading is set while the function that gives load its text in pieces may run: see baseLoad.
	reading bool
	// nilField stands for nil in parts of tables, see join.
	nilField *lua.LUserData
	thread   threads
	json     *lua.LTable // cjson, whose settings end with a script
}

// newSandbox builds what scripts or functions of libraries find.
func newSandbox(e *Engine, p purpose) *sandbox {
	s := &sandbox{
		engine: e, purpose: p,
		names: make(map[string]bool), values: make(map[string]lua.LValue), called: make(map[lua.LValue]string),
		readOnly: make(map[*lua.LTable]*lua.LTable), metatables: make(map[*lua.LTable]*lua.LTable),
		unseen: &lua.LUserData{},
	}
	s.heap.reset()
	s.L = lua.NewState(lua.Options{SkipOpenLibs: true})
	s.globals = s.L.NewTable()
	s.env = s.show(s.globals, s.missingGlobal)
	s.L.Env, s.L.G.Global = s.env, s.env // For the functions that are made now.
	shownIndex := s.L.NewTable()
	shownIndex.RawSetString("__index", s.L.NewFunction(s.missingGlobal))
	s.metatables[s.env] = s.show(shownIndex, nil)

	s.openBase()
	s.openLibraries()
	s.openRedis()
	s.openHidden()
	s.globals.RawSetString("_G", s.env)
	s.name("_G", s.env)
	s.outermost = s.L.NewFunction(s.describe)
	s.caught = s.L.NewFunction(s.explainCaught)
	s.read = s.L.NewFunction(s.describeRead)
	s.fields = s.L.NewFunction(fieldsOf)
	s.countGiven = s.L.NewFunction(s.countArguments)
	s.tooDeep = s.newUnseen(func(L *lua.LState) int {
		wrong := limits.TooDeep
		if s.engine.budget.Depth >= s.engine.budget.HandlersMax() {
			wrong = limits.TooDeepInHandler
		}
		raise(L, lua.LString(wrong))
		return 0
	})
	s.renew()
	return s
}

// renew gives the sandbox a new Lua state, with the same globals.
func (s *sandbox) renew() {
	calls := callsMax + handlerCalls + 2*callsMargin
	if s.ready {
		calls = 1
	}
	L := lua.NewState(lua.Options{
		SkipOpenLibs: true, CallStackSize: calls,
		RegistrySize: registryMin, RegistryMaxSize: registryMax, RegistryGrowStep: registryStep,
	})
	if s.ready {
		limits.Inherit(L, s.L)
		// Coroutines that a library keeps go on with it.
		L.G = s.L.G
		L.G.MainThread, L.G.CurrentThread = L, L
	}
	s.L.Close()
	limits.End(s.L)
	s.ready = true
	L.Env, L.G.Global = s.env, s.env
	L.SetMetatable(lua.LString(""), s.strings)
	s.engine.budget.Own(L)
	L.Options.CallStackSize, L.Options.MinimizeStackMemory = threadCalls, true
	L.Options.RegistrySize, L.Options.RegistryGrowStep = threadMin, threadStep
	s.L = L
	s.thread.open(s)
}

// show returns the read-only table that stands for a real one. missing is
// called for names that are not there; nil makes them nil.
func (s *sandbox) show(real *lua.LTable, missing lua.LGFunction) *lua.LTable {
	shown, meta := s.L.NewTable(), s.L.NewTable()
	meta.RawSetString("__index", real)
	if missing != nil {
		meta.RawSetString("__index", s.L.NewFunction(func(L *lua.LState) int {
			if real == s.globals && s.engine.run.loading != nil {
				return s.loadingGlobal(L)
			}
			if v := real.RawGet(L.Get(2)); v != lua.LNil {
				L.Push(v)
				return 1
			}
			return missing(L)
		}))
	}
	meta.RawSetString("__newindex", s.L.NewFunction(func(L *lua.LState) int {
		L.RaiseError(readOnlyText)
		return 0
	}))
	shown.Metatable = meta
	s.readOnly[shown] = real
	return shown
}

const readOnlyText = "Attempt to modify a readonly table"

// real returns what t stands for: most tables stand for themselves.
func (s *sandbox) real(t *lua.LTable) *lua.LTable {
	if t.Metatable == lua.LNil {
		return t
	}
	if real, ok := s.readOnly[t]; ok {
		return real
	}
	return t
}

// refuseReadOnly raises Redis's error when t is read-only. The error carries no
// position, since a C function raises it there.
func (s *sandbox) refuseReadOnly(L *lua.LState, t *lua.LTable) {
	if s.real(t) != t {
		L.Error(lua.LString(readOnlyText), 0)
	}
}

// missingGlobal is what reading an undefined global calls.
func (s *sandbox) missingGlobal(L *lua.LState) int {
	key := L.Get(2)
	if name, ok := key.(lua.LString); ok && (name == "KEYS" || name == "ARGV") && s.purpose == forScripts && s.engine.run.keys != nil {
		if name == "KEYS" {
			L.Push(s.engine.run.keys)
		} else {
			L.Push(s.engine.run.argv)
		}
		return 1
	}
	return missingField(L)
}

// missingField is what reading a field calls that a table should have.
func missingField(L *lua.LState) int {
	name, ok := toText(L.Get(2))
	if !ok {
		L.RaiseError("Second argument to luaProtectedTableError must be a string or number")
	}
	noSuchGlobal(L, name)
	return 0
}

// name lets the rewriter put v where scripts write name.
func (s *sandbox) name(name string, v lua.LValue) {
	s.names[name] = true
	s.values[name] = v
	if _, ok := s.called[v]; !ok {
		s.called[v] = name
	}
}

// function makes fn the global called name.
func (s *sandbox) function(name string, fn lua.LGFunction) *lua.LFunction {
	f := s.L.NewFunction(fn)
	s.globals.RawSetString(name, f)
	s.name(name, f)
	return f
}

// libraryTable makes the real table of a library the global called name.
func (s *sandbox) libraryTable(name string, real *lua.LTable) *lua.LTable {
	shown := s.show(real, nil)
	s.globals.RawSetString(name, shown)
	s.name(name, shown)
	s.nameFields(name, real)
	return shown
}

// nameFields lets the rewriter replace the fields of a library.
func (s *sandbox) nameFields(library string, real *lua.LTable) {
	real.ForEach(func(key, v lua.LValue) {
		if field, ok := key.(lua.LString); ok {
			s.name(library+"."+string(field), v)
		}
	})
}
