package cjson

import (
	"math"

	lua "github.com/yuin/gopher-lua"

	"headgate/server/script/limits"
	"headgate/server/script/lualib/internal/output"
	"headgate/server/script/lualib/internal/tables"
	"headgate/server/script/lualib/luacall"
)

// numberMax is the room that a number may need, in bytes.
const numberMax = 32

// encoder is the state of one call of encode.
type encoder struct {
	L      *lua.LState
	budget *limits.Budget
	settings
	out []byte
}

// encode(value) returns the value as JSON.
func (l *library) encode(L *lua.LState) int {
	if L.GetTop() != 1 {
		luacall.ArgError(L, 1, "expected 1 argument")
	}
	e := encoder{L: L, budget: l.budget, settings: l.settings, out: l.out[:0]}
	e.value(L.Get(1), 0, 1)
	var text lua.LString
	text, l.out = output.String(L, l.budget, e.out)
	L.Push(text)
	return 1
}

// value appends v, which lies in depth tables. Used is how many slots C Lua's
// stack would hold by now.
func (e *encoder) value(v lua.LValue, depth, used int) {
	e.budget.Spend(1)
	e.room(numberMax)
	switch v := v.(type) {
	case lua.LString:
		e.text(string(v))
	case lua.LNumber:
		e.number(v)
	case lua.LBool:
		if v {
			e.out = append(e.out, "true"...)
		} else {
			e.out = append(e.out, "false"...)
		}
	case *lua.LTable:
		e.table(v, depth+1, used)
	case *lua.LNilType:
		e.out = append(e.out, "null"...)
	default:
		if !IsNull(v) {
			e.fail(v, "type not supported")
		}
		e.out = append(e.out, "null"...)
	}
}

func (e *encoder) fail(v lua.LValue, reason string) {
	luacall.Errorf(e.L, "Cannot serialise %s: %s", v.Type(), reason)
}

// spare is room for what stands around values.
const spare = 16

// room has the result grow by n bytes, or raises an error.
func (e *encoder) room(n int) { e.out = e.budget.Grow(e.L, e.out, n+spare) }

// escapes holds the bytes that strings cannot contain as they are.
var escapes = func() (table [256]string) {
	const digits = "0123456789abcdef"
	for c := range 32 {
		table[c] = `\u00` + digits[c>>4:c>>4+1] + digits[c&15:c&15+1]
	}
	table['\b'], table['\t'], table['\n'], table['\f'], table['\r'] = `\b`, `\t`, `\n`, `\f`, `\r`
	table['"'], table['\\'], table['/'], table[0x7f] = `\"`, `\\`, `\/`, `\u007f`
	return table
}()

func (e *encoder) text(s string) {
	const quotes, escapeMax = 2, 6
	e.room(len(s) + quotes)
	e.budget.Spend(int64(len(s)) / 4)
	e.out = append(e.out, '"')
	plain := 0
	for i := range len(s) {
		escape := escapes[s[i]]
		if escape == "" {
			continue
		}
		e.out = append(append(e.out, s[plain:i]...), escape...)
		plain = i + 1
		e.room(len(s) - plain + escapeMax)
	}
	e.out = append(append(e.out, s[plain:]...), '"')
}

func (e *encoder) number(n lua.LNumber) {
	if f := float64(n); math.IsNaN(f) || math.IsInf(f, 0) {
		switch e.encodeInvalid {
		case refuse:
			e.fail(n, "must not be NaN or Inf")
		case writeNull:
			e.out = append(e.out, "null"...)
		case writeNames:
			e.out = appendName(e.out, f)
		}
		return
	}
	e.out = appendNumber(e.out, float64(n), int(e.precision))
}

func (e *encoder) table(t *lua.LTable, depth, used int) {
	const slots = 3
	if depth > int(e.encodeMaxDepth) || used+slots > stackMax {
		luacall.Errorf(e.L, "Cannot serialise, excessive nesting (%d)", depth)
	}
	length := e.arrayLength(t)
	if length <= 0 {
		e.object(t, depth, used)
		return
	}
	const shortest = 2
	e.budget.CheckLength(e.L, len(e.out)+min(length, math.MaxInt32)*shortest)
	e.out = append(e.out, '[')
	for i := 1; i <= length; i++ {
		if i > 1 {
			e.out = append(e.out, ',')
		}
		e.value(limits.Get(t, i), depth, used+1)
	}
	e.room(1)
	e.out = append(e.out, ']')
}

// arrayLength returns the largest index of a table that is an array, and -1
// for others.
func (e *encoder) arrayLength(t *lua.LTable) int {
	n := t.Len()
	e.budget.Spend(int64(n) / 8)
	e.budget.SpendGone(t)
	items := int32(0)
	for i := 1; i <= n; i++ {
		if limits.Get(t, i) != lua.LNil {
			items++
		}
	}
	largest := int32(n)
	for key, _ := tables.FirstKeyed(t, n); key != lua.LNil; key, _ = t.Next(key) {
		e.budget.Spend(1)
		k, ok := key.(lua.LNumber)
		if !ok || k < 1 || math.Floor(float64(k)) != float64(k) {
			return -1
		}
		items++
		if k > lua.LNumber(largest) {
			largest = truncate32(float64(k))
		}
	}
	if e.sparseRatio > 0 && largest > items*e.sparseRatio && largest > e.sparseSafe {
		if !e.sparseConvert {
			e.fail(t, "excessively sparse array")
		}
		return -1
	}
	return int(largest)
}

// truncate32 converts as C compiled for x86-64 does: what does not fit becomes
// the least int32, which makes an array with such an index an object.
func truncate32(f float64) int32 {
	if f > math.MaxInt32 {
		return math.MinInt32
	}
	return int32(f)
}

func (e *encoder) object(t *lua.LTable, depth, used int) {
	e.out = append(e.out, '{')
	first := true
	n := t.Len()
	for i := 1; i <= n; i++ {
		if v := limits.Get(t, i); v != lua.LNil {
			e.entry(lua.LNumber(i), v, first, depth, used)
			first = false
		}
	}
	for key, v := tables.FirstKeyed(t, n); key != lua.LNil; key, v = t.Next(key) {
		e.entry(key, v, first, depth, used)
		first = false
	}
	e.room(1)
	e.out = append(e.out, '}')
}

func (e *encoder) entry(key, v lua.LValue, first bool, depth, used int) {
	e.room(numberMax)
	if !first {
		e.out = append(e.out, ',')
	}
	switch key := key.(type) {
	case lua.LString:
		e.text(string(key))
	case lua.LNumber:
		e.out = append(e.out, '"')
		e.number(key)
		e.out = append(e.out, '"')
	default:
		e.fail(key, "table key must be a number or string")
	}
	e.out = append(e.out, ':')
	e.value(v, depth, used+2)
}
