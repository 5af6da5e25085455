package store

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestElements(t *testing.T) {
	for _, n := range []int{0, 1, 255, 256, maxBlock} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			v := slices.Repeat([]byte{'v'}, n)
			p := make([]byte, 3+elementSize(n))
			require.Equal(t, elementSize(n), putElement(p[3:], v))
			start, end := elementBounds(p, 3)
			require.Equal(t, len(p), end)
			require.Equal(t, string(v), string(p[start:end]))
		})
	}
}

// TestSplice grows and shrinks a part of a payload at its start, middle and end.
func TestSplice(t *testing.T) {
	ks, db := typesKeyspace(t, Limits{})
	e := db.create(ks.Key([]byte("k")), encPackedHash)
	want := "0123456789"
	copy(e.splice(0, 0, len(want)), want)
	for _, step := range []struct {
		at, old int
		text    string
	}{{0, 2, "abcdef"}, {3, 3, ""}, {4, 0, "x"}, {12, 0, "end"}, {0, 15, "z"}, {1, 0, string(slices.Repeat([]byte("long"), 200))}, {1, 799, ""}} {
		want = want[:step.at] + step.text + want[step.at+step.old:]
		copy(e.splice(step.at, step.old, len(step.text))[step.at:], step.text)
		require.Equal(t, want, string(e.packed()))
	}
}
