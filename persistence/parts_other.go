//go:build !linux

package persistence

import "os"

// writeParts writes parts one after the other.
func writeParts(f *os.File, parts [][]byte) (int, error) { return writeEach(f, parts) }
