package limits_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// TestDurationsThatLackTheirUnit: the log says so once for each command, and the reply is as it was.
func TestDurationsThatLackTheirUnit(t *testing.T) {
	w := servertest.NewClockClient(t)
	var text bytes.Buffer
	w.Srv.Logger = slog.New(slog.NewTextHandler(&text, nil))
	logged := func() []string {
		lines := strings.FieldsFunc(text.String(), func(r rune) bool { return r == '\n' })
		text.Reset()
		return lines
	}
	require.Equal(t, "OK", w.Call("RL.POLICY SET p GCRA 10 5 1s"))
	for _, each := range []struct{ call, reply, command, value string }{
		{"RL.GCRA a 10 5 10000000000", "[0 10 9 -1 2000000000]", "RL.GCRA", "10000000000"}, // 10*time.Second from go-redis
		{"RL.FIXED b 10 31536000001", "[0 10 9 -1 31536000001]", "RL.FIXED", "31536000001"},
		{"RL.SLIDING c 10 2000000000", "[0 10 9 -1 2131290000]", "RL.SLIDING", "2000000000"},
		{"RL.ACQUIRE d 10 40000000000 MEMBER x", "[0 10 9 -1 40000000000 x]", "RL.ACQUIRE", "40000000000"},
		{"RL.RENEW d x 40000000000", "1", "RL.RENEW", "40000000000"},
		{"RL.BLOCK p e 40000000000", "OK", "RL.BLOCK", "40000000000"},
		{"RL.POLICY SET q LOG 5 60s BLOCK 3000000000", "OK", `"RL.POLICY SET"`, "3000000000"},
		{"RL.POLICY OVERRIDE SET p e 10 5 3000000000", "OK", `"RL.POLICY OVERRIDE"`, "3000000000"},
		{"RL.TAKE 1 FIXED~10~3000000000 f", "[0 -1 [[0 10 9 -1 3000000000]]]", "RL.TAKE", "3000000000"},
		{"RL.RESERVE 1 p g TTL 3000000000 ID r", "[0 -1 r [[0 10 9 -1 200]]]", "RL.RESERVE", "3000000000"},
	} {
		require.Equal(t, each.reply, w.Call(each.call), each.call)
		lines := logged()
		require.Len(t, lines, 1, each.call)
		require.Contains(t, lines[0], "lacks its unit")
		require.Contains(t, lines[0], "command="+each.command+" value="+each.value+" ")
		w.Call(each.call)
		require.Empty(t, logged(), "%s again", each.call)
	}
}

// TestDurationsWithTheirUnit: nothing is logged about those that are meant so.
func TestDurationsWithTheirUnit(t *testing.T) {
	w := servertest.NewClockClient(t)
	var text bytes.Buffer
	w.Srv.Logger = slog.New(slog.NewTextHandler(&text, nil))
	for _, call := range []string{
		"RL.GCRA a 10000000000 10000000000 1s", "RL.FIXED b 10 36525d", "RL.FIXED c 10 2592000000", "RL.FIXED d 10 31536000000", "RL.FIXED e 10000000000 MONTH", "RL.LOG f 10 9999999999999999ms",
		"RL.POLICY SET p BUCKET 10000000000 10000000000 36525d BLOCK 10m DOUBLE 500d", "RL.POLICY SET q UNLIMITED", "RL.POLICY OVERRIDE SET p x UNLIMITED", "RL.TAKE 1 FIXED~10~500d f",
	} {
		w.Call(call)
		require.Empty(t, text.String(), call)
	}
}
