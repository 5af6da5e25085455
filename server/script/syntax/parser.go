// Package syntax parses Lua 5.1 into the syntax tree of gopher-lua.
//
// gopher-lua has a parser, but it knows goto, reads numerals as Go does, words
// its complaints differently and nests without limit. This one is written after
// the grammar of the reference manual, with the limits and the messages of the
// C implementation, since clients see those messages.
package syntax

import (
	"fmt"

	"github.com/yuin/gopher-lua/ast"
)

// Limits of the C implementation.
const (
	// levelsMax is how deep statements and expressions may nest.
	levelsMax = 200
	// localsMax is how many local variables a function may have at a time.
	localsMax = 200
	// upvaluesMax is how many outer variables a function may use.
	upvaluesMax = 60
)

// Limits of ours. Nothing can stop the compiler, so they keep its time within
// some hundred milliseconds and its memory within some ten megabytes. README.md
// says what they are.
const (
	// NodesMax is how many statements, operands and operators a chunk may have.
	NodesMax = 200_000
	// FunctionsMax is how many functions a chunk may have. The compiler
	// allocates 26 KiB for each.
	FunctionsMax = 2000
	// chainMax is how many operators, calls or fields may follow each other
	// without nesting, and ElseifsMax how many elseifs, which do nest there.
	chainMax   = 10_000
	ElseifsMax = 2000
	// BranchesMax is how many loops, conditions and comparisons a function may
	// have: the compiler numbers where they jump to, with 17 bits, and may need
	// five for one of them.
	BranchesMax = 12_000
	// ConstantsMax is how many different constants a function may have, those of
	// a LiteralTable apart, and searchesMax how many of them the compiler may look
	// at to find those that it meets again.
	ConstantsMax = 4096
	searchesMax  = 60_000_000
)

// Error is a complaint about the text, worded as Lua words it: the chunk's name,
// the line and the message.
type Error struct{ text string }

// Error returns the message.
func (e *Error) Error() string { return e.text }

// Parse parses text, a chunk that is called name in messages. A complaint about the text is an *Error.
func Parse(text, name string) (*ast.FunctionExpr, error) {
	return parse(lexer{name: name, text: text})
}

// Check parses a text that comes in pieces, and reads no more of them than Lua does: up to the byte behind where the first error shows. more returns the
// text so far with one more piece at its end, or as it was once there is none. A complaint about the text is an *Error, and any other error is more's.
func Check(name string, more func() (string, error)) error {
	_, err := parse(lexer{name: name, more: more})
	return err
}

func parse(lx lexer) (chunk *ast.FunctionExpr, err error) {
	defer func() {
		switch e := recover().(type) {
		case nil:
		case *Error:
			err = e
		case unread:
			err = e.err
		default:
			panic(e)
		}
	}()
	lx.line, lx.names = 1, map[string]string{}
	p := &parser{lx: lx, depths: make(map[string][]int)}
	p.lx.has(0)
	p.advance()
	chunk = &ast.FunctionExpr{ParList: &ast.ParList{HasVargs: true}}
	p.fn = &function{vararg: true}
	chunk.Stmts = p.block()
	p.checkKind(tokenEOF)
	chunk.SetLine(0)
	chunk.SetLastLine(p.tok.line)
	return chunk, nil
}

// function is what is known of the function that is being parsed.
type function struct {
	outer    *function
	depth    int // how many functions are around it
	line     int // 0 for the chunk
	vararg   bool
	locals   []string
	upvalues map[string]bool
	loops    int
	branches int
	// constants are the names, strings and numbers it mentions, tables is how many
	// constructors are open, and noted are those that came within them.
	constants map[string]struct{}
	tables    int
	noted     []string
}

// parser turns tokens into the tree.
type parser struct {
	lx     lexer
	tok    token
	ahead  *token
	last   int // line of the token before tok
	fn     *function
	levels int
	// depths has the function of each visible local variable by its name, the innermost one last: how deep it lies.
	depths map[string][]int
	// nodes, functions and searches count up to their limits.
	nodes, functions, searches int
}

func (p *parser) advance() {
	p.last = p.tok.line
	if p.ahead != nil {
		p.tok, p.ahead = *p.ahead, nil
		return
	}
	p.tok = p.lx.next()
}

// peek returns the token behind the present one.
func (p *parser) peek() kind {
	if p.ahead == nil {
		t := p.lx.next()
		p.ahead = &t
	}
	return p.ahead.kind
}

// fail gives up with a message about the present token.
func (p *parser) fail(message string) {
	near := string(p.tok.kind)
	switch p.tok.kind {
	case tokenName, tokenNumber, tokenString:
		near = p.lx.text[p.tok.start:p.tok.end]
	case "\x00":
		near = "" // In C it is token 0, which stands for none.
	default:
		if len(near) == 1 && isControl(near[0]) {
			near = fmt.Sprintf("char(%d)", near[0])
		}
	}
	p.lx.fail(p.lx.line, message, near)
}

