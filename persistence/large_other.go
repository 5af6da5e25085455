//go:build !linux

package persistence

import (
	"io/fs"
	"os"
)

func createLarge(name string, perm fs.FileMode) (File, error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|noFollow, perm)
	if err != nil {
		return nil, err
	}
	return &partedFile{osFile: osFile{f}}, nil
}
