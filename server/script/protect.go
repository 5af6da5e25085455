package script

import (
	"reflect"
	"unsafe"

	lua "github.com/yuin/gopher-lua"

	"headgate/server/script/limits"
	"headgate/server/script/lualib/luacall"
)

// basePcall is pcall. An error that Redis raised is a table; as in Redis its
// text takes its place, and is one result more where it is no text.
func (s *sandbox) basePcall(L *lua.LState) int {
	L.Insert(lua.LTrue, 1)
	if f := L.Get(L.GetTop()); L.GetTop() == 1 || !callable(L, L.Get(2)) {
		if L.GetTop() > 1 {
			f = L.Get(2)
		}
		L.Push(lua.LFalse)
		L.Push(lua.LString("attempt to call a " + f.Type().String() + " value"))
		return 2
	}
	err := s.protect(L, L.GetTop()-2, s.caught)
	if err == nil {
		return L.GetTop()
	}
	L.Push(lua.LFalse)
	t, ok := err.Object.(*lua.LTable)
	if !ok {
		L.Push(err.Object)
		return 2
	}
	inner := s.errorOf(L, t)
	if _, ok := toText(inner); ok {
		L.Push(inner)
		return 2
	}
	L.Push(t)
	L.Push(inner)
	return 3
}

// errorOf is the field of an error by which Redis knows one of its own. It asks for it as an index does, so that the script may say what it is, or fail.
func (s *sandbox) errorOf(L *lua.LState, t *lua.LTable) lua.LValue {
	if t.Metatable == lua.LNil {
		return t.RawGetString("err")
	}
	b := s.engine.budget
	if wrong := b.Enter(); wrong != "" {
		L.Error(lua.LString(wrong), 0)
	}
	b.Spend(callSteps)
	v := L.GetField(t, "err")
	b.Depth--
	return v
}

// callable reports whether v is a function, or a table that acts as one.
func callable(L *lua.LState, v lua.LValue) bool {
	if _, ok := v.(*lua.LFunction); ok {
		return true
	}
	return metamethod(L, v, lua.LNil, "__call") != lua.LNil
}

// baseXpcall is xpcall.
func (s *sandbox) baseXpcall(L *lua.LState) int {
	handler := luacall.Any(L, 2)
	f := L.Get(1)
	L.SetTop(2)
	L.Push(lua.LTrue)
	if callable(L, f) {
		L.Push(f)
	} else {
		L.Push(L.NewFunction(func(L *lua.LState) int {
			raise(L, lua.LString("attempt to call a "+f.Type().String()+" value"))
			return 0
		}))
	}
	var inForce *lua.LFunction
	inForce = s.newUnseen(func(L *lua.LState) int {
		failQuietly(L)
		v := L.Get(1)
		if s.engine.run.stopped == "" {
			s.closeAbove(L)
			v = s.handled(L, handler, inForce, s.explain(L, v, 1))
		}
		L.Push(v)
		return 1
	})
	err := s.protect(L, 0, inForce)
	if err == nil {
		return L.GetTop() - 2
	}
	L.Push(lua.LFalse)
	L.Push(err.Object)
	return 2
}

// handled is what the handler of xpcall makes of an error. An error of its own goes to it in turn, as in Lua, each one level deeper than where it was
// raised, until even what Lua has left for handlers is used up. inForce is what calls the handler: for load in the handler, too.
func (s *sandbox) handled(L *lua.LState, handler lua.LValue, inForce *lua.LFunction, v lua.LValue) lua.LValue {
	b, top := s.engine.budget, L.GetTop()
	mark := b.Mark()
	defer b.Return(mark)
	defer func(before bool) { s.overflowed = before }(s.overflowed)
	s.exhausted = s.exhausted && s.overflowed
	s.overflowed = s.overflowed || s.engine.isDeep(L, 0)
	_, isFunction := handler.(*lua.LFunction) // Lua calls no table here.
	for isFunction && b.Depth < b.HandlersMax() && !s.exhausted {
		if b.Depth == b.MaxDepth { // this call of it is too deep, which it is told, beyond
			v = lua.LString(limits.TooDeep)
			b.Depth++
		}
		b.Count(callSteps)
		L.Push(handler)
		L.Push(v)
		s.catching-- // it is in the place of the call whose error this is
		err := s.try(L, 1, s.caught, inForce)
		s.catching++
		if s.engine.run.stopped != "" {
			return v
		}
		if err == nil {
			v = L.Get(top + 1)
			L.SetTop(top)
			return v
		}
		v = err.Object
	}
	return lua.LString(limits.TooDeepInHandler)
}

