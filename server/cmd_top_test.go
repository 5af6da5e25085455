package server

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/server/config"
	"headgate/server/limiter"
)

// handStart is when the clocks that tests move begin, in ns.
const handStart = int64(1_790_000_000) * int64(time.Second)

// handClock is a time that tests move.
type handClock struct{ ns int64 }

func (h *handClock) clock() *Clock {
	h.ns = handStart
	return NewClock(func() (int64, int64) { return h.ns, h.ns })
}

// topClient returns a client of a server whose clock is moved by hand.
func topClient(t *testing.T, cfg *config.Config) (*workerClient, *handClock) {
	h := &handClock{}
	return newWorkerClientOf(t, New(config.NewLive(cfg), Options{Clock: h.clock()})), h
}

// topReply is RL.TOP's answer in RESP2, for keys of database 0 whose numbers are exact.
func topReply(list string, seconds, calls int, keys ...any) string {
	b := &strings.Builder{}
	bulk := func(s string) { fmt.Fprintf(b, "$%d\r\n%s\r\n", len(s), s) }
	number := func(n int) { fmt.Fprintf(b, ":%d\r\n", n) }
	b.WriteString("*10\r\n")
	bulk("list")
	bulk(list)
	bulk("seconds")
	number(seconds)
	bulk("calls")
	number(calls)
	bulk("error")
	number(0)
	bulk("keys")
	fmt.Fprintf(b, "*%d\r\n", len(keys)/2)
	for i := 0; i < len(keys); i += 2 {
		b.WriteString("*4\r\n")
		bulk(keys[i].(string))
		number(0)
		number(keys[i+1].(int))
		number(0)
	}
	return b.String()
}

func TestTop(t *testing.T) {
	w, clock := topClient(t, unsaved())
	require.Equal(t, topReply("limited", 0, 0), w.ask("RL.TOP"))
	for range 10 {
		w.ask("CL.THROTTLE", "a", "3", "1", "3600") // 4 of 10 pass
		w.ask("RL.FIXED", "b", "1", "1h")           // 1
		w.ask("RL.FIXED", "b", "1", "1h", "PEEK")
		w.ask("GCRA", "c", "100", "1", "3600")
	}
	w.ask("RL.POLICY", "SET", "p", "LOG", "1", "1h")
	w.ask("RL.TAKE", "1", "p", "d")
	w.ask("RL.TAKE", "1", "p", "d")
	w.ask("RL.ACQUIRE", "e", "1", "1h")
	clock.ns += int64(2 * time.Second)
	require.Equal(t, topReply("limited", 2, 16, "b", 9, "a", 6, "d", 1), w.ask("RL.TOP"))
	require.Equal(t, topReply("limited", 2, 16, "b", 9, "a", 6, "d", 1), w.ask("RL.TOP", "100", "limited"))
	require.Equal(t, topReply("limited", 2, 16, "b", 9), w.ask("RL.TOP", "1"))
	require.Equal(t, topReply("hot", 2, 33, "a", 10, "b", 10, "c", 10, "d", 2, "e", 1), w.ask("rl.top", "Hot"))
	require.Equal(t, topReply("hot", 2, 33, "a", 10, "b", 10), w.ask("RL.TOP", "2", "HOT"))

	for _, words := range [][]string{{"0"}, {"-1"}, {"0", "HOT"}, {"x"}, {"1.5", "HOT"}, {"COLD"}} {
		require.Equal(t, "-"+string(limiter.ErrCount)+"\r\n", w.ask(append([]string{"RL.TOP"}, words...)...), words)
	}
	for _, words := range [][]string{{"1", "COLD"}, {"1", "HOT", "HOT"}, {"HOT", "1"}, {"HOT", "LIMITED"}} {
		require.Equal(t, "-ERR syntax error, try RL.TOP [count] [LIMITED | HOT]\r\n", w.ask(append([]string{"RL.TOP"}, words...)...), words)
	}

	info := w.ask("INFO", "limiters")
	require.Contains(t, info, "top_seconds:2\r\ntop_limited_error:0\r\ntop_limited_1:db=0,calls=9,error=0,key=\"b\"\r\n")
	require.Contains(t, info, "top_hot_5:db=0,calls=1,error=0,key=\"e\"\r\n")
	series := scrape(t, w.srv)
	for name, want := range map[string]float64{
		`headgate_top_calls{list="limited"}`:              16,
		`headgate_top_error_calls{list="limited"}`:        0,
		`headgate_top_key_calls{list="limited",rank="1"}`: 9,
		`headgate_top_key_calls{list="limited",rank="4"}`: 0,
		`headgate_top_key_calls{list="hot",rank="3"}`:     10,
		`headgate_top_key_calls{list="hot",rank="10"}`:    0,
		`headgate_top_window_seconds{}`:                   2,
	} {
		require.Contains(t, series, name)
		require.EqualValues(t, want, series[name], name)
	}

	w.ask("CONFIG", "RESETSTAT")
	require.Equal(t, topReply("limited", 0, 0), w.ask("RL.TOP"))
}

