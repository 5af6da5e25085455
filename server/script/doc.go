// Package script runs Lua scripts and libraries of functions as redis-server does, within limits.
//
// It is built on gopher-lua, unforked. Text goes through a parser of our own (package syntax: Lua 5.1's grammar and
// messages, with bounded nesting) into gopher-lua's syntax tree. A pass over that tree (rewrite.go) turns .., #, % and
// ^, and comparisons of what may be long strings (rewrite_long.go), into calls of ours, has loops and functions count
// steps in a hidden local variable, makes names of the sandbox constants and KEYS and ARGV parameters, and repairs two
// things that gopher-lua does otherwise (assignments that swap local variables, a local function's own name). Compiled
// scripts are kept by their SHA-1.
//
// One Lua state runs all scripts, another all functions of libraries. What a script can see of the engine is read-only,
// and what it makes is gone when it ends, so that scripts do not see each other. See sandbox for what is available. A
// called command runs in the caller's context, behind [Host], with a reply buffer of its own whose RESP bytes become
// Lua values.
//
// # Time
//
// Everything that can take long spends steps of one budget (budget.go): loops, calls, string and table functions,
// patterns. When a tick of them is used up the engine looks at the clock, and after a slice asks its host whether
// to continue the script; the host may serve other clients meanwhile. A stop is a panic that no pcall keeps; the Lua state is
// created again afterwards, with the room for calls of the one before (limits/stack.go). Called commands spend steps by the bytes of their arguments and replies. The compiler cannot be
// stopped, so the parser bounds what it is given (statements, functions, branches, constants), which also keeps
// gopher-lua's jumps within their 18 bits. Large tables of literals are not compiled, and not so bounded (rewrite_literal.go).
//
// # Memory
//
// A script's memory is bounded without a collection, which would take as long as all the data: the runtime counts what
// is allocated, and only when that has passed what the script has room for are its values weighed, by a walk over its
// registers, its coroutines and what they lead to (limits/scale.go). What it stores in keys does not count, nor does what
// others hold. Functions of the libraries report what they hold meanwhile (Budget.Hold, Budget.Grow), and make parts of long
// strings copies, since a part would weigh little and keep the whole. Functions may keep what they make: what those of a
// library keep counts for each of them.
package script