// protect calls a function whose errors it returns. A script that is being
// stopped is not held up.
func (s *sandbox) protect(L *lua.LState, nargs int, handler *lua.LFunction) *lua.ApiError {
	b := s.engine.budget
	b.Spend(callSteps)
	mark := b.Mark()
	err := s.try(L, nargs, handler, handler)
	b.Return(mark)
	if err != nil {
		s.engine.stopAgain()
	}
	return err
}

// try is protect that also returns when the script has been stopped. ofLoad is the handler that load uses meanwhile. Depth is left as it was where an
// error was raised.
func (s *sandbox) try(L *lua.LState, nargs int, handler, ofLoad *lua.LFunction) *lua.ApiError {
	b := s.engine.budget
	if wrong := b.Enter(); wrong != "" { // an error of this call, which goes through its handler
		L.SetTop(L.GetTop() - nargs - 1)
		L.Push(s.tooDeep)
		nargs = 0
	}
	handled := handlesErrors(L)
	before, outer := *handled, s.handler
	catching := s.catching
	s.handler = ofLoad
	s.catching++
	err := s.guarded(L, nargs, lua.MultRet, handler)
	s.catching = catching // a call within that has failed may not have counted back
	*handled, s.handler = before, outer
	if err == nil {
		return nil
	}
	s.closeAbove(L) // if the handler has not come to that
	api, ok := err.(*lua.ApiError)
	if !ok {
		api = &lua.ApiError{Type: lua.ApiErrorRun, Object: lua.LString(err.Error())}
	}
	if text, ok := api.Object.(lua.LString); ok && api.Type == lua.ApiErrorPanic { // raised in the handler
		api.Object = inWords(text)
	}
	return api
}

// guarded is LState.PCall that always returns: where the registers are full, gopher-lua has none for the handler of an error, and gives up on all calls
// there are.
func (s *sandbox) guarded(L *lua.LState, nargs, nret int, handler *lua.LFunction) (err error) {
	before := limits.PlaceOf(L)
	defer func() {
		if recover() == nil {
			return
		}
		s.engine.run.broken = true
		where := ""
		for level := 0; level < wordedCalls && where == ""; level++ {
			where = position(L, level)
		}
		base := before.Used() - nargs - 1
		limits.CloseUpvalues(L, base)
		limits.GoBack(L, before, base)
		err = &lua.ApiError{Type: lua.ApiErrorRun, Object: lua.LString(where + "stack overflow")}
	}()
	return L.PCall(nargs, nret, handler)
}

// wordedCalls is how many calls are looked at for the one whose place an error has.
const wordedCalls = 3

// failQuietly begins the handler of an error: one that gopher-lua raises in it ends it without a description of all calls, which would take a time that grows
// with the square of how many there are. PCall undoes that.
func failQuietly(L *lua.LState) {
	L.Panic = func(L *lua.LState) { panic(show(L.Get(-1))) }
}

// handlesErrors is where gopher-lua keeps whether an error is going to be handled. After a call that handled some itself it says no, and the next
// error of whoever made that call would close the variables of all functions there are.
func handlesErrors(L *lua.LState) *bool {
	return at[bool](unsafe.Pointer(L), handlesErrorsAt)
}

var handlesErrorsAt = limits.OffsetIn[lua.LState]("hasErrorFunc", reflect.TypeFor[bool]())

// callSteps is what calls count that are dearer than those of Lua functions.
const callSteps = 10
