package scripted_test

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"headgate/server/limiter"
	"headgate/server/limiter/scripted"
	"headgate/server/servertest"
	"headgate/throttle"

	"github.com/stretchr/testify/require"
)

// TestWideNumbers compares rate.lua's comparison with math/big's, on redis-server and with numbers of any width: TATs, charges and tolerances
// that doubles cannot hold, at a nanosecond on either side of the boundary.
func TestWideNumbers(t *testing.T) {
	r, there := random(t), startRedis(t)
	var q scripted.Question
	for range *calls {
		there.ask("DEL", "k")
		interval, quantity := int64(1)+r.Int64N(1<<(1+r.IntN(40))), int64(1)+r.Int64N(1<<(1+r.IntN(20)))
		g, err := throttle.NewIntervalGCRA(r.Int64N(1<<(1+r.IntN(21))), interval)
		require.NoError(t, err)
		terms, ok := g.Terms(quantity)
		require.True(t, ok)
		for _, off := range []int64{-2000, -1, 0, 1, 2000, 1 << 40} {
			// The server's time is known by the reply alone. So the state is set near the boundary as of now, and judged afterwards.
			sec, us := serverTime(there)
			tat := (sec*1e6+us)*1000 + terms.Tolerance - terms.Charge + off + r.Int64N(60_000)
			if tat < 0 {
				continue
			}
			there.ask("SET", "k", strconv.FormatInt(tat, 10))
			outcome, err := q.Answer(there.send(q.AskGCRA(nil, []byte("k"), g, quantity)))
			require.NoError(t, err)
			if outcome == scripted.Again { // a state or a result beyond what TATs have
				continue
			}
			require.False(t, q.Disagrees())
			now := big.NewInt(there.clock())
			from := big.NewInt(max(tat, now.Int64()))
			newTAT := from.Add(from, big.NewInt(terms.Charge))
			limited := newTAT.Cmp(now.Add(now, big.NewInt(terms.Tolerance))) > 0
			require.Equal(t, limited, q.Decision.Limited, "%+v at %s with a TAT of %d", terms, now, tat)
			want := "$19\r\n" + strconv.FormatInt(tat, 10) + "\r\n"
			if !limited {
				want = fmt.Sprintf("$%d\r\n%s\r\n", len(newTAT.String()), newTAT)
			}
			if got := there.ask("GET", "k"); got != "$-1\r\n" { // or it was short and is over
				require.Equal(t, want, got)
			}
		}
	}
}

