package script

import (
	"slices"
	"strconv"

	"github.com/yuin/gopher-lua/ast"
)

// In which order an assignment's parts are read and stored is not said by Lua's
// manual, but scripts find out: a function may change the variables of those
// around it. C Lua first evaluates what is on the left, then the values, and stores
// these from right to left. A local variable of the function itself is in a register:
// as an object or a key it is read when its element is stored, as a value at its turn.
// gopher-lua reads keys at once, values only when they are stored, and assigns local
// variables before it is their turn.

// separate has an assignment that gopher-lua would mix up go by way of hidden variables, in C Lua's order.
func (r *rewriter) separate(stmt ast.Stmt) ast.Stmt {
	s, ok := stmt.(*ast.AssignStmt)
	if !ok || !r.mixesUp(s) {
		return stmt
	}
	line := s.Line()
	var names []string
	var places, stores []ast.Stmt
	for _, lhs := range s.Lhs {
		if get, ok := lhs.(*ast.AttrGetExpr); ok && r.mayChange(countedKey(get.Key)) && get.Key != countedKey(get.Key) {
			get.Key = countedKey(get.Key)
			places = append(places, r.countSteps(line, r.longLookupSteps())...)
			r.counts = true
		}
	}
	// early has an expression be evaluated before the values.
	early := func(e ast.Expr, kind string, i int) ast.Expr {
		name := kind + strconv.Itoa(i) + ")"
		places = append(places, local(line, []string{name}, e))
		return ident(name, line)
	}
	for i, lhs := range s.Lhs {
		names = append(names, "(value "+strconv.Itoa(i)+")")
		switch lhs := lhs.(type) {
		case *ast.AttrGetExpr:
			if !r.isOwnVariable(lhs.Object) {
				lhs.Object = early(lhs.Object, objectName, i)
			}
			if !r.isOwnVariable(lhs.Key) && !isLiteral(lhs.Key) {
				lhs.Key = early(lhs.Key, "(key ", i)
			}
		case *ast.IdentExpr:
			// It is assigned before what is left of it is stored, whose objects and keys are those from before.
			for j, other := range s.Lhs[:i] {
				get, ok := other.(*ast.AttrGetExpr)
				if !ok || !r.isOwn(lhs.Value) {
					continue
				}
				if isNamed(get.Object, lhs.Value) {
					get.Object = early(get.Object, objectName, j)
				}
				if isNamed(get.Key, lhs.Value) {
					get.Key = early(get.Key, "(key ", j)
				}
			}
		}
	}
	for i := len(s.Lhs) - 1; i >= 0; i-- {
		store := &ast.AssignStmt{Lhs: s.Lhs[i : i+1], Rhs: []ast.Expr{ident(names[i], line)}}
		store.SetLine(line)
		stores = append(stores, store)
	}
	return do(line, slices.Concat(places, []ast.Stmt{local(line, names, s.Rhs...)}, stores)...)
}

// mixesUp reports whether gopher-lua would read or assign something at another time than C Lua in an assignment, where that makes a difference.
func (r *rewriter) mixesUp(s *ast.AssignStmt) bool {
	several := len(s.Lhs) > 1 || len(s.Rhs) > 1
	if slices.ContainsFunc(s.Lhs, r.isLocalTarget) {
		// gopher-lua would assign the first before it reads the second, so that `a, b = b, a` loses one, as `a = 1, f(a)` does. Where it puts the value
		// of one `and` or `or` into a local variable at once, that may keep what it had.
		_, logical := s.Rhs[0].(*ast.LogicalOpExpr)
		return logical || several
	}
	if several && slices.ContainsFunc(s.Rhs, r.mayChange) {
		return true
	}
	hasKey := slices.ContainsFunc(s.Lhs, func(e ast.Expr) bool {
		get, ok := e.(*ast.AttrGetExpr)
		return ok && r.mayChange(countedKey(get.Key))
	})
	return hasKey && (several || mayRun(s.Rhs[0]))
}

// countedKey returns the key that store has put into a call which counts its steps, or the key as it is.
func countedKey(key ast.Expr) ast.Expr {
	if call, ok := key.(*ast.FuncCallExpr); ok {
		if f, ok := call.Func.(*ast.StringExpr); ok && f.Value == constantMark+"(same)" {
			return call.Args[0]
		}
	}
	return key
}

func isLiteral(e ast.Expr) bool {
	switch e.(type) {
	case *ast.StringExpr, *ast.NumberExpr:
		return true
	}
	return false
}

func isNamed(e ast.Expr, name string) bool {
	variable, ok := e.(*ast.IdentExpr)
	return ok && variable.Value == name
}

func (r *rewriter) isLocalTarget(e ast.Expr) bool {
	name, ok := e.(*ast.IdentExpr)
	return ok && r.isLocal(name.Value)
}

