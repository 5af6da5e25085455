package script

import (
	"math"
	"strconv"
	"strings"

	"github.com/yuin/gopher-lua/ast"

	"headgate/server/script/lualib/luanum"
	"headgate/server/script/lualib/mathlib"
	"headgate/server/script/syntax"
)

func (r *rewriter) list(exprs []ast.Expr) {
	for i, e := range exprs {
		exprs[i] = r.expr(e)
	}
}

// expr rewrites an expression and returns what takes its place.
func (r *rewriter) expr(expr ast.Expr) ast.Expr {
	switch e := expr.(type) {
	case *ast.IdentExpr:
		return r.name(e)
	case *ast.StringExpr:
		return unmarked(e)
	case *ast.AttrGetExpr:
		return r.index(e)
	case *ast.TableExpr:
		return r.table(e)
	case *syntax.LiteralTable:
		return r.literalTable(e)
	case *ast.FuncCallExpr:
		return r.call(e)
	case *ast.LogicalOpExpr:
		e.Lhs, e.Rhs = r.expr(e.Lhs), r.expr(e.Rhs)
		if decidesNothing(e) {
			cutToOne(e.Rhs)
			return e.Rhs
		}
	case *ast.RelationalOpExpr:
		return r.relational(e)
	case *ast.ArithmeticOpExpr:
		return r.arithmetic(e)
	case *ast.StringConcatOpExpr:
		return r.concat(e)
	case *ast.UnaryMinusOpExpr:
		e.Expr = r.foldLess(r.expr(e.Expr))
		r.folds(e, e.Expr)
	case *ast.UnaryNotOpExpr:
		e.Expr = r.expr(e.Expr)
	case *ast.UnaryLenOpExpr:
		return r.length(e)
	case *ast.FunctionExpr:
		r.function(e)
	}
	return expr
}

// decidesNothing reports whether an `and` or `or` has a constant on the left, after which it is what is on the right. C Lua leaves such a constant out, so
// that a variable on the right is read like one that stands alone.
func decidesNothing(e *ast.LogicalOpExpr) bool {
	switch lhs := e.Lhs.(type) {
	case *ast.StringExpr:
		return e.Operator == "and" && !strings.HasPrefix(lhs.Value, constantMark)
	case *ast.NumberExpr, *ast.TrueExpr:
		return e.Operator == "and"
	case *ast.NilExpr, *ast.FalseExpr:
		return e.Operator == "or"
	}
	return false
}

// unmarked makes sure that no string of a script stands for a value of the
// engine: one that begins like those is put together when the script runs.
func unmarked(e *ast.StringExpr) ast.Expr {
	rest, marked := strings.CutPrefix(e.Value, constantMark)
	if !marked {
		return e
	}
	head, tail := &ast.StringExpr{Value: constantMark[:1]}, &ast.StringExpr{Value: constantMark[1:] + rest}
	head.SetLine(e.Line())
	tail.SetLine(e.Line())
	return invoke("(concat)", e.Line(), head, tail)
}

// name rewrites a variable that is read.
func (r *rewriter) name(e *ast.IdentExpr) ast.Expr {
	if r.isLocal(e.Value) {
		return e
	}
	if e.Value == "KEYS" || e.Value == "ARGV" {
		if !r.params {
			return e
		}
		r.keeps = true
		return ident("("+e.Value+")", e.Line())
	}
	switch e.Value {
	case "_G", "load", "loadstring":
		r.keeps, r.usesGlobals = true, true
	}
	if r.isConstant(e.Value) {
		return constant(e.Value, e.Line())
	}
	return e
}

// key rewrites an index. A constant that is no string must not stand there,
// because gopher-lua takes it for one.
func (r *rewriter) key(e ast.Expr) ast.Expr {
	if name, ok := e.(*ast.IdentExpr); ok && r.isConstant(name.Value) && !r.isLocal(name.Value) {
		r.usesGlobals = r.usesGlobals || name.Value == "_G"
		return e
	}
	out := r.expr(e)
	if s, ok := out.(*ast.StringExpr); ok && out != e {
		// A field of a library: parentheses keep it from being taken for a name.
		call := &ast.FuncCallExpr{Func: constant("(same)", s.Line()), Args: []ast.Expr{s}, AdjustRet: true}
		call.SetLine(s.Line())
		return call
	}
	return out
}

