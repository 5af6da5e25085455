package script

import (
	"slices"

	"github.com/yuin/gopher-lua/ast"
)

// To compare a string, or to look it up in a table, takes as long as the string
// is, and gopher-lua's machine does both within one instruction, that for < a
// byte at a time. Therefore what may be a long string is compared by < and its
// like in functions of ours, and == and look-ups of such values count steps.
// Hardly a limiter has any of them: in most comparisons one side is known to be
// a number, or a short literal.

const (
	// shortText is how long a literal is at most, in bytes, that takes no time to
	// speak of.
	shortText = 1 << 10
	// longMax is how many operations on what may be long strings follow each
	// other without counting. As stores they fill a tick.
	longMax = stepsPerTick / storeSteps
	// learnRounds is how often the names of a chunk are gone over. Where values are
	// handed on from name to name more often than that, all may be long strings.
	learnRounds = 8
)

// orderings are the functions that stand for operators, when both sides may be
// long strings.
var orderings = map[string]string{"<": "(less)", "<=": "(at most)", ">": "(greater)", ">=": "(at least)"}

// shortResults are functions that return no strings, or short ones. So are all of
// the libraries in shortLibraries.
var (
	shortResults   = map[string]bool{"tonumber": true, "type": true, "string.len": true, "string.byte": true, "table.getn": true, "table.maxn": true}
	shortLibraries = map[string]bool{"math": true, "bit": true}
)

// names tells which variables of a chunk may hold long strings. It goes by their
// names alone: where several variables have one, it stands for all of them.
type names struct {
	// given is what each name is given anywhere in the chunk; those of parameters
	// and of what pairs and its like return are there as well.
	given map[string][]ast.Expr
	long  map[string]bool
	// metatables is set when the script might have arithmetic return strings, and a look-up go on from table to table.
	metatables bool
	// functions is set when there are functions in the chunk.
	functions bool
}

// learn finds out about the variables of a chunk, before anything is rewritten.
func (r *rewriter) learn(stmts []ast.Stmt) {
	n := &r.names
	n.given, n.long = make(map[string][]ast.Expr), make(map[string]bool)
	walker{statement: n.statement, expression: n.expression}.stmts(stmts)
	for range learnRounds {
		if !n.spread() {
			return
		}
	}
	for name := range n.given {
		n.long[name] = true
	}
}

// spread marks the names that are given what may be a long string. It reports
// whether there were any.
func (n *names) spread() bool {
	more := false
	for name, values := range n.given {
		if !n.long[name] && slices.ContainsFunc(values, n.mayBeLong) {
			n.long[name], more = true, true
		}
	}
	return more
}

func (n *names) statement(stmt ast.Stmt) {
	switch s := stmt.(type) {
	case *ast.LocalAssignStmt:
		for i, name := range s.Names {
			n.give(name, s.Exprs, i)
		}
	case *ast.AssignStmt:
		for i, lhs := range s.Lhs {
			if name, ok := lhs.(*ast.IdentExpr); ok {
				n.give(name.Value, s.Rhs, i)
			}
		}
	case *ast.NumberForStmt:
		n.give(s.Name, nil, 0)
	case *ast.GenericForStmt:
		n.unknown(s.Names...)
	case *ast.FuncDefStmt:
		if name, ok := s.Name.Func.(*ast.IdentExpr); ok {
			n.give(name.Value, nil, 0)
		}
		n.unknown("self")
	}
}

func (n *names) expression(expr ast.Expr) bool {
	switch e := expr.(type) {
	case *ast.FunctionExpr:
		n.functions = true
		n.unknown(e.ParList.Names...)
		n.give("arg", nil, 0)
	case *ast.IdentExpr:
		switch e.Value {
		case "setmetatable", "_G", "load", "loadstring":
			n.metatables = true
		}
	}
	return true
}

// give notes that a name is given value i of a list.
func (n *names) give(name string, values []ast.Expr, i int) {
	given := n.given[name]
	switch last := len(values) - 1; {
	case i <= last:
		given = append(given, values[i])
	case last >= 0 && hasMany(values[last]):
		given = append(given, values[last])
	}
	n.given[name] = given
}

