package lua

import (
	"strconv"
	"strings"
)

// writer writes one program.
type writer struct {
	*dice
	out    strings.Builder
	names  []string // visible local variables
	next   int      // of the next name
	loops  int      // that the statement is in, of its function
	depth  int
	vararg []bool // of the functions that the statement is in
	left   int    // statements that may still come
	themes []theme
}

func newWriter(r *dice) *writer {
	w := &writer{dice: r, names: []string{"note"}}
	for range w.IntN(3) {
		w.themes = append(w.themes, themes[w.IntN(len(themes))])
	}
	return w
}

// theme is what some of the programs draw besides.
type theme struct {
	statement func(w *writer)
	expr      func(w *writer, depth int) string
}

var themes = []theme{
	{(*writer).object, (*writer).ofObject},
	{(*writer).coroutine, (*writer).ofCoroutine},
	{(*writer).caught, (*writer).raising},
	{(*writer).oddLoop, (*writer).libraryCall},
	{(*writer).chunk, (*writer).redisCall},
}

func (w *writer) program() string {
	w.left = 14
	w.vararg = []bool{true}
	w.block(3 + w.IntN(6))
	if w.IntN(2) == 0 {
		w.line("note(" + w.list(4) + ")")
	}
	w.line("return " + w.list(3))
	return w.out.String()
}

func (w *writer) line(text string) { w.out.WriteString(text + w.pick(" ", " ", "\n")) }

func (w *writer) fresh() string {
	w.next++
	return "v" + strconv.Itoa(w.next)
}

// variable is one that is visible, now and then a parameter or a global.
func (w *writer) variable() string {
	if len(w.names) == 1 {
		return "nil"
	}
	return w.names[1+w.IntN(len(w.names)-1)]
}

func (w *writer) block(n int) {
	visible := len(w.names)
	for range n {
		if w.left--; w.left < 0 {
			break
		}
		w.statement()
	}
	w.names = w.names[:visible]
}

// inner is a block in a statement.
func (w *writer) inner() {
	w.depth++
	w.block(1 + w.IntN(3))
	if w.loops > 0 && w.IntN(4) == 0 {
		w.line("if " + w.expr(1) + " then break end")
	}
	w.depth--
}

func (w *writer) statement() {
	kind := w.IntN(20)
	if w.depth > 3 {
		kind = w.IntN(9)
	} else if len(w.themes) > 0 && w.IntN(3) == 0 {
		w.themes[w.IntN(len(w.themes))].statement(w)
		return
	}
	switch kind {
	case 0, 1, 2:
		names := []string{w.fresh()}
		for w.IntN(3) == 0 {
			names = append(names, w.fresh())
		}
		w.line("local " + strings.Join(names, ", ") + " = " + w.list(3))
		w.names = append(w.names, names...)
	case 3, 4, 5:
		targets := []string{w.target()}
		if w.IntN(2) == 0 {
			// Which of a target's own errors comes first is only to be seen where one is caught.
			targets = []string{w.variable()}
			for w.IntN(2) == 0 && len(targets) < 4 {
				targets = append(targets, w.variable())
			}
		}
		if targets[0] == "nil" {
			targets = []string{w.target()}
		}
		w.line(strings.Join(targets, ", ") + " = " + w.list(3))
	case 6, 7:
		w.line("note(" + w.list(3) + ")")
	case 8:
		name := w.fresh()
		w.line("local " + name + " = " + w.constructor(2))
		w.names = append(w.names, name)
	case 9, 10:
		w.line("if " + w.expr(2) + " then")
		w.inner()
		for w.IntN(3) == 0 {
			w.line("elseif " + w.expr(2) + " then")
			w.inner()
		}
		if w.IntN(2) == 0 {
			w.line("else")
			w.inner()
		}
		w.line("end")
	case 11, 12:
		name := w.fresh()
		w.line("for " + name + " = " + w.pick("1, 3", "3, 1, -1", "1, 2, 0.5", "2, 1", "'1', 2", "-1, 1") + " do")
		w.loop(name)
		w.line("end")
	case 13:
		a, b := w.fresh(), w.fresh()
		w.line("for " + a + ", " + b + " in " + w.pick("ipairs", "pairs") + "(" + w.constructorOfItems() + ") do")
		w.loop(a, b)
		w.line("end")
	case 14:
		count := w.fresh()
		w.line("local " + count + " = 0")
		w.line("while " + count + " < 3 do " + count + " = " + count + " + 1")
		w.loop()
		w.line("end")
	case 15:
		count, inside := w.fresh(), w.fresh()
		w.line("local " + count + " = 0")
		w.line("repeat " + count + " = " + count + " + 1 local " + inside + " = " + count)
		w.loop(inside)
		w.line("until " + inside + " > 2 or " + count + " > 4")
	case 16:
		w.line("do")
		w.inner()
		w.line("end")
	case 17, 18:
		name := w.fresh()
		if w.IntN(2) == 0 {
			w.names = append(w.names, name)
			w.out.WriteString("local function " + name)
			w.body()
		} else {
			w.out.WriteString("local " + name + " = function")
			w.body()
			w.names = append(w.names, name)
		}
		w.line("note(pcall(" + name + ", " + w.list(2) + "))")
	case 19:
		w.line("if " + w.expr(1) + " then return " + w.list(3) + " end")
	}
}

