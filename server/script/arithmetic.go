package script

import (
	"math"

	lua "github.com/yuin/gopher-lua"
)

// arithmetic is what Lua's operators do, by their metamethods' names. The
// operand of __unm comes twice.
var arithmetic = map[string]func(a, b lua.LNumber) lua.LNumber{
	"__add": func(a, b lua.LNumber) lua.LNumber { return a + b },
	"__sub": func(a, b lua.LNumber) lua.LNumber { return a - b },
	"__mul": func(a, b lua.LNumber) lua.LNumber { return a * b },
	"__div": func(a, b lua.LNumber) lua.LNumber { return a / b },
	"__mod": func(a, b lua.LNumber) lua.LNumber {
		return a - lua.LNumber(math.Floor(float64(a/b)))*b
	},
	"__pow": func(a, b lua.LNumber) lua.LNumber {
		return lua.LNumber(math.Pow(float64(a), float64(b)))
	},
	"__unm": func(a, _ lua.LNumber) lua.LNumber { return -a },
}

// arithmeticError ends an operation on strings that are no numbers: another
// operand's metamethod may still do it.
func (s *sandbox) arithmeticError(L *lua.LState, event string) {
	L.RaiseError("cannot perform %s operation between %s and %s", event[2:], L.Get(1).Type(), L.Get(2).Type())
}
