package server

import (
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/server/config"
	"headgate/store"
)

func TestHumanBytes(t *testing.T) {
	tests := []struct {
		n    uint64
		want string
	}{
		{0, "0B"}, {1, "1B"}, {1023, "1023B"}, {1024, "1.00K"}, {1536, "1.50K"}, {1<<20 - 1, "1024.00K"},
		{1 << 20, "1.00M"}, {1 << 30, "1.00G"}, {5 << 40, "5.00T"}, {1 << 50, "1.00P"}, {math.MaxUint64, "16384.00P"},
	}
	for _, test := range tests {
		require.Equal(t, test.want, humanBytes(test.n), "%d", test.n)
	}
}

func TestErrorCodesAreCountedAndBounded(t *testing.T) {
	var s statistics
	s.countError("WRONGTYPE Operation against a key")
	s.countError("ERR one")
	s.countError("ERR two")
	s.countError("BARE")
	require.Equal(t, map[string]uint64{"WRONGTYPE": 1, "ERR": 2, "BARE": 1}, s.errorCodes)
	for i := range 2 * maxErrorCodes {
		s.countError(fmt.Sprintf("CODE%d made up", i))
	}
	s.countError("ERR three")
	require.Len(t, s.errorCodes, maxErrorCodes)
	require.EqualValues(t, 3, s.errorCodes["ERR"], "codes already known go on being counted")
	require.EqualValues(t, 5+2*maxErrorCodes, s.errorReplies)
	require.Zero(t, testing.AllocsPerRun(100, func() { s.countError(errWrongType) }))
	s.reset()
	require.Empty(t, s.errorCodes)
	require.Zero(t, s.errorReplies)
}

func TestAverageTTL(t *testing.T) {
	const now, keys, lowest, highest = 1_000_000, 10_000, 50_000, 150_000
	ks := store.New(store.Options{})
	defer ks.Close()
	db := ks.DB(0)
	require.Zero(t, averageTTL(db, now), "no keys")
	db.SetInt(ks.Key([]byte("for ever")), 1, 0)
	require.Zero(t, averageTTL(db, now), "no key with a TTL")
	for i := range keys {
		ttl := int64(lowest + i*(highest-lowest)/keys)
		db.SetInt(ks.Key(fmt.Appendf(nil, "k%d", i)), 1, now+ttl)
	}
	require.InDelta(t, (lowest+highest)/2, averageTTL(db, now), (highest-lowest)/4)
	require.Zero(t, averageTTL(db, now+highest+1), "all of them past their time, and not yet removed")
}

func TestKeyRange(t *testing.T) {
	tests := []struct {
		name              string
		keys              []KeySpec
		first, last, step int
	}{
		{"none", nil, 0, 0, 0},
		{"one", keys("RO", 1, 1, 1), 1, 1, 1},
		{"to the end", keys("RO", 1, -1, 2), 1, -1, 2},
		{"two in a row", append(keys("OW", 1, 1, 1), keys("RO", 2, 2, 1)...), 1, 2, 1},
		{"one before a counted list", append(keys("OW", 1, 1, 1), KeySpec{Access: "RO", Begin: 2, Step: 1, KeyNum: true}), 1, 1, 1},
		{"a counted list only", []KeySpec{{Access: "RO", Begin: 1, Step: 1, KeyNum: true}}, 0, 0, 0},
	}
	for _, test := range tests {
		first, last, step := (&Command{Keys: test.keys}).keyRange()
		require.Equal(t, []int{test.first, test.last, test.step}, []int{first, last, step}, test.name)
	}
}

