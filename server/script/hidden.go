package script

import (
	"strings"

	lua "github.com/yuin/gopher-lua"

	"headgate/server/script/limits"
	"headgate/server/script/lualib/luacall"
	"headgate/server/script/lualib/luanum"
	"headgate/server/script/lualib/mathlib"
)

// openHidden makes the functions that the rewriter puts into scripts.
func (s *sandbox) openHidden() {
	s.hide("(tick)", s.engine.tick)
	s.hide("(many)", many)
	s.values["(concat)"] = s.newUnseen(s.concat)
	s.hide("(length)", s.length)
	s.hide("(same)", same)
	s.hide("(varargs)", s.varargs)
	s.hide("(key)", s.countKey)
	s.hide("(value before key)", s.countKeyOfValue)
	s.hide("(key of part)", s.countPartKey)
	s.nilField = s.L.NewUserData()
	s.hide("(field of part)", s.partField)
	s.hide("(join)", s.join)
	s.hide("(literal)", s.literal)
	for name, f := range map[string]lua.LGFunction{
		"(modulo)": s.operator("__mod", 1, modulo), "(modulo)" + rightFirst: s.operator("__mod", 2, modulo),
		"(power)": s.operator("__pow", 1, mathlib.Pow), "(power)" + rightFirst: s.operator("__pow", 2, mathlib.Pow),
	} {
		s.values[name] = s.newUnseen(f)
	}
	for name, f := range s.comparisons() {
		s.values[name] = s.newUnseen(f)
	}
	for _, what := range []string{"initial value", "limit", "step"} {
		s.hide("(for "+what+")", func(L *lua.LState) int {
			n, ok := luacall.ToNumber(L, L.Get(1))
			if !ok {
				L.RaiseError("'for' %s must be a number", what)
			}
			L.Push(n)
			return 1
		})
	}
}

func (s *sandbox) hide(name string, fn lua.LGFunction) { s.values[name] = s.L.NewFunction(fn) }

// same returns the key of an element that is looked up, perhaps in a chain of
// tables one after the other.
func same(L *lua.LState) int {
	luacall.SpendOnKey(L, L.Get(1))
	return 1
}

// varargs returns its arguments, which are many perhaps and go into a table, or to a function.
func (s *sandbox) varargs(L *lua.LState) int {
	n := L.GetTop()
	s.engine.budget.Spend(int64(n))
	return n
}

// countKey counts what a key in a table constructor may cost: the machine fills
// a table up to it.
func (s *sandbox) countKey(L *lua.LState) int {
	if n, ok := L.Get(1).(lua.LNumber); ok && n > 0 && n < limits.ArrayMax {
		s.engine.budget.SpendRoomFor(int(n))
	}
	luacall.SpendOnKey(L, L.Get(1))
	L.SetTop(1)
	return 1
}

// countKeyOfValue is countKey for a key that is read after its value.
func (s *sandbox) countKeyOfValue(L *lua.LState) int {
	v := L.Get(1)
	L.Remove(1)
	s.countKey(L)
	L.Push(v)
	return 1
}

// countPartKey is countKey for a part of a table, whose items the key must not
// meet: it is put into a box until join takes it out.
func (s *sandbox) countPartKey(L *lua.LState) int {
	s.countKey(L)
	if key := L.Get(1); key != lua.LNil && key == key {
		box := L.NewUserData()
		box.Value = key
		L.Push(box)
	}
	return 1
}

// partField has the part of a table hold that a field is nil, which takes away one of the same key before it.
func (s *sandbox) partField(L *lua.LState) int {
	if L.Get(1) == lua.LNil {
		L.Push(s.nilField)
	}
	return 1
}

// join puts what parts of a table hold into it: their fields with keys, then their
// items behind the elements of the table, of which there are as many as the
// argument in front of the part says.
func (s *sandbox) join(L *lua.LState) int {
	t := L.Get(1).(*lua.LTable)
	for i := 2; i < L.GetTop(); i += 2 {
		n, part := int(L.Get(i).(lua.LNumber)), L.Get(i+1).(*lua.LTable)
		s.engine.budget.Spend(int64(s.engine.budget.Len(part)))
		for k, v := part.Next(lua.LNil); k != lua.LNil; k, v = part.Next(k) {
			if v == s.nilField {
				v = lua.LNil
			}
			switch k := k.(type) {
			case *lua.LUserData:
				t.RawSet(k.Value.(lua.LValue), v)
			case lua.LString:
				t.RawSet(k, v)
			}
		}
		for k, v := part.Next(lua.LNil); k != lua.LNil; k, v = part.Next(k) {
			if at, ok := k.(lua.LNumber); ok {
				t.RawSetInt(n+int(at), v)
			}
		}
	}
	L.SetTop(1)
	return 1
}

