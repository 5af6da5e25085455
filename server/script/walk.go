package script

import "github.com/yuin/gopher-lua/ast"

// What counts more than a step, by the memory that it may take.
const (
	// storeSteps is for t[k] = v, which may fill an array of limits.ArrayMax.
	storeSteps = 8
	// fieldsPerStep is how many fields of a table constructor count a step.
	fieldsPerStep = 8
)

// weight returns how many steps statements count, as many as fit into a tick at
// most. Inner functions count for themselves.
func weight(stmts []ast.Stmt) int {
	n := 1 + storeSteps*stores(stmts)
	walk(stmts, func(e ast.Expr) bool {
		switch e := e.(type) {
		case *ast.TableExpr:
			n += len(e.Fields) / fieldsPerStep
		case *ast.Comma3Expr:
			n += storeSteps
		case *ast.FunctionExpr:
			return false
		}
		return n < stepsPerTick
	})
	return min(n, stepsPerTick)
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

// makesCalls reports whether there are calls in expressions, those of inner functions aside.
func makesCalls(exprs []ast.Expr) bool {
	found := false
	walkExprs(func(e ast.Expr) bool {
		_, call := e.(*ast.FuncCallExpr)
		_, fn := e.(*ast.FunctionExpr)
		found = found || call
		return !found && !fn
	}, exprs...)
	return found
}

// stores counts the assignments to elements.
func stores(stmts []ast.Stmt) int {
	n := 0
	for _, stmt := range stmts {
		switch s := stmt.(type) {
		case *ast.AssignStmt:
			for _, lhs := range s.Lhs {
				if get, ok := lhs.(*ast.AttrGetExpr); ok {
					if _, field := get.Key.(*ast.StringExpr); !field {
						n++
					}
				}
			}
		case *ast.DoBlockStmt:
			n += stores(s.Stmts)
		case *ast.IfStmt:
			n += stores(s.Then) + stores(s.Else)
		}
	}
	return n
}

// walk calls visit for all expressions below stmts, from the outside inwards.
// Nothing below an expression is visited when visit returns false.
func walk(stmts []ast.Stmt, visit func(ast.Expr) bool) {
	for _, stmt := range stmts {
		switch s := stmt.(type) {
		case *ast.AssignStmt:
			walkExprs(visit, s.Lhs...)
			walkExprs(visit, s.Rhs...)
		case *ast.LocalAssignStmt:
			walkExprs(visit, s.Exprs...)
		case *ast.FuncCallStmt:
			walkExprs(visit, s.Expr)
		case *ast.DoBlockStmt:
			walk(s.Stmts, visit)
		case *ast.WhileStmt:
			walkExprs(visit, s.Condition)
			walk(s.Stmts, visit)
		case *ast.RepeatStmt:
			walk(s.Stmts, visit)
			walkExprs(visit, s.Condition)
		case *ast.IfStmt:
			walkExprs(visit, s.Condition)
			walk(s.Then, visit)
			walk(s.Else, visit)
		case *ast.NumberForStmt:
			walkExprs(visit, s.Init, s.Limit, s.Step)
			walk(s.Stmts, visit)
		case *ast.GenericForStmt:
			walkExprs(visit, s.Exprs...)
			walk(s.Stmts, visit)
		case *ast.FuncDefStmt:
			walkExprs(visit, s.Name.Func, s.Name.Receiver, s.Func)
		case *ast.ReturnStmt:
			walkExprs(visit, s.Exprs...)
		}
	}
}

func walkExprs(visit func(ast.Expr) bool, exprs ...ast.Expr) {
	for _, expr := range exprs {
		if expr == nil || !visit(expr) {
			continue
		}
		switch e := expr.(type) {
		case *ast.AttrGetExpr:
			walkExprs(visit, e.Object, e.Key)
		case *ast.TableExpr:
			for _, field := range e.Fields {
				walkExprs(visit, field.Key, field.Value)
			}
		case *ast.FuncCallExpr:
			walkExprs(visit, e.Func, e.Receiver)
			walkExprs(visit, e.Args...)
		case *ast.LogicalOpExpr:
			walkExprs(visit, e.Lhs, e.Rhs)
		case *ast.RelationalOpExpr:
			walkExprs(visit, e.Lhs, e.Rhs)
		case *ast.StringConcatOpExpr:
			walkExprs(visit, e.Lhs, e.Rhs)
		case *ast.ArithmeticOpExpr:
			walkExprs(visit, e.Lhs, e.Rhs)
		case *ast.UnaryMinusOpExpr:
			walkExprs(visit, e.Expr)
		case *ast.UnaryNotOpExpr:
			walkExprs(visit, e.Expr)
		case *ast.UnaryLenOpExpr:
			walkExprs(visit, e.Expr)
		case *ast.FunctionExpr:
			walk(e.Stmts, visit)
		}
	}
}
