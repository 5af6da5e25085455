package script

import (
	"strconv"
	"strings"
	"unsafe"

	lua "github.com/yuin/gopher-lua"

	"headgate/server/resp"
	"headgate/server/script/limits"
	"headgate/server/script/lualib/luacall"
	"headgate/server/script/lualib/luanum"
)

// describe is what an error that nothing catches goes through before the stack
// is unwound. It makes a table of it, with the place where it happened, as
// Redis's own handler does.
func (s *sandbox) describe(L *lua.LState) int {
	failQuietly(L)
	limits.CloseUpvalues(L, 0)
	L.Push(s.description(L))
	return 1
}

// describeRead is describe for an error that load returns.
func (s *sandbox) describeRead(L *lua.LState) int {
	failQuietly(L)
	s.closeAbove(L)
	L.Push(s.description(L))
	return 1
}

// description is the table that describe makes.
func (s *sandbox) description(L *lua.LState) *lua.LTable {
	v := s.explain(L, L.Get(1), 1)
	table, ok := v.(*lua.LTable)
	switch {
	case s.engine.run.stopped != "":
		table = L.CreateTable(0, 3)
		table.RawSetString("err", lua.LString(s.engine.run.stopped))
	case !ok || s.real(table) != table:
		table = L.CreateTable(0, 3)
		table.RawSetString("err", lua.LString("ERR "+show(v)))
	}
	f, ok := frameAt(L, 1)
	if ok && f.fn.IsG {
		f, ok = frameAt(L, 2)
	}
	if ok {
		table.RawSetString("source", lua.LString(s.engine.source(f)))
		table.RawSetString("line", lua.LNumber(f.line()))
	}
	return table
}

// source returns the full name of the chunk that a function is from.
func (e *Engine) source(f frame) string {
	if f.fn.IsG {
		return "=[C]"
	}
	name := f.fn.Proto.SourceName
	if full, ok := e.run.sources[name]; ok {
		return full
	}
	return "@" + name
}

// explainCaught is describe for errors that pcall catches: only the wording
// changes. Like all that PCall has handle errors it must not raise one: gopher-lua then describes the whole stack, and takes a time that grows with the
// square of its depth, at each pcall that the error passes.
func (s *sandbox) explainCaught(L *lua.LState) int {
	failQuietly(L)
	v := L.Get(1)
	if s.engine.run.stopped == "" {
		s.closeAbove(L)
		v = s.explain(L, v, 1)
	}
	L.Push(v)
	return 1
}

// closeAbove closes the variables of the functions that pcall, xpcall or load called:
// gopher-lua would leave them open when their registers are used again.
func (s *sandbox) closeAbove(L *lua.LState) {
	thrower, ok := frameAt(L, 0)
	if !ok {
		return
	}
	call, walked := thrower.call(), int64(0)
	for level := 0; call != nil; level++ {
		walked++
		// The caller of an error's handler has raised the error. One of the three that
		// has done so itself, as about a wrong argument, does not catch it.
		if s.catches(call) && (level != 1 || s.catchers(call, &walked) <= s.catching) {
			limits.CloseUpvalues(L, *at[int](call, localBaseAt))
			break
		}
		call = callerOf(call)
	}
	s.engine.budget.Count(walked / callsPerStep)
}

// catches reports whether a call is one of a function that catches errors.
func (s *sandbox) catches(call unsafe.Pointer) bool {
	fn := functionOf(call)
	return fn == s.pcall || fn == s.xpcall || fn == s.load
}

// catchers counts the calls of such functions from one on, and those that it walks past.
func (s *sandbox) catchers(call unsafe.Pointer, walked *int64) (n int) {
	for ; call != nil; call = callerOf(call) {
		*walked++
		if s.catches(call) {
			n++
		}
	}
	return n
}

// at is the field of a value that lies so many bytes behind its beginning.
func at[T any](value unsafe.Pointer, offset uintptr) *T { return (*T)(unsafe.Add(value, offset)) }

