package script

import "github.com/yuin/gopher-lua/ast"

// What counts more than a step, by the memory or the time that it may take.
const (
	// storeSteps is for t[k] = v, which may fill an array of limits.ArrayMax.
	storeSteps = 8
	// longSteps is for an operation on what may be a long string.
	longSteps = 8
	// closureSteps is for a function that is made. To find a variable that it uses, gopher-lua goes along all those of the callers
	// that functions use.
	closureSteps = 8
	// fieldsPerStep is how many fields of a table constructor count a step.
	fieldsPerStep = 8
	// writtenCallSteps is for a call in the text: what is written in Go may count nothing.
	writtenCallSteps = 1
	// partsPerStep is how many operands and operators count a step.
	partsPerStep = 16
)

// weight returns how many steps statements count, as many as fit into a tick at
// most. Inner functions count for themselves.
func (r *rewriter) weight(stmts []ast.Stmt) int {
	n, parts := 1+storeSteps*r.stores(stmts), 0
	walk(stmts, func(e ast.Expr) bool {
		if parts++; parts%partsPerStep == 0 {
			n++
		}
		switch e := e.(type) {
		case *ast.RelationalOpExpr:
			if orderings[e.Operator] == "" && r.names.comparesLong(e) {
				n += longSteps
			}
		case *ast.AttrGetExpr:
			if r.names.mayBeLong(e.Key) {
				n += r.longLookupSteps()
			}
		case *ast.TableExpr:
			n += len(e.Fields) / fieldsPerStep
		case *ast.FuncCallExpr:
			n += writtenCallSteps
			if len(e.Method) > shortText { // All of a text's names together are no longer than it is.
				n += r.longLookupSteps()
			}
		case *ast.Comma3Expr:
			n += storeSteps
		case *ast.FunctionExpr:
			n += closureSteps
			return false
		}
		return n < stepsPerTick
	})
	return min(n, stepsPerTick)
}

// longLookupSteps is what it counts to look up what may be a long string, perhaps in one table after the other.
func (r *rewriter) longLookupSteps() int {
	if r.names.metatables {
		return stepsPerTick / 2
	}
	return longSteps
}

// conditionSteps returns how many steps a loop's condition counts, which each round does.
func (r *rewriter) conditionSteps(e ast.Expr) int {
	return r.weight([]ast.Stmt{&ast.IfStmt{Condition: e}}) - r.weight(nil)
}

// makesClosures reports whether there are functions in statements.
func makesClosures(stmts []ast.Stmt) bool {
	found := false
	walk(stmts, func(e ast.Expr) bool {
		_, fn := e.(*ast.FunctionExpr)
		found = found || fn
		return !found
	})
	return found
}

// stores counts the assignments to elements, but for those that count as long strings.
func (r *rewriter) stores(stmts []ast.Stmt) int {
	n := 0
	for _, stmt := range stmts {
		switch s := stmt.(type) {
		case *ast.AssignStmt:
			for _, lhs := range s.Lhs {
				if get, ok := lhs.(*ast.AttrGetExpr); ok {
					if _, field := get.Key.(*ast.StringExpr); !field && !r.names.mayBeLong(get.Key) {
						n++
					}
				}
			}
		case *ast.DoBlockStmt:
			n += r.stores(s.Stmts)
		case *ast.IfStmt:
			n += r.stores(s.Then) + r.stores(s.Else)
		}
	}
	return n
}

// walk calls visit for all expressions below stmts, from the outside inwards.
// Nothing below an expression is visited when visit returns false.
func walk(stmts []ast.Stmt, visit func(ast.Expr) bool) { walker{expression: visit}.stmts(stmts) }

// walker visits statements and expressions.
type walker struct {
	statement  func(ast.Stmt) // or nil
	expression func(ast.Expr) bool
}

func (w walker) stmts(stmts []ast.Stmt) {
	for _, stmt := range stmts {
		if w.statement != nil {
			w.statement(stmt)
		}
		switch s := stmt.(type) {
		case *ast.AssignStmt:
			w.exprs(s.Lhs...)
			w.exprs(s.Rhs...)
		case *ast.LocalAssignStmt:
			w.exprs(s.Exprs...)
		case *ast.FuncCallStmt:
			w.exprs(s.Expr)
		case *ast.DoBlockStmt:
			w.stmts(s.Stmts)
		case *ast.WhileStmt:
			w.exprs(s.Condition)
			w.stmts(s.Stmts)
		case *ast.RepeatStmt:
			w.stmts(s.Stmts)
			w.exprs(s.Condition)
		case *ast.IfStmt:
			w.exprs(s.Condition)
			w.stmts(s.Then)
			w.stmts(s.Else)
		case *ast.NumberForStmt:
			w.exprs(s.Init, s.Limit, s.Step)
			w.stmts(s.Stmts)
		case *ast.GenericForStmt:
			w.exprs(s.Exprs...)
			w.stmts(s.Stmts)
		case *ast.FuncDefStmt:
			w.exprs(s.Name.Func, s.Name.Receiver, s.Func)
		case *ast.ReturnStmt:
			w.exprs(s.Exprs...)
		}
	}
}

func (w walker) exprs(exprs ...ast.Expr) {
	for _, expr := range exprs {
		if expr == nil || !w.expression(expr) {
			continue
		}
		switch e := expr.(type) {
		case *ast.AttrGetExpr:
			w.exprs(e.Object, e.Key)
		case *ast.TableExpr:
			for _, field := range e.Fields {
				w.exprs(field.Key, field.Value)
			}
		case *ast.FuncCallExpr:
			w.exprs(e.Func, e.Receiver)
			w.exprs(e.Args...)
		case *ast.LogicalOpExpr:
			w.exprs(e.Lhs, e.Rhs)
		case *ast.RelationalOpExpr:
			w.exprs(e.Lhs, e.Rhs)
		case *ast.StringConcatOpExpr:
			w.exprs(e.Lhs, e.Rhs)
		case *ast.ArithmeticOpExpr:
			w.exprs(e.Lhs, e.Rhs)
		case *ast.UnaryMinusOpExpr:
			w.exprs(e.Expr)
		case *ast.UnaryNotOpExpr:
			w.exprs(e.Expr)
		case *ast.UnaryLenOpExpr:
			w.exprs(e.Expr)
		case *ast.FunctionExpr:
			w.stmts(e.Stmts)
		}
	}
}