func (r *rewriter) isOwnVariable(e ast.Expr) bool {
	name, ok := e.(*ast.IdentExpr)
	return ok && r.isOwn(name.Value)
}

// mayChange reports whether an expression is a local variable of the function itself that another function may change.
func (r *rewriter) mayChange(e ast.Expr) bool {
	name, ok := e.(*ast.IdentExpr)
	return ok && r.changed[name.Value] && r.isOwn(name.Value)
}

// mayRun reports whether functions may run while an expression is evaluated, which metamethods are too.
func mayRun(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.IdentExpr, *ast.StringExpr, *ast.NumberExpr, *ast.TrueExpr, *ast.FalseExpr, *ast.NilExpr, *ast.FunctionExpr, *ast.Comma3Expr:
		return false
	case *ast.UnaryNotOpExpr:
		return mayRun(e.Expr)
	case *ast.LogicalOpExpr:
		return mayRun(e.Lhs) || mayRun(e.Rhs)
	}
	return true
}

// changes finds the names of variables that functions change which are within the
// variable's own. Where several variables have a name it stands for all of them.
type changes struct {
	depth   int              // of functions
	places  map[string][]int // the depths of the visible variables of each name, the innermost one last
	visible []string
	changed map[string]bool
}

// findChanged returns these names for a chunk that is not rewritten yet.
func findChanged(chunk *ast.FunctionExpr) map[string]bool {
	c := changes{places: make(map[string][]int), changed: make(map[string]bool)}
	c.block(chunk.Stmts)
	return c.changed
}

func (c *changes) declare(names ...string) {
	for _, name := range names {
		c.places[name] = append(c.places[name], c.depth)
		c.visible = append(c.visible, name)
	}
}

func (c *changes) leave(visible int) {
	for _, name := range c.visible[visible:] {
		list := c.places[name]
		c.places[name] = list[:len(list)-1]
	}
	c.visible = c.visible[:visible]
}

func (c *changes) assign(e ast.Expr) {
	if name, ok := e.(*ast.IdentExpr); ok {
		if list := c.places[name.Value]; len(list) > 0 && list[len(list)-1] < c.depth {
			c.changed[name.Value] = true
		}
	}
}

// block goes through statements in a scope of their own with more variables, and through what comes at the end of it.
func (c *changes) block(stmts []ast.Stmt, names ...string) {
	visible := len(c.visible)
	c.declare(names...)
	for _, stmt := range stmts {
		c.statement(stmt)
	}
	c.leave(visible)
}

func (c *changes) statement(stmt ast.Stmt) {
	switch s := stmt.(type) {
	case *ast.AssignStmt:
		for _, e := range s.Lhs {
			c.assign(e)
		}
		c.expressions(s.Lhs...)
		c.expressions(s.Rhs...)
	case *ast.LocalAssignStmt:
		if len(s.Exprs) == 1 {
			if _, ok := s.Exprs[0].(*ast.FunctionExpr); ok {
				c.declare(s.Names...) // As gopher-lua has it, also where it was written otherwise.
				c.expressions(s.Exprs...)
				return
			}
		}
		c.expressions(s.Exprs...)
		c.declare(s.Names...)
	case *ast.FuncCallStmt:
		c.expressions(s.Expr)
	case *ast.DoBlockStmt:
		c.block(s.Stmts)
	case *ast.WhileStmt:
		c.expressions(s.Condition)
		c.block(s.Stmts)
	case *ast.RepeatStmt:
		visible := len(c.visible)
		for _, inner := range s.Stmts {
			c.statement(inner)
		}
		c.expressions(s.Condition)
		c.leave(visible)
	case *ast.IfStmt:
		c.expressions(s.Condition)
		c.block(s.Then)
		c.block(s.Else)
	case *ast.NumberForStmt:
		c.expressions(s.Init, s.Limit, s.Step)
		c.block(s.Stmts, s.Name)
	case *ast.GenericForStmt:
		c.expressions(s.Exprs...)
		c.block(s.Stmts, s.Names...)
	case *ast.FuncDefStmt:
		c.assign(s.Name.Func)
		c.expressions(s.Name.Func, s.Name.Receiver)
		if s.Name.Method != "" {
			c.function(s.Func, "self")
		} else {
			c.function(s.Func)
		}
	case *ast.ReturnStmt:
		c.expressions(s.Exprs...)
	}
}

func (c *changes) expressions(exprs ...ast.Expr) {
	walker{expression: func(e ast.Expr) bool {
		fn, ok := e.(*ast.FunctionExpr)
		if ok {
			c.function(fn)
		}
		return !ok
	}}.exprs(exprs...)
}

func (c *changes) function(fn *ast.FunctionExpr, params ...string) {
	c.depth++
	c.block(fn.Stmts, slices.Concat(params, fn.ParList.Names, []string{"arg"})...)
	c.depth--
}
