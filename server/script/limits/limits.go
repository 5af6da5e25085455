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
	// assignment small. Use Budget.Len where the length of such a table is needed.
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
	// MaxDepth is how deep values, patterns and calls out of Go may nest; see Enter.
	MaxDepth int
	// Depth is how deep Go functions that call Lua functions are nested now.
	Depth int
	// Want is how many bytes are about to be allocated at once, while Check
	// runs; 0 for little.
	Want int
	// Held are values that functions of the libraries are about to make part of
	// others, and HeldBytes the size of the strings that they are building: what
	// belongs to the script without being found from its values.
	Held      []lua.LValue
	HeldBytes int
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

// Own has BudgetOf find b by a state, or a thread of it.
func (b *Budget) Own(L *lua.LState) { L.G.Registry.RawSetString(budgetField, &lua.LUserData{Value: b}) }

// BudgetOf returns the budget of a state for which Own was called.
func BudgetOf(L *lua.LState) *Budget {
	return L.G.Registry.RawGetString(budgetField).(*lua.LUserData).Value.(*Budget)
}

const budgetField = "budget"

// Spend counts n steps. It may not return: see Check.
func (b *Budget) Spend(n int64) {
	b.Steps -= n
	if b.Steps <= 0 {
		b.Check()
	}
}

// Count is Spend that always returns: the next Spend checks. It is for what handles errors.
func (b *Budget) Count(n int64) { b.Steps -= n }

// CheckLength raises a Lua error unless a string may be n bytes long. A negative
// n stands for an overflow.
func (b *Budget) CheckLength(L *lua.LState, n int) {
	if n < 0 || n > b.MaxString {
		L.RaiseError("not enough memory")
	}
}

// CheckString raises a Lua error unless a string of n bytes may be built, and
// counts the steps of building it. A negative n stands for an overflow.
func (b *Budget) CheckString(L *lua.LState, n int) {
	b.CheckLength(L, n)
	if n >= largeString {
		b.Want = n
		b.Check()
		b.Want = 0
	}
	b.Spend(int64(n>>3) + 1)
}

// Grow returns buffer with room for n more bytes, as CheckString allows. Room
// beyond KeptBuffer counts as held until Done is told.
func (b *Budget) Grow(L *lua.LState, buffer []byte, n int) []byte {
	if cap(buffer)-len(buffer) >= n {
		return buffer
	}
	const least = 64
	want := len(buffer) + n
	if want > 0 && want <= b.MaxString {
		want = min(max(want, grown(cap(buffer)), least), b.MaxString)
	}
	b.CheckString(L, want)
	larger := append(make([]byte, 0, want), buffer...)
	b.Done(buffer)
	if cap(larger) > KeptBuffer {
		b.HeldBytes += cap(larger)
	}
	return larger
}

// grown is how much room a buffer gets that had a certain one: twice as much, or
// a quarter more where both together would be a great part of what a script has.
func grown(room int) int {
	if room < largeString {
		return 2 * room
	}
	return room + room/4
}

// KeptBuffer is the room of the largest buffer that a library keeps for the next
// call, in bytes.
const KeptBuffer = 64 << 10

// Done says that a buffer that Grow has returned is held no longer: it is a
// string of the script's by now, or garbage.
func (b *Budget) Done(buffer []byte) {
	if cap(buffer) > KeptBuffer {
		b.HeldBytes -= cap(buffer)
	}
}

// Hold has v count as the script's until Release is called as often.
func (b *Budget) Hold(v lua.LValue) { b.Held = append(b.Held, v) }

// Release undoes the last Hold.
func (b *Budget) Release() {
	last := len(b.Held) - 1
	b.Held[last] = nil
	b.Held = b.Held[:last]
}

// Mark is how deep calls are nested, and what is held, at one moment.
type Mark struct{ depth, held, bytes int }

// Mark returns what Return takes.
func (b *Budget) Mark() Mark { return Mark{b.Depth, len(b.Held), b.HeldBytes} }

// Return says that an error may have ended all calls since m: what they held is
// garbage.
func (b *Budget) Return(m Mark) {
	b.Depth, b.HeldBytes = m.depth, m.bytes
	clear(b.Held[m.held:])
	b.Held = b.Held[:m.held]
}

// largeString is from which size on a string counts by itself, in bytes.
const largeString = 1 << 20

// CheckTable raises a Lua error unless a table of n elements may be built.
func (b *Budget) CheckTable(L *lua.LState, n int) {
	if n < 0 || n > b.MaxTable {
		L.RaiseError("not enough memory")
	}
}

// TooDeep is the error of calls out of Go that are nested too deep, and TooDeepInHandler that of calls for which even what Lua has left for handlers of
// errors is used up.
const (
	TooDeep          = "C stack overflow"
	TooDeepInHandler = "error in error handling"
)

// Enter counts a call out of Go in Depth, until Return is told. It returns the error of a call that is too deep, or "". Only one depth is too deep, as in
// Lua: what handles that error runs beyond it.
func (b *Budget) Enter() string {
	if b.Depth >= b.HandlersMax() {
		return TooDeepInHandler
	}
	b.Depth++
	if b.Depth == b.MaxDepth+1 {
		return TooDeep
	}
	return ""
}

// HandlersMax is how deep calls out of Go may nest with those of handlers.
func (b *Budget) HandlersMax() int { return b.MaxDepth + DepthMax/8 }

// Call calls the function that lies below nargs arguments on the stack, as
// LState.Call does, and raises an error instead when calls out of Go are
// nested too deep: one without a place, as Lua does when a C function calls.
func (b *Budget) Call(L *lua.LState, nargs, nret int) {
	if wrong := b.Enter(); wrong != "" {
		L.Error(lua.LString(wrong), 0)
	}
	b.call(L, nargs, nret)
}

// CallForOperator is Call in a function that stands for an operator: the error
// has the operator's place.
func (b *Budget) CallForOperator(L *lua.LState, nargs, nret int) {
	if wrong := b.Enter(); wrong != "" {
		L.RaiseError("%s", wrong)
	}
	b.call(L, nargs, nret)
}

func (b *Budget) call(L *lua.LState, nargs, nret int) {
	b.Spend(1)
	L.Call(nargs, nret)
	b.Depth--
}
