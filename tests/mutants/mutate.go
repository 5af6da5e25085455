package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// mutant is a change of one place in one file.
type mutant struct {
	file     string // below the module's root
	line     int
	what     string // the kind of change
	from, to int    // the bytes of the file in whose place text comes
	text     string
	step     string // of a bound that is moved: the function of package mutantswitch that moves it
	number   numberType
	id       int // among those that are built into one program

	before, after string // as people are shown them
}

// The kinds of changes.
const (
	flipped = "flip a comparison"
	dropped = "drop a statement"
	negated = "negate a condition"
	moved   = "move a bound by one"
	zeroed  = "return zero"
)

// Which way a bound is moved.
const (
	up   = "Up"
	down = "Down"
)

// String tells what a mutant is, as a row of a table.
func (m mutant) String() string {
	return fmt.Sprintf("%s:%d\t%s\t%s\t%s", m.file, m.line, m.what, oneLine(m.before), oneLine(m.after))
}

// maxShown bounds what a table shows of a place.
const maxShown = 70

// oneLine is a piece of source as a table shows it.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if short := []rune(text); len(short) > maxShown {
		text = string(short[:maxShown-1]) + "…"
	}
	return text
}

// apply returns the file's text with the change in it.
func (m mutant) apply(source []byte) []byte {
	return slices.Concat(source[:m.from], []byte(m.text), source[m.to:])
}

// choice is what stands in the mutant's place in a program that has many of them, and is told at run time which one is meant.
func (m mutant) choice(id int) string {
	switch m.what {
	case dropped:
		return fmt.Sprintf("if !mutantswitch.On(%d) { %s }", id, m.before)
	case zeroed:
		return fmt.Sprintf("{ if mutantswitch.On(%d) { %s }; %s }", id, m.text, m.before)
	case moved:
		return fmt.Sprintf("mutantswitch.%s(%d, %s(%s))", m.step, id, m.number.name, m.before)
	default:
		return fmt.Sprintf("(mutantswitch.On(%d) && (%s) || !mutantswitch.On(%d) && (%s))", id, m.text, id, m.before)
	}
}

// finder collects the mutants of a file.
type finder struct {
	name   string
	files  *token.FileSet
	source []byte
	found  []mutant
}

// mutantsOf returns the mutants of all functions of a file. Some do not compile, since types are not looked at.
func mutantsOf(name string, source []byte) ([]mutant, error) {
	f := &finder{name: name, files: token.NewFileSet(), source: source}
	tree, err := parser.ParseFile(f.files, name, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, decl := range tree.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && fn.Body != nil {
			f.function(fn.Type, fn.Body)
		}
	}
	slices.SortStableFunc(f.found, func(a, b mutant) int { return a.from - b.from })
	return f.found, nil
}

// add notes that text may come in the place of a node. The lines below stay where they are.
func (f *finder) add(what string, node ast.Node, text string) *mutant {
	at, before := f.files.Position(node.Pos()), f.text(node)
	missing := strings.Count(before, "\n") - strings.Count(text, "\n")
	f.found = append(f.found, mutant{
		file: f.name, line: at.Line, what: what, from: at.Offset, to: at.Offset + len(before),
		text: text + strings.Repeat("\n", max(missing, 0)), before: before, after: cmp.Or(text, "nothing"),
	})
	return &f.found[len(f.found)-1]
}

// text is the source of a node.
func (f *finder) text(node ast.Node) string {
	return string(f.source[f.files.Position(node.Pos()).Offset:f.files.Position(node.End()).Offset])
}

// function finds the mutants of a function, and of those within it.
func (f *finder) function(of *ast.FuncType, body *ast.BlockStmt) {
	ast.Inspect(body, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.FuncLit:
			f.function(n.Type, n.Body)
			return false
		case *ast.CallExpr:
			return !isPanic(n) // which says of what is never so
		case *ast.BlockStmt:
			f.statements(n.List)
		case *ast.CaseClause:
			f.statements(n.Body)
		case *ast.CommClause:
			f.statements(n.Body)
		case *ast.IfStmt:
			f.condition(n.Cond)
		case *ast.ForStmt:
			f.condition(n.Cond)
		case *ast.SwitchStmt:
			f.cases(n)
		case *ast.BinaryExpr:
			f.binary(n)
		case *ast.BasicLit:
			f.number(n)
		case *ast.SliceExpr:
			f.slice(n)
		case *ast.ReturnStmt:
			f.result(n, of.Results)
			return !f.fails(n, of.Results)
		}
		return true
	})
}

