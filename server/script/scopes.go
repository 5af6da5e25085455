package script

import (
	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
)

// scopes finds out where local variables end, which messages name. gopher-lua
// notes that too, but takes the numbers of registers for those of variables, so
// that what it says is right of functions without inner blocks only.
//
// The compiler hands on the lines of a tree's nodes to the instructions. While it
// compiles, these lines also have the number of the block that a node is in.
type scopes struct {
	blocks []block // by number; 0 is none
	inner  int     // the block that the walk is in
	own    int     // the outermost one of the function that it is in
}

// block is a part of a function's text where variables can be declared.
type block struct {
	outer  int      // the block around it; 0 for the whole of a function
	last   int      // the last of its instructions
	locals []scoped // all of a function, in the order of the text, for the whole of it
}

// scoped is a variable, and the block where it is declared.
type scoped struct {
	name  string
	block int
}

// lineBits are those of a line; above them is the number of a block.
const lineBits = 32

func lineOf(position int) int  { return position & (1<<lineBits - 1) }
func blockOf(position int) int { return position >> lineBits }

// numberBlocks adds the numbers of blocks to the lines in a chunk.
func numberBlocks(chunk *ast.FunctionExpr) *scopes {
	s := &scopes{blocks: make([]block, 1)}
	s.function(chunk, false)
	return s
}

func (s *scopes) function(fn *ast.FunctionExpr, method bool) {
	own, inner := s.own, s.inner
	s.inner = 0
	s.open()
	s.own = s.inner
	if method {
		s.declare("self")
	}
	s.declare(fn.ParList.Names...)
	if fn.ParList.HasVargs && lua.CompatVarArg {
		s.declare("arg")
	}
	s.stmts(fn.Stmts)
	s.markEnd(fn)
	s.own, s.inner = own, inner
}

// open begins a block, which ends when s.inner is what it was before.
func (s *scopes) open() {
	s.blocks = append(s.blocks, block{outer: s.inner})
	s.inner = len(s.blocks) - 1
}

func (s *scopes) close() { s.inner = s.blocks[s.inner].outer }

func (s *scopes) declare(names ...string) {
	for _, name := range names {
		s.blocks[s.own].locals = append(s.blocks[s.own].locals, scoped{name, s.inner})
	}
}

func (s *scopes) mark(node ast.PositionHolder) {
	node.SetLine(lineOf(node.Line()) | s.inner<<lineBits)
	s.markEnd(node)
}

// markEnd marks what the compiler adds at the end of a block, or of a function.
func (s *scopes) markEnd(node ast.PositionHolder) {
	node.SetLastLine(lineOf(node.LastLine()) | s.inner<<lineBits)
}

func (s *scopes) stmts(stmts []ast.Stmt) {
	for _, stmt := range stmts {
		s.mark(stmt)
		switch stmt := stmt.(type) {
		case *ast.AssignStmt:
			s.exprs(stmt.Lhs...)
			s.exprs(stmt.Rhs...)
		case *ast.LocalAssignStmt:
			s.exprs(stmt.Exprs...)
			s.declare(stmt.Names...)
		case *ast.FuncCallStmt:
			s.exprs(stmt.Expr)
		case *ast.FuncDefStmt:
			s.exprs(stmt.Name.Func, stmt.Name.Receiver)
			s.mark(stmt.Func)
			s.function(stmt.Func, stmt.Name.Func == nil)
		case *ast.ReturnStmt:
			s.exprs(stmt.Exprs...)
		case *ast.IfStmt:
			s.exprs(stmt.Condition)
			s.inside(stmt.Then)
			s.inside(stmt.Else)
		default:
			s.open()
			s.body(stmt)
			s.markEnd(stmt)
			s.close()
		}
	}
}

func (s *scopes) inside(stmts []ast.Stmt) {
	s.open()
	s.stmts(stmts)
	s.close()
}

// body goes through a statement that is a block.
func (s *scopes) body(stmt ast.Stmt) {
	switch stmt := stmt.(type) {
	case *ast.DoBlockStmt:
		s.stmts(stmt.Stmts)
	case *ast.WhileStmt:
		s.exprs(stmt.Condition) // before any variables
		s.stmts(stmt.Stmts)
	case *ast.RepeatStmt:
		s.stmts(stmt.Stmts)
		s.exprs(stmt.Condition)
	case *ast.NumberForStmt:
		s.exprs(stmt.Init, stmt.Limit, stmt.Step)
		s.declare("(for index)", "(for limit)", "(for step)", stmt.Name)
		s.stmts(stmt.Stmts)
	case *ast.GenericForStmt:
		s.exprs(stmt.Exprs...)
		s.declare("(for generator)", "(for state)", "(for control)")
		s.declare(stmt.Names...)
		s.stmts(stmt.Stmts)
	}
}

func (s *scopes) exprs(exprs ...ast.Expr) {
	walker{expression: func(e ast.Expr) bool {
		s.mark(e)
		fn, ok := e.(*ast.FunctionExpr)
		if ok {
			s.function(fn, false)
		}
		return !ok
	}}.exprs(exprs...)
}

// finish tells the functions in what was compiled where their variables end, and
// leaves nothing but lines in their lines.
func (s *scopes) finish(proto *lua.FunctionProto) {
	s.read(proto)
	for i := len(s.blocks) - 1; i > 0; i-- { // inner ones come behind those around them
		outer := &s.blocks[s.blocks[i].outer]
		outer.last = max(outer.last, s.blocks[i].last)
	}
	s.write(proto)
}

func (s *scopes) read(proto *lua.FunctionProto) {
	for pc, position := range proto.DbgSourcePositions {
		s.blocks[blockOf(position)].last = pc
	}
	for _, inner := range proto.FunctionPrototypes {
		s.read(inner)
	}
}

func (s *scopes) write(proto *lua.FunctionProto) {
	locals := s.blocks[blockOf(proto.LastLineDefined)].locals
	for i, info := range proto.DbgLocals {
		if i < len(locals) && info.Name == locals[i].name {
			info.EndPc = s.blocks[locals[i].block].last
		}
	}
	for pc, position := range proto.DbgSourcePositions {
		proto.DbgSourcePositions[pc] = lineOf(position)
	}
	proto.LineDefined, proto.LastLineDefined = lineOf(proto.LineDefined), lineOf(proto.LastLineDefined)
	for _, inner := range proto.FunctionPrototypes {
		s.write(inner)
	}
}
