package lua

import "strings"

// object makes a table with metamethods, or another one with those of one that there is.
func (w *writer) object() {
	name := w.fresh()
	meta := "getmetatable(" + w.variable() + ")"
	if w.IntN(3) > 0 {
		meta = w.metatable()
	}
	w.line("local " + name + " = setmetatable(" + w.constructor(1) + ", " + meta + ")")
	w.names = append(w.names, name)
	if w.IntN(2) == 0 {
		twin := w.fresh()
		w.line("local " + twin + " = setmetatable(" + w.constructor(1) + ", getmetatable(" + name + "))")
		w.names = append(w.names, twin)
	}
}

func (w *writer) metatable() string {
	fields := []string{}
	for range 1 + w.IntN(4) {
		// What gopher-lua makes of metamethods that are no functions, and of a second operand of __unm, is its own affair.
		event := w.pick("index", "index", "newindex", "newindex", "call", "concat", "eq", "lt", "le", "tostring", "add", "sub", "mul", "div", "mod", "pow", "len")
		value := w.function(w.fresh(), w.fresh())
		switch kind := w.IntN(8); {
		case kind == 0 && strings.HasSuffix(event, "index"):
			value = w.variable()
		case kind == 1 && strings.HasSuffix(event, "index"):
			value = w.constructor(1)
		case kind < 3:
			value = "function(a, b, c) note('" + event + "', b, c) return b end"
		}
		if event == "newindex" && w.IntN(2) == 0 {
			value = "function(t, k, v) note(k, v) rawset(t, k, v) end"
		}
		fields = append(fields, "__"+event+" = "+value)
	}
	if w.IntN(8) == 0 {
		fields = append(fields, w.pick("__metatable = 'locked'", "__metatable = false", "__mode = 'k'"))
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

// ofObject is an expression that looks for metamethods.
func (w *writer) ofObject(d int) string {
	a, b := w.variable(), w.variable()
	switch w.IntN(13) {
	case 0:
		return a + w.pick(" == ", " ~= ", " < ", " <= ", " > ", " >= ") + b
	case 1, 2:
		return "(" + a + w.pick(" + ", " - ", " * ", " / ", " % ", " ^ ", " .. ") + b + ")"
	case 3:
		return "(" + a + " .. " + w.expr(0) + " .. " + b + ")"
	case 4:
		return a + "(" + b + ", " + w.expr(d) + ")"
	case 5:
		return "rawget(" + a + ", " + w.expr(0) + ")"
	case 6:
		return "pcall(rawset, " + a + ", " + w.expr(0) + ", " + w.expr(d) + ")"
	case 7:
		return "rawequal(" + a + ", " + b + ")"
	case 8:
		return "tostring(" + a + ")"
	case 9:
		return "pcall(" + a + ", " + w.expr(d) + ")"
	case 10:
		return "pcall(setmetatable, " + a + ", " + w.pick("nil", "{}", b) + ")"
	case 11:
		return "getmetatable(" + a + ")"
	}
	return a + w.pick(".a", "[1]", ".b.a", "[1][2]", ":a("+b+")", "["+b+"]", ".zz")
}