// statements drops those that declare nothing, one at a time.
func (f *finder) statements(list []ast.Stmt) {
	for _, statement := range list {
		switch s := statement.(type) {
		case *ast.ExprStmt:
			if call, ok := s.X.(*ast.CallExpr); ok && isPanic(call) {
				continue
			}
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE {
				continue
			}
		case *ast.ReturnStmt:
			if len(s.Results) > 0 {
				continue
			}
		case *ast.IncDecStmt, *ast.SendStmt, *ast.DeferStmt, *ast.GoStmt, *ast.BranchStmt:
		default:
			continue
		}
		f.add(dropped, statement, "")
	}
}

func isPanic(call *ast.CallExpr) bool {
	name, ok := call.Fun.(*ast.Ident)
	return ok && name.Name == "panic"
}

// condition negates what an if, a for or a case asks.
func (f *finder) condition(asked ast.Expr) {
	if asked == nil {
		return
	}
	if b, ok := asked.(*ast.BinaryExpr); ok && (b.Op == token.EQL || b.Op == token.NEQ) {
		return // binary does the same
	}
	f.add(negated, asked, "!("+f.text(asked)+")")
}

// cases negates the cases of a switch that asks about nothing in particular.
func (f *finder) cases(s *ast.SwitchStmt) {
	if s.Tag != nil {
		return
	}
	for _, clause := range s.Body.List {
		for _, asked := range clause.(*ast.CaseClause).List {
			f.condition(asked)
		}
	}
}

// comparisons are those that become another.
var comparisons = map[token.Token]token.Token{
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR, token.EQL: token.NEQ, token.NEQ: token.EQL,
}

// binary flips a comparison, and negates the operands of && and || that are none.
func (f *finder) binary(b *ast.BinaryExpr) {
	if other, ok := comparisons[b.Op]; ok {
		text, at := f.text(b), f.files.Position(b.OpPos).Offset-f.files.Position(b.Pos()).Offset
		f.add(flipped, b, text[:at]+other.String()+text[at+len(b.Op.String()):])
	}
	if b.Op != token.LAND && b.Op != token.LOR {
		return
	}
	for _, operand := range []ast.Expr{b.X, b.Y} {
		if _, ok := operand.(*ast.BinaryExpr); !ok {
			f.add(negated, operand, "!("+f.text(operand)+")")
		}
	}
}

// number makes a whole number one more.
func (f *finder) number(lit *ast.BasicLit) {
	if lit.Kind != token.INT {
		return
	}
	if n, err := strconv.ParseInt(lit.Value, 0, 64); err == nil && n+1 > n {
		f.add(moved, lit, strconv.FormatInt(n+1, 10)).step = up
	}
}

// slice takes an element less at either end.
func (f *finder) slice(s *ast.SliceExpr) {
	for _, bound := range []struct {
		at         ast.Expr
		less, step string
	}{{s.Low, "+1", up}, {s.High, "-1", down}} {
		if bound.at == nil {
			continue
		}
		if _, ok := bound.at.(*ast.BasicLit); !ok { // of which number makes one
			f.add(moved, bound.at, "("+f.text(bound.at)+")"+bound.less).step = bound.step
		}
	}
}

// result returns zero in place of what a function returns.
func (f *finder) result(r *ast.ReturnStmt, results *ast.FieldList) {
	if !slices.ContainsFunc(r.Results, func(e ast.Expr) bool { return !f.isZero(e) }) {
		return
	}
	var zeros []string
	for _, field := range results.List {
		for range max(len(field.Names), 1) {
			zeros = append(zeros, "*new("+f.text(field.Type)+")")
		}
	}
	f.add(zeroed, r, "return "+strings.Join(zeros, ", "))
}

// fails reports whether a return tells of an error and has zeros beside it, at which nobody looks then.
func (f *finder) fails(r *ast.ReturnStmt, results *ast.FieldList) bool {
	last := len(r.Results) - 1
	if last < 1 || slices.ContainsFunc(r.Results[:last], func(e ast.Expr) bool { return !f.isZero(e) }) {
		return false
	}
	told, kind := f.text(r.Results[last]), f.text(results.List[len(results.List)-1].Type)
	return kind == "error" && told != "nil" || strings.HasPrefix(told, "err")
}

// isZero reports whether an expression is plainly the zero value.
func (f *finder) isZero(e ast.Expr) bool {
	if c, ok := e.(*ast.CompositeLit); ok && len(c.Elts) == 0 {
		switch c.Type.(type) {
		case *ast.Ident, *ast.SelectorExpr: // the name of a struct
			return true
		}
	}
	switch f.text(e) {
	case "0", "nil", `""`, "false":
		return true
	}
	return false
}
