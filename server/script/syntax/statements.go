package syntax

import "github.com/yuin/gopher-lua/ast"

// statement parses one statement; last says that the block ends with it.
func (p *parser) statement() (stmt ast.Stmt, last bool) {
	line := p.tok.line
	p.node()
	switch p.tok.kind {
	case "if", "while", "for", "repeat":
		p.branch()
	}
	switch p.tok.kind {
	case "if":
		stmt = p.ifStatement(line)
	case "while":
		p.advance()
		s := &ast.WhileStmt{Condition: p.expression()}
		p.expect("do")
		s.Stmts = p.loop()
		p.expectClosing("end", "while", line)
		stmt = s
	case "do":
		p.advance()
		s := &ast.DoBlockStmt{Stmts: p.block()}
		p.expectClosing("end", "do", line)
		stmt = s
	case "for":
		stmt = p.forStatement(line)
	case "repeat":
		stmt = p.repeatStatement(line)
	case "function":
		stmt = p.functionStatement(line)
	case "local":
		p.advance()
		if p.accept("function") {
			stmt = p.localFunction()
		} else {
			stmt = p.localStatement()
		}
	case "return":
		p.advance()
		s := &ast.ReturnStmt{}
		if !p.blockEnds() && p.tok.kind != ";" {
			s.Exprs = p.expressions()
		}
		stmt, last = s, true
	case "break":
		p.advance()
		if p.fn.loops == 0 {
			p.fail("no loop to break")
		}
		stmt, last = &ast.BreakStmt{}, true
	default:
		stmt = p.expressionStatement()
	}
	if stmt.Line() == 0 {
		stmt.SetLine(line)
	}
	stmt.SetLastLine(p.last)
	return stmt, last
}

func (p *parser) ifStatement(line int) *ast.IfStmt {
	p.advance()
	first := &ast.IfStmt{Condition: p.expression()}
	p.expect("then")
	first.Then = p.block()
	current := first
	for links := 0; p.tok.kind == "elseif"; p.link(&links, ElseifsMax) {
		p.branch()
		next := &ast.IfStmt{}
		next.SetLine(p.tok.line)
		p.advance()
		next.Condition = p.expression()
		p.expect("then")
		next.Then = p.block()
		current.Else = []ast.Stmt{next}
		current = next
	}
	if p.accept("else") {
		current.Else = p.block()
	}
	p.expectClosing("end", "if", line)
	return first
}

func (p *parser) forStatement(line int) ast.Stmt {
	p.advance()
	name := p.name()
	switch p.tok.kind {
	case "=":
		p.advance()
		s := &ast.NumberForStmt{Name: name, Init: p.expression()}
		p.expect(",")
		s.Limit = p.expression()
		if p.accept(",") {
			s.Step = p.expression()
		}
		p.expect("do")
		s.Stmts = p.loop("(for index)", "(for limit)", "(for step)", name)
		p.expectClosing("end", "for", line)
		return s
	case ",", "in":
		s := &ast.GenericForStmt{Names: []string{name}}
		for p.accept(",") {
			s.Names = append(s.Names, p.name())
		}
		p.expect("in")
		s.SetLine(p.tok.line) // As in C: what it asks for values is called where it is written.
		s.Exprs = p.expressions()
		p.expect("do")
		s.Stmts = p.loop(append([]string{"(for generator)", "(for state)", "(for control)"}, s.Names...)...)
		p.expectClosing("end", "for", line)
		return s
	}
	p.fail("'=' or 'in' expected")
	return nil
}

func (p *parser) repeatStatement(line int) *ast.RepeatStmt {
	p.advance()
	visible := len(p.fn.locals)
	p.fn.loops++
	s := &ast.RepeatStmt{Stmts: p.statements()}
	p.fn.loops--
	p.expectClosing("until", "repeat", line)
	s.Condition = p.expression()
	p.undeclare(visible)
	return s
}

func (p *parser) functionStatement(line int) *ast.FuncDefStmt {
	p.advance()
	at := p.tok.line
	name := p.name()
	p.use(name)
	ident := &ast.IdentExpr{Value: name}
	ident.SetLine(at)
	s := &ast.FuncDefStmt{Name: &ast.FuncName{Func: ident}}
	for p.accept(".") {
		s.Name.Func = p.field(s.Name.Func)
	}
	if p.accept(":") {
		s.Name = &ast.FuncName{Receiver: s.Name.Func, Method: p.name()}
	}
	s.Func = p.functionBody(line, s.Name.Method != "")
	return s
}

func (p *parser) localFunction() *ast.LocalAssignStmt {
	line := p.tok.line
	name := p.name()
	p.declare(name)
	return &ast.LocalAssignStmt{Names: []string{name}, Exprs: []ast.Expr{p.functionBody(line, false)}}
}

func (p *parser) localStatement() *ast.LocalAssignStmt {
	s := &ast.LocalAssignStmt{Names: []string{p.name()}, Exprs: []ast.Expr{}}
	for p.accept(",") {
		s.Names = append(s.Names, p.name())
	}
	if p.accept("=") {
		s.Exprs = p.expressions()
	}
	for _, name := range s.Names {
		p.declare(name)
	}
	if len(s.Names) == 1 && len(s.Exprs) == 1 {
		if _, ok := s.Exprs[0].(*ast.FunctionExpr); ok {
			// gopher-lua takes a lone function for `local function`, whose name is
			// known inside. A second name makes it a plain assignment.
			s.Names = append(s.Names, unusedName)
		}
	}
	return s
}

// unusedName is a variable that scripts cannot name.
const unusedName = "(unused)"

// expressionStatement parses a call or an assignment.
func (p *parser) expressionStatement() ast.Stmt {
	first, form := p.suffixed()
	if form == call {
		return &ast.FuncCallStmt{Expr: first}
	}
	s := &ast.AssignStmt{Lhs: []ast.Expr{p.assignable(first, form)}}
	for p.accept(",") {
		s.Lhs = append(s.Lhs, p.assignable(p.suffixed()))
	}
	p.expect("=")
	s.Rhs = p.expressions()
	for _, lhs := range s.Lhs {
		if get, ok := lhs.(*ast.AttrGetExpr); ok {
			get.SetLine(p.last) // As in C: a field is assigned where the values end.
		}
	}
	return s
}

// assignable gives up unless e may stand left of an equals sign.
func (p *parser) assignable(e ast.Expr, form form) ast.Expr {
	if form != variable {
		p.fail("syntax error")
	}
	return e
}