// TestClientListShowsInput: qbuf is what has come of a client and is not run: its running command, half a command, what waits behind a
// blocked one.
func TestClientListShowsInput(t *testing.T) {
	p := newPipeServer(t)
	c, half, waits := p.session(), p.session(), p.session()
	const part = "*2\r\n$3\r\nGET\r\n$100\r\nabc"
	_, err := half.conn.Write([]byte(part))
	require.NoError(t, err)
	waits.send("BLPOP nothing 0")
	p.awaitBlocked(1)
	const behind = "GET a\r\nGET b\r\n"
	_, err = waits.conn.Write([]byte(behind))
	require.NoError(t, err)
	qbuf := func() []string {
		c.send("CLIENT LIST")
		var n int
		_, err := fmt.Sscanf(readLines(t, c.r, 1), "$%d", &n)
		require.NoError(t, err)
		text := make([]byte, n+2)
		_, err = io.ReadFull(c.r, text)
		require.NoError(t, err)
		var all []string
		for _, m := range regexp.MustCompile(` qbuf=(\d+)`).FindAllSubmatch(text, -1) {
			all = append(all, string(m[1]))
		}
		slices.Sort(all)
		return all
	}
	want := []string{fmt.Sprint(len("CLIENT LIST\r\n")), fmt.Sprint(len(behind)), fmt.Sprint(len(part))} // 13, 14 and 22
	require.Eventually(t, func() bool { return slices.Equal(want, qbuf()) }, 10*time.Second, time.Millisecond)
	_, err = half.conn.Write([]byte(strings.Repeat("x", 97) + "\r\n"))
	require.NoError(t, err)
	half.want("$-1")
	c.send("LPUSH nothing x")
	c.want(":1")
	waits.want("*2 $7 nothing $1 x $-1 $-1")
	require.Eventually(t, func() bool { return slices.Equal([]string{"0", "0", want[0]}, qbuf()) }, 10*time.Second, time.Millisecond)
}

// TestLazilyFreedAreCounted: lazyfreed_objects counts what Redis counts.
func TestLazilyFreedAreCounted(t *testing.T) {
	p := newPipeServer(t)
	c := p.session()
	members := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, " m%d v", i)
		}
		return b.String()
	}
	for _, tc := range []struct {
		before, does string
		counts       uint64
	}{
		{"SET a 1", "UNLINK a", 0},
		{"HSET h" + members(600), "UNLINK h", 1},
		{"HSET h" + members(500), "UNLINK h", 0},
		{"SADD s" + members(300), "UNLINK s other", 1},
		{"HSET h" + members(600), "DEL h", 0},
		{"RPUSH l" + members(300), "UNLINK l", 0},
		{"MSET a 1 b 2", "FLUSHALL ASYNC", 2},
		{"MSET a 1 b 2", "FLUSHDB ASYNC", 2},
		{"MSET a 1 b 2", "FLUSHALL", 0},
		{"MSET a 1 b 2", "FLUSHDB SYNC", 0},
	} {
		c.send("FLUSHALL|CONFIG RESETSTAT|" + tc.before + "|" + tc.does)
		readLines(t, c.r, 4)
		p.srv.Lock()
		require.Equal(t, tc.counts, p.srv.stats.lazyFreed, "%.40s | %s", tc.before, tc.does)
		p.srv.Unlock()
	}
}

// TestDebugObjectShowsTheClock: lru is when the key was last used, in Redis's 24 bits, and beside a counter of uses the minute and that.
func TestDebugObjectShowsTheClock(t *testing.T) {
	w := newClockClient(t)
	cfg := *w.srv.config.Get()
	cfg.EnableDebugCommand = config.AccessYes
	w.srv.config = config.NewLive(&cfg)
	w.ask("SET", "k", "v")
	used := w.now / int64(time.Second)
	w.now += 100 * int64(time.Second)
	w.srv.cron()
	require.Contains(t, w.ask("DEBUG", "OBJECT", "k"), fmt.Sprintf(" lru:%d lru_seconds_idle:100", used&0xffffff))
	w.srv.countsUses = true
	require.Contains(t, w.ask("DEBUG", "OBJECT", "k"), fmt.Sprintf(" lru:%d ", (w.now/int64(time.Minute)&0xffff)<<8|int64(w.uses("k"))))
}

// uses is the logarithmic counter of a key's uses.
func (w *clockClient) uses(name string) int {
	e, ok := w.srv.keys.DB(0).Peek(w.srv.keys.Key([]byte(name)))
	require.True(w.t, ok)
	return e.Uses()
}
