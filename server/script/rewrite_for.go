package script

import (
	"math"
	"strconv"

	"github.com/yuin/gopher-lua/ast"
)

// Hidden variables of a loop whose rounds are counted in blocks.
const (
	fromName = "(from)" // the block's first number
	toName   = "(to)"   // the loop's limit
	endName  = "(end)"  // the block's limit
)

const (
	// A loop that begins below beginMax and takes steps below stepMax counts in
	// whole numbers without errors for a day or longer.
	beginMax, stepMax = 1 << 31, 1 << 10
	// blockMin is how many rounds a block must have to be worth what it costs.
	blockMin = 4
)

// numberFor rewrites a loop over numbers. One that is known to count upwards in
// whole numbers counts the steps of many rounds at once, since that costs each
// as much as a small body does.
func (r *rewriter) numberFor(s *ast.NumberForStmt) ast.Stmt {
	rounds := stepsPerTick / r.weight(s.Stmts[:min(len(s.Stmts), uncounted)])
	if !r.noBlocks && rounds >= blockMin && isWhole(s.Init, 0, beginMax) && (s.Step == nil || isWhole(s.Step, 1, stepMax)) {
		return r.inBlocks(s, rounds)
	}
	first := r.bounds(s)
	r.loop(func() { s.Stmts = r.counted(s.Stmts, s.Line(), 0, s.Name) })
	if first != nil {
		return do(s.Line(), append(first, s)...)
	}
	return s
}

// bounds has a loop check what it counts with. None is checked before all are there: where functions may run while one is evaluated that follows another,
// they are put into hidden variables first, by the statements that it then returns.
func (r *rewriter) bounds(s *ast.NumberForStmt) (first []ast.Stmt) {
	bounds, called := []*ast.Expr{&s.Init, &s.Limit, &s.Step}, []string{"initial value", "limit", "step"}
	if s.Step == nil {
		bounds = bounds[:2]
	}
	checked, late := false, false
	for _, e := range bounds {
		late = late || checked && mayRun(*e)
		_, literal := (*e).(*ast.NumberExpr)
		checked = checked || !literal
	}
	for i, e := range bounds {
		checked := r.forNumber(*e, called[i])
		if call, ok := checked.(*ast.FuncCallExpr); ok && late && !r.noBlocks {
			adjust(call.Args[0], false) // see the assignment of one value
			first = append(first, local(call.Line(), []string{"(" + called[i] + ")"}, call.Args[0]))
			call.Args[0] = ident("("+called[i]+")", call.Line())
		}
		*e = checked
	}
	return first
}

// isWhole reports whether e is a whole number, at least least and below end.
func isWhole(e ast.Expr, least, end float64) bool {
	n := constantNumber(e)
	return n == math.Trunc(n) && least <= n && n < end
}

// inBlocks has a loop run in blocks of so many rounds, each of which is a tick. What
// is less counts by its rounds:
//
//	local from, to = init, limit
//	if from <= to then
//	  while true do
//	    local end = from + (rounds-1) * step
//	    if end < to then tick() else count (to-from) / step + 1 rounds; end = to end
//	    for name = from, end, step do body end
//	    if to <= end then break end
//	    from = end + step
//	  end
//	end
func (r *rewriter) inBlocks(s *ast.NumberForStmt, rounds int) ast.Stmt {
	r.counts, r.blocks = true, true
	line, each, step := s.Line(), float64(r.weight(s.Stmts[:min(len(s.Stmts), uncounted)])), 1.0
	if s.Step != nil {
		step = constantNumber(s.Step)
	}
	from, to, end := ident(fromName, line), ident(toName, line), ident(endName, line)
	bounds := local(line, []string{fromName, toName}, s.Init, r.forNumber(s.Limit, "limit"))

	visible := len(r.locals)
	r.declare(s.Name)
	s.Init, s.Limit = from, end
	r.loop(func() { s.Stmts = append(leaveClosed(s.Stmts, line), leaving(r.block(s.Stmts))...) })
	r.leave(visible)

	steps := operation(line, to, "-", from)
	if each != step {
		steps = operation(line, steps, "*", numeral(each/step, line))
	}
	size := test(line, comparison(line, end, "<", to), tickNow(line))
	size.Else = append(r.takeSteps(line, operation(line, steps, "+", numeral(each, line))), assign(line, endName, to))
	blocks := &ast.WhileStmt{Condition: &ast.TrueExpr{}, Stmts: []ast.Stmt{
		local(line, []string{endName}, operation(line, from, "+", numeral(float64(rounds-1)*step, line))),
		size,
		s,
		test(line, comparison(line, to, "<=", end), &ast.BreakStmt{}),
		assign(line, fromName, operation(line, end, "+", numeral(step, line))),
	}}
	blocks.SetLine(line)
	return do(line, bounds, test(line, comparison(line, from, "<=", to), blocks))
}

// leaving has the break statements of a loop's body leave all of its blocks.
func leaving(stmts []ast.Stmt) []ast.Stmt {
	for i, stmt := range stmts {
		switch s := stmt.(type) {
		case *ast.BreakStmt:
			stmts[i] = do(s.Line(), assign(s.Line(), toName, ident(endName, s.Line())), s)
		case *ast.DoBlockStmt:
			s.Stmts = leaving(s.Stmts)
		case *ast.IfStmt:
			s.Then, s.Else = leaving(s.Then), leaving(s.Else)
		}
	}
	return stmts
}

// tickNow is tick(), without what it returns.
func tickNow(line int) ast.Stmt {
	s := &ast.FuncCallStmt{Expr: invoke("(tick)", line)}
	s.SetLine(line)
	return s
}

func numeral(n float64, line int) *ast.NumberExpr {
	return number(strconv.FormatFloat(n, 'g', -1, 64), line)
}
