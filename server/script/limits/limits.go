// Package limits is what the script engine and its libraries share: the budget
// of one running script, and Lua 5.1's own rules for tables where gopher-lua has
// others.
//
// A Budget belongs to one engine and is used under the executor's lock, like
// everything else of it.
package limits

import lua "github.com/yuin/gopher-lua"

// Limits of a script, named after what they bound.
const (
	// StringMax is the longest string a script may build, in bytes.
	StringMax = 64 << 20
	// TableMax is the most elements that a library may put into one table.
	TableMax = 1 << 22
	// DepthMax is how deep values, patterns and calls out of Go may nest.
	DepthMax = 200
	// ArrayMax bounds the part of a table that gopher-lua keeps as an array:
	// larger whole keys are kept in its map. It makes the cost of one sparse
	// assignment small. Use Len where the length of such a table is needed.
	ArrayMax = 1 << 13
)

// Budget is what one script may still use. The zero value refuses everything;
// NewBudget returns one that is ready.
type Budget struct {
	// Steps is counted down by loops, functions and library work, one for
	// about as much work as one Lua instruction or eight bytes copied. At 0 or
	// below Check is called, which grants more.
	Steps int64
	// MaxString is the longest string that may be built, in bytes.
	MaxString int
	// MaxTable is the most elements that a library may put into one table.
	MaxTable int
	// MaxDepth is how deep values, patterns and calls out of Go may nest.
	MaxDepth int
	// Depth is how deep Go functions that call Lua functions are nested now.
	Depth int
	// Want is how many bytes are about to be allocated at once, while Check
	// runs; 0 for little.
	Want int
	// Check looks at the clock, the heap and the other clients. It sets Steps
	// anew, or stops the script by a panic that no pcall swallows.
	Check func()
}

// NewBudget returns a budget with the limits above whose Check grants steps
// without end.
func NewBudget() *Budget {
	b := &Budget{MaxString: StringMax, MaxTable: TableMax, MaxDepth: DepthMax}
	b.Check = func() { b.Steps = 1 << 20 }
	return b
}

// Spend counts n steps. It may not return: see Check.
func (b *Budget) Spend(n int64) {
	b.Steps -= n
	if b.Steps <= 0 {
		b.Check()
	}
}

// CheckString raises a Lua error unless a string of n bytes may be built, and
// counts the steps of building it. A negative n stands for an overflow.
func (b *Budget) CheckString(L *lua.LState, n int) {
	if n < 0 || n > b.MaxString {
		L.RaiseError("not enough memory")
	}
	if n >= largeString {
		b.Want = n
		b.Check()
		b.Want = 0
	}
	b.Spend(int64(n>>3) + 1)
}

// largeString is from which size on a string counts by itself, in bytes.
const largeString = 1 << 20

// CheckTable raises a Lua error unless a table of n elements may be built.
func (b *Budget) CheckTable(L *lua.LState, n int) {
	if n < 0 || n > b.MaxTable {
		L.RaiseError("not enough memory")
	}
}

// Call calls the function that lies below nargs arguments on the stack, as
// LState.Call does, and raises an error instead when calls out of Go are
// nested too deep.
func (b *Budget) Call(L *lua.LState, nargs, nret int) {
	if b.Depth >= b.MaxDepth {
		L.RaiseError("stack overflow")
	}
	b.Spend(1)
	b.Depth++
	L.Call(nargs, nret)
	b.Depth--
}
