package script

import "github.com/yuin/gopher-lua/ast"

// doneName is the hidden variable that says that a branch of a long chain has been taken.
const doneName = "(done)"

// elseifsAtOnce is how many conditions of a chain gopher-lua gets within each other: to it an elseif is a block within the last one, and to find a name
// it goes along all blocks around that.
const elseifsAtOnce = 50

// divide has a chain of many elseifs come in parts, one after the other, which are passed over when a branch has been taken:
//
//	local done
//	if a then done = true ... elseif b then done = true ... end
//	if not done then if c then done = true ... else ... end end
func divide(s *ast.IfStmt) ast.Stmt {
	if !isLonger(s, elseifsAtOnce) {
		return s
	}
	line := s.Line()
	parts := []ast.Stmt{local(line, []string{doneName}, &ast.NilExpr{})}
	for rest := s; rest != nil; {
		part := rest
		rest = cutOff(part, elseifsAtOnce)
		if len(parts) == 1 {
			parts = append(parts, part)
			continue
		}
		none := &ast.UnaryNotOpExpr{Expr: ident(doneName, part.Line())}
		none.SetLine(part.Line())
		parts = append(parts, test(part.Line(), none, part))
	}
	return do(line, parts...)
}

// isLonger reports whether a chain has more than so many conditions.
func isLonger(s *ast.IfStmt, conditions int) bool {
	for n := 0; s != nil; s = elseif(s) {
		if n++; n > conditions {
			return true
		}
	}
	return false
}

// elseif returns the next condition of a chain, nil behind the last.
func elseif(s *ast.IfStmt) *ast.IfStmt {
	if len(s.Else) == 1 {
		if next, ok := s.Else[0].(*ast.IfStmt); ok {
			return next
		}
	}
	return nil
}

// cutOff cuts a chain off behind so many conditions, whose branches say that they have been taken, and returns the rest.
func cutOff(s *ast.IfStmt, conditions int) (rest *ast.IfStmt) {
	for n := 1; ; n++ {
		taken := &ast.TrueExpr{}
		taken.SetLine(s.Line())
		s.Then = append([]ast.Stmt{assign(s.Line(), doneName, taken)}, s.Then...)
		next := elseif(s)
		if next == nil {
			return nil
		}
		if n == conditions {
			s.Else = nil
			return next
		}
		s = next
	}
}
