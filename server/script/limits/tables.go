package limits

import (
	"math"
	"reflect"
	"unsafe"

	lua "github.com/yuin/gopher-lua"
)

// ArrayMax has to hold wherever tables are made, in the tests of a library as
// well as in the server.
func init() { lua.MaxArrayIndex = ArrayMax }

// Where LTable keeps its array, and the places of the keys that it has in maps:
// nothing that gopher-lua exports tells a key without a value from one that the
// table never had.
var (
	arrayOffset  = OffsetIn[lua.LTable]("array", reflect.TypeFor[[]lua.LValue]())
	placesOffset = OffsetIn[lua.LTable]("k2i", reflect.TypeFor[map[lua.LValue]int]())
)

// OffsetIn returns where T, a type of gopher-lua's, has a field that it does not export; kind is the field's type, or nil for any. It panics at start if
// there is none, since this is another gopher-lua then.
func OffsetIn[T any](name string, kind reflect.Type) uintptr {
	return offsetOf(reflect.TypeFor[T](), name, kind)
}

// OffsetInCall is OffsetIn for gopher-lua's record of a call.
func OffsetInCall(name string, kind reflect.Type) uintptr {
	return offsetOf(pointedTo[lua.LState]("currentFrame"), name, kind)
}

func offsetOf(holder reflect.Type, name string, kind reflect.Type) uintptr {
	field, ok := holder.FieldByName(name)
	if !ok || kind != nil && field.Type != kind {
		panic("limits: this gopher-lua's " + holder.Name() + " is built otherwise")
	}
	return field.Offset
}

// Next returns the element behind key, the first one behind nil, and nil behind
// the last. ok is false for a key that t never had. passed is how many steps it
// took to pass over keys whose elements are gone.
func Next(t *lua.LTable, key lua.LValue) (k, v lua.LValue, passed int, ok bool) {
	places := *(*map[lua.LValue]int)(unsafe.Add(unsafe.Pointer(t), placesOffset))
	if key != lua.LNil {
		array := arrayOf(t)
		n, number := key.(lua.LNumber)
		switch i := int(n); {
		case number && n == lua.LNumber(i) && i >= 1 && i < ArrayMax:
			if i > cap(array) {
				return lua.LNil, lua.LNil, 0, false
			}
			if i > len(array) {
				// The array has shrunk since.
				if key = lua.LNumber(len(array)); len(array) == 0 {
					key = lua.LNil
				}
			}
		default:
			if _, had := places[key]; !had {
				return lua.LNil, lua.LNil, 0, false
			}
		}
	}
	k, v = t.Next(key)
	if len(places) > keyed(t) {
		to, found := places[k]
		if !found && k == lua.LNil {
			to = len(places)
		}
		passed = max(0, to-places[key]-1)
	}
	return k, v, passed + gap(t, key, k), true
}

// gap returns how many steps it takes to go along the array of t from the element
// with one key, or from its beginning, to that with another.
func gap(t *lua.LTable, from, to lua.LValue) int {
	end := len(arrayOf(t))
	begin, inside := placeIn(from, end)
	if !inside && from != lua.LNil {
		return 0
	}
	if place, inside := placeIn(to, end); inside {
		end = place
	}
	return max(0, end-begin) / placesPerStep
}

// placeIn returns the place of a key in an array of so many elements, if it has one.
func placeIn(key lua.LValue, elements int) (place int, inside bool) {
	n, ok := key.(lua.LNumber)
	if !ok || n < 1 || n > lua.LNumber(elements) || n != lua.LNumber(int(n)) {
		return 0, false
	}
	return int(n), true
}

// keyed returns how many elements of t are not in its array.
func keyed(t *lua.LTable) int {
	dict := *(*map[lua.LValue]lua.LValue)(unsafe.Add(unsafe.Pointer(t), dictOffset))
	texts := *(*map[string]lua.LValue)(unsafe.Add(unsafe.Pointer(t), stringsOffset))
	return len(dict) + len(texts)
}

// SpendGone counts the steps of passing over the keys of t whose elements are gone,
// and along its array, as everybody does who goes through it.
func (b *Budget) SpendGone(t *lua.LTable) {
	places := *(*map[lua.LValue]int)(unsafe.Add(unsafe.Pointer(t), placesOffset))
	b.Spend(int64(len(places) - keyed(t) + len(arrayOf(t))/placesPerStep))
}

// placesPerStep is how many places of an array are passed over, or filled, while a script makes a step.
const placesPerStep = 8

func arrayOf(t *lua.LTable) []lua.LValue {
	return *(*[]lua.LValue)(unsafe.Add(unsafe.Pointer(t), arrayOffset))
}

// Len is the function Len, and counts the steps of passing over the end of the
// array, where elements are gone.
func (b *Budget) Len(t *lua.LTable) int {
	n := Len(t)
	b.Spend(1 + int64(max(0, len(arrayOf(t))-n))/placesPerStep)
	return n
}

// Get returns t[i] without metamethods, also beyond ArrayMax, where
// LTable.RawGetInt finds nothing. Its counterpart for writing is
// LTable.RawSetInt; LTable.Append, Insert and Remove must not be used.
func Get(t *lua.LTable, i int) lua.LValue {
	if i < ArrayMax {
		if v := t.RawGetInt(i); i >= 1 {
			if v == nil {
				return lua.LNil
			}
			return v
		}
	}
	return t.RawGetH(lua.LNumber(i))
}

// Len returns the length of t by Lua's rules (a border), also beyond ArrayMax,
// where LTable.Len stops. It ignores metatables, as Lua 5.1 does. Whoever lets a
// script ask for it uses Budget.Len.
func Len(t *lua.LTable) int {
	n := t.Len()
	if n < ArrayMax-1 || Get(t, n+1) == lua.LNil {
		return n
	}
	low, high := n+1, 2*(n+1)
	for Get(t, high) != lua.LNil {
		if high > math.MaxInt32 {
			return high
		}
		low, high = high, 2*high
	}
	for high-low > 1 {
		middle := low + (high-low)/2
		if Get(t, middle) == lua.LNil {
			high = middle
		} else {
			low = middle
		}
	}
	return low
}

// SpendRoom counts what the array of t is about to grow by because something is
// stored at key: it is filled up to there.
func (b *Budget) SpendRoom(t *lua.LTable, key lua.LValue) {
	if n, ok := key.(lua.LNumber); ok && n > 0 && n < ArrayMax {
		b.SpendRoomFor(int(n) - len(arrayOf(t)))
	}
}

// SpendRoomFor counts that an array is about to grow by n elements, if n is
// positive.
func (b *Budget) SpendRoomFor(n int) {
	const largeRoom = ArrayMax / 8
	if n < placesPerStep {
		return
	}
	b.Spend(int64(n) / placesPerStep)
	if n >= largeRoom {
		b.Want = n * valueBytes
		b.Check()
		b.Want = 0
	}
}
