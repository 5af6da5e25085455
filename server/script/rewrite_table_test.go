package script

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/server/resp"
)

// TestConstructorsStoreEachItemOnce: fields with a key, and a call at the end, leave items alone that have just been stored.
func TestConstructorsStoreEachItemOnce(t *testing.T) {
	e := New(newFakeHost(), Options{})
	const f = "local function f(...) return 'v', ... end "
	items := func(n int) string { return strings.Repeat("0, ", n) }
	for src, want := range map[string]string{
		f + "local t = {1, 2, x = f('w')} return {#t, t.x}":                                                                                   "2 v",
		f + "local t = {" + items(50) + "x = f()} return {t[1], #t, t.x}":                                                                     "0 50 v",
		f + "local t = {" + items(50) + "[f()] = f(), y = 1, 7, z = f()} return {t[1], t[2], t.v, t[51]}":                                     "0 0 v 7",
		f + "local t = {" + items(100) + "[2.5] = f(), 8} return {t[51], t[2.5], t[101], #t}":                                                 "0 v 8 101",
		f + "local t = {" + items(50) + "f('a', 'b')} return {t[1], t[51], t[52], t[53], #t}":                                                 "0 v a b 53",
		f + "local t = {" + items(25050) + "x = f(), 9, f(10)} return {t[25001], t.x, t[25051], t[25053]}":                                    "0 v 9 10",
		"local k = 'y' local t = {x = 1, " + items(50) + "x = nil, [k] = 2, [k] = nil, z = 3} return {#t, tostring(t.x), tostring(t.y), t.z}": "50 nil nil 3",
	} {
		reply := eval(e, src, resp.RESP2, nil, nil)
		got := []string{}
		for _, line := range strings.Split(reply, "\r\n")[1:] {
			if line != "" && line[0] != '$' {
				got = append(got, strings.TrimPrefix(line, ":"))
			}
		}
		require.Equal(t, want, strings.Join(got, " "), "%.60s: %s", src, reply)
	}
}

// TestAssignmentsOfLocals: a local variable gets its value when all values are known, and does not keep what it had.
func TestAssignmentsOfLocals(t *testing.T) {
	e := New(newFakeHost(), Options{})
	for src, want := range map[string]string{
		"local a, v = {}, 1 v = a.b and (1 + v) return tostring(v)":                                                                               "nil",
		"local a, v = {}, 1 v = a.b and a.c and 5 return tostring(v)":                                                                             "nil",
		"local v = 1 v = tonumber('x') and 5 return tostring(v)":                                                                                  "nil",
		"local v = 1 v = redis.call('GET', 'none') and 5 return tostring(v)":                                                                      "false",
		"local function many(...) return ... end local v = 1 v = (many(false, v)) return tostring(v)":                                             "false",
		"local a, v = {}, 1 v = not a and 5 return tostring(v)":                                                                                   "false",
		"local a, n = 1, 0 local function f(v) n = v end a = 2, f(a) return tostring(n)":                                                          "1",
		"local i = 0 local function f() i = i + 1 return i end local x, t = 0, {} t[f()], x = f(), 5 return (t[1] or 'none') .. (t[2] or 'none')": "2none",
		"local t, a = {}, 1 local function f() a = 2 return 7 end t[a + 0], a = f(), 9 return tostring(t[1])":                                     "7",
	} {
		require.Contains(t, eval(e, src, resp.RESP2, nil, nil), "\r\n"+want+"\r\n", src)
	}
}
