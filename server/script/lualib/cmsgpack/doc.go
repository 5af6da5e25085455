// Package cmsgpack is the Lua library "cmsgpack" of Redis: MessagePack in the
// version of lua-cmsgpack 0.4.0, which knows strings but neither binary nor
// extension types.
//
// Whole numbers that fit an int64 are packed as the shortest integer, others
// as a float where that loses nothing, else as a double. A table whose keys
// are exactly 1 to n is an array, any other a map. Tables nested deeper than
// 16 levels, and values that MessagePack does not have, become nil.
package cmsgpack
