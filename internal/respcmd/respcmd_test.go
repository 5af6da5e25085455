package respcmd

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAppend(t *testing.T) {
	require.Equal(t, "x*2\r\n$4\r\nPING\r\n$0\r\n\r\n", string(Append([]byte("x"), "PING", "")))
	require.Equal(t, "*1\r\n$2\r\n\r\n\r\n", string(Append(nil, []byte("\r\n"))))
	require.Equal(t, "*0\r\n", string(Append[string](nil)))
}

func TestAppendHeader(t *testing.T) {
	for _, n := range []int64{-1, 0, 1, 9, 10, 11, 99, 100, 101, math.MaxInt64, math.MinInt64} {
		require.Equal(t, fmt.Sprintf("$%d\r\n", n), string(AppendHeader(nil, '$', n)))
	}
}

func TestAppendAllocatesNothing(t *testing.T) {
	dst, key := make([]byte, 0, 100), []byte("key")
	require.Zero(t, testing.AllocsPerRun(100, func() { dst = AppendBulk(AppendBulk(AppendHeader(dst[:0], '*', 2), "GET"), key) }))
}
