// Package luacall is what Go functions called from Lua need: arguments, results
// and errors as Lua 5.1's auxiliary library has them, with its texts, which
// name a function as its caller does.
package luacall

import (
	"fmt"
	"reflect"

	lua "github.com/yuin/gopher-lua"
)

// Error raises an error with the position of the Lua function that called the
// running Go function. There is no position if something else called it.
func Error(L *lua.LState, text string) {
	SpendOn(L, len(text))
	L.Error(lua.LString(position(L)+text), 0)
}

// Errorf is Error with a format.
func Errorf(L *lua.LState, format string, args ...any) {
	Error(L, fmt.Sprintf(format, args...))
}

// RawError raises an error without position, as Lua's core does while a
// function of a library runs.
func RawError(L *lua.LState, text string) {
	L.Error(lua.LString(text), 0)
}

// CannotCompare is the complaint about two types that are compared, in this order. Lua
// takes types for the same if their third letters are, so that "thread" is "string".
func CannotCompare(a, b string) string {
	if a[2] == b[2] {
		return "attempt to compare two " + a + " values"
	}
	return "attempt to compare " + a + " with " + b
}

// ArgError raises the complaint about argument n, counted from 1.
func ArgError(L *lua.LState, n int, text string) {
	name, method := calledAs(L)
	if method {
		if n--; n == 0 {
			Errorf(L, "calling '%s' on bad self (%s)", name, text)
			return
		}
	}
	Errorf(L, "bad argument #%d to '%s' (%s)", n, name, text)
}

// TypeError raises the complaint that argument n is no want.
func TypeError(L *lua.LState, n int, want string) {
	got := "no value"
	if n <= L.GetTop() {
		got = L.Get(n).Type().String()
	}
	ArgError(L, n, want+" expected, got "+got)
}

// position returns where the caller of the running function is, with a colon
// and a space.
func position(L *lua.LState) string {
	caller, ok := L.GetStack(1)
	if !ok {
		return ""
	}
	if _, err := L.GetInfo("Sl", caller, lua.LNil); err != nil || caller.CurrentLine <= 0 {
		return ""
	}
	return fmt.Sprintf("%s:%d: ", caller.Source, caller.CurrentLine)
}

// unnamed is what Lua calls a function that the caller has no name for.
const unnamed = "?"

// calledAs returns the name by which the running function was called, and
// whether it was called as a method.
func calledAs(L *lua.LState) (name string, method bool) {
	caller, ok := L.GetStack(1)
	if !ok {
		return unnamed, false
	}
	value, err := L.GetInfo("fl", caller, lua.LNil)
	f, ok := value.(*lua.LFunction)
	if err != nil || !ok || f.IsG {
		return unnamed, false
	}
	callee, _ := L.GetStack(0)
	if _, err := L.GetInfo("n", callee, lua.LNil); err != nil {
		return unnamed, false
	}
	if callee.Name == "(anonymous)" { // gopher-lua knows of no call here
		if hasOpcode(f.Proto, caller.CurrentLine, lua.OP_TFORLOOP) {
			return "(for generator)", false
		}
		return unnamed, false
	}
	pc := reflect.ValueOf(caller).Elem().FieldByName("frame").Elem().FieldByName("Pc").Int() - 1 // which gopher-lua keeps to itself
	if name, method := methodCalled(f.Proto, int(pc)); method {
		return name, true
	}
	return callee.Name, false
}

// hasOpcode reports whether an instruction of line is an opcode.
func hasOpcode(p *lua.FunctionProto, line, opcode int) bool {
	for pc, inst := range p.Code {
		if p.DbgSourcePositions[pc] == line && opcodeOf(inst) == opcode {
			return true
		}
	}
	return false
}

// methodCalled reports whether the call at pc is written with a colon, and the name behind it. gopher-lua says neither, but the instruction that fetched
// the function does.
func methodCalled(p *lua.FunctionProto, pc int) (name string, method bool) {
	register := registerA(p.Code[pc])
	for pc--; pc >= 0; pc-- {
		if inst := p.Code[pc]; registerA(inst) == register {
			switch opcodeOf(inst) {
			case lua.OP_SELF:
				return constantName(p, inst), true
			case lua.OP_MOVE, lua.OP_LOADK, lua.OP_GETUPVAL, lua.OP_GETGLOBAL, lua.OP_GETTABLE, lua.OP_GETTABLEKS:
				return "", false
			}
		}
	}
	return "", false
}

// constantName is the constant that is an instruction's operand C, or an unknown.
func constantName(p *lua.FunctionProto, inst uint32) string {
	if operand := int(inst>>9) & 0x1ff; operand&constantBit != 0 {
		if name, ok := p.Constants[operand&^constantBit].(lua.LString); ok {
			return string(name)
		}
	}
	return unnamed
}

// constantBit marks an operand that is a constant.
const constantBit = 1 << 8

// opcodeOf and registerA take gopher-lua's instructions apart: the opcode is
// in the upper 6 bits, register A in the 8 bits below.
func opcodeOf(inst uint32) int  { return int(inst >> 26) }
func registerA(inst uint32) int { return int(inst>>18) & 0xff }
