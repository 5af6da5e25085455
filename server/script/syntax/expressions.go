package syntax

import "github.com/yuin/gopher-lua/ast"

// priority is how strongly a binary operator binds to its left and right side.
var priority = map[kind]struct{ left, right int }{
	"+": {6, 6}, "-": {6, 6}, "*": {7, 7}, "/": {7, 7}, "%": {7, 7},
	"^": {10, 9}, "..": {5, 4},
	"==": {3, 3}, "~=": {3, 3}, "<": {3, 3}, "<=": {3, 3}, ">": {3, 3}, ">=": {3, 3},
	"and": {2, 2}, "or": {1, 1},
}

const (
	unaryPriority = 8
	// comparisonPriority and those below it are of operators that jump.
	comparisonPriority = 3
)

func (p *parser) expressions() []ast.Expr {
	list := []ast.Expr{p.expression()}
	for p.accept(",") {
		list = append(list, p.expression())
	}
	return list
}

func (p *parser) expression() ast.Expr { return p.binary(0) }

// binary parses operands joined by operators that bind more strongly than limit.
func (p *parser) binary(limit int) ast.Expr {
	p.enter()
	p.node()
	defer p.leave()
	var left ast.Expr
	if op := p.tok.kind; op == "not" || op == "-" || op == "#" {
		p.advance()
		left = unary(op, p.binary(unaryPriority))
		left.SetLine(p.last)
	} else {
		left = p.simple()
	}
	for links := 0; ; p.link(&links, chainMax) {
		op := p.tok.kind
		binds, ok := priority[op]
		if !ok || binds.left <= limit {
			return left
		}
		if binds.left <= comparisonPriority {
			p.branch()
		}
		p.advance()
		left = join(op, left, p.binary(binds.right))
		left.SetLine(p.last) // As in C: where the right operand ends.
	}
}

func unary(op kind, operand ast.Expr) ast.Expr {
	switch op {
	case "not":
		return &ast.UnaryNotOpExpr{Expr: operand}
	case "-":
		return &ast.UnaryMinusOpExpr{Expr: operand}
	}
	return &ast.UnaryLenOpExpr{Expr: operand}
}

func join(op kind, left, right ast.Expr) ast.Expr {
	switch op {
	case "and", "or":
		return &ast.LogicalOpExpr{Operator: string(op), Lhs: left, Rhs: right}
	case "==", "~=", "<", "<=", ">", ">=":
		return &ast.RelationalOpExpr{Operator: string(op), Lhs: left, Rhs: right}
	case "..":
		return &ast.StringConcatOpExpr{Lhs: left, Rhs: right}
	}
	return &ast.ArithmeticOpExpr{Operator: string(op), Lhs: left, Rhs: right}
}

// simple parses an operand without operators around it.
func (p *parser) simple() ast.Expr {
	var e ast.Expr
	line := p.tok.line
	switch p.tok.kind {
	case tokenNumber:
		p.constant(p.tok.value)
		e = &ast.NumberExpr{Value: p.tok.value}
	case tokenString:
		p.constant(p.tok.value)
		e = &ast.StringExpr{Value: p.tok.value}
	case "nil":
		e = &ast.NilExpr{}
	case "true":
		e = &ast.TrueExpr{}
	case "false":
		e = &ast.FalseExpr{}
	case "...":
		if !p.fn.vararg {
			p.fail("cannot use '...' outside a vararg function")
		}
		e = &ast.Comma3Expr{}
	case "{":
		return p.table()
	case "function":
		p.advance()
		return p.functionBody(line, false)
	default:
		e, _ = p.suffixed()
		return e
	}
	e.SetLine(line)
	p.advance()
	return e
}

// primary parses a name or an expression in parentheses.
func (p *parser) primary() (e ast.Expr, form form) {
	line := p.tok.line
	switch p.tok.kind {
	case tokenName:
		e := &ast.IdentExpr{Value: p.tok.value}
		e.SetLine(line)
		p.use(p.tok.value)
		p.constant(p.tok.value)
		p.advance()
		return e, variable
	case "(":
		p.advance()
		inner := p.expression()
		p.expectClosing(")", "(", line)
		return single(inner), value
	}
	p.fail("unexpected symbol")
	return nil, value
}

// single cuts what may be many values to one, as parentheses do.
func single(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.Comma3Expr:
		e.AdjustRet = true
	case *ast.FuncCallExpr:
		e.AdjustRet = true
	}
	return e
}