// TestTopForgets: calls are there for top-window seconds, and gone after twice that.
func TestTopForgets(t *testing.T) {
	cfg := unsaved()
	cfg.TopWindow = 10 * time.Second
	w, clock := topClient(t, cfg)
	at := func(seconds int) { clock.ns = handStart + int64(seconds)*int64(time.Second) }
	call := func(key string) { w.ask("CL.THROTTLE", key, "0", "1", "60") }
	at(9)
	call("old")
	at(11)
	w.ask("RL.TOP") // or background work
	call("new")
	require.Equal(t, topReply("hot", 11, 2, "new", 1, "old", 1), w.ask("RL.TOP", "HOT"))
	at(19)
	require.Equal(t, topReply("hot", 19, 2, "new", 1, "old", 1), w.ask("RL.TOP", "HOT"))
	at(21)
	require.Equal(t, topReply("hot", 10, 1, "new", 1), w.ask("RL.TOP", "HOT"))
	at(200)
	require.Equal(t, topReply("hot", 0, 0), w.ask("RL.TOP", "HOT"))
}

// TestTopOff: top-keys 0 forgets all, and takes no memory.
func TestTopOff(t *testing.T) {
	w, _ := topClient(t, unsaved())
	w.ask("CL.THROTTLE", "a", "0", "1", "60")
	require.Equal(t, "+OK\r\n", w.ask("CONFIG", "SET", "top-keys", "0"))
	w.ask("CL.THROTTLE", "a", "0", "1", "60")
	require.Equal(t, "-"+errTopOff+"\r\n", w.ask("RL.TOP"))
	require.Nil(t, w.srv.top.hot)
	require.NotContains(t, w.ask("INFO", "limiters"), "top_")
	require.Zero(t, scrape(t, w.srv)[`headgate_top_key_calls{list="hot",rank="1"}`])
	require.Equal(t, "+OK\r\n", w.ask("CONFIG", "SET", "top-keys", "10"))
	w.ask("CL.THROTTLE", "a", "0", "1", "60")
	require.Equal(t, topReply("hot", 0, 1, "a", 1), w.ask("RL.TOP", "HOT"))
	w.ask("CONFIG", "SET", "maxclients", "100")
	require.Equal(t, topReply("hot", 0, 1, "a", 1), w.ask("RL.TOP", "HOT"), "another directive forgets nothing")
}

// TestTopTellsDatabasesApart, also by hostile names, which INFO quotes.
func TestTopTellsDatabasesApart(t *testing.T) {
	w, _ := topClient(t, unsaved())
	w.ask("CL.THROTTLE", "k", "0", "1", "60")
	w.ask("SELECT", "3")
	w.ask("CL.THROTTLE", "k", "0", "1", "60")
	w.ask("CL.THROTTLE", "k", "0", "1", "60")
	w.ask("CL.THROTTLE", "x\r\nfake:1\r\n\xff", "0", "1", "60")
	info := w.ask("INFO", "limiters")
	require.Contains(t, info, "top_hot_1:db=3,calls=2,error=0,key=\"k\"\r\n")
	require.Contains(t, info, "db=0,calls=1,error=0,key=\"k\"\r\n")
	require.Contains(t, info, `key="x\r\nfake:1\r\n\xff"`)
	require.NotContains(t, info, "\nfake")
}

// BenchmarkThrottle is CL.THROTTLE with and without the lists of keys, over keys that are all called alike and in pipelines of 16.
func BenchmarkThrottle(b *testing.B) {
	const pipeline, keys, pipelines = 16, 100_000, 2000
	for _, topKeys := range []int{0, 512} {
		b.Run(fmt.Sprintf("top-keys %d", topKeys), func(b *testing.B) {
			cfg := unsaved()
			cfg.TopKeys = topKeys
			w := newWorkerClientOf(b, New(config.NewLive(cfg), Options{}))
			inputs := make([][]byte, pipelines)
			for i := range inputs {
				for j := range pipeline {
					inputs[i] = append(inputs[i], encodeCommand("CL.THROTTLE", fmt.Sprintf("rl:%d", (i*pipeline+j)*7919%keys), "15", "30", "60")...)
				}
				w.run(inputs[i])
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				w.run(inputs[i%pipelines])
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*pipeline), "ns/command")
		})
	}
}
