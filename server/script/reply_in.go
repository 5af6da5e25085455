package script

import (
	"bytes"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"headgate/server/script/limits"
	"headgate/server/script/lualib/luacall"
	"headgate/server/script/lualib/luanum"
)

func toNumber(L *lua.LState, v lua.LValue) (lua.LNumber, bool) { return luacall.ToNumber(L, v) }

// truncate is C's cast to a 64-bit integer.
func truncate(n lua.LNumber) int64 { return luanum.TruncateInt(float64(n)) }

// replyError makes a table of an error that a command replied with.
func replyError(L *lua.LState, reply []byte) *lua.LTable {
	line, _ := splitReplyLine(reply)
	t := L.CreateTable(0, 2)
	t.RawSetString("ignore_error_stats_update", lua.LTrue) // first, as C Lua goes through them
	t.RawSetString("err", lua.LString(errorText(string(line))))
	return t
}

// splitReplyLine returns what the first line says behind its type, and what
// follows it.
func splitReplyLine(reply []byte) (line, rest []byte) {
	end := bytes.IndexByte(reply, '\r')
	return reply[1:end], reply[end+2:]
}

// value converts the reply of a command to what scripts see, and returns what
// stands behind it. The reply is the server's own and well formed.
func (e *Engine) value(L *lua.LState, reply []byte) (v lua.LValue, rest []byte) {
	line, rest := splitReplyLine(reply)
	switch reply[0] {
	case ':':
		n, _ := strconv.ParseInt(text(line), 10, 64)
		return e.calls.numbers.value(n), rest
	case '$':
		return e.bulk(L, line, rest)
	case '*', '>':
		return e.array(L, line, rest)
	case '+':
		t := L.CreateTable(0, 1)
		t.RawSetString("ok", lua.LString(line))
		return t, rest
	case '-':
		return replyError(L, reply), rest
	case '_':
		return lua.LNil, rest
	case '#':
		return lua.LBool(line[0] == 't'), rest
	case ',':
		f, _ := strconv.ParseFloat(string(line), 64)
		return single(L, "double", lua.LNumber(f)), rest
	case '(':
		return single(L, "big_number", lua.LString(line)), rest
	case '=':
		return e.verbatim(L, line, rest)
	case '%':
		return e.mapped(L, line, rest)
	case '~':
		return e.set(L, line, rest)
	case '|':
		for range 2 * count(line) {
			_, rest = e.value(L, rest)
		}
		return e.value(L, rest)
	}
	panic("script: reply of unknown type " + strconv.Quote(string(reply[:1])))
}

// single returns a table of one field.
func single(L *lua.LState, field string, v lua.LValue) *lua.LTable {
	t := L.CreateTable(0, 1)
	t.RawSetString(field, v)
	return t
}

// count reads a number of elements or bytes.
func count(line []byte) int {
	n, _ := strconv.Atoi(text(line))
	return n
}

func (e *Engine) bulk(L *lua.LState, line, rest []byte) (lua.LValue, []byte) {
	n := count(line)
	if n < 0 {
		return lua.LFalse, rest
	}
	e.budget.CheckString(L, n)
	return lua.LString(rest[:n]), rest[n+2:]
}

func (e *Engine) array(L *lua.LState, line, rest []byte) (lua.LValue, []byte) {
	n := count(line)
	if n < 0 {
		return lua.LFalse, rest
	}
	e.budget.CheckTable(L, n)
	t := L.CreateTable(min(n, limits.ArrayMax), 0)
	e.budget.Hold(t)
	var v lua.LValue
	for i := range n {
		e.budget.Spend(1)
		if v, rest = e.value(L, rest); v != lua.LNil {
			t.RawSetInt(i+1, v)
		}
	}
	e.budget.Release()
	return t, rest
}

func (e *Engine) mapped(L *lua.LState, line, rest []byte) (lua.LValue, []byte) {
	n := count(line)
	e.budget.CheckTable(L, n)
	t := L.CreateTable(0, n)
	e.budget.Hold(t)
	var k, v lua.LValue
	for range n {
		e.budget.Spend(2)
		k, rest = e.value(L, rest)
		e.budget.SpendRoom(t, k)
		v, rest = e.value(L, rest)
		L.RawSet(t, k, v)
	}
	e.budget.Release()
	return single(L, "map", t), rest
}

func (e *Engine) set(L *lua.LState, line, rest []byte) (lua.LValue, []byte) {
	n := count(line)
	e.budget.CheckTable(L, n)
	t := L.CreateTable(0, n)
	e.budget.Hold(t)
	var k lua.LValue
	for range n {
		e.budget.Spend(1)
		k, rest = e.value(L, rest)
		e.budget.SpendRoom(t, k)
		L.RawSet(t, k, lua.LTrue)
	}
	e.budget.Release()
	return single(L, "set", t), rest
}

// verbatim reads a text whose first bytes name its format.
func (e *Engine) verbatim(L *lua.LState, line, rest []byte) (lua.LValue, []byte) {
	n := count(line)
	e.budget.CheckString(L, n)
	format, content, _ := strings.Cut(string(rest[:n]), ":")
	t := L.CreateTable(0, 2)
	t.RawSetString("format", lua.LString(strings.Clone(format)))
	t.RawSetString("string", lua.LString(content))
	return single(L, "verbatim_string", t), rest[n+2:]
}
