package script

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"

	"headgate/server/script/syntax"
)

// compiled is a chunk that is ready to run.
type compiled struct {
	proto *lua.FunctionProto
	// keeps and usesGlobals are the rewriter's.
	keeps, usesGlobals bool
}

// longText is from which length on, in bytes, a text is compiled with the
// garbage collector at longTextGCPercent.
const (
	longText          = 32 << 10
	longTextGCPercent = 25
)

// origin says where the text of a chunk comes from.
type origin int

const (
	fromClient  origin = iota // a script: KEYS and ARGV are the chunk's first parameters
	fromLibrary               // of functions
	fromScript                // a text that a script loads, which may be given any values
)

// compile compiles text, which messages call name.
func (s *sandbox) compile(text, name string, from origin) (c *compiled, err error) {
	if len(text) > longText {
		// What the compiler leaves behind would pile up.
		defer debug.SetGCPercent(debug.SetGCPercent(longTextGCPercent))
	}
	r := s.rewriter(from)
	if c, err = s.compileWith(r, text, name); errors.As(err, new(tooComplex)) && r.blocks {
		r = s.rewriter(from)
		r.noBlocks = true
		c, err = s.compileWith(r, text, name)
	}
	return c, err
}

func (s *sandbox) rewriter(from origin) *rewriter {
	r := &rewriter{constants: s.names, params: from == fromClient, loads: s.purpose == forFunctions}
	r.names.metatables = from == fromScript
	return r
}

// compileWith compiles text as a rewriter changes it.
func (s *sandbox) compileWith(r *rewriter, text, name string) (*compiled, error) {
	chunk, err := syntax.Parse(text, name)
	if err != nil {
		return nil, err
	}
	keepArg := usesArg(chunk.Stmts)
	r.chunk(chunk)
	if r.passed > passedMax {
		return nil, tooComplex{name, chunk.LastLine()}
	}
	scopes := numberBlocks(chunk)
	proto, err := compileTree(chunk, name)
	if err != nil {
		return nil, err
	}
	scopes.finish(proto)
	s.finish(proto, keepArg, r.literals)
	return &compiled{proto: proto, keeps: r.keeps, usesGlobals: r.usesGlobals}, nil
}

// tooComplex is the error of a function that gopher-lua has no room for.
type tooComplex struct {
	name string
	line int
}

func (e tooComplex) Error() string {
	return fmt.Sprintf("%s:%d: function or expression too complex", e.name, e.line)
}

// compileTree has gopher-lua compile a chunk. The chunk is the one function of
// another, because only functions can have parameters.
func compileTree(chunk *ast.FunctionExpr, name string) (proto *lua.FunctionProto, err error) {
	defer func() {
		if e := recover(); e != nil {
			err = tooComplex{name, lineOf(chunk.LastLine())}
		}
	}()
	wrapped := &ast.ReturnStmt{Exprs: []ast.Expr{chunk}}
	wrapped.SetLine(1)
	outer, err := lua.Compile([]ast.Stmt{wrapped}, name)
	if err == nil && tooLong(outer) {
		err = errors.New("a jump could be too far")
	}
	if err != nil {
		line := chunk.LastLine()
		var complaint *lua.CompileError
		if errors.As(err, &complaint) && complaint.Line > 0 {
			line = complaint.Line
		}
		return nil, tooComplex{name, lineOf(line)}
	}
	return outer.FunctionPrototypes[0], nil
}

// instructionsMax is how many instructions a function may have: a jump has 18
// bits and a sign, and gopher-lua does not see when it needs more to go back.
const instructionsMax = 120_000

func tooLong(proto *lua.FunctionProto) bool {
	return len(proto.Code) > instructionsMax || slices.ContainsFunc(proto.FunctionPrototypes, tooLong)
}

// trim gives back the room that a prototype was made with and did not need.
func trim(proto *lua.FunctionProto) {
	proto.Code = slices.Clone(proto.Code)
	proto.Constants = slices.Clone(proto.Constants)
	proto.FunctionPrototypes = slices.Clone(proto.FunctionPrototypes)
	proto.DbgSourcePositions = slices.Clone(proto.DbgSourcePositions)
	proto.DbgLocals = slices.Clone(proto.DbgLocals)
	proto.DbgCalls = slices.Clone(proto.DbgCalls)
	proto.DbgUpvalues = slices.Clone(proto.DbgUpvalues)
}

// finish puts the engine's values in the place of the constants that stand for
// them, also the tables of literals, and keeps calls of variadic functions from
// building the table `arg` unless something reads it.
func (s *sandbox) finish(proto *lua.FunctionProto, keepArg bool, literals []*lua.FunctionProto) {
	if !keepArg {
		proto.IsVarArg &^= lua.VarArgNeedsArg
	}
	trim(proto)
	makeSmall(proto)
	nameCalls(proto)
	for _, inner := range proto.FunctionPrototypes {
		s.finish(inner, keepArg, literals)
	}
	for i, c := range proto.Constants {
		name, ok := c.(lua.LString)
		if !ok || !strings.HasPrefix(string(name), constantMark) {
			continue
		}
		value := string(name)[len(constantMark):]
		if table, ok := strings.CutPrefix(value, tableMark); ok {
			n, _ := strconv.Atoi(table) // It is our own.
			proto.Constants[i] = &lua.LFunction{Proto: literals[n]}
			proto.FunctionPrototypes = append(proto.FunctionPrototypes, literals[n]) // where it is counted
		} else if v := s.values[value]; v != nil {
			proto.Constants[i] = v
		}
	}
}

// makeSmall has empty constructors make tables with room for few named fields: of {} and a field gopher-lua would make a table with room for 32 of them,
// which takes ten times the memory and longer.
func makeSmall(proto *lua.FunctionProto) {
	const oneField = 1 << 9 // operand C
	for pc, code := range proto.Code {
		if in := decode(code); in.op == lua.OP_NEWTABLE && in.b == 0 && in.c == 0 {
			proto.Code[pc] = code | oneField
		}
	}
}

// nameCalls tells gopher-lua the names of the functions that calls of constants
// go to, which it puts into messages.
func nameCalls(proto *lua.FunctionProto) {
	var loaded [1 << 8]string // by register
	calls := proto.DbgCalls
	for pc, code := range proto.Code {
		in := decode(code)
		if in.op == lua.OP_LOADK {
			name, _ := proto.Constants[code&0x3ffff].(lua.LString)
			loaded[in.a] = string(name)
		}
		for len(calls) > 0 && calls[0].Pc < pc {
			calls = calls[1:]
		}
		if len(calls) == 0 || calls[0].Pc != pc {
			continue
		}
		if name, ok := strings.CutPrefix(loaded[in.a], constantMark); ok {
			calls[0].Name = name[strings.IndexByte(name, '.')+1:]
		}
		loaded[in.a] = ""
	}
}
