package script

import (
	"reflect"
	"strconv"
	"strings"
	"unsafe"

	lua "github.com/yuin/gopher-lua"

	"headgate/server/script/limits"
)

// frame is one call on a Lua state's stack, as it is needed to word an error.
// gopher-lua keeps most of it to itself.
type frame struct {
	L     *lua.LState
	debug *lua.Debug
	fn    *lua.LFunction
	pc    int // of the instruction that runs
}

// frameAt returns the call at a level: 0 is the function that runs, 1 the one
// that called it.
func frameAt(L *lua.LState, level int) (f frame, ok bool) {
	debug, ok := L.GetStack(level)
	if !ok {
		return frame{}, false
	}
	v, err := L.GetInfo("f", debug, nil)
	fn, isFunction := v.(*lua.LFunction)
	if err != nil || !isFunction {
		return frame{}, false
	}
	f = frame{L: L, debug: debug, fn: fn}
	if !fn.IsG {
		f.pc = *at[int](f.call(), pcAt) - 1
	}
	return f, !fn.IsG && f.pc >= 0 && f.pc < len(fn.Proto.Code) || fn.IsG
}

// call points to gopher-lua's own record of the call.
func (f *frame) call() unsafe.Pointer { return *at[unsafe.Pointer](unsafe.Pointer(f.debug), callAt) }

// line returns the line that runs, or -1 in a function written in Go.
func (f *frame) line() int {
	if f.fn.IsG {
		return -1
	}
	return f.fn.Proto.DbgSourcePositions[f.pc]
}

// register returns the value of a register.
func (f *frame) register(i int) lua.LValue {
	_, v := f.L.GetLocal(f.debug, i+1)
	if v == nil {
		return lua.LNil
	}
	return v
}

// operand returns the value of a register or of a constant.
func (f *frame) operand(i int) lua.LValue {
	if i&constantBit != 0 {
		return f.fn.Proto.Constants[i&^constantBit]
	}
	return f.register(i)
}

// positionSeen is position with levels as scripts count them: without the functions of ours that they do not see, and "" for a call that has given its
// place to one that it ended with, for which gopher-lua takes the outermost one.
func (s *sandbox) positionSeen(L *lua.LState, level int) string {
	f, ok := frameAt(L, 0)
	if !ok {
		return ""
	}
	call, walked := f.call(), int64(0)
	for ; level > 0 && call != nil; walked++ {
		level--
		if !functionOf(call).IsG {
			level -= *at[int](call, tailCallsAt)
		}
		for call = callerOf(call); call != nil && s.isUnseen(functionOf(call)); walked++ {
			call = callerOf(call)
		}
	}
	s.engine.budget.Spend(walked / callsPerStep)
	if level != 0 || call == nil {
		return ""
	}
	return place(functionOf(call), *at[int](call, pcAt)-1)
}

// newUnseen makes a function whose calls scripts do not see: one that stands for an operator, or that calls a handler of errors.
func (s *sandbox) newUnseen(fn lua.LGFunction) *lua.LFunction { return s.L.NewClosure(fn, s.unseen) }

func (s *sandbox) isUnseen(fn *lua.LFunction) bool {
	return len(fn.Upvalues) == 1 && fn.Upvalues[0].Value() == s.unseen
}

// callsPerStep is how many calls a walk along the stack may pass while a script makes a step.
const callsPerStep = 16

// Where gopher-lua's record of a call has its fields. Reflection would be too slow: the stack may be thousands of calls deep, and
// coroutines look at it each time that they are resumed.
var (
	callAt      = limits.OffsetIn[lua.Debug]("frame", nil)
	depthAt     = limits.OffsetInCall("Idx", reflect.TypeFor[int]())
	functionAt  = limits.OffsetInCall("Fn", reflect.TypeFor[*lua.LFunction]())
	callerAt    = limits.OffsetInCall("Parent", nil)
	pcAt        = limits.OffsetInCall("Pc", reflect.TypeFor[int]())
	tailCallsAt = limits.OffsetInCall("TailCall", reflect.TypeFor[int]())
	localBaseAt = limits.OffsetInCall("LocalBase", reflect.TypeFor[int]())
)

func functionOf(call unsafe.Pointer) *lua.LFunction { return *at[*lua.LFunction](call, functionAt) }

func callerOf(call unsafe.Pointer) unsafe.Pointer { return *at[unsafe.Pointer](call, callerAt) }

// position returns where the function at a level is, as messages start:
// "user_script:1: ", or "" in a function written in Go.
func position(L *lua.LState, level int) string {
	f, ok := frameAt(L, level)
	if !ok {
		return ""
	}
	return place(f.fn, f.pc)
}

// place is position for a function and the instruction that it runs.
func place(fn *lua.LFunction, pc int) string {
	if fn.IsG || fn.Proto.SourceName == bodySource {
		return ""
	}
	return fn.Proto.SourceName + ":" + strconv.Itoa(fn.Proto.DbgSourcePositions[pc]) + ": "
}

// instruction is one of gopher-lua's.
type instruction struct{ op, a, b, c int }

