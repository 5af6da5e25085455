package limits

import (
	"reflect"
	"unsafe"

	lua "github.com/yuin/gopher-lua"
)

// Scale tells how many bytes of memory the values of a script hold, by walking
// over them: what else is in the heap plays no part, and nobody else has to
// wait for a collection. The zero value is an empty scale, to be used once.
//
// It counts each object once, as large as the allocator makes it, and errs
// towards more. A string counts in full wherever it lies, so no library may
// make one that shares a part of a longer one's memory.
type Scale struct {
	// Bytes is what has been weighed.
	Bytes int
	// Most ends the weighing when Bytes is above it; 0 stands for no end.
	Most int
	// Gone is how many keys without an element the tables had that Compact would drop.
	Gone int
	// Compact has tables drop such keys where they are the most. What it drops is in Left afterwards, by which who is going through a table goes on.
	Compact bool
	// Removed is what was Left when the tables were compacted before.
	Removed Removed
	// Left is what a weighing leaves of Removed, that of the tables which are still there, with what Compact has dropped.
	Left Removed
	// Pause is called now and then, so that a long weighing holds up nobody. It
	// may be nil.
	Pause func()

	pages map[uintptr]*page // what was seen, by where it lies
	page  *page             // the one that was asked for last, and its number
	last  uintptr
	block uintptr // of the number that was weighed last
	open  []lua.LValue
	count int
}

// page has a bit for each place in 8 KiB of memory where an object can begin.
type page [pageBytes / wordBytes / 64]uint64

const (
	pageBytes = 8 << 10
	wordBytes = 8
)

// What objects weigh, in bytes.
const (
	valueBytes   = 16 // of an LValue wherever it lies, and of a string's box
	tableBytes   = 96
	closureBytes = 64
	nativeBytes  = 96 // of what a function written in Go keeps for itself
	upvalueBytes = 48
	dataBytes    = 48
	mapBytes     = 48
	threadBytes  = 2 << 10 // with the first of its calls
	protoBytes   = 320
	localBytes   = 48 // of what is known of a local variable or a call
	// numberBlock is how many bytes of memory the machine takes for numbers at a
	// time; one number that is left keeps all of them.
	numberBlock = 256
	// weighedAtOnce is how many objects are weighed between two pauses.
	weighedAtOnce = 1 << 13
)

// Where gopher-lua keeps what is not exported.
var (
	stringsOffset  = OffsetIn[lua.LTable]("strdict", reflect.TypeFor[map[string]lua.LValue]())
	dictOffset     = OffsetIn[lua.LTable]("dict", reflect.TypeFor[map[lua.LValue]lua.LValue]())
	keysOffset     = OffsetIn[lua.LTable]("keys", reflect.TypeFor[[]lua.LValue]())
	registryOffset = OffsetIn[lua.LState]("reg", nil)
	registryArray  = offsetOf(pointedTo[lua.LState]("reg"), "array", reflect.TypeFor[[]lua.LValue]())
	currentOffset  = OffsetIn[lua.LState]("currentFrame", nil)
	frameFunction  = OffsetInCall("Fn", reflect.TypeFor[*lua.LFunction]())
	frameParent    = OffsetInCall("Parent", nil)
	stackOffset    = OffsetIn[lua.LState]("stack", nil)
	segmentsOffset = segmentsOf(lua.NewState(lua.Options{SkipOpenLibs: true, MinimizeStackMemory: true}))
)

// segmentsOf returns where a coroutine's stack of calls has its segments, of which
// each begins with a call.
func segmentsOf(thread *lua.LState) uintptr {
	defer thread.Close()
	stack := reflect.ValueOf(thread).Elem().FieldByName("stack").Elem().Type().Elem()
	field, ok := stack.FieldByName("segments")
	if !ok || field.Type.Kind() != reflect.Slice || field.Type.Elem().Elem().Field(0).Type.Elem() != pointedTo[lua.LState]("currentFrame") {
		panic("limits: this gopher-lua's stacks are built otherwise")
	}
	return field.Offset
}

