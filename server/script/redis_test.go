package script

import (
	"bufio"
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/server/resp"
)

// recorded is one script and what redis-server 7.0.15 replied to
// EVAL script 1 k args….
type recorded struct {
	Script string   `json:"script"`
	Args   []string `json:"args"`
	Proto  int      `json:"proto"`
	Reply  string   `json:"reply"`
}

// readRecorded reads testdata/redis.jsonl.
func readRecorded(t testing.TB) []recorded {
	f, err := os.Open("testdata/redis.jsonl")
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	var rows []recorded
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var row recorded
		require.NoError(t, json.Unmarshal(lines.Bytes(), &row))
		rows = append(rows, row)
	}
	require.NoError(t, lines.Err())
	require.NotEmpty(t, rows)
	return rows
}

// eval runs a script as EVAL does and returns the reply.
func eval(e *Engine, src string, proto int, keys, args []string) string {
	var w resp.Writer
	w.SetProto(proto)
	s, err := e.Load([]byte(src), false)
	if err != nil {
		w.Error(err.Error())
	} else {
		e.Run(s, bytesList(keys), bytesList(args), &w)
	}
	return string(w.Bytes())
}

// TestErrorsWithMetatables: what an error says of itself that nothing catches is asked as an index asks, and may run for too long as anything.
func TestErrorsWithMetatables(t *testing.T) {
	slices := 0
	e := New(newFakeHost(), Options{OnSlice: stopAfter(&slices, 200)})
	for index, want := range map[string]string{
		"function(t, k) return 'E' .. k end": "-Eerr script: ", "function(t, k) return 5 end": "-5 script: ", "{err = 'My err'}": "-My err script: ",
		"function() while true do end end": "-" + timeLimitText + " script: ", "function() error('x') end": "-ERR user_script:1: x script: ",
		"function(t) error(t) end": "- script: ", "function(t) return t.x end": "-ERR user_script:1: C stack overflow script: ",
	} {
		slices = 0
		require.Contains(t, eval(e, "error(setmetatable({}, {__index = "+index+"}))", resp.RESP2, nil, nil), want, index)
		require.Equal(t, ":2\r\n", eval(e, "return 1 + 1", resp.RESP2, nil, nil), index)
	}
}

// TestErrorsBehindAReader: what load makes of a reader that returns no text leaves later errors as they are.
func TestErrorsBehindAReader(t *testing.T) {
	for _, before := range []string{"load(function() return true end)", "load(function() error('x') end)", "xpcall(function() load(function() return {} end) error('x') end, tostring)"} {
		src := "local _, e = pcall(function() " + before + " error({err = 'E x', n = 2}) end) local _, f = xpcall(function() " + before + " error({n = 2}) end, function(e) return e end) " +
			"return {e, f.n}"
		require.Equal(t, "*2\r\n$3\r\nE x\r\n:2\r\n", eval(New(newFakeHost(), Options{}), src, resp.RESP2, nil, nil), before)
	}
}

func TestRepliesAreRedis(t *testing.T) {
	e := New(newFakeHost(), Options{})
	for _, row := range readRecorded(t) {
		require.Equal(t, row.Reply, eval(e, row.Script, max(row.Proto, resp.RESP2), []string{"k"}, row.Args), row.Script)
	}
}

// FuzzScript runs any text, with a limit on its slices, and checks that exactly
// one reply comes and that the next script runs. Where nothing is mutated, a part of the recorded scripts, each with an engine of its own, is enough:
// TestRepliesAreRedis runs all of them.
func FuzzScript(f *testing.F) {
	const part = 8
	every, first := 1, 0
	if flag.Lookup("test.fuzz").Value.String() == "" {
		every, first = part, rand.IntN(part)
		f.Logf("one recorded script in %d is run, from the one at %d on", every, first)
	}
	for i, row := range readRecorded(f) {
		if i%every == first {
			f.Add(row.Script)
		}
	}
	f.Add(slidingWindow)
	f.Add(gcra)
	f.Fuzz(func(t *testing.T, src string) {
		slices := 0
		e := New(newFakeHost(), Options{OnSlice: stopAfter(&slices, 20)})
		require.NotEmpty(t, eval(e, src, resp.RESP2, []string{"k"}, []string{"1", "2"}))
		require.Equal(t, ":2\r\n", eval(e, "return 1 + 1", resp.RESP2, nil, nil), src)
	})
}
