// Package mutantswitch is compiled into a program that has many mutants, each behind a choice that is made at run time, so that one build
// serves them all. Its source becomes a package of the module whose mutants are tried; it imports nothing else.
//
// The environment variable MUTANT is the number of the one mutant that is on, of none if it is not set. MUTANT_REACHED, if set, names a file
// to which the number of each mutant whose place is reached is appended, once per process.
package mutantswitch

import (
	"os"
	"strconv"
	"sync/atomic"
)

// Max is the highest number that a mutant may have.
const Max = 10_000

var (
	on, _   = strconv.Atoi(os.Getenv("MUTANT"))
	reached = open(os.Getenv("MUTANT_REACHED"))
	seen    [Max + 1]atomic.Bool
)

func open(path string) *os.File {
	if path == "" {
		return nil
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		panic(err)
	}
	return file
}

// On reports whether a mutant is meant, the place of which has been reached. It may be called concurrently.
func On(id int) bool {
	if reached != nil && !seen[id].Swap(true) {
		_, _ = reached.WriteString(strconv.Itoa(id) + "\n")
	}
	return id == on
}

// Number is what bounds are.
type Number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr | ~float32 | ~float64
}

// Up is n, and one more if the mutant is meant.
func Up[N Number](id int, n N) N {
	if On(id) {
		return n + 1
	}
	return n
}

// Down is n, and one less if the mutant is meant.
func Down[N Number](id int, n N) N {
	if On(id) {
		return n - 1
	}
	return n
}
