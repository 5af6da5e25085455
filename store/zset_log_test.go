package store

import (
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// openLog is a set that is a log as soon as it has members.
func openLog(t testing.TB) (*Keyspace, Key, ZSet) {
	t.Helper()
	ks, db := typesKeyspace(t, encodings["big"])
	k := ks.Key([]byte("log"))
	set, err := db.ZSetCreate(k, 0)
	require.NoError(t, err)
	return ks, k, set
}

func (z *zsetTest) encoding() encoding {
	if e, ok := z.db.Peek(z.key); ok {
		return e.rec.enc
	}
	return 0
}

// TestZSetLogModel drives logs, with other members among them and without, and their model.
func TestZSetLogModel(t *testing.T) {
	for name, limits := range encodings {
		t.Run(name, func(t *testing.T) {
			logs := 0
			for round := range 6 * *logRounds {
				z := newZSetTest(t, newRand(t), limits)
				z.log = true
				z.nanos = round%2 == 1
				for i := range 2000 {
					z.change()
					if i%40 == 0 {
						z.verify()
					}
					if z.encoding() == encZSetLog {
						logs++
					}
				}
				z.verify()
			}
			if name == "big" {
				require.Greater(t, logs, 1000)
			}
		})
	}
}

// TestZSetLogBigModel runs at a size at which a log has pages, with many other members beside the stamps.
func TestZSetLogBigModel(t *testing.T) {
	rnd := newRand(t)
	z := newZSetTest(t, rnd, encodings["conversion"])
	z.log = true
	set := z.open()
	set.AppendStamps(0, 20, func(member []byte) { z.model.add(0, string(member)) })
	for ms := range int64(9000) {
		set.AppendStamps(ms, rnd.IntN(20), func(member []byte) { z.model.add(float64(ms), string(member)) })
		if rnd.IntN(10) == 0 {
			id := fmt.Sprintf("id:%d", ms)
			z.model.add(float64(ms), id)
			set.Add(float64(ms), []byte(id))
		}
	}
	require.Equal(t, encZSetLog, z.encoding())
	z.verifySome(400)
	for _, r := range []ScoreRange{{Min: 100, Max: 400}, {Min: math.Inf(-1), Max: 50}, {Min: 5000, Max: math.Inf(1), MinEx: true}} {
		require.Equal(t, z.model.remove(z.model.inScore(r)), set.RemoveScore(r))
		z.verifySome(100)
	}
}

// verifySome compares n entries, and some ranges.
func (z *zsetTest) verifySome(n int) {
	t, set, entries := z.t, z.open(), z.model.sorted()
	require.Equal(t, len(entries), set.Len())
	for range n {
		i := z.rnd.IntN(len(entries))
		member, score := set.AtRank(i)
		require.Equal(t, entries[i], modelEntry{string(member), score})
		rank, ok := set.Rank(member)
		require.True(t, ok)
		require.Equal(t, i, rank)
	}
	for range 3 {
		z.verifyRanges(&set, entries)
	}
}

func TestZSetLogEncoding(t *testing.T) {
	limits := DefaultLimits()
	fill := func(set *ZSet, n int) {
		for i := range n {
			set.Add(float64(1000+i), fmt.Append(nil, 1000+i))
		}
	}
	tests := map[string]struct {
		do   func(set *ZSet)
		want encoding
	}{
		"few stamps":         {func(set *ZSet) { fill(set, 128) }, encPackedZSet},
		"stamps":             {func(set *ZSet) { fill(set, 129) }, encZSetLog},
		"a batch":            {func(set *ZSet) { set.AppendStamps(5, 129, nil) }, encZSetLog},
		"a batch upon few":   {func(set *ZSet) { fill(set, 10); set.AppendStamps(5, 120, nil) }, encZSetLog},
		"another among them": {func(set *ZSet) { set.Add(1, []byte("x")); fill(set, 128) }, encZSet},
		"another as last":    {func(set *ZSet) { fill(set, 128); set.Add(1, []byte("x")) }, encZSet},
		"a long one as last": {func(set *ZSet) { fill(set, 100); set.Add(1, make([]byte, 65)) }, encZSet},
		"a score as last":    {func(set *ZSet) { fill(set, 128); set.Add(1, []byte("7")) }, encZSet},
		"another afterwards": {func(set *ZSet) { fill(set, 129); set.Add(1, []byte("x")) }, encZSetLog},
		"others afterwards": {func(set *ZSet) {
			fill(set, 129)
			for i := range 200 {
				set.Add(1, fmt.Append(nil, "id:", i))
			}
		}, encZSetLog},
		"few stamps among others": {func(set *ZSet) {
			fill(set, 129)
			for i := range 200 {
				set.Add(1, fmt.Append(nil, "id:", i))
			}
			set.RemoveRank(200, 200)
		}, encZSet},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			ks, db := typesKeyspace(t, limits)
			set, err := db.ZSetCreate(ks.Key([]byte("k")), 0)
			require.NoError(t, err)
			test.do(&set)
			require.Equal(t, test.want, set.Entry().rec.enc)
			if test.want != encPackedZSet {
				require.Equal(t, "skiplist", set.Entry().Encoding())
			}
			require.Equal(t, "zset", set.Entry().Kind().String())
			n := 0
			set.Range(0, set.Len(), false, func(member []byte, score float64) bool {
				held, ok := set.Score(member)
				require.True(t, ok)
				require.Equal(t, score, held)
				n++
				return true
			})
			require.Equal(t, set.Len(), n)
		})
	}
}

