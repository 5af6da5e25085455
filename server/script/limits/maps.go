package limits

import (
	"math/bits"
	"unsafe"

	lua "github.com/yuin/gopher-lua"
)

// gopher-lua makes the map of a table with room for 32 elements when it stores the
// first one there, unless the table was made with fields: 2 KiB, where what it
// holds tells of 300 bytes. How much room a map has only Go's runtime knows. So its
// maps are looked into where they are built as those of Go 1.24 to 1.26 are, and
// where not it is reckoned by what they hold.

// goMap and goMapPart are the beginnings of what Go's runtime has for a map, and for one
// of the parts of a map that has more than eight elements.
type (
	goMap struct {
		used   uint64
		seed   uintptr
		parts  unsafe.Pointer // of *goMapPart; with no parts the only group of elements, or nil
		length int            // of parts, of which some may be the same
	}
	goMapPart struct {
		_, room uint16 // before the room: how much of it is used
	}
)

// slotsPerGroup is how many elements a map has room for at least.
const slotsPerGroup = 8

// knowsMaps is whether maps are built so.
var knowsMaps = func() bool {
	one, some, many := map[string]lua.LValue{"": nil}, make(map[string]lua.LValue, 32), make(map[string]lua.LValue)
	for i := range 5000 {
		many[string(rune('A'+i))] = nil
	}
	has := func(m *map[string]lua.LValue, room int) bool {
		at := *(*unsafe.Pointer)(unsafe.Pointer(m))
		of := (*goMap)(at)
		return of.used == uint64(len(*m)) && of.length >= 0 && of.length <= len(*m)+1 && roomOfMap(at) == room
	}
	return has(&one, slotsPerGroup) && has(&some, 64) && has(&many, 8192)
}()

// roomOfMap returns how many elements a map has room for.
func roomOfMap(at unsafe.Pointer) int {
	m := (*goMap)(at)
	if m.length == 0 {
		if m.parts == nil {
			return 0
		}
		return slotsPerGroup
	}
	room, last := 0, (*goMapPart)(nil)
	for _, part := range unsafe.Slice((**goMapPart)(m.parts), m.length) {
		if part != last {
			room += int(part.room)
		}
		last = part
	}
	return room
}

// mapAt returns what a map of a table takes, which has had n elements.
func mapAt(t *lua.LTable, offset uintptr, n, element int) int {
	m := *(*unsafe.Pointer)(unsafe.Add(unsafe.Pointer(t), offset))
	switch {
	case m == nil:
		return 0
	case knowsMaps:
		return mapWithRoom(roomOfMap(m), element)
	}
	return sizeOfMap(n, element)
}

// sizeOfMap returns what a map with n elements takes: its room doubles when seven
// eighths of it are used.
func sizeOfMap(n, element int) int {
	room := slotsPerGroup
	if n > slotsPerGroup {
		room = 1 << bits.Len(uint(n*8/7))
	}
	return mapWithRoom(room, element)
}

// mapWithRoom returns what a map with room for so many elements takes. Each has a byte
// beside it. The allocator rounds up what that comes to, by up to a quarter.
func mapWithRoom(room, element int) int {
	size := room * (element + 1)
	return mapBytes + size + size/4
}
