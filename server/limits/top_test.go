package limits_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"headgate/server"
	"headgate/server/config"
	"headgate/server/limiter"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// topReply is RL.TOP's answer in RESP2, for keys of database 0 whose numbers are exact. A policy stands behind its key and @.
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
		b.WriteString("*5\r\n")
		key, policy, named := strings.Cut(keys[i].(string), "@")
		bulk(key)
		number(0)
		number(keys[i+1].(int))
		number(0)
		if named {
			bulk(policy)
		} else {
			b.WriteString("$-1\r\n")
		}
	}
	return b.String()
}

func TestTop(t *testing.T) {
	w, clock := servertest.NewHandClockClient(t, servertest.Unsaved())
	require.Equal(t, topReply("limited", 0, 0), w.Ask("RL.TOP"))
	for range 10 {
		w.Ask("CL.THROTTLE", "a", "3", "1", "3600") // 4 of 10 pass
		w.Ask("RL.FIXED", "b", "1", "1h")           // 1
		w.Ask("RL.FIXED", "b", "1", "1h", "PEEK")
		w.Ask("GCRA", "c", "100", "1", "3600")
	}
	w.Ask("RL.POLICY", "SET", "p", "LOG", "1", "1h")
	w.Ask("RL.TAKE", "1", "p", "d")
	w.Ask("RL.TAKE", "1", "p", "d")
	w.Ask("RL.ACQUIRE", "e", "1", "1h")
	clock.Ns += int64(2 * time.Second)
	require.Equal(t, topReply("limited", 2, 16, "b", 9, "a", 6, "d@p", 1), w.Ask("RL.TOP"))
	require.Equal(t, topReply("limited", 2, 16, "b", 9, "a", 6, "d@p", 1), w.Ask("RL.TOP", "100", "limited"))
	require.Equal(t, topReply("limited", 2, 16, "b", 9), w.Ask("RL.TOP", "1"))
	require.Equal(t, topReply("hot", 2, 33, "a", 10, "b", 10, "c", 10, "d@p", 2, "e", 1), w.Ask("rl.top", "Hot"))
	require.Equal(t, topReply("hot", 2, 33, "a", 10, "b", 10), w.Ask("RL.TOP", "2", "HOT"))

	for _, words := range [][]string{{"0"}, {"-1"}, {"0", "HOT"}, {"x"}, {"1.5", "HOT"}, {"COLD"}} {
		require.Equal(t, "-"+string(limiter.Quoting(limiter.InvalidCount, []byte(words[0])))+"\r\n", w.Ask(append([]string{"RL.TOP"}, words...)...), words)
	}
	for _, words := range [][]string{{"1", "COLD"}, {"1", "HOT", "HOT"}, {"HOT", "1"}, {"HOT", "LIMITED"}} {
		require.Equal(t, "-ERR syntax error, try RL.TOP [count] [LIMITED | HOT]\r\n", w.Ask(append([]string{"RL.TOP"}, words...)...), words)
	}

	info := w.Ask("INFO", "limiters")
	require.Contains(t, info, "top_seconds:2\r\ntop_limited_error:0\r\ntop_limited_1:db=0,calls=9,error=0,key=\"b\"\r\n")
	require.Contains(t, info, "top_hot_5:db=0,calls=1,error=0,key=\"e\"\r\n")
	require.Contains(t, info, "top_hot_4:db=0,calls=2,error=0,policy=p,key=\"d\"\r\n")
	series := servertest.Scrape(t, w.Srv)
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

	w.Ask("CONFIG", "RESETSTAT")
	require.Equal(t, topReply("limited", 0, 0), w.Ask("RL.TOP"))
}

// TestTopTellsPoliciesApart: a key that two policies limit stands there twice, each time with what that policy was asked.
func TestTopTellsPoliciesApart(t *testing.T) {
	w, _ := servertest.NewHandClockClient(t, servertest.Unsaved())
	w.Ask("RL.POLICY", "SET", "p", "FIXED", "1", "1h")
	w.Ask("RL.POLICY", "SET", "q", "FIXED", "9", "1h", "SHADOW")
	for range 4 {
		w.Ask("RL.TAKE", "1", "p", "k")
	}
	for range 9 {
		w.Ask("RL.TAKE", "1", "q", "k")
	}
	w.Ask("RL.FIXED", "k", "1", "1h")
	require.Equal(t, topReply("hot", 0, 14, "k@q", 9, "k@p", 4, "k", 1), w.Ask("RL.TOP", "HOT"))
	require.Equal(t, topReply("limited", 0, 4, "k@p", 3, "k", 1), w.Ask("RL.TOP"), "what is limited in the shadow only passes")
}

// TestTopForgets: calls are there for top-window seconds, and gone after twice that.
func TestTopForgets(t *testing.T) {
	cfg := servertest.Unsaved()
	cfg.TopWindow = 10 * time.Second
	w, clock := servertest.NewHandClockClient(t, cfg)
	at := func(seconds int) { clock.Ns = servertest.HandStart + int64(seconds)*int64(time.Second) }
	call := func(key string) { w.Ask("CL.THROTTLE", key, "0", "1", "60") }
	at(9)
	call("old")
	at(11)
	w.Ask("RL.TOP") // or background work
	call("new")
	require.Equal(t, topReply("hot", 11, 2, "new", 1, "old", 1), w.Ask("RL.TOP", "HOT"))
	at(19)
	require.Equal(t, topReply("hot", 19, 2, "new", 1, "old", 1), w.Ask("RL.TOP", "HOT"))
	at(21)
	require.Equal(t, topReply("hot", 10, 1, "new", 1), w.Ask("RL.TOP", "HOT"))
	at(200)
	require.Equal(t, topReply("hot", 0, 0), w.Ask("RL.TOP", "HOT"))
}