// TestZSetLogCopy: a copy shares blocks, and no change of either is seen in the other.
func TestZSetLogCopy(t *testing.T) {
	rnd := newRand(t)
	z := newZSetTest(t, rnd, encodings["big"])
	z.log = true
	set := z.open()
	for ms := range int64(3000) {
		set.AppendStamps(ms, 3, func(member []byte) { z.model.add(float64(ms), string(member)) })
	}
	other := *z
	other.key = z.ks.Key([]byte("copy"))
	require.True(t, z.db.Copy(z.key, z.db, other.key, false, 0))
	other.model = modelZSet{}
	for member, score := range z.model {
		other.model[member] = score
	}
	for i := range 300 {
		one := []*zsetTest{z, &other}[i%2]
		set := one.open()
		score, member := one.entry()
		one.model.add(score, string(member))
		set.Add(score, member)
		rank := rnd.IntN(set.Len())
		one.model.remove(one.model.sorted()[rank : rank+1])
		set.RemoveRank(rank, rank)
	}
	z.verifySome(300)
	other.verifySome(300)
}

// TestZSetLogScanGuarantee changes a log between the calls of a scan and requires that every member that was there all along has
// been shown, also those whose score made them leave the stamps.
func TestZSetLogScanGuarantee(t *testing.T) {
	rnd := newRand(t)
	entry := func(i int) (score float64, member string) {
		if i%10 == 3 {
			ns := logTestNanos + int64(i)*37
			return float64(ns), strconv.FormatInt(ns, 10)
		}
		return float64(i / 3), fmt.Sprintf("%d-%d", i/3, i%3)
	}
	for range 60 {
		_, _, set := openLog(t)
		stays := map[string]bool{}
		for i := range 200 + rnd.IntN(1500) {
			score, member := entry(i)
			if i%10 == 5 {
				member = fmt.Sprintf("id:%d", i)
			}
			set.Add(score, []byte(member))
			stays[member] = true
		}
		require.Equal(t, encZSetLog, set.Entry().rec.enc)
		shown := map[string]bool{}
		cursor := uint64(0)
		for {
			cursor = set.Scan(cursor, 1+rnd.IntN(30), func(m []byte, _ float64) { shown[string(m)] = true })
			if cursor == 0 {
				break
			}
			for range rnd.IntN(20) {
				i := rnd.IntN(2000)
				score, m := entry(i)
				switch rnd.IntN(4) {
				case 0:
					set.Add(float64(rnd.IntN(500)), []byte(m))
				case 1:
					set.Add(score, []byte(m))
				default:
					delete(stays, m)
					set.Remove([]byte(m))
				}
			}
		}
		for m := range stays {
			require.True(t, shown[m], "%s was there all along", m)
		}
	}
}

// TestZSetLogScanThroughConversion: a scan shows who stays also when the log becomes a tree between two of its calls, at whatever stamp it is
// then, or behind them.
func TestZSetLogScanThroughConversion(t *testing.T) {
	const others = 3000
	for _, first := range []int{1, 10, logFewStamps - 1, logFewStamps, logFewStamps + 1, logFewStamps + 2, others / 2, logFewStamps + others} {
		_, _, set := openLog(t)
		stays := map[string]bool{}
		for i := range logFewStamps + 1 {
			set.Add(0, fmt.Append(nil, "0-", i))
		}
		for i := range others {
			member := fmt.Sprint("id:", i)
			set.Add(1, []byte(member))
			stays[member] = true
		}
		require.Equal(t, encZSetLog, set.Entry().rec.enc)
		show := func(m []byte, _ float64) { delete(stays, string(m)) }
		cursor := set.Scan(0, first, show)
		require.NotZero(t, cursor)
		require.True(t, set.Remove([]byte("0-0")))
		require.Equal(t, encZSet, set.Entry().rec.enc)
		for cursor != 0 {
			cursor = set.Scan(cursor, 500, show)
		}
		require.Empty(t, stays, "%d were shown before", first)
	}
}

