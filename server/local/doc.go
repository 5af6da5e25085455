// Package local lets parts of the server be clients of it: they ask limits over a connection within the process, as any client does, so that
// rights, counts, policies and an upstream apply to them without a second implementation.
package local
