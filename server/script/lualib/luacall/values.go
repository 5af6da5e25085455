package luacall

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// Values that are boxed once, because an interface around a number or a string
// costs an allocation. They never change.
var (
	smallInts = boxSmallInts()
	oneBytes  = boxOneBytes()
)

// smallIntMax is the first whole number that is boxed anew each time.
const smallIntMax = 1024

func boxSmallInts() (boxed [smallIntMax]lua.LValue) {
	for i := range boxed {
		boxed[i] = lua.LNumber(i)
	}
	return boxed
}

func boxOneBytes() (boxed [256]lua.LValue) {
	for i := range boxed {
		boxed[i] = lua.LString([]byte{byte(i)})
	}
	return boxed
}

// IntValue returns i as a Lua value, without an allocation if it is small.
func IntValue(i int) lua.LValue {
	if uint(i) < smallIntMax {
		return smallInts[i]
	}
	return lua.LNumber(i)
}

// emptyString is the string of no bytes.
var emptyString lua.LValue = lua.LString("")

// sharedMax is the length of the longest string whose parts may share its memory,
// in bytes.
const sharedMax = 64

// Part returns part, which is a piece of whole, with memory of its own: of a
// long string no part may keep more than itself in memory.
func Part(whole, part string) string {
	if len(whole) <= sharedMax || len(part) == len(whole) {
		return part
	}
	return strings.Clone(part)
}

// PartValue returns part, which is a piece of whole, as StringValue does; see
// Part.
func PartValue(whole, part string) lua.LValue {
	if len(part) <= 1 {
		return StringValue(part)
	}
	return lua.LString(Part(whole, part))
}

// StringValue returns s as a Lua value, without an allocation if it is at most
// one byte long.
func StringValue(s string) lua.LValue {
	switch len(s) {
	case 0:
		return emptyString
	case 1:
		return oneBytes[s[0]]
	}
	return lua.LString(s)
}
