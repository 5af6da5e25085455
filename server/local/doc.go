// Package local has parts of the server be clients of it: they ask limits as anybody does, over a connection within the process, so that
// rights, counts, policies and an upstream hold for them without a second way to any of these.
package local
