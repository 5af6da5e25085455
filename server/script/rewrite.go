package script

import (
	"slices"
	"strconv"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
)

// Names that scripts cannot write, of variables that rewriting adds.
const (
	keysName  = "(KEYS)"
	argvName  = "(ARGV)"
	stepsName = "(steps)"

	openName    = "(open)"
	closureName = "(closure)"
	unusedName  = "(unused)"

	objectName = "(object " // and a number
)

// stepsPerTick is how many loop rounds and function calls pass between two
// calls of tick. It is below 128 because gopher-lua boxes such numbers once.
const stepsPerTick = 100

// concatMax is how many operands one call of concat takes; a call has room for
// about 200.
const concatMax = 48

// constantMark starts the string constants that stand for values of the engine
// until compile puts those in their place.
const constantMark = "\x00headgate:"

// rewriter changes a syntax tree before it is compiled, so that gopher-lua's
// machine does what Lua 5.1 does, within limits:
//
//   - `..`, `#`, `%` and `^` become calls of functions of ours, which limit,
//     format and calculate,
//   - loops and functions count steps in a hidden variable,
//   - large tables of literals are written down apart (rewrite_literal.go), and
//     others are built in parts where the machine would mix up their fields,
//   - names of the sandbox become constants, which also spares their look-up,
//   - KEYS and ARGV become parameters of the chunk.
type rewriter struct {
	constants map[string]bool // names that stand for a value of the engine
	params    bool            // KEYS and ARGV are parameters
	// loads is set for libraries: while they load, the chunk itself runs, and has
	// other names than its functions have later.
	loads  bool
	depth  int      // of functions
	locals []string // visible local variables, see declare and leave
	// places is where the variables of each name are among these, the innermost one last.
	places map[string][]int
	// passed is how many variables the compiler may have to pass to find the names that have been met so far.
	passed int
	outer  int  // how many of these are of functions around the one that is being rewritten
	counts bool // there is something that counts steps
	blocks bool // and loops that count many rounds at once
	// keeps is set when the script might change KEYS or ARGV, or reach them by
	// another name.
	keeps bool
	// usesGlobals is set when the script mentions _G or compiles text.
	usesGlobals bool
	// noBlocks has each round of a loop counted by itself: that takes fewer of the variables
	// that a function may have.
	noBlocks bool
	// literals are the tables of literals that were written down.
	literals []*lua.FunctionProto
	names    names
	// changed are the names of variables that functions within their own assign, see findChanged.
	changed map[string]bool
	// buildsArg is set when functions with varargs may build the table arg.
	buildsArg bool
	// depths is how deep arithmetic is that gopher-lua may calculate in advance, see foldsMax.
	depths map[ast.Expr]int
	// long is how many operations on what may be long strings have been written since something counted, on the way through
	// the statements that has most of them.
	long int
}

// chunk rewrites a whole chunk in place.
func (r *rewriter) chunk(fn *ast.FunctionExpr) {
	fn.ParList.HasVargs = usesVarargs(fn.Stmts)
	r.buildsArg = usesArg(fn.Stmts)
	r.learn(fn.Stmts)
	if r.names.functions {
		r.changed = findChanged(fn)
	}
	if r.params {
		fn.ParList.Names = []string{keysName, argvName}
	}
	fn.Stmts = r.block(fn.Stmts)
	if r.counts || fn.ParList.HasVargs {
		var steps ast.Expr = number("100", 1)
		if fn.ParList.HasVargs { // It may be called with many, by itself too.
			steps = invoke("(tick)", 1)
		}
		fn.Stmts = append([]ast.Stmt{local(1, []string{stepsName}, steps)}, fn.Stmts...)
	}
}

func (r *rewriter) isLocal(name string) bool { return r.find(name) >= 0 }

// isOwn reports whether a name is that of a local variable of the function that is being rewritten, not of one around it.
func (r *rewriter) isOwn(name string) bool { return r.find(name) >= r.outer }

// find returns the place of a visible local variable, -1 if there is none.
func (r *rewriter) find(name string) int {
	r.pass(1)
	if list := r.places[name]; len(list) > 0 {
		return list[len(list)-1]
	}
	return -1
}

// passedMax is how many variables the compiler may have to pass to find the names of a chunk: it goes along those of all functions around a
// name. In one that has 200 variables, all names of a chunk of syntax.NodesMax do not make as many.
const passedMax = 50_000_000

// pass notes that the compiler looks for so many names here.
func (r *rewriter) pass(names int) { r.passed += names * len(r.locals) }

// declare makes local variables visible.
func (r *rewriter) declare(names ...string) {
	if r.places == nil {
		r.places = make(map[string][]int)
	}
	for _, name := range names {
		r.places[name] = append(r.places[name], len(r.locals))
		r.locals = append(r.locals, name)
	}
}