// pointedTo returns the type that a field of T points to.
func pointedTo[T any](name string) reflect.Type {
	field, ok := reflect.TypeFor[T]().FieldByName(name)
	if !ok || field.Type.Kind() != reflect.Pointer {
		panic("limits: this gopher-lua's states are built otherwise")
	}
	return field.Type.Elem()
}

// Know has the compiled functions in p count nothing: somebody else holds them.
func (s *Scale) Know(p *lua.FunctionProto) {
	if p == nil || !s.first(uintptr(unsafe.Pointer(p))) {
		return
	}
	for _, inner := range p.FunctionPrototypes {
		s.Know(inner)
	}
}

// Weigh adds v and everything that can be reached from it.
func (s *Scale) Weigh(v lua.LValue) {
	s.value(v)
	for len(s.open) > 0 && !s.Full() {
		v := s.open[len(s.open)-1]
		s.open = s.open[:len(s.open)-1]
		switch v := v.(type) {
		case *lua.LTable:
			s.table(v)
		case *lua.LFunction:
			s.function(v)
		case *lua.LState:
			s.thread(v)
		}
	}
}

// Full reports whether the weighing has ended early.
func (s *Scale) Full() bool { return s.Most > 0 && s.Bytes > s.Most }

// first notes an address, and reports whether it is a new one.
func (s *Scale) first(address uintptr) bool {
	number := address / pageBytes
	if number != s.last || s.page == nil {
		if s.pages == nil {
			s.pages = make(map[uintptr]*page)
		}
		if s.last, s.page = number, s.pages[number]; s.page == nil {
			s.page = new(page)
			s.pages[number] = s.page
		}
	}
	word, bit := address%pageBytes/wordBytes/64, uint64(1)<<(address/wordBytes%64)
	before := s.page[word]
	s.page[word] |= bit
	return before&bit == 0
}

// value adds what a value holds by itself, and leaves what it leads to for later.
func (s *Scale) value(v lua.LValue) {
	if s.count++; s.count%weighedAtOnce == 0 && s.Pause != nil {
		s.Pause()
	}
	box := dataOf(v)
	switch v := v.(type) {
	case lua.LNumber:
	case lua.LString:
		if len(v) > 0 && s.first(box) {
			s.Bytes += valueBytes
			s.text(string(v))
		}
		return
	case *lua.LTable:
		s.later(v, uintptr(unsafe.Pointer(v)))
		return
	case *lua.LFunction:
		if v != nil {
			s.later(v, uintptr(unsafe.Pointer(v)))
		}
		return
	case *lua.LState:
		s.later(v, uintptr(unsafe.Pointer(v)))
		return
	case *lua.LUserData:
		if s.first(uintptr(unsafe.Pointer(v))) {
			s.Bytes += dataBytes
			s.value(v.Metatable)
			if inner, ok := v.Value.(lua.LValue); ok {
				s.value(inner)
			}
		}
		return
	default:
		return
	}
	if block := box / numberBlock; block != s.block {
		s.block = block
		if s.first(block * numberBlock) {
			s.Bytes += numberBlock
		}
	}
}

// dataOf returns where the memory is that an interface value points to.
func dataOf(v lua.LValue) uintptr {
	return (*[2]uintptr)(unsafe.Pointer(&v))[1]
}

func (s *Scale) later(v lua.LValue, address uintptr) {
	if s.first(address) {
		s.open = append(s.open, v)
	}
}

// text adds the bytes of a string.
func (s *Scale) text(t string) {
	const small, rounding = 16, 12
	if len(t) <= small {
		s.Bytes += small
	} else if s.first(uintptr(unsafe.Pointer(unsafe.StringData(t)))) {
		s.Bytes += len(t) + len(t)/8 + rounding
	}
}