func (p *parser) accept(k kind) bool {
	if p.tok.kind == k {
		p.advance()
		return true
	}
	return false
}

func (p *parser) checkKind(k kind) {
	if p.tok.kind != k {
		p.fail("'" + string(k) + "' expected")
	}
}

func (p *parser) expect(k kind) {
	p.checkKind(k)
	p.advance()
}

// expectClosing is expect for what closes something opened at line.
func (p *parser) expectClosing(closing, opening kind, line int) {
	if p.tok.kind != closing && line != p.tok.line {
		p.fail(fmt.Sprintf("'%s' expected (to close '%s' at line %d)", closing, opening, line))
	}
	p.expect(closing)
}

func (p *parser) name() string {
	p.checkKind(tokenName)
	name := p.tok.value
	p.constant(name)
	p.advance()
	return name
}

// enter counts one level of nesting, and leave takes it back.
func (p *parser) enter() {
	if p.levels++; p.levels > levelsMax {
		p.lx.fail(p.lx.line, "chunk has too many syntax levels", "")
	}
}

func (p *parser) leave() { p.levels-- }

// overLimit gives up because a function has too many of something.
func (p *parser) overLimit(fn *function, limit int, what string) {
	where := "main function"
	if fn.line != 0 {
		where = fmt.Sprintf("function at line %d", fn.line)
	}
	p.lx.fail(p.lx.line, fmt.Sprintf("%s has more than %d %s", where, limit, what), "")
}

// constant notes that the function mentions a name, a string or a number.
func (p *parser) constant(text string) {
	if p.fn.tables > 0 {
		p.fn.noted = append(p.fn.noted, text)
		return
	}
	if p.fn.constants == nil {
		p.fn.constants = make(map[string]struct{})
	}
	p.fn.constants[text] = struct{}{}
	p.searches += len(p.fn.constants)
	if len(p.fn.constants) > ConstantsMax || p.searches > searchesMax {
		p.lx.fail(p.lx.line, "constant table overflow", "")
	}
}

// link counts one more part of a chain.
func (p *parser) link(n *int, limit int) {
	p.node()
	if *n++; *n > limit {
		p.lx.fail(p.lx.line, "chunk has too many syntax levels", "")
	}
}

// node counts one more part of the chunk.
func (p *parser) node() {
	if p.nodes++; p.nodes > NodesMax {
		p.lx.fail(p.lx.line, "chunk is too long", "")
	}
}

// branch counts one more part of the function that jumps.
func (p *parser) branch() {
	if p.fn.branches++; p.fn.branches > BranchesMax {
		p.overLimit(p.fn, BranchesMax, "branches")
	}
}

// declare makes a local variable known, which counts from here on.
func (p *parser) declare(name string) {
	if len(p.fn.locals) >= localsMax {
		p.overLimit(p.fn, localsMax, "local variables")
	}
	p.fn.locals = append(p.fn.locals, name)
	p.depths[name] = append(p.depths[name], p.fn.depth)
}

// undeclare ends the scope of the function's local variables but the outermost so many.
func (p *parser) undeclare(visible int) {
	for _, name := range p.fn.locals[visible:] {
		list := p.depths[name]
		p.depths[name] = list[:len(list)-1]
	}
	p.fn.locals = p.fn.locals[:visible]
}

// use notes that name is used, which may be a variable of an outer function.
func (p *parser) use(name string) {
	if list := p.depths[name]; len(list) > 0 {
		p.resolve(p.fn, list[len(list)-1], name)
	}
}

// resolve has a variable, which a function at some depth has, be known in one within that.
func (p *parser) resolve(fn *function, depth int, name string) {
	if fn.depth == depth || fn.upvalues[name] {
		return
	}
	p.resolve(fn.outer, depth, name)
	if len(fn.upvalues) >= upvaluesMax {
		p.overLimit(fn, upvaluesMax, "upvalues")
	}
	if fn.upvalues == nil {
		fn.upvalues = make(map[string]bool)
	}
	fn.upvalues[name] = true
}

// blockEnds reports whether the present token ends a block.
func (p *parser) blockEnds() bool {
	switch p.tok.kind {
	case "else", "elseif", "end", "until", tokenEOF:
		return true
	}
	return false
}

// block parses statements up to what ends them, in a scope of their own.
func (p *parser) block() []ast.Stmt {
	visible := len(p.fn.locals)
	stmts := p.statements()
	p.undeclare(visible)
	return stmts
}

func (p *parser) statements() []ast.Stmt {
	p.enter()
	defer p.leave()
	stmts := []ast.Stmt{}
	for !p.blockEnds() {
		stmt, last := p.statement()
		stmts = append(stmts, stmt)
		p.accept(";")
		if last {
			break
		}
	}
	return stmts
}

// loop parses the body of a loop.
func (p *parser) loop(declare ...string) []ast.Stmt {
	visible := len(p.fn.locals)
	for _, name := range declare {
		p.declare(name)
	}
	p.fn.loops++
	stmts := p.block()
	p.fn.loops--
	p.undeclare(visible)
	return stmts
}
