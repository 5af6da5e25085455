package resp

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzReader checks that the same bytes give the same commands and the same
// error however they are split between reads, and that memory stays within
// what was received (feed checks that). The limits are small, so that short
// inputs reach them.
func FuzzReader(f *testing.F) {
	for _, seed := range []string{
		"*1\r\n$4\r\nPING\r\n",
		"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n*0\r\n*-1\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2\r\nvv\r\n",
		"*1\r\n$9223372036854775807\r\n", "*9223372036854775807\r\n", "*-10\r\n", "*3000000000\r\n",
		"*1\r\n$-10\r\n", "*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$blabla\r\n", "*1\r\nfoo\r\n", "*1\r\n\r\n",
		"\x00", "*\x00", "*1\r\n$\x00", "PING\r\n", "\n\r\n \r\nPING\n",
		"SET 'it\\'s' \"\\x41\\n\\\"\"\r\n", "ECHO \"a\"b\n", "ECHO 'abc\n", "*\r\n\r\n*11\r\n",
		"*3\r\n$3\r\nSET\r\n$10\r\n0123456789\r\n$2\r\nvv\r\n", "*3\r\n$3\r\nSET\r\nx1\r\nk\r\n$2\r\nvv\r\n",
		"*3\r\n$3\r\nSET\r\n$1\rxk\rx$2\r\nvv\r\n", "*3\r\n$3\r\nSET\r\n$01\r\nk\r\n$2\r\nvv\r\n",
		"*1\r\n$0000000000000000000000000000000000000000000000000000000000000000000000",
	} {
		f.Add([]byte(seed), 3, false)
		f.Add([]byte(seed), len(seed)-1, true)
	}
	// Each fuzzing process runs one input at a time.
	var pool Pool
	f.Fuzz(func(t *testing.T, input []byte, split int, unauthenticated bool) {
		lim := Limits{Inline: 64, Multibulk: 20, Bulk: 100, Query: 300}
		if unauthenticated {
			lim = UnauthenticatedLimits(lim)
			lim.BulkUnauth = 50
		}
		want, wantErr := feedFrom(t, &pool, input, lim)
		split = max(0, min(split, len(input)))
		for _, pieces := range [][]int{{split}, ones(len(input))} {
			got, err := feedFrom(t, &pool, input, lim, pieces...)
			if !reflect.DeepEqual(want, got) || !reflect.DeepEqual(wantErr, err) {
				require.Equal(t, want, got, "%v", pieces)
				require.Equal(t, wantErr, err, "%v", pieces)
			}
		}
		var protocol *ProtocolError
		if wantErr != nil && !errors.As(wantErr, &protocol) {
			require.ErrorIs(t, wantErr, ErrQueryBuffer)
		}
		requireSameAgain(t, &pool, want, lim)

		// There is something to be recognised in what is the same again, and in what is nearly that.
		known := strings.Repeat("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2\r\nvv\r\n", learnAfter)
		for _, several := range [][]byte{bytes.Repeat(input, 3), append([]byte(known), input...)} {
			want, wantErr = feedFrom(t, &pool, several, lim)
			got, _, err := feedShaped(t, several, &lim, len(several)-len(input)+split)
			require.Equal(t, want, got)
			require.Equal(t, wantErr, err)
		}
	})
}

// requireSameAgain checks that commands survive being written as multibulk and
// parsed once more, as far as the limits allow.
func requireSameAgain(t *testing.T, pool *Pool, commands [][]string, lim Limits) {
	var w Writer
	for _, command := range commands {
		w.Array(len(command))
		for _, arg := range command {
			w.BulkString(arg)
		}
	}
	lim.Multibulk, lim.Bulk, lim.Query = InlineMax, InlineMax, InlineMax
	lim.MultibulkUnauth, lim.BulkUnauth = 0, 0
	got, err := feedFrom(t, pool, w.Bytes(), lim)
	require.NoError(t, err)
	if !reflect.DeepEqual(commands, got) {
		require.Equal(t, commands, got)
	}
}
