package flagtext

import (
	"flag"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWithTwoDashes(t *testing.T) {
	f := flag.NewFlagSet("", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.Int("n", 0, "")
	for _, tt := range []struct{ given, said string }{
		{"-n=-x", `invalid value "-x" for flag --n: parse error`},
		{"-n", "flag needs an argument: --n"},
		{"-m", "flag provided but not defined: --m"},
	} {
		require.Equal(t, tt.said, WithTwoDashes(f.Parse([]string{tt.given})))
	}
}
