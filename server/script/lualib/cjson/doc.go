// Package cjson is the Lua library "cjson" of Redis: JSON as lua-cjson 2.1.0
// reads and writes it.
//
// It differs from the standard in what it reads: numbers in any form that C's
// strtod knows, unless decode_invalid_numbers says otherwise, control
// characters in strings, and nothing from the first NUL byte on. UTF-8 is not
// checked. It writes whole tables: one whose keys are all whole numbers from 1
// on is an array, any other, and an empty one, an object. The order of an
// object's keys is gopher-lua's.
//
// null is a userdata whose Value is nil, as C's null pointer is; IsNull tells
// it from others.
//
// A library has settings, which functions of it read and change. In Redis they
// last; here Reset has to be called after every script, so that none sees what
// another did. Libraries made by cjson.new have settings of their own, which
// no one needs to restore.
package cjson
