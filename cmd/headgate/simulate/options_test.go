package simulate_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"headgate/cmd/headgate/simulate"

	"github.com/stretchr/testify/require"
)

// TestAnUnquotedLimitIsSaidToBeOne: the shell makes several words of it, and the rest would be taken for logs.
func TestAnUnquotedLimitIsSaidToBeOne(t *testing.T) {
	_, err := simulate.ParseOptions([]string{"access.log", "--policy", "GCRA", "20", "100", "1m"}, io.Discard)
	require.ErrorContains(t, err, "put the whole limit in quotes, as in --policy 'GCRA 20 100 1m'")
}

// TestPoliciesOfAConfiguration are read as the server reads them, in quotes or not.
func TestPoliciesOfAConfiguration(t *testing.T) {
	path := filepath.Join(t.TempDir(), "headgate.conf")
	read := func(text string) ([]string, error) {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		options, err := simulate.ParseOptions([]string{"access.log", "--policies", path}, io.Discard)
		if err != nil {
			return nil, err
		}
		var texts []string
		for i := range options.Policies {
			texts = append(texts, options.Policies[i].String())
		}
		return texts, nil
	}
	texts, err := read("port 1\npolicy a GCRA 20 100 1m\n policy b \"FIXED 10 1h\"\npolicy 'c' LOG \"5\" 1s\n")
	require.NoError(t, err)
	require.Equal(t, []string{"a: GCRA 20 100 1m", "b: FIXED 10 1h", "c: LOG 5 1s"}, texts)
	_, err = read("policy a \"FIXED 10 1h\n")
	require.ErrorContains(t, err, path+":1: unbalanced quotes")
	_, err = read("policy\u00a0a\u00a0FIXED")
	require.ErrorContains(t, err, path+":1: blanks that separate no words")
}

// TestPlotsThatCannotBe: a plot takes the place of no log, and one that cannot be written takes nothing of the report away.
func TestPlotsThatCannotBe(t *testing.T) {
	log := filepath.Join(t.TempDir(), "access.log")
	require.NoError(t, os.WriteFile(log, []byte(brokenLine), 0o644))
	link := log + ".link"
	require.NoError(t, os.Symlink(log, link))
	run := func(plot string) (string, error) {
		options, err := simulate.ParseOptions([]string{"--policy", "FIXED 2 1m", "--svg", plot, log}, new(bytes.Buffer))
		require.NoError(t, err)
		var out bytes.Buffer
		err = (&simulate.Simulation{Options: options, Stop: new(atomic.Bool)}).Run(&out)
		return out.String(), err
	}
	for _, plot := range []string{log, link} {
		_, err := run(plot)
		require.ErrorContains(t, err, "is a log that is to be read")
	}
	kept, err := os.ReadFile(log)
	require.NoError(t, err)
	require.Equal(t, brokenLine, string(kept))
	report, err := run(filepath.Join(log, "plot.svg"))
	require.ErrorContains(t, err, "not a directory")
	require.Contains(t, report, "1 line,")
}
