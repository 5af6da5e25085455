package script

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/server/resp"
)

// list returns text for each of n numbers.
func list(n int, format string) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, format, i)
	}
	return out.String()
}

// TestLargeTablesOfLiterals: a table that a script looks things up in may be as large as its text allows.
func TestLargeTablesOfLiterals(t *testing.T) {
	e := New(newFakeHost(), Options{})
	for _, c := range []struct{ src, want string }{
		{"local t = {" + list(40_000, "'k%d',") + "} return {#t, t[1], t[40000]}", "*3\r\n:40000\r\n$2\r\nk0\r\n$6\r\nk39999\r\n"},
		{"local t = {" + list(40_000, "k%d=%[1]d,") + "} return {t.k0, t.k39999, tostring(t.k40000)}", "*3\r\n:0\r\n:39999\r\n$3\r\nnil\r\n"},
		{"local t = {" + strings.Repeat("1,", 150_000) + "} return {#t, t[150000]}", "*2\r\n:150000\r\n:1\r\n"},
		{"local t = {" + list(5000, "{id=%d,-1.5,true},") + "} return {#t, t[5000].id, t[9][2] and 1, tostring(t[1][1])}", "*4\r\n:5000\r\n:4999\r\n:1\r\n$4\r\n-1.5\r\n"},
		{"local a = {" + list(3000, "'a%d',") + "} local b = {" + list(3000, "b%d=1,") + "} return {#a, b.b2999, a[3000]}", "*3\r\n:3000\r\n:1\r\n$5\r\na2999\r\n"},
		{"local t = {" + list(300, "[%d]='x',") + "'first'} return {#t, t[1], t[2]}", "*3\r\n:299\r\n$5\r\nfirst\r\n$1\r\nx\r\n"},
		{"local function f() return {" + list(300, "%d,") + "} end local a, b = f(), f() a[1] = 'x' return {a[1], b[1], #b}", "*3\r\n$1\r\nx\r\n:0\r\n:300\r\n"},
		{"local t = {" + list(300, "%d,") + "'\\000headgate:redis.call'} return type(t[301])", "$6\r\nstring\r\n"},
		{"return loadstring('return #{' .. ('7,'):rep(1000) .. '}')()", ":1000\r\n"},
	} {
		require.Equal(t, c.want, eval(e, c.src, resp.RESP2, nil, nil), "%.60s", c.src)
	}
	tooMany := "local f = tostring local t = {" + list(5000, "'k%d',") + "f(1)} return #t"
	s, err := e.Load([]byte("local t = {"+list(300, "{%d,{}},")+"}"), false)
	require.NoError(t, err)
	pairs := s.function.Proto.FunctionPrototypes[0].Constants
	require.Equal(t, cap(pairs), len(pairs), "there is room for as much as was written down")
	require.Contains(t, eval(e, tooMany, resp.RESP2, nil, nil), "constant table overflow")
}

// TestLiteralsAreStoredAsTheMachineStores compares tables of literals with those that a call makes others than that.
func TestLiteralsAreStoredAsTheMachineStores(t *testing.T) {
	e := New(newFakeHost(), Options{})
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var fields []string
		for i := range 260 + r.IntN(80) {
			fields = append(fields, []string{fmt.Sprint(i), "'x'", "nil", "true", fmt.Sprintf("k%d = %d", r.IntN(9), i), "[1.5] = -2", "{1, a = 2}", "['a b'] = false", "[true] = 1"}[r.IntN(9)])
		}
		body := strings.Join(fields, ", ")
		src := `local function d(t) local o = {} for k, v in pairs(t) do o[#o + 1] = tostring(k) .. '=' .. (type(v) == 'table' and #v .. v.a or tostring(v)) end return table.concat(o, ' ') end
			local function same(v) return v end local a, b = {` + body + `}, {` + body + `, [same('z')] = nil} return {d(a) == d(b) and 1 or d(a) .. ' and ' .. d(b)}`
		require.Equal(t, "*1\r\n:1\r\n", eval(e, src, resp.RESP2, nil, nil))
	}
}

// TestLiteralsAreWeighed: a script that makes many large tables is stopped as others are.
func TestLiteralsAreWeighed(t *testing.T) {
	e := New(newFakeHost(), Options{MaxHeapBytes: 20 << 20}) // which take a third of the time that the usual bound takes
	for _, src := range []string{
		"local all = {} while true do all[#all + 1] = {" + list(20_000, "'k%d',") + "} end",
		"local all = {} while true do all[#all + 1] = {" + list(20_000, "{},%[1]d,") + "} end",
		"local all = {} while true do all[#all + 1] = loadstring('return {' .. ('1,'):rep(20000) .. '}') end",
	} {
		require.Contains(t, eval(e, src, resp.RESP2, nil, nil), memoryText, "%.60s", src)
	}
	slices := 0
	e = New(newFakeHost(), Options{OnSlice: stopAfter(&slices, 8)})
	src := "while true do local t = {" + list(20_000, "k%d=1,") + "} end"
	require.Contains(t, eval(e, src, resp.RESP2, nil, nil), timeLimitText)
}

// TestLongestTablesCompileSoon prints how long the longest tables of literals take to compile.
func TestLongestTablesCompileSoon(t *testing.T) {
	for name, src := range map[string]string{
		"fields": "local t={" + list(77_000, "k%d=%[1]d,") + "}", "strings": "local t={" + list(110_000, "'k%d',") + "}", "ones": "local t={" + strings.Repeat("1,", 199_000) + "}",
		"rows": "local t={" + strings.Repeat("{1},", 99_000) + "}", "nested": "local t=" + strings.Repeat("{1,2,3,", 150) + strings.Repeat("0,", 190_000) + strings.Repeat("}", 150),
	} {
		e := New(newFakeHost(), Options{})
		start := time.Now()
		s, err := e.Load([]byte(src), false)
		require.NoError(t, err, name)
		t.Logf("%s: %d bytes of text, %d kept, in %v", name, len(src), s.bytes, time.Since(start))
	}
}