// form says what may be done with a suffixed expression.
type form int

const (
	value    form = iota // nothing but use it
	variable             // assign to it
	call                 // let it stand as a statement
)

// suffixed parses a primary expression and the fields, indices and calls that
// follow it.
func (p *parser) suffixed() (e ast.Expr, form form) {
	e, form = p.primary()
	for links := 0; ; p.link(&links, chainMax) {
		switch p.tok.kind {
		case ".":
			p.advance()
			e, form = p.field(e), variable
		case "[":
			p.advance()
			key := p.expression()
			p.expect("]")
			get := &ast.AttrGetExpr{Object: e, Key: key}
			get.SetLine(p.last)
			e, form = get, variable
		case ":":
			p.advance()
			method := p.name()
			e, form = p.arguments(&ast.FuncCallExpr{Receiver: e, Method: method}), call
		case "(", "{", tokenString:
			e, form = p.arguments(&ast.FuncCallExpr{Func: e}), call
		default:
			return e, form
		}
	}
}

// field parses the name behind a point.
func (p *parser) field(object ast.Expr) ast.Expr {
	line := p.tok.line
	key := &ast.StringExpr{Value: p.name()}
	key.SetLine(line)
	get := &ast.AttrGetExpr{Object: object, Key: key}
	get.SetLine(line)
	return get
}

// arguments parses those of a call.
func (p *parser) arguments(call *ast.FuncCallExpr) *ast.FuncCallExpr {
	call.Args = []ast.Expr{}
	call.SetLine(p.tok.line)
	switch p.tok.kind {
	case "(":
		if p.tok.line != p.last {
			p.fail("ambiguous syntax (function call x new statement)")
		}
		at := p.tok.line
		p.advance()
		if p.tok.kind != ")" {
			call.Args = p.expressions()
		}
		p.expectClosing(")", "(", at)
	case "{":
		call.Args = append(call.Args, p.table())
	case tokenString:
		s := &ast.StringExpr{Value: p.tok.value}
		s.SetLine(p.tok.line)
		call.Args = append(call.Args, s)
		p.advance()
	default:
		p.fail("function arguments expected")
	}
	call.SetLastLine(p.last)
	return call
}

func (p *parser) table() ast.Expr {
	line := p.tok.line
	p.advance()
	t := &ast.TableExpr{Fields: []*ast.Field{}}
	t.SetLine(line)
	noted := p.openTable()
	for p.tok.kind != "}" {
		t.Fields = append(t.Fields, p.tableField())
		if !p.accept(",") && !p.accept(";") {
			break
		}
	}
	p.expectClosing("}", "{", line)
	return p.closeTable(t, noted)
}

func (p *parser) tableField() *ast.Field {
	line := p.tok.line
	switch {
	case p.tok.kind == tokenName && p.peek() == "=":
		key := &ast.StringExpr{Value: p.name()}
		key.SetLine(line)
		p.advance()
		return &ast.Field{Key: key, Value: p.expression()}
	case p.tok.kind == "[":
		p.advance()
		key := p.expression()
		p.expect("]")
		p.expect("=")
		return &ast.Field{Key: key, Value: p.expression()}
	}
	return &ast.Field{Value: p.expression()}
}

// functionBody parses parameters and statements of a function that starts at
// line.
func (p *parser) functionBody(line int, method bool) *ast.FunctionExpr {
	if p.functions++; p.functions > FunctionsMax {
		p.lx.fail(line, "chunk has too many functions", "")
	}
	fn := &ast.FunctionExpr{ParList: &ast.ParList{Names: []string{}}}
	fn.SetLine(line)
	p.fn = &function{outer: p.fn, depth: p.fn.depth + 1, line: line}
	p.expect("(")
	if method {
		p.declare("self")
	}
	if p.tok.kind != ")" {
		p.parameters(fn.ParList)
	}
	p.expect(")")
	fn.Stmts = p.block()
	fn.SetLastLine(p.tok.line)
	p.expectClosing("end", "function", line)
	p.undeclare(0)
	p.fn = p.fn.outer
	return fn
}

func (p *parser) parameters(list *ast.ParList) {
	for {
		switch p.tok.kind {
		case tokenName:
			list.Names = append(list.Names, p.tok.value)
			p.declare(p.tok.value)
		case "...":
			list.HasVargs = true
			p.fn.vararg = true
		default:
			p.fail("<name> or '...' expected")
		}
		p.advance()
		if list.HasVargs || !p.accept(",") {
			return
		}
	}
}
