package syntax

import (
	"math"

	"github.com/yuin/gopher-lua/ast"
)

// LiteralTable is a table constructor of many fields that are all literals:
// strings, numbers, booleans, nil, and tables of those. gopher-lua does not know
// it. Its constants are none of the function's.
type LiteralTable struct {
	ast.ExprBase
	Fields []*ast.Field
	// Size is how many literals there are, and twice how many tables within it.
	Size int
}

// LiteralMin is from how many literals on a constructor is a LiteralTable.
const LiteralMin = 256

// openTable puts off counting constants until it is known what the table is. It
// returns what closeTable takes.
func (p *parser) openTable() (noted int) {
	p.fn.tables++
	return len(p.fn.noted)
}

// closeTable returns what a constructor is.
func (p *parser) closeTable(t *ast.TableExpr, noted int) ast.Expr {
	p.fn.tables--
	if size := literals(t.Fields, math.MaxInt); size >= LiteralMin {
		p.fn.noted = p.fn.noted[:noted]
		literal := &LiteralTable{Fields: t.Fields, Size: size - tableSize}
		literal.SetLine(t.Line())
		return literal
	}
	if p.fn.tables == 0 {
		for _, text := range p.fn.noted {
			p.constant(text)
		}
		p.fn.noted = p.fn.noted[:0]
	}
	return t
}

// tableSize is how many literals a table counts as itself.
const tableSize = 2

// literals returns how many literals the table of these fields is. It is 0 when
// something else is among them, or when there would be as many as most.
func literals(fields []*ast.Field, most int) int {
	n := tableSize
	for _, field := range fields {
		of := 0
		if field.Key == nil || isLiteralKey(field.Key) {
			of = literal(field.Value)
		}
		if n += of; of == 0 || n >= most {
			return 0
		}
	}
	return n
}

func literal(e ast.Expr) int {
	switch e := e.(type) {
	case *ast.StringExpr, *ast.NumberExpr, *ast.TrueExpr, *ast.FalseExpr, *ast.NilExpr:
		return 1
	case *ast.UnaryMinusOpExpr:
		if isNegative(e) {
			return 1
		}
	case *LiteralTable:
		return e.Size + tableSize
	case *ast.TableExpr:
		return literals(e.Fields, LiteralMin) // Otherwise it would be a LiteralTable.
	}
	return 0
}

func isLiteralKey(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.StringExpr, *ast.NumberExpr, *ast.TrueExpr, *ast.FalseExpr:
		return true
	case *ast.UnaryMinusOpExpr:
		return isNegative(e)
	}
	return false
}

// isNegative reports whether e is a number behind a minus, and not -0, which
// shares a place with 0 elsewhere.
func isNegative(e *ast.UnaryMinusOpExpr) bool {
	n, ok := e.Expr.(*ast.NumberExpr)
	return ok && n.Value != "0"
}
