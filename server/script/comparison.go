package script

import (
	lua "github.com/yuin/gopher-lua"

	"headgate/server/script/lualib/luacall"
)

// ordering is < or <=.
type ordering struct {
	event   string // the name of its metamethod
	numbers func(a, b lua.LNumber) bool
	texts   func(a, b string) bool
}

var (
	less = ordering{
		"__lt", func(a, b lua.LNumber) bool { return a < b }, func(a, b string) bool { return a < b },
	}
	atMost = ordering{
		"__le", func(a, b lua.LNumber) bool { return a <= b }, func(a, b string) bool { return a <= b },
	}
)

// comparisons returns the functions that stand for comparisons, by what the rewriter calls them. Each comes twice: its arguments are the operands in
// the order of the script's text, or with rightFirst behind its name the other way round.
func (s *sandbox) comparisons() map[string]lua.LGFunction {
	return map[string]lua.LGFunction{
		"(less)": s.ordered(less, 1), "(less)" + rightFirst: s.ordered(less, 2),
		"(greater)": s.ordered(less, 2), "(greater)" + rightFirst: s.ordered(less, 1),
		"(at most)": s.ordered(atMost, 1), "(at most)" + rightFirst: s.ordered(atMost, 2),
		"(at least)": s.ordered(atMost, 2), "(at least)" + rightFirst: s.ordered(atMost, 1),
		"(equal)": s.equal(1), "(equal)" + rightFirst: s.equal(2),
	}
}

// ordered makes the function that stands for o. leftAt is which argument the left operand is, 1 or 2.
func (s *sandbox) ordered(o ordering, leftAt int) lua.LGFunction {
	rightAt := 3 - leftAt
	return func(L *lua.LState) int {
		left, right := L.Get(leftAt), L.Get(rightAt)
		switch a := left.(type) {
		case lua.LNumber:
			if b, ok := right.(lua.LNumber); ok {
				L.Push(lua.LBool(o.numbers(a, b)))
				return 1
			}
		case lua.LString:
			if b, ok := right.(lua.LString); ok {
				luacall.SpendOn(L, min(len(a), len(b)))
				L.Push(lua.LBool(o.texts(string(a), string(b))))
				return 1
			}
		}
		L.Push(lua.LBool(s.orderedBy(L, o, left, right)))
		return 1
	}
}

// orderedBy compares what only metamethods can. Both values must have the same one. A metamethod for < also does for <=, the other way round.
func (s *sandbox) orderedBy(L *lua.LState, o ordering, a, b lua.LValue) bool {
	if f := sharedMethod(L, o.event, a, b); f != nil {
		return s.callToCompare(L, f, a, b)
	}
	if f := sharedMethod(L, less.event, a, b); f != nil {
		return !s.callToCompare(L, f, b, a)
	}
	L.RaiseError("%s", luacall.CannotCompare(a.Type().String(), b.Type().String()))
	return false
}

// sharedMethod returns the metamethod that two values of one type share, or nil.
func sharedMethod(L *lua.LState, event string, a, b lua.LValue) *lua.LFunction {
	if a.Type() != b.Type() {
		return nil
	}
	f, ok := L.GetMetaField(a, event).(*lua.LFunction)
	if !ok || L.GetMetaField(b, event) != lua.LValue(f) {
		return nil
	}
	return f
}

func (s *sandbox) callToCompare(L *lua.LState, f *lua.LFunction, a, b lua.LValue) bool {
	L.Push(f)
	L.Push(a)
	L.Push(b)
	s.engine.budget.CallForOperator(L, 2, 1)
	result := lua.LVAsBool(L.Get(-1))
	L.Pop(1)
	return result
}

// equal makes the function that stands for ==.
func (s *sandbox) equal(leftAt int) lua.LGFunction {
	return func(L *lua.LState) int {
		left, right := L.Get(leftAt), L.Get(3-leftAt)
		luacall.SpendOnKey(L, left)
		result := L.RawEqual(left, right)
		if f := sharedMethod(L, "__eq", left, right); !result && f != nil {
			result = s.callToCompare(L, f, left, right)
		}
		L.Push(lua.LBool(result))
		return 1
	}
}
