package cjson

import (
	"fmt"
	"math"

	lua "github.com/yuin/gopher-lua"

	"headgate/server/script/limits"
	"headgate/server/script/lualib/luacall"
)

// invalidNumbers says what encode does with NaN and the infinities.
type invalidNumbers int

const (
	refuse invalidNumbers = iota
	writeNames
	writeNull
)

// settings are what the functions below read and change.
type settings struct {
	sparseConvert  bool  // write very sparse arrays as objects
	sparseRatio    int32 // very sparse: the largest index exceeds the count times this; 0 for never
	sparseSafe     int32 // and exceeds this
	encodeMaxDepth int32
	decodeMaxDepth int32
	precision      int32 // significant digits of numbers
	keepBuffer     bool  // has no effect but to be read again
	encodeInvalid  invalidNumbers
	decodeInvalid  bool // read NaN, infinities, hexadecimals, leading zeros
}

// defaults are the settings of a new library.
var defaults = settings{
	sparseRatio:    2,
	sparseSafe:     10,
	encodeMaxDepth: 1000,
	decodeMaxDepth: 1000,
	precision:      14,
	keepBuffer:     true,
	decodeInvalid:  true,
}

func (l *library) encodeSparseArray(L *lua.LState) int {
	const name = "encode_sparse_array"
	begin(L, l.budget, name, 3)
	boolOption(L, 1, name, &l.settings.sparseConvert)
	integerOption(L, 2, name, &l.settings.sparseRatio, 0, math.MaxInt32)
	integerOption(L, 3, name, &l.settings.sparseSafe, 0, math.MaxInt32)
	return 3
}

func (l *library) encodeMaxDepth(L *lua.LState) int {
	const name = "encode_max_depth"
	begin(L, l.budget, name, 1)
	return integerOption(L, 1, name, &l.settings.encodeMaxDepth, 1, math.MaxInt32)
}

func (l *library) decodeMaxDepth(L *lua.LState) int {
	const name = "decode_max_depth"
	begin(L, l.budget, name, 1)
	return integerOption(L, 1, name, &l.settings.decodeMaxDepth, 1, math.MaxInt32)
}

func (l *library) encodeNumberPrecision(L *lua.LState) int {
	const name = "encode_number_precision"
	begin(L, l.budget, name, 1)
	return integerOption(L, 1, name, &l.settings.precision, 1, 14)
}

func (l *library) encodeKeepBuffer(L *lua.LState) int {
	const name = "encode_keep_buffer"
	begin(L, l.budget, name, 1)
	return boolOption(L, 1, name, &l.settings.keepBuffer)
}

func (l *library) decodeInvalidNumbers(L *lua.LState) int {
	const name = "decode_invalid_numbers"
	begin(L, l.budget, name, 1)
	return boolOption(L, 1, name, &l.settings.decodeInvalid)
}

func (l *library) encodeInvalidNumbers(L *lua.LState) int {
	const name = "encode_invalid_numbers"
	begin(L, l.budget, name, 1)
	setting := enumOption(L, 1, name, int(l.settings.encodeInvalid), "off", "on", "null")
	l.settings.encodeInvalid = invalidNumbers(setting)
	if l.settings.encodeInvalid == writeNull {
		L.Push(lua.LString("null"))
	} else {
		L.Push(lua.LBool(setting == 1))
	}
	return 1
}

// begin checks that a function that reads and changes settings is called with
// no more than count arguments, and makes those that are missing nil.
func begin(L *lua.LState, b *limits.Budget, name string, count int) {
	b.Spend(1)
	if L.GetTop() > count {
		luacall.ArgError(L, count+1, "found too many arguments")
	}
	L.SetTop(count)
}

// integerOption sets an integer to argument i, if there is one, and pushes it.
func integerOption(L *lua.LState, i int, name string, setting *int32, low, high int32) int {
	if L.Get(i) != lua.LNil {
		value := int32(luacall.Integer(L, i))
		if value < low || value > high {
			// Redis calls every argument the first here.
			luacall.ArgError(L, 1, fmt.Sprintf("expected integer between %d and %d", low, high))
		}
		*setting = value
	}
	L.Push(lua.LNumber(*setting))
	return 1
}

// boolOption sets a bool to argument i, if there is one, and pushes it.
func boolOption(L *lua.LState, i int, name string, setting *bool) int {
	current := 0
	if *setting {
		current = 1
	}
	*setting = enumOption(L, i, name, current, "off", "on") == 1
	L.Push(lua.LBool(*setting))
	return 1
}

// enumOption returns the index of the option that argument i names, where true
// and false stand for the second and the first, or the current one when there
// is no such argument.
func enumOption(L *lua.LState, i int, name string, current int, options ...string) int {
	switch v := L.Get(i).(type) {
	case *lua.LNilType:
		return current
	case lua.LBool:
		if v {
			return 1
		}
		return 0
	}
	text := luacall.String(L, i)
	for index, option := range options {
		if option == text {
			return index
		}
	}
	luacall.ArgError(L, i, "invalid option '"+text+"'")
	return current
}