// leave ends the scope of all local variables but the outermost so many.
func (r *rewriter) leave(visible int) {
	for _, name := range r.locals[visible:] {
		list := r.places[name]
		r.places[name] = list[:len(list)-1]
	}
	r.locals = r.locals[:visible]
}

// block rewrites statements in a scope of their own. The first of them count with what they are in.
func (r *rewriter) block(stmts []ast.Stmt) []ast.Stmt {
	visible := len(r.locals)
	out := stmts[:0:0]
	for i, s := range stmts {
		if i > 0 && i%uncounted == 0 {
			next := stmts[i:min(i+uncounted, len(stmts))]
			out = append(out, r.countSteps(s.Line(), min(stepsPerTick, r.weight(next)+longSteps*r.long))...)
			r.counts, r.long = true, 0
		} else if r.long >= longMax/2 {
			out = append(out, r.countSteps(s.Line(), longSteps*r.long)...)
			r.counts, r.long = true, 0
		}
		out = append(out, r.statement(s))
	}
	r.leave(visible)
	return out
}

// uncounted is how many statements may follow each other without counting. As
// stores they fill one tick.
const uncounted = 12

// counted rewrites a body that counts its steps, and more, whenever it starts.
func (r *rewriter) counted(stmts []ast.Stmt, line, more int, declare ...string) []ast.Stmt {
	r.counts = true
	visible := len(r.locals)
	r.declare(declare...)
	out := slices.Concat(leaveClosed(stmts, line), r.countSteps(line, min(stepsPerTick, r.weight(stmts[:min(len(stmts), uncounted)])+more)), r.block(stmts))
	r.leave(visible)
	return out
}

// leaveClosed is what begins a loop's body so that whoever leaves it by break gives the variables which closures have taken hold of a life of their
// own:
//
//	local open
//	if false then local closure = function() return open end end
//
// gopher-lua does so only if one of the body's own variables is such, and not for those of blocks within it: their closures would go on with
// registers that are used again, those that count steps among them.
func leaveClosed(stmts []ast.Stmt, line int) []ast.Stmt {
	if !breaksAmid(stmts, false) || !makesClosures(stmts) {
		return nil
	}
	back := &ast.ReturnStmt{Exprs: []ast.Expr{ident(openName, line)}}
	back.SetLine(line)
	fn := &ast.FunctionExpr{ParList: &ast.ParList{}, Stmts: []ast.Stmt{back}}
	fn.SetLine(line)
	fn.SetLastLine(line)
	return []ast.Stmt{
		local(line, []string{openName}),
		test(line, &ast.FalseExpr{}, local(line, []string{closureName}, fn)),
	}
}

// breaksAmid reports whether a loop with these statements is left from within a block of it.
func breaksAmid(stmts []ast.Stmt, within bool) bool {
	for _, stmt := range stmts {
		switch s := stmt.(type) {
		case *ast.BreakStmt:
			if within {
				return true
			}
		case *ast.DoBlockStmt:
			if breaksAmid(s.Stmts, true) {
				return true
			}
		case *ast.IfStmt:
			if breaksAmid(s.Then, true) || breaksAmid(s.Else, true) {
				return true
			}
		}
	}
	return false
}

// countSteps counts n steps.
func (r *rewriter) countSteps(line, n int) []ast.Stmt {
	return r.takeSteps(line, number(strconv.Itoa(n), line))
}

// takeSteps is: steps = steps - n; if steps < 1 then steps = steps + tick() end. It does
// without the constant 0, which a function shares with -0.
func (r *rewriter) takeSteps(line int, n ast.Expr) []ast.Stmt {
	r.pass(5)
	return []ast.Stmt{
		assign(line, stepsName, operation(line, ident(stepsName, line), "-", n)),
		test(line, comparison(line, ident(stepsName, line), "<", number("1", line)),
			assign(line, stepsName, operation(line, ident(stepsName, line), "+", invoke("(tick)", line)))),
	}
}

func do(line int, stmts ...ast.Stmt) ast.Stmt {
	s := &ast.DoBlockStmt{Stmts: stmts}
	s.SetLine(line)
	return s
}

func local(line int, names []string, values ...ast.Expr) ast.Stmt {
	s := &ast.LocalAssignStmt{Names: names, Exprs: values}
	s.SetLine(line)
	return s
}

func assign(line int, name string, value ast.Expr) ast.Stmt {
	s := &ast.AssignStmt{Lhs: []ast.Expr{ident(name, line)}, Rhs: []ast.Expr{value}}
	s.SetLine(line)
	return s
}

func test(line int, condition ast.Expr, then ...ast.Stmt) *ast.IfStmt {
	s := &ast.IfStmt{Condition: condition, Then: then}
	s.SetLine(line)
	return s
}

