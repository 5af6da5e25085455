package script

import (
	"strings"

	lua "github.com/yuin/gopher-lua"

	"headgate/server/resp"
	"headgate/server/script/limits"
	"headgate/server/script/lualib/luacall"
)

// A reply nests as deep as the C implementation's stack has room: it needs
// replyRoom places for a value, and keeps what it has not finished below.
const (
	replyStack = luacall.StackMax
	replyRoom  = 4
	// replyBase is what lies below the outermost value, and the value itself.
	replyBase = 2
	// How many places an element lies above what holds it.
	aboveArray    = 1
	aboveMapKey   = 4
	aboveMapValue = 3
	aboveSet      = 3
)

// result replies with the value that a script returned.
func (e *Engine) result(v lua.LValue, w *resp.Writer) {
	t, ok := v.(*lua.LTable)
	if !ok {
		e.write(v, w, replyBase)
		return
	}
	mark := w.Len()
	e.run.reply, e.run.replyStart = w, mark
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if e.run.stopped == "" {
			panic(p)
		}
		w.Truncate(mark)
		w.Error(e.run.stopped)
	}()
	e.write(t, w, replyBase)
}

// write appends a value as a reply. top is where the C implementation would have
// it on its stack.
func (e *Engine) write(v lua.LValue, w *resp.Writer, top int) {
	if top+replyRoom > replyStack {
		w.Error("ERR reached lua stack limit")
		return
	}
	switch v := v.(type) {
	case lua.LString:
		e.budget.Spend(int64(len(v)>>3) + 1)
		w.BulkString(string(v))
	case lua.LNumber:
		w.Int(truncate(v))
	case lua.LBool:
		switch {
		case e.run.resp3:
			w.Bool(bool(v))
		case bool(v):
			w.One()
		default:
			w.Null()
		}
	case *lua.LTable:
		e.writeTable(v, w, top)
	default:
		w.Null()
	}
}

// writeTable replies with what a table stands for: what its first field in this
// order says, or an array.
func (e *Engine) writeTable(t *lua.LTable, w *resp.Writer, top int) {
	e.budget.Spend(1)
	if t.Metatable != lua.LNil && e.isShown(t) {
		w.EmptyArray()
		return
	}
	if e.fieldless(t) {
		e.writeArray(t, w, top)
		return
	}
	if message, ok := t.RawGetString("err").(lua.LString); ok {
		w.Error(cut(string(message)))
		return
	}
	if message, ok := t.RawGetString("ok").(lua.LString); ok {
		w.Simple(cut(string(message)))
		return
	}
	if n, ok := t.RawGetString("double").(lua.LNumber); ok {
		w.Double(float64(n))
		return
	}
	if digits, ok := t.RawGetString("big_number").(lua.LString); ok {
		w.BigNumber(oneLine.Replace(string(digits)))
		return
	}
	if inner, ok := t.RawGetString("verbatim_string").(*lua.LTable); ok {
		format, hasFormat := inner.RawGetString("format").(lua.LString)
		content, hasContent := inner.RawGetString("string").(lua.LString)
		if hasFormat && hasContent {
			w.Verbatim(string(format), string(content))
			return
		}
	}
	if inner, ok := t.RawGetString("map").(*lua.LTable); ok {
		e.writeMap(inner, w, top)
		return
	}
	if inner, ok := t.RawGetString("set").(*lua.LTable); ok {
		e.writeSet(inner, w, top)
		return
	}
	e.writeArray(t, w, top)
}

// oneLine turns line breaks into spaces.
var oneLine = strings.NewReplacer("\r", " ", "\n", " ")

// isShown reports whether t is a library that a script returned: they have no
// elements.
func (e *Engine) isShown(t *lua.LTable) bool {
	return e.eval.real(t) != t || e.library.real(t) != t
}

// fieldless reports whether t has elements only: its first key is a number and
// so is what follows the last element. Most arrays are told by that.
func (e *Engine) fieldless(t *lua.LTable) bool {
	e.budget.Spend(1)
	e.budget.SpendGone(t)
	n := t.Len()
	if n == 0 {
		return false
	}
	k, _ := t.Next(lua.LNumber(n))
	return k == lua.LNil
}

func (e *Engine) writeArray(t *lua.LTable, w *resp.Writer, top int) {
	m := w.Start()
	n := 0
	for {
		v := limits.Get(t, n+1)
		if v == lua.LNil {
			break
		}
		e.budget.Spend(1)
		e.write(v, w, top+aboveArray)
		n++
	}
	w.EndArray(m, n)
}

func (e *Engine) writeMap(t *lua.LTable, w *resp.Writer, top int) {
	m := w.Start()
	n := 0
	e.budget.SpendGone(t)
	for k, v := t.Next(lua.LNil); k != lua.LNil; k, v = t.Next(k) {
		e.budget.Spend(1)
		e.write(k, w, top+aboveMapKey)
		e.write(v, w, top+aboveMapValue)
		n++
	}
	w.EndMap(m, n)
}

func (e *Engine) writeSet(t *lua.LTable, w *resp.Writer, top int) {
	m := w.Start()
	n := 0
	e.budget.SpendGone(t)
	for k, _ := t.Next(lua.LNil); k != lua.LNil; k, _ = t.Next(k) {
		e.budget.Spend(1)
		e.write(k, w, top+aboveSet)
		n++
	}
	w.EndSet(m, n)
}
