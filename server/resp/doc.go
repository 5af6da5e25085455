// Package resp reads commands and writes replies in the Redis serialization
// protocol, versions 2 and 3.
//
// A Reader parses commands where they lie in the connection's buffer: the
// arguments it hands out are slices of that buffer, so nothing is copied and
// nothing is allocated per command. Everything a client can make it hold or
// count is bounded by Limits, and memory grows with the bytes received, never
// with the lengths that a client announces.
//
// A Writer appends replies to one byte slice, most of them with the Append
// functions of tidwall/redcon. It knows the connection's protocol version and
// writes the newer types in their older form where RESP2 has no name for them.
//
// Readers, Writers and Pools are not safe for concurrent use: each belongs to
// one event loop, or to one goroutine that serves one connection.
package resp