func (s *Scale) table(t *lua.LTable) {
	removed, has := s.Removed[t]
	if s.Compact {
		removed, has = s.compact(t, removed)
	}
	if has {
		s.leave(t, removed)
	}
	at := unsafe.Pointer(t)
	array := *(*[]lua.LValue)(unsafe.Add(at, arrayOffset))
	keys := *(*[]lua.LValue)(unsafe.Add(at, keysOffset))
	dict := *(*map[lua.LValue]lua.LValue)(unsafe.Add(at, dictOffset))
	texts := *(*map[string]lua.LValue)(unsafe.Add(at, stringsOffset))
	s.Bytes += tableBytes + valueBytes*(cap(array)+cap(keys))
	// A key that was given up keeps its place in each map.
	gone := len(keys) - len(dict) - len(texts)
	s.Gone += gone
	if has {
		s.Bytes += sizeOfMap(len(removed.places), valueBytes+8)
		for key := range removed.places {
			s.value(key)
		}
		if removed.isPast(len(keys)) {
			s.Gone += len(removed.places)
		}
	}
	s.Bytes += mapAt(t, dictOffset, len(dict)+gone, 2*valueBytes)
	s.Bytes += mapAt(t, stringsOffset, len(texts)+gone, 2*valueBytes) + valueBytes*len(texts) // A key has two boxes.
	s.Bytes += mapAt(t, placesOffset, len(keys), valueBytes+8)
	if t.Metatable != lua.LNil {
		s.value(t.Metatable)
	}
	s.values(array)
	s.values(keys)
	for _, v := range dict {
		s.value(v)
	}
	for _, v := range texts {
		s.value(v)
	}
}

// values adds elements, and stops early when there is too much.
func (s *Scale) values(list []lua.LValue) {
	for _, v := range list {
		if s.value(v); s.Full() {
			return
		}
	}
}

func (s *Scale) function(f *lua.LFunction) {
	s.Bytes += closureBytes + 8*len(f.Upvalues)
	if f.IsG {
		s.Bytes += nativeBytes
	}
	for _, up := range f.Upvalues {
		if up != nil && s.first(uintptr(unsafe.Pointer(up))) {
			s.Bytes += upvalueBytes
			if up.IsClosed() {
				letGo(up)
			} else if owner := ownerOf(up); owner.G.MainThread != owner {
				s.value(owner) // Its registers live as long as the variable.
			}
			s.value(up.Value())
		}
	}
	if f.Env != nil {
		s.value(f.Env)
	}
	if f.Proto != nil {
		s.proto(f.Proto)
	}
}

// proto adds what was compiled.
func (s *Scale) proto(p *lua.FunctionProto) {
	if !s.first(uintptr(unsafe.Pointer(p))) {
		return
	}
	s.Bytes += ownBytes(p)
	s.values(p.Constants)
	for _, inner := range p.FunctionPrototypes {
		s.proto(inner)
	}
}

// thread adds a coroutine, or the state that runs the script: its registers and
// the functions that are being called.
func (s *Scale) thread(L *lua.LState) {
	at := unsafe.Pointer(L)
	s.Bytes += threadBytes + L.Options.CallStackSize // Eight calls share a pointer.
	if registry := *(*unsafe.Pointer)(unsafe.Add(at, registryOffset)); registry != nil {
		array := *(*[]lua.LValue)(unsafe.Add(registry, registryArray))
		s.Bytes += valueBytes * cap(array)
		s.values(array)
	}
	const frameBytes = 80
	for f := *(*unsafe.Pointer)(unsafe.Add(at, currentOffset)); f != nil; f = *(*unsafe.Pointer)(unsafe.Add(f, frameParent)) {
		s.Bytes += frameBytes
		s.value(*(**lua.LFunction)(unsafe.Add(f, frameFunction)))
	}
	if L.Options.MinimizeStackMemory {
		s.body(at)
	}
	if L.Parent != nil {
		s.value(L.Parent)
	}
	if L.Env != nil {
		s.value(L.Env)
	}
}

// body adds the function that a coroutine runs. Until it runs that is found
// nowhere but in its stack.
func (s *Scale) body(thread unsafe.Pointer) {
	stack := (*[2]unsafe.Pointer)(unsafe.Add(thread, stackOffset))[1]
	if stack == nil { // it has ended
		return
	}
	segments := *(*[]unsafe.Pointer)(unsafe.Add(stack, segmentsOffset))
	if len(segments) > 0 && segments[0] != nil {
		s.value(*(**lua.LFunction)(unsafe.Add(segments[0], frameFunction)))
	}
}