func operation(line int, a ast.Expr, operator string, b ast.Expr) ast.Expr {
	e := &ast.ArithmeticOpExpr{Operator: operator, Lhs: a, Rhs: b}
	e.SetLine(line)
	return e
}

func comparison(line int, a ast.Expr, operator string, b ast.Expr) ast.Expr {
	e := &ast.RelationalOpExpr{Operator: operator, Lhs: a, Rhs: b}
	e.SetLine(line)
	return e
}

func ident(name string, line int) *ast.IdentExpr {
	e := &ast.IdentExpr{Value: name}
	e.SetLine(line)
	return e
}

func number(digits string, line int) *ast.NumberExpr {
	e := &ast.NumberExpr{Value: digits}
	e.SetLine(line)
	return e
}

// constant stands for a value of the engine.
func constant(name string, line int) *ast.StringExpr {
	e := &ast.StringExpr{Value: constantMark + name}
	e.SetLine(line)
	return e
}

// statement rewrites a statement and returns what takes its place.
func (r *rewriter) statement(stmt ast.Stmt) ast.Stmt {
	switch s := stmt.(type) {
	case *ast.LocalAssignStmt:
		r.localAssign(s)
	case *ast.AssignStmt:
		r.list(s.Rhs)
		if len(s.Lhs) == 1 && len(s.Rhs) == 1 {
			// `a = (f())` is cut to one anyway; gopher-lua would leave a local variable without a value where f ends with `return ...`, and put f
			// into a function's last parameter before it reads the arguments, as in `a = a % 2`, which is a call here. From `a = (...)` it may
			// take the wrong register.
			adjust(s.Rhs[0], false)
		}
		for _, lhs := range s.Lhs {
			r.target(lhs)
		}
	case *ast.FuncCallStmt:
		call := r.expr(s.Expr).(*ast.FuncCallExpr)
		if f, ok := call.Func.(*ast.StringExpr); ok && f.Value == constantMark+"redis.call" {
			f.Value = constantMark + "(call without result)"
		}
		s.Expr = call
	case *ast.DoBlockStmt:
		s.Stmts = r.block(s.Stmts)
	case *ast.WhileStmt:
		steps := r.conditionSteps(s.Condition)
		s.Condition = r.expr(s.Condition)
		r.loop(func() { s.Stmts = r.counted(s.Stmts, s.Line(), steps) })
	case *ast.RepeatStmt:
		r.repeat(s)
	case *ast.IfStmt:
		if divided := divide(s); divided != stmt {
			return r.statement(divided)
		}
		s.Condition = r.expr(s.Condition)
		before := r.long
		s.Then = r.block(s.Then)
		then := r.long
		r.long = before
		s.Else = r.block(s.Else)
		r.long = max(r.long, then)
	case *ast.NumberForStmt:
		return r.numberFor(s)
	case *ast.GenericForStmt:
		return r.genericFor(s)
	case *ast.FuncDefStmt:
		r.functionDefinition(s)
	case *ast.ReturnStmt:
		r.list(s.Exprs)
		r.handOn(s.Exprs)
	}
	return r.separate(stmt)
}

func (r *rewriter) localAssign(s *ast.LocalAssignStmt) {
	if len(s.Names) == 1 && len(s.Exprs) == 1 {
		if fn, ok := s.Exprs[0].(*ast.FunctionExpr); ok {
			// gopher-lua makes the name known inside the function, whichever
			// way it was written.
			r.declare(s.Names[0])
			r.function(fn)
			return
		}
	}
	r.list(s.Exprs)
	r.declare(s.Names...)
}

func (r *rewriter) repeat(s *ast.RepeatStmt) {
	r.counts, r.long = true, 0
	visible, close := len(r.locals), leaveClosed(s.Stmts, s.Line())
	steps := r.conditionSteps(s.Condition)
	for i, inner := range s.Stmts {
		s.Stmts[i] = r.statement(inner)
	}
	s.Condition = r.expr(s.Condition)
	r.leave(visible)
	s.Stmts = slices.Concat(close, r.countSteps(s.Line(), min(stepsPerTick, r.weight(s.Stmts)+steps)), s.Stmts)
}

func (r *rewriter) genericFor(s *ast.GenericForStmt) ast.Stmt {
	keeps := r.keeps
	r.list(s.Exprs)
	if len(s.Exprs) == 1 && iteratesArguments(s.Exprs[0]) {
		r.keeps = keeps
	}
	before := r.beforeLoop(s)
	threeValues(s)
	r.loop(func() { s.Stmts = r.counted(s.Stmts, s.Line(), 0, s.Names...) })
	if before != nil {
		return do(s.Line(), before, s)
	}
	return s
}

