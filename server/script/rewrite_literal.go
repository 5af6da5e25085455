package script

import (
	"strconv"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"

	"headgate/server/script/limits"
	"headgate/server/script/lualib/luacall"
	"headgate/server/script/syntax"
)

// A table of many literals is not compiled: gopher-lua looks for each constant
// among all of a function's before it, and a jump over many instructions is too
// far. Its fields are written down in pairs, as the constants of a function that
// is never called, and a function of ours makes a table of them each time.
// Pairs come in the order in which the machine stores them. A field without a key
// has nil for one. Where the value is tableBegins, that table's pairs follow, up
// to one whose key is tableEnds.
var tableBegins, tableEnds lua.LValue = &lua.LUserData{}, &lua.LUserData{}

// tableMark starts the names of constants that stand for such functions.
const tableMark = "(table "

// literalTable writes a table down and returns the call that makes it.
func (r *rewriter) literalTable(e *syntax.LiteralTable) ast.Expr {
	pairs := &lua.FunctionProto{Constants: appendPairs(make([]lua.LValue, 0, 2*e.Size), e.Fields)}
	r.literals = append(r.literals, pairs)
	return invoke("(literal)", e.Line(), constant(tableMark+strconv.Itoa(len(r.literals)-1), e.Line()))
}

func appendPairs(pairs []lua.LValue, fields []*ast.Field) []lua.LValue {
	var items [itemsAtOnce]ast.Expr
	n := 0
	for i, field := range fields {
		if field.Key != nil {
			pairs = appendLiteral(append(pairs, literalOf(field.Key)), field.Value)
		} else {
			items[n] = field.Value
			n++
		}
		if n == len(items) || i == len(fields)-1 {
			for _, item := range items[:n] {
				pairs = appendLiteral(append(pairs, lua.LNil), item)
			}
			n = 0
		}
	}
	return pairs
}

func appendLiteral(pairs []lua.LValue, e ast.Expr) []lua.LValue {
	var fields []*ast.Field
	switch e := e.(type) {
	case *ast.TableExpr:
		fields = e.Fields
	case *syntax.LiteralTable:
		fields = e.Fields
	default:
		return append(pairs, literalOf(e))
	}
	return append(appendPairs(append(pairs, tableBegins), fields), tableEnds, tableEnds)
}

// literalOf returns the value of a literal that is no table.
func literalOf(e ast.Expr) lua.LValue {
	switch e := e.(type) {
	case *ast.StringExpr:
		return luacall.StringValue(e.Value)
	case *ast.NumberExpr:
		return literalNumber(constantNumber(e))
	case *ast.UnaryMinusOpExpr:
		return literalNumber(-constantNumber(e.Expr))
	case *ast.TrueExpr:
		return lua.LTrue
	case *ast.FalseExpr:
		return lua.LFalse
	}
	return lua.LNil
}

func literalNumber(f float64) lua.LValue {
	if i := int(f); i > 0 && float64(i) == f {
		return luacall.IntValue(i)
	}
	return lua.LNumber(f)
}

// literal makes a table of what literalTable has written down.
func (s *sandbox) literal(L *lua.LState) int {
	pairs := L.Get(1).(*lua.LFunction).Proto.Constants
	items, keys := sizeOf(pairs)
	t := L.CreateTable(min(items, limits.ArrayMax), keys)
	L.Push(t) // where it counts meanwhile
	s.fillLiteral(L, t, pairs)
	return 1
}

// sizeOf is how many items, and values with keys, the pairs of a table have, without those of tables within it.
func sizeOf(pairs []lua.LValue) (items, keys int) {
	depth := 0
	for i := 0; i < len(pairs); i += 2 {
		switch key := pairs[i]; {
		case key == tableEnds:
			depth--
			continue
		case depth > 0:
		case key == lua.LNil:
			items++
		default:
			keys++
		}
		if pairs[i+1] == tableBegins {
			depth++
		}
	}
	return items, keys
}

// innerTableSteps is what a table within another counts.
const innerTableSteps = 32

// fillLiteral puts pairs into a table, up to its end, and returns those behind it.
func (s *sandbox) fillLiteral(L *lua.LState, t *lua.LTable, pairs []lua.LValue) []lua.LValue {
	b := s.engine.budget
	items, reach := 0, 0
	for len(pairs) > 0 {
		key, v := pairs[0], pairs[1]
		pairs = pairs[2:]
		if key == tableEnds {
			break
		}
		b.Spend(1)
		var inner *lua.LTable
		if v == tableBegins {
			b.Spend(innerTableSteps)
			inner = L.CreateTable(0, 1) // See makeSmall.
			v = inner
		}
		if key == lua.LNil {
			items++
			reach = max(reach, items)
			t.RawSetInt(items, v)
		} else {
			if n, ok := key.(lua.LNumber); ok && n < limits.ArrayMax && int(n) > reach {
				b.SpendRoomFor(int(n) - reach)
				reach = int(n)
			}
			t.RawSet(key, v)
		}
		if inner != nil {
			pairs = s.fillLiteral(L, inner, pairs)
		}
	}
	return pairs
}