// index rewrites object[key] where it is read.
func (r *rewriter) index(e *ast.AttrGetExpr) ast.Expr {
	if object, ok := e.Object.(*ast.IdentExpr); ok && !r.isLocal(object.Value) {
		if key, ok := e.Key.(*ast.StringExpr); ok && r.isConstant(object.Value+"."+key.Value) {
			return constant(object.Value+"."+key.Value, e.Line())
		}
	}
	e.Object = r.readOnly(e.Object)
	e.Key = r.lookup(e.Key)
	return e
}

// readOnly rewrites an expression whose value is only looked at: KEYS and ARGV
// stay as they are there.
func (r *rewriter) readOnly(e ast.Expr) ast.Expr {
	keeps := r.keeps
	out := r.expr(e)
	if isArguments(out) {
		r.keeps = keeps
	}
	return out
}

// readers are the functions that leave a table they are given as it is and keep
// no hold of it.
var readers = map[string]bool{
	"unpack": true, "type": true, "tostring": true, "table.concat": true, "table.getn": true, "cjson.encode": true,
	"cmsgpack.pack": true,
}

func (r *rewriter) call(e *ast.FuncCallExpr) ast.Expr {
	reads := false
	if e.Func != nil {
		e.Func = r.expr(e.Func)
		if f, ok := e.Func.(*ast.StringExpr); ok && len(f.Value) > len(constantMark) {
			reads = readers[f.Value[len(constantMark):]]
		}
	} else {
		e.Receiver = r.expr(e.Receiver)
	}
	for i, arg := range e.Args {
		if reads {
			e.Args[i] = r.readOnly(arg)
		} else {
			e.Args[i] = r.expr(arg)
		}
	}
	r.handOn(e.Args)
	return e
}

// handOn has varargs at the end of a list be counted that are passed to a function or returned, unless few others are on the way.
func (r *rewriter) handOn(list []ast.Expr) {
	if n := len(list); n > 0 && isVarargs(list[n-1]) && (r.buildsArg || !r.hasRoom()) {
		list[n-1] = countedVarargs(list[n-1])
	}
}

func isVarargs(e ast.Expr) bool {
	_, varargs := e.(*ast.Comma3Expr)
	return varargs && hasMany(e)
}

// countedVarargs is varargs by way of a function that counts them.
func countedVarargs(e ast.Expr) ast.Expr {
	call := &ast.FuncCallExpr{Func: constant("(varargs)", e.Line()), Args: []ast.Expr{e}}
	call.SetLine(e.Line())
	return call
}

// invoke is a call of a function of the engine that returns one value.
func invoke(name string, line int, args ...ast.Expr) *ast.FuncCallExpr {
	for _, arg := range args {
		cutToOne(arg)
	}
	call := &ast.FuncCallExpr{Func: constant(name, line), Args: args, AdjustRet: true}
	call.SetLine(line)
	return call
}

// cutToOne makes an expression that may have many values have one.
func cutToOne(e ast.Expr) { adjust(e, true) }

// adjust says whether an expression that may have many values is cut to one.
func adjust(e ast.Expr, toOne bool) {
	switch e := e.(type) {
	case *ast.FuncCallExpr:
		e.AdjustRet = toOne
	case *ast.Comma3Expr:
		e.AdjustRet = toOne
	}
}

// concat rewrites a chain of `..`, which associates to the right.
func (r *rewriter) concat(e *ast.StringConcatOpExpr) ast.Expr {
	var operands []ast.Expr
	line := e.Line()
	for {
		operands = append(operands, r.expr(e.Lhs))
		next, ok := e.Rhs.(*ast.StringConcatOpExpr)
		if !ok {
			operands = append(operands, r.expr(e.Rhs))
			break
		}
		e = next
	}
	for _, operand := range operands {
		cutToOne(operand)
	}
	for len(operands) > concatMax {
		from := len(operands) - concatMax
		operands = append(operands[:from:from], invoke("(concat)", line, operands[from:]...))
	}
	return invoke("(concat)", line, operands...)
}