// explain returns an error with gopher-lua's words replaced by Lua's. level is
// that of the function that raised it.
func (s *sandbox) explain(L *lua.LState, v lua.LValue, level int) lua.LValue {
	message, ok := v.(lua.LString)
	if !ok {
		return v
	}
	luacall.CountOn(L, len(message)) // which may show a key
	if strings.HasPrefix(string(message), "runtime error:") {
		s.engine.run.broken = true
	}
	f, ok := frameAt(L, level)
	if !ok {
		return v
	}
	if f.fn.IsG {
		// The metamethods of strings leave it to us to say what went wrong.
		if !strings.Contains(string(message), ": cannot perform ") {
			if f.fn == s.values["error"] || f.fn == s.values["assert"] {
				return v
			}
			return inWords(message)
		}
		if f, ok = frameAt(L, level+1); !ok || f.fn.IsG {
			return v
		}
	}
	where := f.fn.Proto.SourceName + ":" + strconv.Itoa(f.line()) + ": "
	text, ok := strings.CutPrefix(string(message), where)
	if !ok {
		return v
	}
	if better := s.reword(f, text); better != "" {
		return lua.LString(where + better)
	}
	return v
}

// reword returns what Lua says in place of gopher-lua's text, or "".
func (s *sandbox) reword(f frame, text string) string {
	in := decode(f.fn.Proto.Code[f.pc])
	switch in.op {
	case lua.OP_GETTABLE, lua.OP_GETTABLEKS, lua.OP_SELF:
		if better := s.rewordIndex(f, text, in.b); better != "" {
			return better
		}
	case lua.OP_SETTABLE, lua.OP_SETTABLEKS:
		if better := s.rewordIndex(f, text, in.a); better != "" {
			return better
		}
	case lua.OP_CALL, lua.OP_TAILCALL:
		if text == "attempt to call a non-function object" {
			return s.wrongType(f, in.a, "call")
		}
	case lua.OP_TFORLOOP:
		if text == "attempt to call a non-function object" {
			return "attempt to call a " + f.register(in.a).Type().String() + " value"
		}
	case lua.OP_ADD, lua.OP_SUB, lua.OP_MUL, lua.OP_DIV, lua.OP_MOD, lua.OP_POW:
		if strings.HasPrefix(text, "cannot perform ") {
			if !s.isNumber(f.operand(in.b)) {
				return s.wrongType(f, in.b, "perform arithmetic on")
			}
			return s.wrongType(f, in.c, "perform arithmetic on")
		}
	case lua.OP_UNM:
		if text == "__unm undefined" || strings.HasPrefix(text, "cannot perform ") {
			return s.wrongType(f, in.b, "perform arithmetic on")
		}
	case lua.OP_LT, lua.OP_LE:
		if words := strings.Fields(text); len(words) == 6 {
			return luacall.CannotCompare(words[3], words[5])
		}
	}
	return machineWords[text]
}

// machineWords are errors of gopher-lua that mean what others do in Lua.
var machineWords = map[string]string{
	"registry overflow":               "stack overflow",
	"too many recursions in gettable": "loop in gettable",
	"too many recursions in settable": "loop in settable",
}

// inWords is an error that gopher-lua raised where a function written in Go runs, in Lua's words. It has a space behind its place, and before it if that
// is none.
func inWords(message lua.LString) lua.LString {
	for words, better := range machineWords {
		if where, ok := strings.CutSuffix(string(message), words); ok && (where == " " || strings.HasSuffix(where, ": ")) {
			return lua.LString(strings.TrimPrefix(where, " ") + better)
		}
	}
	return message
}

