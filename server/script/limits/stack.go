package limits

import (
	"reflect"
	"unsafe"

	lua "github.com/yuin/gopher-lua"
)

// Where gopher-lua keeps the room for calls of a state whose stack does not grow.
var (
	roomOffset = roomOf(lua.NewState(lua.Options{SkipOpenLibs: true, CallStackSize: 1}))
	callBytes  = pointedTo[lua.LState]("currentFrame").Size()
)

// roomOf returns where a stack that does not grow has its calls.
func roomOf(state *lua.LState) uintptr {
	defer state.Close()
	stack := reflect.ValueOf(state).Elem().FieldByName("stack").Elem().Type().Elem()
	field, ok := stack.FieldByName("array")
	if !ok || field.Type.Kind() != reflect.Slice || field.Type.Elem() != pointedTo[lua.LState]("currentFrame") {
		panic("limits: this gopher-lua's stacks are built otherwise")
	}
	return field.Offset
}

var (
	openOffset = OffsetIn[lua.LState]("uvcache", reflect.TypeFor[*lua.Upvalue]())
	nextOffset = OffsetIn[lua.Upvalue]("next", reflect.TypeFor[*lua.Upvalue]())
	// Where a variable is among the registers, and where these are.
	indexOffset  = OffsetIn[lua.Upvalue]("index", reflect.TypeFor[int]())
	holderOffset = OffsetIn[lua.Upvalue]("reg", reflect.PointerTo(pointedTo[lua.LState]("reg")))
	topOffset    = offsetOf(pointedTo[lua.LState]("reg"), "top", reflect.TypeFor[int]())
	mostOffset   = offsetOf(pointedTo[lua.LState]("reg"), "maxSize", reflect.TypeFor[int]())
	stepOffset   = offsetOf(pointedTo[lua.LState]("reg"), "growBy", reflect.TypeFor[int]())
	frameIndex   = OffsetInCall("Idx", reflect.TypeFor[int]())
	// Which state registers belong to.
	ownerOffset = offsetOf(pointedTo[lua.LState]("reg"), "handler", nil)
)

// OpenUpvalues returns how many variables of the functions that are running in a
// state are used by other functions, up to most. gopher-lua goes along all of them whenever
// a function is made or returns.
func OpenUpvalues(L *lua.LState, most int) int {
	n := 0
	for up := *(**lua.Upvalue)(unsafe.Add(unsafe.Pointer(L), openOffset)); up != nil && n < most; n++ {
		up = *(**lua.Upvalue)(unsafe.Add(unsafe.Pointer(up), nextOffset))
	}
	return n
}

// CloseUpvalues gives the variables in registers from a place on, which closures
// still use, a life of their own. gopher-lua does so for functions that return,
// but has no way to ask for it.
func CloseUpvalues(L *lua.LState, from int) {
	link := (**lua.Upvalue)(unsafe.Add(unsafe.Pointer(L), openOffset))
	for *link != nil {
		up := *link
		next := (**lua.Upvalue)(unsafe.Add(unsafe.Pointer(up), nextOffset))
		if *(*int)(unsafe.Add(unsafe.Pointer(up), indexOffset)) < from {
			link = next
			continue
		}
		up.Close()
		*link, *next = *next, nil
	}
}

// letGo has a closed variable lead to the registers no more in which it was.
func letGo(up *lua.Upvalue) {
	*(*unsafe.Pointer)(unsafe.Add(unsafe.Pointer(up), holderOffset)) = nil
}

// ownerOf returns the state in whose registers an open variable is.
func ownerOf(up *lua.Upvalue) *lua.LState {
	registry := *(*unsafe.Pointer)(unsafe.Add(unsafe.Pointer(up), holderOffset))
	return (*lua.LState)((*[2]unsafe.Pointer)(unsafe.Add(registry, ownerOffset))[1])
}

// End drops what a state leads to that will run nothing any more: closures keep
// its registers, and by way of those all of it, for as long as they live. All that
// it can be asked is whether it is dead.
func End(L *lua.LState) {
	CloseUpvalues(L, 0)
	at := unsafe.Pointer(L)
	registry := reflect.NewAt(pointedTo[lua.LState]("reg"), *(*unsafe.Pointer)(unsafe.Add(at, registryOffset)))
	registry.Elem().SetZero()
	*(*unsafe.Pointer)(unsafe.Add(at, currentOffset)) = nil
	*(*[2]unsafe.Pointer)(unsafe.Add(at, stackOffset)) = [2]unsafe.Pointer{}
}

