package script

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/server/resp"
)

const slidingWindow = `redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, ARGV[1])
local n = redis.call('ZCARD', KEYS[1])
if n < tonumber(ARGV[4]) then
  redis.call('ZADD', KEYS[1], ARGV[2], ARGV[3])
  redis.call('PEXPIRE', KEYS[1], ARGV[5])
  return 1
end
return 0`

const gcra = `local now = tonumber(ARGV[1])
local ei = tonumber(ARGV[2])
local tol = tonumber(ARGV[3])
local tat = tonumber(redis.call('GET', KEYS[1]) or now)
if tat < now then tat = now end
local nt = tat + ei
if nt - tol > now then
  return -1
end
redis.call('SET', KEYS[1], nt, 'PX', nt - now)
return 1`

// fixedHost answers every command alike, so that the benchmarks measure the
// engine alone.
type fixedHost struct {
	*fakeHost
	answer []byte
}

func (h *fixedHost) Call(args [][]byte, resp3 bool) []byte { return h.answer }

func benchmarkScript(b *testing.B, src, answer string, keys, args []string) {
	e := New(&fixedHost{newFakeHost(), []byte(answer)}, Options{})
	s, err := e.Load([]byte(src), true)
	require.NoError(b, err)
	var w resp.Writer
	k, a := bytesList(keys), bytesList(args)
	b.ReportAllocs()
	for b.Loop() {
		w.Reset()
		e.Run(s, k, a, &w)
	}
	require.NotEqual(b, byte('-'), w.Bytes()[0], string(w.Bytes()))
}

func bytesList(list []string) [][]byte {
	var out [][]byte
	for _, s := range list {
		out = append(out, []byte(s))
	}
	return out
}

func BenchmarkEmpty(b *testing.B) { benchmarkScript(b, "", "", nil, nil) }

func BenchmarkReturnOne(b *testing.B) { benchmarkScript(b, "return 1", "", nil, nil) }

func BenchmarkSlidingWindow(b *testing.B) {
	benchmarkScript(b, slidingWindow, ":1\r\n", []string{"window:user"},
		[]string{"1700000000000", "1700000060000", "1700000060000-1", "100", "60000"})
}

func BenchmarkGCRA(b *testing.B) {
	benchmarkScript(b, gcra, "$13\r\n1700000000000\r\n", []string{"gcra:user"}, []string{"1700000060000", "100", "1000"})
}

func BenchmarkLoop(b *testing.B) {
	benchmarkScript(b, "local n = 0 for i = 1, 1000 do n = n + i end return n", "", nil, nil)
}

func BenchmarkText(b *testing.B) {
	benchmarkScript(b, `local s = "rate:" .. KEYS[1] .. ":" .. ARGV[1] / 3 return #s`, "", []string{"user"}, []string{"7"})
}

// BenchmarkCompile has each script be a new one.
func BenchmarkCompile(b *testing.B) {
	e := New(newFakeHost(), Options{})
	n := 0
	for b.Loop() {
		_, err := e.Load(strconv.AppendInt([]byte(gcra+" --"), int64(n), 10), false)
		require.NoError(b, err)
		n++
	}
}
