package script

import (
	"math"

	lua "github.com/yuin/gopher-lua"

	"headgate/server/script/lualib/luacall"
)

// arithmetic is what the operators do that gopher-lua's machine has, by their
// metamethods' names. The operand of __unm comes twice.
var arithmetic = map[string]func(a, b lua.LNumber) lua.LNumber{
	"__add": func(a, b lua.LNumber) lua.LNumber { return a + b },
	"__sub": func(a, b lua.LNumber) lua.LNumber { return a - b },
	"__mul": func(a, b lua.LNumber) lua.LNumber { return a * b },
	"__div": func(a, b lua.LNumber) lua.LNumber { return a / b },
	"__unm": func(a, _ lua.LNumber) lua.LNumber { return -a },
}

// modulo is the operator %, and its metamethod's name is __mod.
func modulo(a, b float64) float64 {
	whole := float64(math.Floor(a/b) * b) // No fused operation, which would round once only.
	return a - whole
}

// operator makes the function that stands for an operator of two numbers. leftAt is which argument the left operand is, 1 or 2.
func (s *sandbox) operator(event string, leftAt int, operate func(a, b float64) float64) lua.LGFunction {
	rightAt := 3 - leftAt
	return func(L *lua.LState) int {
		left, right := L.Get(leftAt), L.Get(rightAt)
		a, aOK := luacall.ToNumber(L, left)
		b, bOK := luacall.ToNumber(L, right)
		if aOK && bOK {
			L.Push(s.number(operate(float64(a), float64(b))))
			return 1
		}
		handler := metamethod(L, left, right, event)
		switch {
		case handler != lua.LNil:
			L.Push(handler)
			L.Push(left)
			L.Push(right)
			s.engine.budget.CallForOperator(L, 2, 1)
		case aOK:
			s.operandError(L, rightAt, right, "perform arithmetic on")
		default:
			s.operandError(L, leftAt, left, "perform arithmetic on")
		}
		return 1
	}
}

// number returns f as a Lua value, without an allocation if it is small and whole.
func (s *sandbox) number(f float64) lua.LValue {
	if f > 0 && f <= mostBoxed {
		if n := int64(f); float64(n) == f {
			return s.engine.calls.numbers.value(n)
		}
	}
	return lua.LNumber(f)
}

// arithmeticOther ends an operation on strings that the numbers in them do not
// suffice for: another operand's metamethod may do it.
func (s *sandbox) arithmeticOther(L *lua.LState, event string) int {
	handler := metamethod(L, L.Get(1), L.Get(2), event)
	if handler == lua.LNil {
		L.RaiseError("cannot perform %s operation between %s and %s", event[2:], L.Get(1).Type(), L.Get(2).Type())
	}
	L.Insert(handler, 1)
	s.engine.budget.CallForOperator(L, 2, 1)
	return 1
}