func (w *writer) loop(names ...string) {
	visible := len(w.names)
	w.names = append(w.names, names...)
	w.loops++
	w.inner()
	w.loops--
	w.names = w.names[:visible]
}

// body is a function's, from its parameters on.
func (w *writer) body(params ...string) {
	visible, loops := len(w.names), w.loops
	w.loops = 0
	for w.IntN(2) == 0 && len(params) < 3 {
		params = append(params, w.fresh())
	}
	w.names = append(w.names, params...)
	vararg := w.IntN(2) == 0
	if vararg {
		params = append(params, "...")
	}
	w.vararg = append(w.vararg, vararg)
	w.line("(" + strings.Join(params, ", ") + ") enter()")
	w.inner()
	w.line("return " + w.list(3) + " end")
	w.vararg = w.vararg[:len(w.vararg)-1]
	w.names, w.loops = w.names[:visible], loops
}

func (w *writer) target() string {
	if len(w.names) == 1 {
		w.next++
		name := "v" + strconv.Itoa(w.next)
		w.line("local " + name)
		w.names = append(w.names, name)
		return name
	}
	if w.IntN(3) == 0 {
		return w.variable() + w.pick(".a", "[1]", "[2]", "["+w.variable()+"]")
	}
	return w.variable()
}

func (w *writer) list(most int) string {
	items := make([]string, 1+w.IntN(most))
	for i := range items {
		items[i] = w.expr(2)
	}
	if w.IntN(5) == 0 {
		items = append(items, w.several())
	}
	return strings.Join(items, ", ")
}

// several is an expression of many values, in parentheses now and then.
func (w *writer) several() string {
	s := "many(" + w.expr(1) + ", " + w.expr(1) + ")"
	if w.vararg[len(w.vararg)-1] && w.IntN(2) == 0 {
		s = w.pick("...", "select('#', ...)", "select(2, ...)", "many(...)")
	}
	if w.IntN(4) == 0 {
		return "(" + s + ")"
	}
	return s
}

func (w *writer) expr(depth int) string {
	kind := w.IntN(20)
	if depth <= 0 {
		kind = w.IntN(7)
	} else if len(w.themes) > 0 && w.IntN(4) == 0 {
		return w.themes[w.IntN(len(w.themes))].expr(w, depth-1)
	}
	d := depth - 1
	switch kind {
	case 0, 1, 2, 3:
		return w.variable()
	case 4:
		return w.pick("1", "2", "0", "-1", "1.5", "1e15", "0x10", "3")
	case 5:
		return w.pick("'a'", "'1'", "''", "'10'", "\"x y\"")
	case 6:
		return w.pick("nil", "true", "false")
	case 7, 8:
		return w.expr(d) + w.pick(" and ", " or ") + w.expr(d)
	case 9:
		return "(" + w.expr(d) + w.pick(" and ", " or ") + w.expr(d) + ")" + w.pick(" and ", " or ", " == ", " ~= ") + w.expr(d)
	case 10:
		return "not " + w.expr(d)
	case 11:
		return w.expr(d) + w.pick(" == ", " ~= ") + w.expr(d)
	case 12:
		return "(" + w.expr(d) + ")" + w.pick(" < ", " <= ", " > ", " >= ") + "(" + w.expr(d) + ")"
	case 13, 14:
		return "(" + w.expr(d) + w.pick(" + ", " - ", " * ", " / ", " % ", " ^ ", " .. ") + w.expr(d) + ")"
	case 15:
		return w.pick("-"+w.variable(), "(#"+w.variable()+" and 1)") // Where a table has holes each server has its own length.
	case 16:
		return w.constructor(d)
	case 17:
		return w.several()
	case 18:
		return w.variable() + w.pick(".a", "[1]", "[2]", "["+w.expr(0)+"]", ":f("+w.expr(0)+")", "("+w.expr(0)+")")
	}
	if len(w.vararg) > 3 {
		return "note(" + w.expr(d) + ")"
	}
	return "(" + w.function() + ")(" + w.expr(d) + ")"
}

// function is one as an expression, whose first parameters have been given names.
func (w *writer) function(params ...string) string {
	if len(w.vararg) > 4 {
		return "note"
	}
	visible, out := w.names, w.out.String()
	w.out.Reset()
	w.out.WriteString("function")
	w.body(params...)
	fn := strings.TrimSpace(w.out.String())
	w.out.Reset()
	w.out.WriteString(out)
	w.names = visible
	return fn
}

func (w *writer) constructorOfItems() string {
	items := make([]string, w.IntN(4))
	for i := range items {
		items[i] = w.pick("1", "'a'", "true", "{}")
	}
	return "{" + strings.Join(items, ", ") + "}"
}

func (w *writer) constructor(depth int) string {
	fields := []string{}
	for range w.IntN(5) {
		fields = append(fields, w.pick("", "", "a = ", "b = ", "[1] = ", "['f'] = ")+w.expr(depth-1))
	}
	if w.IntN(4) == 0 {
		fields = append(fields, w.several())
	}
	return "{" + strings.Join(fields, w.pick(", ", "; ")) + "}"
}
