package types_test

import (
	"testing"

	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// TestEffectsOfINCREX: the log and replicas are given what has become of the key, with the time at which it expires, and nothing of a call that has
// changed nothing.
func TestEffectsOfINCREX(t *testing.T) {
	const inTen = "1700000010123" // ten seconds from now
	for _, tc := range []struct {
		name   string
		before []string
		run    []string
		want   []string
	}{
		{"a number", nil, []string{"INCREX k", "INCREX k BYINT 5"}, []string{"SET k 1", "SET k 6"}},
		{"a number from now on", nil, []string{"INCREX k EX 10", "INCREX k PX 10000"}, []string{"SET k 1 PXAT " + inTen, "SET k 2 PXAT " + inTen}},
		{"a number until a time", nil, []string{"INCREX k EXAT 1800000000", "INCREX k PXAT 1800000000123"}, []string{"SET k 1 PXAT 1800000000000", "SET k 2 PXAT 1800000000123"}},
		{"a number that keeps its time", []string{"SET k 1 PX 10000"}, []string{"INCREX k", "INCREX k EX 99 ENX"}, []string{"SET k 2 PXAT " + inTen, "SET k 3 PXAT " + inTen}},
		{"a number that persists", []string{"SET k 1 PX 10000"}, []string{"INCREX k PERSIST"}, []string{"SET k 2"}},
		{"a fraction", nil, []string{"INCREX k BYFLOAT 0.5", "INCREX k BYFLOAT 0.25 EX 10"}, []string{"SET k 0.5", "SET k 0.75 PXAT " + inTen}},
		{"a time that is over", []string{"SET k 1"}, []string{"INCREX k EXAT 1", "INCREX k EXAT 1"}, []string{"DEL k"}},
		{"a bound", []string{"SET k 1"}, []string{"INCREX k UBOUND 1", "INCREX k UBOUND 1 EX 10"}, nil},
		{"a saturated bound", []string{"SET k 1"}, []string{"INCREX k BYINT 9 UBOUND 5 SATURATE"}, []string{"SET k 5"}},
		{"an error", []string{"SET k text"}, []string{"INCREX k", "INCREX k BYFLOAT 1"}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := servertest.NewEffectsClient(t)
			w.EffectsOf(tc.before...)
			require.Equal(t, tc.want, w.EffectsOf(tc.run...))
		})
	}
}