// beforeLoop is what comes before a loop that begins with the results of what a call returns, as in `in f()()` and `in f().x()`, or with a variable that
// a function may change: it puts the values that the loop begins with into variables. gopher-lua would go wrong about the registers, since the loop has
// its own three by then: it would take that of a function for free, and read an operand too early.
func (r *rewriter) beforeLoop(s *ast.GenericForStmt) ast.Stmt {
	found := false
	walker{expression: func(e ast.Expr) bool {
		if call, ok := e.(*ast.FuncCallExpr); ok && (beginsWithCall(call.Func) || beginsWithCall(call.Receiver)) {
			found = true
		}
		found = found || r.mayChange(e)
		_, fn := e.(*ast.FunctionExpr)
		return !found && !fn
	}}.exprs(s.Exprs...)
	if !found {
		return nil
	}
	line, names := s.Exprs[0].Line(), []string{"(generator)", "(state)", "(control)"}
	before := local(line, names, s.Exprs...)
	s.Exprs = nil
	for _, name := range names {
		s.Exprs = append(s.Exprs, ident(name, line))
	}
	return before
}

// beginsWithCall reports whether a call is what an expression begins with.
func beginsWithCall(e ast.Expr) bool {
	for {
		switch x := e.(type) {
		case *ast.FuncCallExpr:
			return true
		case *ast.AttrGetExpr:
			e = x.Object
		default:
			return false
		}
	}
}

// threeValues has a loop begin with its function, state and first control value. gopher-lua goes by how many variables the loop has, and leaves the
// rest with what their registers held. Values that are missing are written out, which costs no round anything; only where an expression may have many
// of them the loop gets more variables.
func threeValues(s *ast.GenericForStmt) {
	last := s.Exprs[len(s.Exprs)-1]
	if !hasMany(last) {
		for len(s.Exprs) < 3 {
			s.Exprs = append(s.Exprs, &ast.NilExpr{})
		}
		return
	}
	if len(s.Exprs) == 1 {
		return
	}
	for len(s.Names) < 3 {
		s.Names = append(s.Names, unusedName)
	}
}

// iteratesArguments reports whether e is pairs or ipairs of KEYS or ARGV, which
// hands out the table to the loop alone.
func iteratesArguments(e ast.Expr) bool {
	call, ok := e.(*ast.FuncCallExpr)
	if !ok || len(call.Args) != 1 || !isArguments(call.Args[0]) {
		return false
	}
	f, ok := call.Func.(*ast.StringExpr)
	return ok && (f.Value == constantMark+"ipairs" || f.Value == constantMark+"pairs")
}

func isArguments(e ast.Expr) bool {
	name, ok := e.(*ast.IdentExpr)
	return ok && (name.Value == keysName || name.Value == argvName)
}

func (r *rewriter) functionDefinition(s *ast.FuncDefStmt) {
	if s.Name.Method != "" {
		r.target(s.Name.Receiver)
		r.function(s.Func, "self")
		return
	}
	r.target(s.Name.Func)
	r.function(s.Func)
}

// target rewrites what is assigned to. Its outermost object stays a variable,
// since gopher-lua expects one there.
func (r *rewriter) target(e ast.Expr) {
	switch e := e.(type) {
	case *ast.IdentExpr:
		if (e.Value == "KEYS" || e.Value == "ARGV" || e.Value == "_G") && !r.isLocal(e.Value) {
			r.keeps, r.usesGlobals = true, true
		}
	case *ast.AttrGetExpr:
		if get, ok := e.Object.(*ast.AttrGetExpr); ok {
			if _, free := get.Object.(*ast.IdentExpr); free {
				r.target(get)
			} else {
				e.Object = r.expr(get)
			}
		} else if _, ok := e.Object.(*ast.IdentExpr); ok {
			r.target(e.Object)
		} else {
			e.Object = r.expr(e.Object)
		}
		e.Key = r.store(e.Key)
	}
}

// function rewrites a function with parameters that it does not name before those that it does.
func (r *rewriter) function(fn *ast.FunctionExpr, params ...string) {
	params = append(params, fn.ParList.Names...)
	if fn.ParList.HasVargs {
		params = append(params, "arg")
	}
	outer, long := r.outer, r.long
	r.outer, r.long = len(r.locals), 0
	r.depth++
	fn.Stmts = r.counted(fn.Stmts, fn.Line(), 0, params...)
	if fn.ParList.HasVargs {
		fn.Stmts = append(r.takeSteps(fn.Line(), invoke("(many)", fn.Line())), fn.Stmts...)
	}
	r.depth--
	r.outer, r.long = outer, long
}

// isConstant reports whether a name stands for a value of the engine here.
func (r *rewriter) isConstant(name string) bool {
	return r.constants[name] && (!r.loads || r.depth > 0)
}