// arithmetic leaves to the machine what it does as Lua does.
func (r *rewriter) arithmetic(e *ast.ArithmeticOpExpr) ast.Expr {
	e.Lhs, e.Rhs = r.foldLess(r.expr(e.Lhs)), r.foldLess(r.expr(e.Rhs))
	r.folds(e, e.Lhs, e.Rhs)
	switch e.Operator {
	case "%":
		return r.operate("(modulo)", e.Line(), e.Lhs, e.Rhs)
	case "^":
		if a, b := constantNumber(e.Lhs), constantNumber(e.Rhs); !math.IsNaN(a) && !math.IsNaN(b) {
			if f := mathlib.Pow(a, b); f > 0 && !math.IsInf(f, 0) {
				return number(strconv.FormatFloat(f, 'g', -1, 64), e.Line())
			}
		}
		return r.operate("(power)", e.Line(), e.Lhs, e.Rhs)
	}
	return e
}

// foldsMax is how deep arithmetic may be that gopher-lua sees as a whole. For each operator it looks through all there is below, whether that is a
// constant.
const foldsMax = 256

// folds notes how deep arithmetic is, by its operands.
func (r *rewriter) folds(e ast.Expr, operands ...ast.Expr) {
	if r.depths == nil {
		r.depths = make(map[ast.Expr]int)
	}
	deepest := 0
	for _, operand := range operands {
		deepest = max(deepest, r.depths[operand])
	}
	r.depths[e] = deepest + 1
}

// foldLess hides an operand that is too deep from whoever looks for constants.
func (r *rewriter) foldLess(e ast.Expr) ast.Expr {
	if r.depths[e] < foldsMax {
		return e
	}
	return invoke("(same)", e.Line(), e)
}

// rightFirst ends the name of an operator's function whose arguments are the right operand and the left one.
const rightFirst = ", right first"

// operate is an operator as a call. A local variable on the left is read last, as Lua's machine does: what is on the right may change it.
func (r *rewriter) operate(name string, line int, left, right ast.Expr) ast.Expr {
	if variable, ok := left.(*ast.IdentExpr); ok && r.isOwn(variable.Value) {
		return invoke(name+rightFirst, line, right, left)
	}
	return invoke(name, line, left, right)
}

// constantNumber returns the number that e is, or NaN.
func constantNumber(e ast.Expr) float64 {
	if n, ok := e.(*ast.NumberExpr); ok {
		if f, ok := luanum.ParseNumber(n.Value); ok {
			return f
		}
	}
	return math.NaN()
}

func (r *rewriter) length(e *ast.UnaryLenOpExpr) ast.Expr {
	operand := r.readOnly(e.Expr)
	return invoke("(length)", e.Line(), operand)
}

// forNumber lets a loop's number be a string, as Lua 5.1 does.
func (r *rewriter) forNumber(e ast.Expr, what string) ast.Expr {
	if _, ok := e.(*ast.NumberExpr); ok {
		return e
	}
	line := e.Line()
	return invoke("(for "+what+")", line, r.expr(e))
}

// usesVarargs reports whether the statements use `...` outside inner functions.
func usesVarargs(stmts []ast.Stmt) bool {
	found := false
	walk(stmts, func(e ast.Expr) bool {
		_, varargs := e.(*ast.Comma3Expr)
		found = found || varargs
		_, fn := e.(*ast.FunctionExpr)
		return !fn
	})
	return found
}

// usesArg reports whether the statements read a variable called arg, with or
// without inner functions.
func usesArg(stmts []ast.Stmt) bool {
	found := false
	walk(stmts, func(e ast.Expr) bool {
		name, ok := e.(*ast.IdentExpr)
		found = found || ok && name.Value == "arg"
		return true
	})
	return found
}