// TestZSetLogScanPages: a scan shows no member twice while nothing changes, and about as many at a time as it is asked for.
func TestZSetLogScanPages(t *testing.T) {
	_, _, set := openLog(t)
	for ms := range int64(200) {
		set.AppendStamps(1_700_000_000_000+ms, 25, nil)
		set.Add(float64(ms), fmt.Append(nil, 1_700_000_000_000_000+ms))
	}
	set.Add(0, []byte("0"))
	shown := map[string]bool{}
	for cursor := uint64(0); ; {
		n := 0
		cursor = set.Scan(cursor, 10, func(m []byte, _ float64) {
			require.False(t, shown[string(m)])
			shown[string(m)] = true
			n++
		})
		require.LessOrEqual(t, n, 11)
		if cursor == 0 {
			break
		}
	}
	require.Len(t, shown, set.Len())
}

// TestZSetLogScanOfSharedCursors: stamps of one cursor are shown once while nothing changes, in whatever numbers a scan asks for them.
func TestZSetLogScanOfSharedCursors(t *testing.T) {
	_, _, set := openLog(t)
	set.AppendStamps(1_700_000_000_000, 2000, nil) // from the 1000th on, ten share a cursor with one before
	for count := 1; count < 20; count++ {
		shown := map[string]bool{}
		for cursor := uint64(0); ; {
			cursor = set.Scan(cursor, count, func(m []byte, _ float64) {
				require.False(t, shown[string(m)], "%s is shown twice, count %d", m, count)
				shown[string(m)] = true
			})
			if cursor == 0 {
				break
			}
		}
		require.Len(t, shown, set.Len(), "count %d", count)
	}
}

// TestZSetLogScanAtTheLastStamp: a scan that has shown all stamps goes on with the other members, in the same call if it is asked for more.
func TestZSetLogScanAtTheLastStamp(t *testing.T) {
	const stamps, others = 30, 3
	_, _, set := openLog(t)
	set.AppendStamps(1_700_000_000_000, stamps, nil)
	for i := range others {
		set.Add(float64(i), fmt.Append(nil, "id:", i))
	}
	for count := stamps - 1; count <= stamps+others; count++ {
		shown := 0
		show := func([]byte, float64) { shown++ }
		cursor := set.Scan(0, count, show)
		require.Equal(t, count, shown)
		require.Equal(t, count == stamps+others, cursor == 0, "count %d", count)
		if cursor != 0 {
			require.Zero(t, set.Scan(cursor, stamps+others, show))
			require.Equal(t, stamps+others, shown, "count %d", count)
		}
	}
}

// TestZSetLogMembersHold: members that have been shown hold until the set changes.
func TestZSetLogMembersHold(t *testing.T) {
	_, _, set := openLog(t)
	set.AppendStamps(1_700_000_000_000, 2000, nil)
	var members [][]byte
	set.Range(0, set.Len(), false, func(member []byte, _ float64) bool {
		members = append(members, member)
		return true
	})
	require.Len(t, members, 2000)
	require.True(t, slices.IsSortedFunc(members, func(a, b []byte) int { return slices.Compare(a, b) }))
	rank, ok := set.Rank(members[1999])
	require.True(t, ok)
	require.Equal(t, 1999, rank)
}

// TestZSetLogHotPathAllocs: what a limiter does with a full window allocates once in hundreds of calls.
func TestZSetLogHotPathAllocs(t *testing.T) {
	ks, k, set := openLog(t)
	db := ks.DB(0)
	const window = 10_000
	now := int64(1_700_000_000_000)
	for range window {
		now++
		set.AppendStamps(now, 1, nil)
	}
	open := func() ZSet {
		set, err := db.ZSetCreate(k, 0)
		if err != nil {
			panic(err)
		}
		return set
	}
	var name [32]byte
	shown := 0
	paths := map[string]func(){
		"append and trim": func() {
			set := open()
			now++
			removeUntil(&set, now-window, 100)
			if set.CountAfter(now-window) < window {
				set.AppendStamps(now, 1, nil)
			}
		},
		"the script": func() {
			set := open()
			now++
			set.RemoveScore(ScoreRange{Min: math.Inf(-1), Max: float64(now - window)})
			set.Len()
			set.Add(float64(now), strconv.AppendInt(name[:0], now, 10))
		},
		"append of several, shown": func() {
			set := open()
			set.AppendStamps(now, 20, func(member []byte) { shown += len(member) })
			removeUntil(&set, now-window, 100)
		},
		"oldest":     func() { set := open(); set.AtRank(0) },
		"score":      func() { set := open(); set.Score([]byte("1700000000500-0")) },
		"rank":       func() { set := open(); set.Rank([]byte("1700000000500-0")) },
		"not a name": func() { set := open(); set.Score([]byte("an id")) },
	}
	for path, fn := range paths {
		require.Zero(t, testing.AllocsPerRun(2000, fn), path)
	}
}