// unknown notes that names may stand for anything.
func (n *names) unknown(list ...string) {
	for _, name := range list {
		n.given[name] = nil
		n.long[name] = true
	}
}

func (n *names) isVariable(name string) bool {
	_, ok := n.given[name]
	return ok
}

// mayBeLong reports whether the value of an expression might be a long string.
// Globals, which scripts cannot change, are none.
func (n *names) mayBeLong(expr ast.Expr) bool {
	switch e := expr.(type) {
	case *ast.StringExpr:
		return len(e.Value) > shortText
	case *ast.IdentExpr:
		return n.long[e.Value]
	case *ast.LogicalOpExpr:
		return n.mayBeLong(e.Rhs) || e.Operator == "or" && n.mayBeLong(e.Lhs)
	case *ast.ArithmeticOpExpr, *ast.UnaryMinusOpExpr:
		return n.metatables
	case *ast.FuncCallExpr:
		return !n.returnsShort(e.Func)
	case *ast.AttrGetExpr:
		library, _ := n.field(e)
		return !shortLibraries[library]
	case *ast.StringConcatOpExpr, *ast.Comma3Expr:
		return true
	}
	return false // numbers, tables, functions, and what comparisons return
}

// returnsShort reports whether a function returns no long strings.
func (n *names) returnsShort(fn ast.Expr) bool {
	switch f := fn.(type) {
	case *ast.IdentExpr:
		return shortResults[f.Value] && !n.isVariable(f.Value)
	case *ast.AttrGetExpr:
		library, field := n.field(f)
		return shortLibraries[library] || shortResults[library+"."+field]
	}
	return false
}

// field returns the names of a library's field and of the library.
func (n *names) field(e *ast.AttrGetExpr) (library, field string) {
	object, isName := e.Object.(*ast.IdentExpr)
	key, isText := e.Key.(*ast.StringExpr)
	if !isName || !isText || n.isVariable(object.Value) {
		return "", ""
	}
	return object.Value, key.Value
}

// comparesLong reports whether a comparison may take as long as strings are.
func (n *names) comparesLong(e *ast.RelationalOpExpr) bool {
	return n.mayBeLong(e.Lhs) && n.mayBeLong(e.Rhs)
}

// relational rewrites a comparison.
func (r *rewriter) relational(e *ast.RelationalOpExpr) ast.Expr {
	long := r.names.comparesLong(e)
	e.Lhs, e.Rhs = r.expr(e.Lhs), r.expr(e.Rhs)
	if !long {
		return e
	}
	if name, ok := orderings[e.Operator]; ok {
		return r.operate(name, e.Line(), e.Lhs, e.Rhs)
	}
	if r.hasRoom() {
		return e
	}
	equal := r.operate("(equal)", e.Line(), e.Lhs, e.Rhs)
	if e.Operator == "==" {
		return equal
	}
	not := &ast.UnaryNotOpExpr{Expr: equal}
	not.SetLine(e.Line())
	return not
}

// hasRoom counts an operation on what may be a long string, unless too many
// follow each other already.
func (r *rewriter) hasRoom() bool {
	if r.long == longMax {
		return false
	}
	r.long++
	return true
}

// lookup rewrites the key of an element that is read.
func (r *rewriter) lookup(key ast.Expr) ast.Expr {
	long := r.names.mayBeLong(key)
	out := r.key(key)
	if long && (r.names.metatables || !r.hasRoom()) {
		return invoke("(same)", key.Line(), out)
	}
	return out
}

// store rewrites the key of an element that is assigned to. Where several are, in one
// statement, those beyond longMax would be read a little too early, before what is
// assigned: separate undoes that where it makes a difference.
func (r *rewriter) store(key ast.Expr) ast.Expr {
	long := r.names.mayBeLong(key)
	out := r.key(key)
	if !long {
		return out
	}
	if r.hasRoom() {
		if r.names.metatables {
			r.long = min(r.long+longMax/2, longMax)
		}
		return out
	}
	return invoke("(same)", key.Line(), out)
}

// loop rewrites the body of a loop, which begins by counting.
func (r *rewriter) loop(body func()) {
	before := r.long
	r.long = 0
	body()
	r.long = max(r.long, before) // It may have had no round.
}
