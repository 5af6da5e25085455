//go:build !linux

package persistence

import (
	"errors"
	"os"
)

// reserve keeps no room here.
func reserve(f *os.File, _, _ int64) error {
	return &os.PathError{Op: "fallocate", Path: f.Name(), Err: errors.ErrUnsupported}
}