// TestTopOff: top-keys 0 forgets all, and takes no memory.
func TestTopOff(t *testing.T) {
	w, _ := servertest.NewHandClockClient(t, servertest.Unsaved())
	w.Ask("CL.THROTTLE", "a", "0", "1", "60")
	require.Equal(t, "+OK\r\n", w.Ask("CONFIG", "SET", "top-keys", "0"))
	w.Ask("CL.THROTTLE", "a", "0", "1", "60")
	w.Ask("RL.POLICY", "SET", "p", "FIXED", "0", "1h")
	w.Ask("RL.POLICY", "SET", "q", "FIXED", "0", "1h", "SHADOW")
	require.Equal(t, "*3\r\n:1\r\n:0\r\n*1\r\n*5\r\n:1\r\n:0\r\n:0\r\n:-1\r\n:0\r\n", w.Ask("RL.TAKE", "1", "p", "b"))
	require.Equal(t, "*3\r\n:0\r\n:-1\r\n*1\r\n*5\r\n:0\r\n:0\r\n:0\r\n:-1\r\n:0\r\n", w.Ask("RL.TAKE", "1", "q", "b"))
	require.Equal(t, "-ERR top-keys is 0, so no keys are counted\r\n", w.Ask("RL.TOP"))
	require.Nil(t, w.Srv.Top.Hot)
	require.NotContains(t, w.Ask("INFO", "limiters"), "top_")
	require.Zero(t, servertest.Scrape(t, w.Srv)[`headgate_top_key_calls{list="hot",rank="1"}`])
	require.Equal(t, "+OK\r\n", w.Ask("CONFIG", "SET", "top-keys", "10"))
	w.Ask("CL.THROTTLE", "a", "0", "1", "60")
	require.Equal(t, topReply("hot", 0, 1, "a", 1), w.Ask("RL.TOP", "HOT"))
	w.Ask("CONFIG", "SET", "maxclients", "100")
	require.Equal(t, topReply("hot", 0, 1, "a", 1), w.Ask("RL.TOP", "HOT"), "another directive forgets nothing")
}

// TestTopOfOneKey: it is that of the last call, whatever has decided on that.
func TestTopOfOneKey(t *testing.T) {
	cfg := servertest.Unsaved()
	cfg.TopKeys = 1
	w, _ := servertest.NewHandClockClient(t, cfg)
	w.Ask("RL.POLICY", "SET", "p", "FIXED", "0", "1h")
	w.Ask("RL.POLICY", "SET", "q", "FIXED", "0", "1h", "SHADOW")
	for _, tc := range []struct{ call, key string }{{"CL.THROTTLE a 0 1 60", "a"}, {"RL.TAKE 1 p b", "b@p"}, {"RL.TAKE 1 q c", "c@q"}} {
		w.Ask("CONFIG", "RESETSTAT")
		w.Ask(strings.Fields(tc.call)...)
		_, want, _ := strings.Cut(topReply("hot", 0, 1, tc.key, 1), "keys")
		_, keys, _ := strings.Cut(w.Ask("RL.TOP", "HOT"), "keys")
		require.Equal(t, want, keys)
	}
}

// TestTopTellsDatabasesApart, also by hostile names, which INFO quotes.
func TestTopTellsDatabasesApart(t *testing.T) {
	w, _ := servertest.NewHandClockClient(t, servertest.Unsaved())
	w.Ask("CL.THROTTLE", "k", "0", "1", "60")
	w.Ask("SELECT", "3")
	w.Ask("CL.THROTTLE", "k", "0", "1", "60")
	w.Ask("CL.THROTTLE", "k", "0", "1", "60")
	w.Ask("CL.THROTTLE", "x\r\nfake:1\r\n\xff", "0", "1", "60")
	info := w.Ask("INFO", "limiters")
	require.Contains(t, info, "top_hot_1:db=3,calls=2,error=0,key=\"k\"\r\n")
	require.Contains(t, info, "db=0,calls=1,error=0,key=\"k\"\r\n")
	require.Contains(t, info, `key="x\r\nfake:1\r\n\xff"`)
	require.NotContains(t, info, "\nfake")
}

// BenchmarkThrottle is CL.THROTTLE with and without the lists of keys, over keys that are all called alike and in pipelines of 16.
func BenchmarkThrottle(b *testing.B) {
	const pipeline, keys, pipelines = 16, 100_000, 2000
	for _, TopKeys := range []int{0, 512} {
		b.Run(fmt.Sprintf("top-keys %d", TopKeys), func(b *testing.B) {
			cfg := servertest.Unsaved()
			cfg.TopKeys = TopKeys
			w := servertest.NewWorkerClientOf(b, server.New(config.NewLive(cfg), server.Options{}))
			inputs := make([][]byte, pipelines)
			for i := range inputs {
				for j := range pipeline {
					inputs[i] = append(inputs[i], servertest.EncodeCommand("CL.THROTTLE", fmt.Sprintf("rl:%d", (i*pipeline+j)*7919%keys), "15", "30", "60")...)
				}
				w.Run(inputs[i])
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				w.Run(inputs[i%pipelines])
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*pipeline), "ns/command")
		})
	}
}
