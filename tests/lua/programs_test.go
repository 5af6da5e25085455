package lua

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// programFrame runs a program that notes values by note, and answers with what it noted, returned or raised.
const programFrame = `
local notes = {}
local function note(...)
  for i = 1, select('#', ...) do
    local v = select(i, ...)
    notes[#notes + 1] = type(v) == 'table' and 'table' or type(v) == 'function' and 'function' or tostring(v)
  end
  return ...
end
local function many(...) return ... end
local function program(...)
%s
end
local out = {pcall(program, 3, 'x', nil, {1, 2})}
for i = 2, 6 do note(out[i]) end
return table.concat(notes, ' ', math.max(1, #notes - 400))
`

// TestPrograms runs random programs on both servers: variables of all kinds, closures, loops that are left, assignments and returns of many values,
// constructors, methods and errors.
func TestPrograms(t *testing.T) {
	random := *seed
	if random == 0 {
		random = uint64(time.Now().UnixNano())
	}
	t.Logf("%d programs, -lua.seed %d", *calls, random)
	r := &dice{rand.New(rand.NewPCG(random, random))}
	p := startPair(t)
	l, killer := p.dial(t, 2), p.dial(t, 2)
	const most = 10
	differ := 0
	compare := func(text string, subject, reference harness.Value) {
		if overflows(subject.Wire(), reference.Wire()) || alike(subject.Wire()) == alike(reference.Wire()) {
			return
		}
		if differ++; differ <= most {
			t.Errorf("%s\n  redis-server: %q\n  headgate:     %q", text, reference.Wire(), subject.Wire())
		}
	}
	var slow []program
	for done := 0; done < *calls && differ < most; done += batch {
		texts := make([]string, batch)
		var raw []byte
		for i := range batch {
			texts[i] = fmt.Sprintf(programFrame, (&writer{dice: r, names: []string{"note"}}).program())
			raw = append(raw, harness.Command("EVAL", texts[i], "0")...)
		}
		require.NoError(t, l.send(raw))
		for i := range batch {
			kill := time.AfterFunc(endlessAfter, func() {
				if killer.send(harness.Command("SCRIPT", "KILL")) == nil {
					_, _, _ = killer.read()
				}
			})
			subject, reference, err := l.read()
			kill.Stop()
			require.NoError(t, err, "%s", texts[i])
			if strings.Contains(reference.Wire(), killed) {
				continue // it has no end, or none that one could wait for
			}
			if strings.Contains(subject.Wire(), killed) { // a machine that is busy may take as long for what ends
				slow = append(slow, program{texts[i], reference})
				continue
			}
			compare(texts[i], subject, reference)
		}
	}
	for _, p := range slow {
		require.NoError(t, l.subject.Send(harness.Command("EVAL", p.text, "0")))
		kill := time.AfterFunc(endlessFor, func() { killer.subject.Do("SCRIPT", "KILL") })
		subject, err := l.subject.Read(2 * endlessFor)
		kill.Stop()
		require.NoError(t, err, "%s", p.text)
		compare(p.text, subject, p.reference)
	}
}

// program is one that has ended on the reference only.
type program struct {
	text      string
	reference harness.Value
}

// named is how an error names the variable at fault, which has cases of its own, and how long a reply is.
var named = regexp.MustCompile(`\$\d+|(?:local|upvalue|field|global|method) '[^']*' \((a [a-z]+ value)\)`)

// alike is a reply without what may differ: names, and the sign of a zero, which gopher-lua takes for the 0 that it boxes once, with the sign of what
// is divided by that.
func alike(reply string) string {
	words := strings.Split(strings.ReplaceAll(named.ReplaceAllString(reply, "$1"), "\r\n", " "), " ")
	for i, word := range words {
		if word == "-0" || word == "-inf" {
			words[i] = word[1:]
		}
	}
	return strings.Join(words, " ")
}

// endlessFor is when programs are ended that the reference has ended by itself. There is one open variable for each level of a recursion, and
// gopher-lua looks at all of them for each closure: what takes redis-server half a second may take 20 s.
const endlessFor = 4 * time.Minute

// endlessAfter is when programs are ended that still run. Redis's busy-reply-threshold is 5 s; until then none can be.
const endlessAfter = 8 * time.Second

// killed is in the replies of both servers to a program that was ended so.
const killed = "killed by user"

// overflows reports whether a program recursed so deep that the reference had no stack left. Where that happens within the handler of an error, it says
// so in other words.
func overflows(subject, reference string) bool {
	const text = "stack overflow"
	return strings.Contains(reference, text) || strings.Contains(subject, text) && strings.Contains(reference, "error in error handling")
}

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

func (w *writer) line(text string) { w.out.WriteString(text + " ") }

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
func (w *writer) body() {
	visible, loops := len(w.names), w.loops
	w.loops = 0
	params := []string{}
	for w.IntN(2) == 0 && len(params) < 3 {
		params = append(params, w.fresh())
	}
	w.names = append(w.names, params...)
	vararg := w.IntN(2) == 0
	if vararg {
		params = append(params, "...")
	}
	w.vararg = append(w.vararg, vararg)
	w.line("(" + strings.Join(params, ", ") + ")")
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
	visible, out := w.names, w.out.String()
	w.out.Reset()
	w.out.WriteString("(function")
	w.body()
	fn := strings.TrimRight(w.out.String(), " ") + ")(" + w.expr(d) + ")"
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