// TestZSetLogMemory bounds what an entry of a window of a million costs. Without -log.rounds it draws a third of the windows.
func TestZSetLogMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("fills a million entries")
	}
	const n = 1_000_000
	var name [32]byte
	tests := map[string]struct {
		bound float64
		add   func(set *ZSet, i int)
	}{
		"RL.LOG, 17 a second for a day": {12, func(set *ZSet, i int) { set.AppendStamps(1_700_000_000_000+int64(i)*86, 1, nil) }},
		"RL.LOG, 1000 a second":         {12, func(set *ZSet, i int) { set.AppendStamps(1_700_000_000_000+int64(i), 1, nil) }},
		"RL.LOG, 100,000 a second":      {12, func(set *ZSet, i int) { set.AppendStamps(1_700_000_000_000+int64(i/100), 1, nil) }},
		"RL.LOG, one call with COST 1,000,000": {12, func(set *ZSet, i int) {
			if i == 0 {
				set.AppendStamps(1_700_000_000_000, n, nil)
			}
		}},
		"script, milliseconds": {16, func(set *ZSet, i int) {
			set.Add(float64(1_700_000_000_000+i*3), fmt.Append(name[:0], 1_700_000_000_000+i*3))
		}},
		"script, microseconds": {16, func(set *ZSet, i int) {
			set.Add(float64(1_700_000_000_000_000+i*3600), fmt.Append(name[:0], 1_700_000_000_000_000+i*3600))
		}},
		"script, microseconds, a year": {16, func(set *ZSet, i int) {
			set.Add(float64(1_700_000_000_000_000+i*31_536_000), fmt.Append(name[:0], 1_700_000_000_000_000+i*31_536_000))
		}},
		"script, nanoseconds": {16, func(set *ZSet, i int) {
			ns := 1_763_900_060_123_456_789 + i*3_600_017
			set.Add(float64(ns), strconv.AppendInt(name[:0], int64(ns), 10))
		}},
		"script, nanoseconds, a year": {16, func(set *ZSet, i int) {
			ns := 1_763_900_060_123_456_789 + i*31_536_000_017
			set.Add(float64(ns), strconv.AppendInt(name[:0], int64(ns), 10))
		}},
		"script, out of order": {16, func(set *ZSet, i int) {
			ms := 1_700_000_000_000 + int64(uint32(i)*2654435761)
			set.Add(float64(ms), fmt.Append(name[:0], ms))
		}},
	}
	names := slices.Sorted(maps.Keys(tests))
	if *logRounds == 1 {
		rnd := newRand(t)
		rnd.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		names = names[:len(names)/3]
	}
	for _, what := range names {
		test := tests[what]
		t.Run(what, func(t *testing.T) {
			_, _, set := openLog(t)
			before := heapInUse()
			for i := range n {
				test.add(&set, i)
			}
			each := float64(heapInUse()-before) / n
			usage := float64(set.Entry().MemoryUsage()) / n
			t.Logf("%.2f bytes an entry on the heap, %.2f by MEMORY USAGE", each, usage)
			require.Equal(t, n, set.Len())
			require.Less(t, each, test.bound)
			require.InDelta(t, each, usage, 2)
			runtime.KeepAlive(set)
		})
	}
}

// TestZSetLogMillion is a limit of a million in a window, filled to the last, all of which then expires at once: each call counts
// what is within its window, whether or not what is outside has been trimmed, and trims no more than its slice.
func TestZSetLogMillion(t *testing.T) {
	const (
		limit  = 1_000_000
		window = 60_000
		slice  = 1000
	)
	_, _, set := openLog(t)
	now := int64(1_700_000_000_000)
	admitted := 0
	for ms := range int64(window) {
		n := min(limit-admitted, limit/window+1)
		set.AppendStamps(now+ms, n, nil)
		admitted += n
	}
	require.Equal(t, limit, set.Len())
	now += window - 1
	require.Equal(t, limit, set.CountAfter(now-window))
	require.Zero(t, removeUntil(&set, now-window, slice))

	now += window
	for calls := 1; calls <= limit/slice+10; calls++ {
		require.Equal(t, calls-1, set.CountAfter(now-window), "only what these calls have added")
		trimmed := removeUntil(&set, now-window, slice)
		if calls <= limit/slice {
			require.Equal(t, slice, trimmed)
		} else {
			require.Zero(t, trimmed)
		}
		set.AppendStamps(now, 1, nil)
	}
	require.Equal(t, limit/slice+10, set.Len())
}