// Forget drops what the calls that have ended left behind in a state: gopher-lua
// leaves functions, and all that these hold, in the records of calls, and values
// in registers. No function may be running. The calls' stack must be one that
// does not grow.
func Forget(L *lua.LState) {
	forgetCalls(L)
	registers := *registersOf(L)
	clear(registers[L.GetTop():])
}

// UsedRegisters returns how many registers of a state are in use.
func UsedRegisters(L *lua.LState) int {
	registry := *(*unsafe.Pointer)(unsafe.Add(unsafe.Pointer(L), registryOffset))
	return *(*int)(unsafe.Add(registry, topOffset))
}

// GrowByHalf has the room for registers of a state grow by no less than half of those that are in use: by a step it would be copied too often.
func GrowByHalf(L *lua.LState) {
	registry := *(*unsafe.Pointer)(unsafe.Add(unsafe.Pointer(L), registryOffset))
	step := (*int)(unsafe.Add(registry, stepOffset))
	*step = max(*step, UsedRegisters(L)/2)
}

// RoomFor reports whether a state may come to use n more registers.
func RoomFor(L *lua.LState, n int) bool {
	registry := *(*unsafe.Pointer)(unsafe.Add(unsafe.Pointer(L), registryOffset))
	return UsedRegisters(L)+n <= *(*int)(unsafe.Add(registry, mostOffset))
}

// Place is where a state is at one moment: in which call, and how many registers it uses.
type Place struct {
	call  unsafe.Pointer
	calls int
	used  int
}

// PlaceOf returns where a state is. The innermost call must be one that runs, unless there is none.
func PlaceOf(L *lua.LState) Place {
	p := Place{used: UsedRegisters(L)}
	p.call = *(*unsafe.Pointer)(unsafe.Add(unsafe.Pointer(L), currentOffset))
	if p.call != nil {
		p.calls = *(*int)(unsafe.Add(p.call, frameIndex)) + 1
	}
	return p
}

// GoBack ends all calls that a state has made since it was in a place, and has it use no more than so many of the registers that it used there.
func GoBack(L *lua.LState, p Place, used int) {
	state := reflect.ValueOf(L).Elem()
	calls := state.FieldByName("stack")
	calls = reflect.NewAt(calls.Type(), unsafe.Add(unsafe.Pointer(L), stackOffset)).Elem()
	calls.Interface().(interface{ SetSp(int) }).SetSp(p.calls)
	registers := state.FieldByName("reg")
	registers = reflect.NewAt(registers.Type(), unsafe.Add(unsafe.Pointer(L), registryOffset)).Elem()
	registers.Interface().(interface{ SetTop(int) }).SetTop(used)
	*(*unsafe.Pointer)(unsafe.Add(unsafe.Pointer(L), currentOffset)) = p.call
	L.G.CurrentThread = L
}

// Used is how many registers were in use in a place.
func (p Place) Used() int { return p.used }

// Registers returns how many registers a state has room for.
func Registers(L *lua.LState) int { return cap(*registersOf(L)) }

// Inherit has a state that has run nothing use the room for calls of one that
// will run nothing any more. It is large: to make it anew takes longer than most
// scripts.
func Inherit(L, old *lua.LState) {
	forgetCalls(old)
	*roomAt(L) = *roomAt(old)
	*roomAt(old) = nil
}

// forgetCalls drops what the records of calls lead to. Those that were ever used
// lie in a row.
func forgetCalls(L *lua.LState) {
	room := *roomAt(L)
	for i := range len(room) {
		call := unsafe.Add(unsafe.Pointer(unsafe.SliceData(room)), uintptr(i)*callBytes)
		fn := (*unsafe.Pointer)(unsafe.Add(call, frameFunction))
		if *fn == nil {
			return
		}
		*fn = nil
		*(*unsafe.Pointer)(unsafe.Add(call, frameParent)) = nil
	}
}

// roomAt returns the room for calls. What it points to must not be indexed: its
// elements are callBytes apart.
func roomAt(L *lua.LState) *[]struct{} {
	stack := (*[2]unsafe.Pointer)(unsafe.Add(unsafe.Pointer(L), stackOffset))[1]
	return (*[]struct{})(unsafe.Add(stack, roomOffset))
}

func registersOf(L *lua.LState) *[]lua.LValue {
	registry := *(*unsafe.Pointer)(unsafe.Add(unsafe.Pointer(L), registryOffset))
	return (*[]lua.LValue)(unsafe.Add(registry, registryArray))
}
