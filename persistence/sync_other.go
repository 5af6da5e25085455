//go:build !linux

package persistence

import "os"

// syncData returns when the file is on stable storage.
func syncData(f *os.File) error { return f.Sync() }