func (s *sandbox) rewordIndex(f frame, text string, register int) string {
	rest, ok := strings.CutPrefix(text, "attempt to index a non-table object(")
	if !ok {
		return ""
	}
	kind, _, _ := strings.Cut(rest, ")")
	named := "a "
	if f.register(register).Type() != lua.LTTable { // or it is a metamethod of the table that cannot be indexed
		named = s.describeOperand(f, register)
	}
	return "attempt to index " + named + kind + " value" + closing(named)
}

// isNumber reports whether arithmetic takes v.
func (s *sandbox) isNumber(v lua.LValue) bool {
	text, ok := v.(lua.LString)
	if !ok {
		return v.Type() == lua.LTNumber
	}
	_, steps, ok := luanum.Convert(string(text))
	s.engine.budget.Count(int64(steps))
	return ok
}

// wrongType words that something cannot be done with an operand.
func (s *sandbox) wrongType(f frame, operand int, what string) string {
	named := s.describeOperand(f, operand)
	return "attempt to " + what + " " + named + f.operand(operand).Type().String() + " value" + closing(named)
}

// describeOperand starts the description of an operand: "local 'a' (a " or "a ".
func (s *sandbox) describeOperand(f frame, operand int) string {
	name := ""
	if operand&constantBit == 0 {
		name = s.variable(f, operand, f.pc)
	} else {
		name = s.constantCalled(f.operand(operand))
	}
	if name == "" {
		return "a "
	}
	return name + "(a "
}

// closing is the parenthesis that a description has left open.
func closing(description string) string {
	if strings.HasSuffix(description, "(a ") {
		return ")"
	}
	return ""
}

// failure replies with an error that nothing caught.
func (e *Engine) failure(err error, w *resp.Writer) {
	object := lua.LValue(lua.LString(err.Error()))
	if api, ok := err.(*lua.ApiError); ok {
		object = api.Object
	}
	table, ok := object.(*lua.LTable)
	if !ok {
		// There was no room left on the stack to call describe.
		e.run.broken = true
		table = e.eval.L.CreateTable(0, 3)
		text := show(object)
		table.RawSetString("err", lua.LString("ERR "+text))
		if parts := strings.SplitN(text, ":", 3); len(parts) == 3 {
			table.RawSetString("source", lua.LString("@"+parts[0]))
			table.RawSetString("line", lua.LString(parts[1]))
		}
	}
	if table.Metatable != lua.LNil {
		table = e.withFields(table)
	}
	message, _ := toText(table.RawGetString("err"))
	message = cut(message)
	source, hasSource := toText(table.RawGetString("source"))
	line, hasLine := toText(table.RawGetString("line"))
	if hasSource && hasLine {
		message += " script: " + e.run.name + ", on " + cut(source) + ":" + line + "."
	}
	if strings.Contains(message, "stack overflow") {
		e.run.broken = true // Its stack has grown large.
	}
	w.Error(message)
}

// withFields returns a table with the fields of an error whose metatable may say what they are, or the error of asking for them.
func (e *Engine) withFields(table *lua.LTable) *lua.LTable {
	s := e.run.sandbox
	e.budget.Return(limits.Mark{})
	s.L.Push(s.fields)
	s.L.Push(table)
	if err := s.guarded(s.L, 1, 1, s.outermost); err != nil {
		if api, ok := err.(*lua.ApiError); ok {
			if other, ok := api.Object.(*lua.LTable); ok {
				return other
			}
		}
		return table
	}
	fields := s.L.Get(-1).(*lua.LTable)
	s.L.Pop(1)
	return fields
}

// fieldsOf returns a table with the fields of an error as an index finds them.
func fieldsOf(L *lua.LState) int {
	fields := L.CreateTable(0, 3)
	for _, name := range []string{"err", "source", "line"} {
		fields.RawSetString(name, L.GetField(L.Get(1), name))
	}
	L.Push(fields)
	return 1
}

// cut ends a text at the first zero byte, where Redis's formats end it.
func cut(text string) string {
	if zero := strings.IndexByte(text, 0); zero >= 0 {
		return text[:zero]
	}
	return text
}
