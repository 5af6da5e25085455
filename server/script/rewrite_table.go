package script

import (
	"strconv"

	"github.com/yuin/gopher-lua/ast"
)

const (
	// itemsMax is how many fields without a key a table constructor has at most:
	// gopher-lua's machine would leave out those beyond 25,550 without a word.
	itemsMax = 25_000
	// itemsAtOnce is how many of them the machine stores at a time (gopher-lua's
	// FieldsPerFlush).
	itemsAtOnce = 50
	// partsMax is how many parts one call of join takes.
	partsMax = 40
)

// table rewrites a constructor. What it cannot hold is held by others, its parts,
// and it takes that over from them: items beyond itemsMax, and what follows when
// all of its items have just been stored. gopher-lua stores them again behind a
// field with a key, when their registers hold something else, and what a call
// returns at the end in the place of those. Nor is a value with a key such an end.
// A key that is a variable which the value might change is read after the value, as
// in Lua, but for the fields of parts.
func (r *rewriter) table(e *ast.TableExpr) ast.Expr {
	first := &ast.TableExpr{Fields: e.Fields[:0]}
	first.SetLine(e.Line())
	part, parts, starts := first, []ast.Expr(nil), []int(nil)
	items, start := 0, 0
	for i, field := range e.Fields {
		late := field.Key != nil && r.mayChange(field.Key) && mayRun(field.Value)
		field.Value = r.expr(field.Value)
		last := i == len(e.Fields)-1
		if !last || field.Key != nil {
			cutToOne(field.Value)
		}
		if last && field.Key == nil && isVarargs(field.Value) {
			field.Value = countedVarargs(field.Value)
		}
		stored := items > 0 && items%itemsAtOnce == 0
		if stored && (field.Key != nil || last && hasMany(field.Value)) || items == itemsMax {
			part = &ast.TableExpr{}
			part.SetLine(e.Line())
			start, items = start+items, 0
			parts, starts = append(parts, part), append(starts, start)
		}
		switch {
		case field.Key == nil:
			items++
		case part == first && late:
			field.Value = invoke("(value before key)", e.Line(), field.Value, field.Key)
		case part == first:
			field.Key = r.fieldKey(field.Key, "(key)")
		default:
			field.Key = r.fieldKey(field.Key, "(key of part)")
			field.Value = invoke("(field of part)", e.Line(), field.Value)
		}
		part.Fields = append(part.Fields, field)
	}
	whole := ast.Expr(first)
	for len(parts) > 0 {
		n := min(len(parts), partsMax)
		args := []ast.Expr{whole}
		for i, part := range parts[:n] {
			args = append(args, number(strconv.Itoa(starts[i]), e.Line()), part)
		}
		whole = invoke("(join)", e.Line(), args...)
		parts, starts = parts[n:], starts[n:]
	}
	return whole
}

// hasMany reports whether an expression may have many values.
func hasMany(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.FuncCallExpr:
		return !e.AdjustRet
	case *ast.Comma3Expr:
		return !e.AdjustRet
	}
	return false
}

// fieldKey rewrites the key in a table constructor by a function of ours. Numbers
// are counted, since a large one costs memory that nothing else in an expression
// would account for.
func (r *rewriter) fieldKey(e ast.Expr, by string) ast.Expr {
	if s, ok := e.(*ast.StringExpr); ok {
		return unmarked(s)
	}
	return invoke(by, e.Line(), r.key(e))
}