// TestWideNumbersAtBoundaries compares rate.lua's decisions with math/big's, in the server's own engine under a clock that stands, so that the state is at the
// boundary to the nanosecond, or one beside it, with numbers of any width at any time between 2001 and 2262.
func TestWideNumbersAtBoundaries(t *testing.T) {
	const first, last = 1_000_000_000_000_000_000, 9_200_000_000_000_000_000
	w, r := newWorld(t), random(t)
	offsets := []int64{-2000, -1, 0, 1, 2000, 1 << 40}
	now := int64(first)
	limited, compared := 0, 0
	for compared < *pairs {
		now += r.Int64N((last-first)/int64(*pairs/len(offsets)+1)*3/2) / 1000 * 1000
		require.Less(t, now, int64(math.MaxInt64-1<<40), "the pairs are too few of those that were drawn")
		w.setNow(now)
		interval, quantity := int64(1)+r.Int64N(1<<(1+r.IntN(40))), int64(1)+r.Int64N(1<<(1+r.IntN(20)))
		g, err := throttle.NewIntervalGCRA(r.Int64N(1<<(1+r.IntN(21))), interval)
		require.NoError(t, err)
		terms, ok := g.Terms(quantity)
		require.True(t, ok)
		for _, off := range offsets {
			tat := now + terms.Tolerance - terms.Charge + off
			if tat < first || tat > math.MaxInt64-1e9 { // no TAT of nineteen digits that is before 2262
				continue
			}
			from := big.NewInt(max(tat, now))
			newTAT := new(big.Int).Add(from, big.NewInt(terms.Charge))
			most := new(big.Int).Add(big.NewInt(now), big.NewInt(terms.Tolerance))
			over := newTAT.Cmp(most) > 0
			want := newTAT.String()
			if over {
				want = strconv.FormatInt(tat, 10)
			} else if !newTAT.IsInt64() || newTAT.Int64() > math.MaxInt64-1e9 { // what is written is beyond TATs
				continue
			}
			request := w.q.AskGCRA(servertest.EncodeCommand("SET", "k", strconv.FormatInt(tat, 10)), []byte("k"), g, quantity)
			replies := string(feed(w.there, append(request, servertest.EncodeCommand("GET", "k")...)))
			reply, set := strings.CutPrefix(replies, "+OK\r\n")
			reply, kept := strings.CutSuffix(reply, fmt.Sprintf("$%d\r\n%s\r\n", len(want), want))
			require.True(t, set && kept, "%+v at %d with a TAT of %d: %q, where %s is to be kept", terms, now, tat, replies, want)
			outcome, err := w.q.Answer([]byte(reply))
			require.NoError(t, err)
			require.Equal(t, scripted.Done, outcome, "%+v at %d with a TAT of %d", terms, now, tat)
			require.False(t, w.q.Disagrees())
			if over != w.q.Decision.Limited {
				require.Equal(t, over, w.q.Decision.Limited, "%+v at %d with a TAT of %d", terms, now, tat)
			}
			if compared++; over {
				limited++
			}
		}
	}
	t.Logf("%d pairs, %d of them limited", compared, limited)
	require.NotZero(t, limited)
	require.Less(t, limited, compared)
}

func serverTime(r *redis) (sec, us int64) {
	words := strings.Split(r.ask("TIME"), "\r\n")
	return parse(r.t, words[2]), parse(r.t, words[4])
}

// TestThereAndBack moves keys from a native server to redis-server, has limiters go on there, and moves them back: each step's state is what a
// native server that had them all the time has, by the clock of redis-server.
func TestThereAndBack(t *testing.T) {
	w, r, there := newWorld(t), random(t), startRedis(t)
	w.send = there.send
	native := []string{"RL.GCRA k 50 10 1s COST 3", "RL.FIXED k 50 10m COST 3", "RL.SLIDING k 50 10m COST 3", "RL.LOG k 50 10m COST 3", "RL.ACQUIRE k 50 10m MEMBER %d", "CL.THROTTLE k 49 10 10 3"}
	for i := range *calls / 10 {
		call := strings.Replace(native[i%len(native)], "%d", "m"+strconv.Itoa(i), 1)
		words := line("%s", call)
		sec, us := serverTime(there)
		w.homeClock.Ns = (sec*1e6 + us) * 1000
		w.home.Ask("DEL", "k")
		there.ask("DEL", "k")
		w.home.Ask(words...)
		for _, command := range copyHome(w) {
			there.ask(command...)
		}
		w.q.NowMs = sec * 1000
		got := w.Ask(words...)
		require.Equal(t, 1, w.trips, "what a native server has written is decided on at once: %s", call)
		w.homeClock.Ns = there.clock()
		require.Equal(t, w.home.Ask(words...), got, call)
		back := copyState(there)
		want := state(w.home.Ask, "k")
		w.home.Ask("DEL", "k")
		for _, command := range back {
			w.home.Ask(command...)
		}
		require.Equal(t, want, state(w.home.Ask, "k"), call)
		w.homeClock.Ns += r.Int64N(1e9) / 1000 * 1000
	}
}