// concat is a chain of `..` operators.
func (s *sandbox) concat(L *lua.LState) int {
	n := L.GetTop()
	size := 0
	for i := 1; i <= n; i++ {
		switch v := L.Get(i).(type) {
		case lua.LString:
			size += len(v)
		case lua.LNumber:
			size += numberMax
		default:
			return s.concatValues(L)
		}
	}
	s.engine.budget.CheckString(L, size)
	var small [128]byte
	out := small[:0]
	if size > len(small) {
		out = make([]byte, 0, size)
	}
	for i := 1; i <= n; i++ {
		out = appendText(out, L.Get(i))
	}
	if size > len(small) {
		L.Push(lua.LString(text(out)))
	} else {
		L.Push(lua.LString(out))
	}
	return 1
}

// numberMax is how long a number prints, in bytes.
const numberMax = 24

func appendText(out []byte, v lua.LValue) []byte {
	if n, ok := v.(lua.LNumber); ok {
		return luanum.AppendNumber(out, float64(n))
	}
	return append(out, string(v.(lua.LString))...)
}

// concatValues is concat for operands that are not all strings or numbers: from
// the right, two at a time, with metamethods.
func (s *sandbox) concatValues(L *lua.LState) int {
	n := L.GetTop()
	right := L.Get(n)
	for i := n - 1; i >= 1; i-- {
		left := L.Get(i)
		a, aOK := toText(left)
		b, bOK := toText(right)
		if aOK && bOK {
			s.engine.budget.CheckString(L, len(a)+len(b))
			right = lua.LString(a + b)
			L.Replace(i, right) // Where it counts while a metamethod runs.
			continue
		}
		handler := metamethod(L, left, right, "__concat")
		if handler == lua.LNil {
			operand, at := left, i
			if aOK {
				operand, at = right, i+1
			}
			s.operandError(L, at, operand, "concatenate")
		}
		L.Push(handler)
		L.Push(left)
		L.Push(right)
		s.engine.budget.CallForOperator(L, 2, 1)
		right = L.Get(-1)
		L.Pop(1)
	}
	L.Push(right)
	return 1
}

// metamethod returns the handler of an operation on two values, or nil.
func metamethod(L *lua.LState, a, b lua.LValue, event string) lua.LValue {
	for _, v := range []lua.LValue{a, b} {
		if t, ok := v.(*lua.LTable); ok {
			if meta, ok := t.Metatable.(*lua.LTable); ok {
				if handler := meta.RawGetString(event); handler != lua.LNil {
					return handler
				}
			}
		}
	}
	return lua.LNil
}

// operandError raises the error about argument i of a function that stands for
// an operator, by the name of the variable that it came from.
func (s *sandbox) operandError(L *lua.LState, i int, v lua.LValue, what string) {
	named := "a "
	if f, ok := frameAt(L, 1); ok && !f.fn.IsG {
		if in := decode(f.fn.Proto.Code[f.pc]); in.op == lua.OP_CALL || in.op == lua.OP_TAILCALL {
			named = s.describeOperand(f, in.a+i)
		}
	}
	L.RaiseError("%s", strings.Join([]string{"attempt to ", what, " ", named, v.Type().String(), " value", closing(named)}, ""))
}

// length is the operator #.
func (s *sandbox) length(L *lua.LState) int {
	b := s.engine.budget
	switch v := L.Get(1).(type) {
	case lua.LString:
		b.Spend(1)
		L.Push(lua.LNumber(len(v)))
	case *lua.LTable:
		L.Push(s.engine.calls.numbers.value(int64(b.Len(s.real(v)))))
	default:
		s.operandError(L, 1, v, "get length of")
	}
	return 1
}
