package config

import (
	"errors"
	"fmt"
	"io"
	"os"

	"headgate/persistence"
)

// MaxTLSFile bounds what is read of a file for TLS, in bytes.
const MaxTLSFile = 4 << 20

// ReadRegular reads a whole file that a directive names, if it has no more than most bytes. It may be called from any goroutine. What is no regular
// file is refused: to open a pipe whose writer has gone takes for ever, a pipe that has been read once is empty, and a device may have no end. The
// error is an *os.PathError.
func ReadRegular(path string, most int64) ([]byte, error) {
	f, err := persistence.OS{RegularOnly: true}.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readOpen(path, f, most)
}

// readFile reads a file of the configuration, which may be a pipe.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readOpen(path, f, maxFileSize)
}

// readAgain reads a file of the configuration while the server runs.
func readAgain(path string) ([]byte, error) { return ReadRegular(path, maxFileSize) }

// readOpen reads a file that is open. Errors name it, as those of the system do.
func readOpen(path string, r io.Reader, most int64) ([]byte, error) {
	data, err := readAll(r, most)
	var named *os.PathError
	if err != nil && !errors.As(err, &named) {
		err = &os.PathError{Op: "read", Path: path, Err: err}
	}
	return data, err
}

// readAll reads to the end, or to the first byte that is too many.
func readAll(r io.Reader, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("longer than %d bytes", most)
	}
	return data, err
}