// copyHome returns the commands that make the native server's key k what it is.
func copyHome(w *world) [][]string {
	words := strings.Fields(state(w.home.Ask, "k"))
	var values []string
	for i, word := range words[1:] {
		if i%2 == 1 {
			values = append(values, strings.TrimSuffix(word, ":"))
		}
	}
	at := strings.Trim(w.home.Ask("PEXPIRETIME", "k"), ":\r\n")
	for i, value := range values {
		values[i], _, _ = strings.Cut(value, ":")
	}
	switch words[0] {
	case "string":
		return [][]string{{"SET", "k", values[0], "PXAT", at}}
	case "hash":
		return [][]string{append([]string{"HSET", "k"}, values...), {"PEXPIREAT", "k", at}}
	}
	var list [][]string
	for i := 0; i+1 < len(values); i += 2 {
		list = append(list, []string{"ZADD", "k", values[i+1], values[i]})
	}
	return append(list, []string{"PEXPIREAT", "k", at})
}

// TestBeforeRedis7: where PEXPIRETIME is not to be had, the expiry is found all the same. The scripts run with another name in place of the one
// by which they know Redis 7; it has as many letters, since the request tells how many there are.
func TestBeforeRedis7(t *testing.T) {
	w, there := newWorld(t), startRedis(t)
	w.q.Inline, w.take.Inline = true, true
	w.send = func(request []byte) []byte {
		return there.send(bytes.ReplaceAll(request, []byte("redis.REDIS_VERSION_NUM"), []byte("redis.REDIS_VERSION_NIL")))
	}
	for range 200 {
		there.ask("SET", "k", "3", "PX", "500")
		at := there.ask("PEXPIRETIME", "k")
		require.Contains(t, w.Ask(line("RL.FIXED k 10 1s COST 2")...), "*5\r\n:0\r\n:10\r\n:5\r\n:-1\r\n:")
		require.Equal(t, at, there.ask("PEXPIRETIME", "k"), "a window keeps its end")
		there.ask("SET", "k", "x", "PX", "500")
		require.Equal(t, "-ERR the key holds a value that is no limiter's state\r\n", w.Ask(line("RL.FIXED k 10 1s COST 2")...))
		there.ask("SET", "k", "1000000000000000000", "PX", "500")
		require.Contains(t, w.Ask(line("RL.FIXED k 4000000000000000000 1s COST 2")...), "*5\r\n:0\r\n:4000000000000000000\r\n:2999999999999999998\r\n:-1\r\n:")
		require.Equal(t, "$19\r\n1000000000000000002\r\n", there.ask("GET", "k"))
		there.ask("SET", "k", "3")
		require.Contains(t, w.Ask(line("RL.FIXED k 10 1s COST 2")...), "*5\r\n:0\r\n:10\r\n:5\r\n:-1\r\n:1000\r\n")
	}
	require.Contains(t, there.ask("INFO", "commandstats"), "cmdstat_pexpiretime:calls=400,", "by this test alone")
	require.Contains(t, there.ask("INFO", "commandstats"), "cmdstat_pttl")
}

// TestInRESP3: the replies on a connection of that version are understood.
func TestInRESP3(t *testing.T) {
	w := newTakeWorld(t)
	require.Equal(t, byte('%'), feed(w.there, []byte("*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n"))[0])
	for _, call := range []string{
		"CL.THROTTLE k 15 30 60", "CL.THROTTLE k 15 30 60", "RL.FIXED f 5 1s", "RL.FIXED f 5 1s", "RL.FIXED f 5 1s PEEK", "RL.LOG l 5 1s MEMBER a", "RL.LOG l 5 1s MEMBER a",
		"RL.ACQUIRE a 1 1s MEMBER a", "RL.ACQUIRE a 1 1s MEMBER b", "RL.RELEASE a a", "RL.RELEASE a a", "RL.TAKE 3 gcra {k}gcra fixed {k}fixed log {k}log COSTS 1 2 3",
	} {
		w.both(line("%s", call)...)
	}
	w.set("SET", "w", "x")
	w.both(line("RL.GCRA w 5 1 1s")...)
}

