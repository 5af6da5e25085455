package simulate_test

import (
	"bytes"
	"compress/gzip"
	"strings"
	"sync/atomic"
	"testing"

	"headgate/cmd/headgate/simulate"

	"github.com/stretchr/testify/require"
)

const brokenLine = "192.0.2.1 - - [10/Oct/2025:13:55:36 +0200] \"GET / HTTP/1.1\" 200 1 \"-\" \"-\"\n"

// simulated is the report on a log, in words.
func simulated(t *testing.T, log []byte) string {
	t.Helper()
	report, err := reportOn(t, log)
	require.NoError(t, err)
	return report
}

// reportOn returns what is reported on a log on the standard input, and the error.
func reportOn(t *testing.T, log []byte) (string, error) {
	t.Helper()
	options, err := simulate.ParseOptions([]string{"-", "--policy", "FIXED 2 1m"}, new(bytes.Buffer))
	require.NoError(t, err)
	var out bytes.Buffer
	err = (&simulate.Simulation{Options: options, Stdin: bytes.NewReader(log), Stop: new(atomic.Bool)}).Run(&out)
	return out.String(), err
}

// TestLogThatBreaksOff: what a compressed log has before it is cut off is simulated, and the report says that it does.
func TestLogThatBreaksOff(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	for range 4 {
		_, err := z.Write([]byte(strings.Repeat(brokenLine, 1000)))
		require.NoError(t, err)
		require.NoError(t, z.Flush())
	}
	require.NoError(t, z.Close())
	whole := packed.Bytes()
	flipped := bytes.Clone(whole)
	flipped[len(flipped)-6] ^= 1 // of the checksum
	for _, tc := range []struct {
		name      string
		log       []byte
		why, line string
	}{
		{"cut", whole[:len(whole)-20], "the standard input is cut off: unexpected EOF.", ", 1 key of "},
		{"what is no gzip behind it", append(bytes.Clone(whole), brokenLine...), "the standard input is cut off: gzip: invalid header.", "4,000 lines"},
		{"checksum", flipped, "the standard input is cut off: gzip: invalid checksum.", "4,000 lines"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			report := simulated(t, tc.log)
			require.Contains(t, report, tc.why)
			require.Contains(t, report, tc.line)
		})
	}
	require.NotContains(t, simulated(t, whole), "is cut off")
	report, err := reportOn(t, whole[:2])
	require.Contains(t, report, " 0 lines")
	require.Contains(t, report, "the standard input is cut off: unexpected EOF.")
	require.EqualError(t, err, "there are no lines to simulate")
}

// TestByteOrderMark: one before the first line is no part of it.
func TestByteOrderMark(t *testing.T) {
	require.Contains(t, simulated(t, []byte("\ufeff"+brokenLine+brokenLine)), "2 lines, 1 key of ")
}