// constantBit marks an operand that is a constant.
const constantBit = 1 << 8

func decode(code uint32) instruction {
	return instruction{int(code >> 26), int(code>>18) & 0xff, int(code & 0x1ff), int(code>>9) & 0x1ff}
}

// jump returns how far a jump goes.
func jump(code uint32) int { return int(code&0x3ffff) - 1<<17 + 1 }

// variable names what is in a register, in Lua's words: "local 'a' ", or "" when
// nothing can be said. pc is the instruction that uses it.
func (s *sandbox) variable(f frame, register, pc int) string {
	if name := localName(f.fn.Proto, register, pc); name != "" && !strings.HasPrefix(name, objectName) {
		return called("local", name)
	}
	at, move := lastSetter(f.fn.Proto, register, pc)
	if at < 0 {
		return ""
	}
	p := f.fn.Proto
	in := decode(p.Code[at])
	if move >= 0 {
		in = decode(p.Code[move])
		in.op = lua.OP_MOVE
	}
	switch in.op {
	case lua.OP_MOVE:
		if in.b < in.a {
			return s.variable(f, in.b, at)
		}
	case lua.OP_GETGLOBAL:
		return called("global", p.Constants[p.Code[at]&0x3ffff].String())
	case lua.OP_GETTABLE, lua.OP_GETTABLEKS:
		return called("field", constantName(p, in.c))
	case lua.OP_GETUPVAL:
		return called("upvalue", p.DbgUpvalues[in.b])
	case lua.OP_SELF:
		if register == in.a {
			return called("method", constantName(p, in.c))
		}
	case lua.OP_LOADK:
		return s.constantCalled(p.Constants[p.Code[at]&0x3ffff])
	}
	return ""
}

// localName returns the name of the local variable that a register is at pc, or
// "". gopher-lua's own look-up misses a variable's first and last instruction.
func localName(p *lua.FunctionProto, register, pc int) string {
	for _, local := range p.DbgLocals {
		if local.StartPc <= pc && pc <= local.EndPc {
			if register == 0 {
				return local.Name
			}
			register--
		}
	}
	return ""
}

// constantName is the name of a field: a constant string, or an unknown.
func constantName(p *lua.FunctionProto, operand int) string {
	if operand&constantBit != 0 {
		if name, ok := p.Constants[operand&^constantBit].(lua.LString); ok {
			return string(name)
		}
	}
	return "?"
}

// constantCalled names a value that took the place of a name.
func (s *sandbox) constantCalled(v lua.LValue) string {
	switch v.(type) {
	case *lua.LFunction, *lua.LTable, *lua.LUserData:
	default:
		return ""
	}
	name, ok := s.called[v]
	if !ok {
		return ""
	}
	if point := strings.IndexByte(name, '.'); point >= 0 {
		return called("field", name[point+1:])
	}
	return called("global", name)
}

// called words a kind of variable and its name. The parameters that stand for
// KEYS and ARGV are globals to the script.
func called(kind, name string) string {
	if name == keysName || name == argvName {
		kind, name = "global", strings.Trim(name, "()")
	}
	if strings.HasPrefix(name, "(") {
		return ""
	}
	return kind + " '" + name + "' "
}

// lastSetter finds the instruction before pc that gave a register its value. For
// one of several moves in a row, move is the place of its operands.
func lastSetter(p *lua.FunctionProto, register, pc int) (at, move int) {
	at, move = -1, -1
	for i := 0; i < pc; i++ {
		in := decode(p.Code[i])
		switch in.op {
		case lua.OP_MOVEN:
			first := i
			if in.a == register {
				at, move = first, first
			}
			for n := 0; n < in.c; n++ {
				i++
				if decode(p.Code[i]).a == register {
					at, move = first, i
				}
			}
			continue
		case lua.OP_JMP:
			if d := jump(p.Code[i]); d > 0 && i+1+d <= pc {
				i += d
			}
			continue
		case lua.OP_CLOSURE:
			if in.a == register {
				at, move = i, -1
			}
			i += int(p.FunctionPrototypes[p.Code[i]&0x3ffff].NumUpvalues)
			continue
		case lua.OP_SETLIST:
			if in.c == 0 {
				i++
			}
			continue
		}
		if sets(in, register) {
			at, move = i, -1
		}
	}
	return at, move
}

// sets reports whether an instruction changes a register.
func sets(in instruction, register int) bool {
	switch in.op {
	case lua.OP_SETGLOBAL, lua.OP_SETUPVAL, lua.OP_SETTABLE, lua.OP_SETTABLEKS, lua.OP_EQ, lua.OP_LT, lua.OP_LE,
		lua.OP_TEST, lua.OP_RETURN, lua.OP_CLOSE, lua.OP_NOP:
		return false
	case lua.OP_CALL, lua.OP_TAILCALL, lua.OP_VARARG:
		return register >= in.a
	case lua.OP_TFORLOOP:
		return register >= in.a+2
	case lua.OP_LOADNIL:
		return register >= in.a && register <= in.b
	case lua.OP_SELF:
		return register == in.a || register == in.a+1
	}
	return register == in.a
}