// TestNoAllocation: a call that is decided by its script allocates nothing here.
func TestNoAllocation(t *testing.T) {
	var q scripted.Question
	var p limiter.Policy
	var r limiter.Request
	require.NoError(t, limiter.Standard.Find("GCRA").ReadCall(&p, &r, bytesOf(line("10 1 1s"))))
	g, err := throttle.NewGCRA(throttle.Quota{MaxBurst: 15, Count: 30, Period: 60})
	require.NoError(t, err)
	key, request := []byte("k"), make([]byte, 0, 512)
	fresh := []byte("*4\r\n$10\r\n1700000000\r\n$6\r\n123456\r\n:1\r\n$-1\r\n")
	log := []byte("*4\r\n$10\r\n1700000000\r\n$6\r\n123456\r\n:1\r\n*3\r\n:0\r\n:0\r\n$-1\r\n")
	var pl limiter.Policy
	require.NoError(t, limiter.Standard.Find("LOG").ReadCall(&pl, &r, bytesOf(line("10 1s"))))
	require.Zero(t, testing.AllocsPerRun(100, func() {
		request = q.Ask(request[:0], key, &p, &r)
		if outcome, err := q.Answer(fresh); err != nil || outcome != scripted.Done || q.Disagrees() {
			t.Fatal(outcome, err)
		}
		request = q.AskGCRA(request[:0], key, g, 1)
		if outcome, err := q.Answer(fresh); err != nil || outcome != scripted.Done || q.Disagrees() {
			t.Fatal(outcome, err)
		}
		request = q.Ask(request[:0], key, &pl, &r)
		if outcome, err := q.Answer(log); err != nil || outcome != scripted.Done || q.Disagrees() {
			t.Fatal(outcome, err)
		}
	}))
}

// FuzzAnswer: no reply, however wrong, does more harm than an error.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		"*4\r\n$10\r\n1700000000\r\n$6\r\n123456\r\n:1\r\n$-1\r\n", "*4\r\n$10\r\n1700000000\r\n$6\r\n123456\r\n:3\r\n*1\r\n$3\r\n1 2\r\n", "*3\r\n$1\r\n1\r\n$1\r\n2\r\n:2\r\n",
		"*4\r\n$1\r\n1\r\n$1\r\n2\r\n:1\r\n*5\r\n:1\r\n:0\r\n_\r\n:0\r\n:5\r\n", "-WRONGTYPE x script: y\r\n", "*1\r\n*3\r\n", "$5\r\n", ":1\r\n", "*-1\r\n", "",
	} {
		f.Add([]byte(seed), uint8(0))
	}
	f.Fuzz(func(t *testing.T, reply []byte, which uint8) {
		var q scripted.Question
		words := [][]string{line("GCRA 5 1 1s"), line("FIXED 5 1s"), line("SLIDING 5 1s"), line("LOG 5 1s"), line("ACQUIRE 5 1s"), line("FIXED 4000000000000000000 1s COST 2000000000000000000")}[which%6]
		var p limiter.Policy
		var r limiter.Request
		require.NoError(t, limiter.Standard.Find(words[0]).ReadCall(&p, &r, bytesOf(words[1:])))
		q.Ask(nil, []byte("k"), &p, &r)
		for range 3 {
			if outcome, err := q.Answer(reply); err != nil || outcome == scripted.Done {
				break
			}
			q.Next(nil)
		}
		var take scripted.Take
		pair := take.Pairs(1)[0]
		pair.Key, pair.Policy, pair.Request.Call.Cost = []byte("k"), &p, 1
		take.Ask(nil)
		if outcome, err := take.Answer(reply); err == nil && outcome == scripted.Done {
			take.AskGiveBack(nil)
		}
		q.AskReset(nil, [][]byte{[]byte("k")})
		_, _ = q.Answer(reply)
	})
}
