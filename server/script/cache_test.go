package script

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/server/resp"
)

func TestCache(t *testing.T) {
	e := New(newFakeHost(), Options{MaxScripts: 3})
	load := func(src string, keep bool) *Script {
		s, err := e.Load([]byte(src), keep)
		require.NoError(t, err)
		sum := sha1.Sum([]byte(src))
		require.Equal(t, hex.EncodeToString(sum[:]), s.SHA)
		return s
	}
	kept, one, two := load("return 0", true), load("return 1", false), load("return 2", false)
	require.Same(t, one, load("return 1", false), "compiled once, and used last")
	load("return 3", false)
	require.Nil(t, e.Get([]byte(two.SHA)), "the one used longest ago made room")
	require.Same(t, one, e.Get([]byte(strings.ToUpper(one.SHA))))
	load("return 4", false)
	require.Same(t, kept, e.Get([]byte(kept.SHA)), "SCRIPT LOAD protects")
	require.Equal(t, 3, e.Len())
	require.Equal(t, kept.bytes+one.bytes+e.Get(shaOf("return 4")).bytes, e.CacheBytes())

	load("return 5", true)
	load("return 6", true)
	_, err := e.Load([]byte("return 7"), true)
	require.Equal(t, errCacheFull, err)
	_, err = e.Load([]byte("not compiled ("), true)
	require.Equal(t, errCacheFull, err, "a script that cannot be kept is not compiled first")
	require.Equal(t, ":8\r\n", eval(e, "return 8", resp.RESP2, nil, nil), "EVAL works without room")
	require.Equal(t, 3, e.Len())
	e.Flush()
	require.Zero(t, e.Len())
	require.Zero(t, e.CacheBytes())
	for _, sha := range []string{"", "x", kept.SHA, strings.Repeat("z", 40)} {
		require.Nil(t, e.Get([]byte(sha)))
	}
}

func TestLoadAgainToKeep(t *testing.T) {
	e := New(newFakeHost(), Options{MaxScripts: 2})
	first, err := e.Load([]byte("return 1"), false)
	require.NoError(t, err)
	_, err = e.Load([]byte("return 1"), true)
	require.NoError(t, err)
	for i := range 5 {
		_, err = e.Load(fmt.Appendf(nil, "return %d", 10+i), false)
		require.NoError(t, err)
	}
	require.Same(t, first, e.Get([]byte(first.SHA)))
}

func TestScriptSize(t *testing.T) {
	e := New(newFakeHost(), Options{})
	_, err := e.Load([]byte(strings.Repeat(" ", MaxScriptBytes+1)), false)
	require.Equal(t, errScriptSize, err)
	_, err = e.Load([]byte(strings.Repeat(" ", MaxScriptBytes)), false)
	require.NoError(t, err)
}

func TestScriptFlags(t *testing.T) {
	e := New(newFakeHost(), Options{})
	s, err := e.Load([]byte("#!lua flags=no-writes,allow-oom flags=allow-stale\nreturn 1"), false)
	require.NoError(t, err)
	require.True(t, s.Shebang)
	require.Equal(t, NoWrites|AllowOOM|AllowStale, s.Flags)
	require.Equal(t, []string{"no-writes", "allow-oom", "allow-stale"}, s.Flags.Names())
	s, err = e.Load([]byte("#!lua flags=allow-key-locking\nreturn 1"), false)
	require.NoError(t, err)
	require.Equal(t, AllowKeyLocking, s.Flags)
	s, err = e.Load([]byte("return 1"), false)
	require.NoError(t, err)
	require.False(t, s.Shebang)
}

// shaOf is a script's name.
func shaOf(src string) []byte {
	sum := sha1.Sum([]byte(src))
	return []byte(hex.EncodeToString(sum[:]))
}

// TestCompiledScriptsAreCounted: what is counted of the scripts that are kept is what they take up on the heap. A text of empty functions
// takes fifty times its length.
func TestCompiledScriptsAreCounted(t *testing.T) {
	const scripts = 100
	for _, tc := range []struct{ name, src string }{
		{"short", "return %d"},
		{"a comment", "return %d --" + strings.Repeat("x", 1000)},
		{"calls of commands", "--%d\n" + strings.Repeat("local a = redis.call('get', KEYS[1])\n", 100)},
		{"calls of globals", "--%d\n" + strings.Repeat("f() ", 1000)},
		{"assignments", "--%d\n" + strings.Repeat("x=1 ", 1000)},
		{"functions", "local t = {} --%d\n" + strings.Repeat("t.x = function() end ", 100)},
		{"locals", "--%d\n" + strings.Repeat("do local a, b, c end ", 300)},
		{"strings", "return {%d" + strings.Repeat(`, "`+strings.Repeat("s", 50)+`"`, 100) + "}"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := New(newFakeHost(), Options{})
			before := liveHeap()
			for i := range scripts {
				_, err := e.Load(fmt.Appendf(nil, tc.src, i), true)
				require.NoError(t, err)
			}
			taken := liveHeap() - before
			t.Logf("takes %d bytes a script, %d are counted", taken/scripts, e.CacheBytes()/scripts)
			require.Greater(t, e.CacheBytes(), taken*8/10)
			require.Less(t, e.CacheBytes(), taken*16/10)
		})
	}
}

// liveHeap returns the bytes that live objects take up.
func liveHeap() int {
	runtime.GC()
	runtime.GC() // what pools hold lives through one collection
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
