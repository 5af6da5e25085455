package soak

import (
	"os"
	"testing"

	"headgate/tests/internal/flood"
)

func TestMain(m *testing.M) {
	flood.Child(os.Stdin, os.Stdout)
	os.Exit(m.Run())
}
