// Package luanum converts between numbers and text as Lua 5.1 does on x86-64
// Linux: C's "%.14g" one way, C's strtod and strtoul the other way.
//
// All functions are pure and safe for concurrent use.
package luanum
