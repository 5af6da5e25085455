package aof

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// memory is a file of bytes.
type memory struct{ *bytes.Reader }

func (m memory) Close() error { return nil }

// FuzzScan: whatever a file holds, its report makes sense, and what it says is whole is whole.
func FuzzScan(f *testing.F) {
	f.Add([]byte("*1\r\n$4\r\nPING\r\n"))
	f.Add([]byte("#NOW:1700000000000\r\n*1\r\n$5\r\nMULTI\r\n*2\r\n$4\r\nINCR\r\n$1\r\na\r\n*1\r\n$4\r\nEXEC\r\n#CRC:00000000:12\r\n"))
	f.Add([]byte("*3\r\n$3\r\nSET\r\n$1\r\na\r\n$5\r\nabc"))
	f.Add(make([]byte, 600))
	f.Fuzz(func(t *testing.T, data []byte) {
		report, err := Scan(memory{bytes.NewReader(data)}, 0)
		require.NoError(t, err)
		require.LessOrEqual(t, report.Whole, report.Size)
		if report.Flaw == nil {
			require.Equal(t, report.Size, report.Whole)
		}
		again, err := Scan(memory{bytes.NewReader(data[:report.Whole])}, 0)
		require.NoError(t, err)
		require.Equal(t, report.Whole, again.Whole)
		require.Equal(t, report.Commands, again.Commands)
	})
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte("file appendonly.aof.1.base.rdb seq 1 type b\nfile \"a b\" seq 1 type i\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := ParseManifest(text)
		if err != nil || len(m.all()) == 0 {
			return
		}
		again, err := ParseManifest(m.Encode())
		require.NoError(t, err)
		require.Equal(t, m, again)
	})
}
