package cjson

import (
	lua "github.com/yuin/gopher-lua"

	"headgate/server/script/limits"
	"headgate/server/script/lualib/internal/output"
	"headgate/server/script/lualib/luacall"
)

// decoder is the state of one call of decode.
type decoder struct {
	L      *lua.LState
	budget *limits.Budget
	settings
	null  *lua.LUserData
	input string
	at    int    // position in input
	text  []byte // a string with escapes
	depth int
}

// decode(text) returns the value of a JSON text.
func (l *library) decode(L *lua.LState) int {
	if L.GetTop() != 1 {
		luacall.ArgError(L, 1, "expected 1 argument")
	}
	input := luacall.String(L, 1)
	if len(input) >= 2 && (input[0] == 0 || input[1] == 0) {
		luacall.Errorf(L, "JSON parser does not support UTF-16 or UTF-32")
	}
	d := decoder{L: L, budget: l.budget, settings: l.settings, null: l.null, input: input, text: l.out[:0]}
	v := d.value(d.next(), 1)
	if t := d.next(); t.kind != end {
		d.unexpected("the end", t)
	}
	l.out = output.Keep(l.budget, d.text)
	L.Push(v)
	return 1
}

// unexpected raises an error about a token that is not what it should be.
func (d *decoder) unexpected(want string, t token) {
	luacall.Errorf(d.L, "Expected %s but found %s at character %d", want, t.kind, t.at+1)
}

// value returns the value that begins with t. Used is how many slots C Lua's
// stack would hold by now.
func (d *decoder) value(t token, used int) lua.LValue {
	switch t.kind {
	case textToken:
		return lua.LString(t.text)
	case numberToken:
		return lua.LNumber(t.number)
	case boolToken:
		return lua.LBool(t.truth)
	case nullToken:
		return d.null
	case objectBegin:
		return d.object(used)
	case arrayBegin:
		return d.array(used)
	}
	d.unexpected("value", t)
	return lua.LNil
}

// descend enters a table for which C Lua's stack needs a number of slots.
func (d *decoder) descend(used, slots int) {
	const steps = 16
	d.budget.Spend(steps)
	d.depth++
	if d.depth > int(d.decodeMaxDepth) || used+slots > stackMax {
		luacall.Errorf(d.L, "Found too many nested data structures (%d) at character %d", d.depth, d.at)
	}
}

// roomFirst is for how many elements a table has room to begin with.
const roomFirst = 4

func (d *decoder) object(used int) lua.LValue {
	d.descend(used, 3)
	t := d.next()
	if t.kind == objectEnd {
		d.depth--
		return d.L.CreateTable(0, 0)
	}
	object := d.L.CreateTable(0, roomFirst)
	d.budget.Hold(object)
	for count := 1; ; count++ {
		if t.kind != textToken {
			d.unexpected("object key string", t)
		}
		key := t.text
		if t = d.next(); t.kind != colon {
			d.unexpected("colon", t)
		}
		if count > d.budget.MaxTable {
			d.budget.CheckTable(d.L, count)
		}
		object.RawSetString(key, d.value(d.next(), used+2))
		switch t = d.next(); t.kind {
		case objectEnd:
			d.depth--
			d.budget.Release()
			return object
		case comma:
			t = d.next()
		default:
			d.unexpected("comma or object end", t)
		}
	}
}

func (d *decoder) array(used int) lua.LValue {
	d.descend(used, 2)
	t := d.next()
	if t.kind == arrayEnd {
		d.depth--
		return d.L.CreateTable(0, 0)
	}
	array := d.L.CreateTable(roomFirst, 0)
	d.budget.Hold(array)
	for count := 1; ; count++ {
		if count > d.budget.MaxTable {
			d.budget.CheckTable(d.L, count)
		}
		array.RawSetInt(count, d.value(t, used+1))
		switch t = d.next(); t.kind {
		case arrayEnd:
			d.depth--
			d.budget.Release()
			return array
		case comma:
			t = d.next()
		default:
			d.unexpected("comma or array end", t)
		}
	}
}
