package store

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var largeFlag = flag.Bool("large", false, "benchmark 10 M keys too, and measure memory")

const (
	benchNow     = 1_700_000_000_000
	benchNameLen = 21
	benchBatch   = 64
	benchSample  = 1 << 20 // names drawn, more than caches hold records for
)

// appendBenchName appends name i, of benchNameLen bytes.
func appendBenchName(dst []byte, i int) []byte {
	return fmt.Appendf(dst, "limit:user:%010d", i)
}

// benchKeyspace is a database of n integers with a TTL.
func benchKeyspace(n int) (*Keyspace, *DB) {
	ks := New(Options{Databases: 1})
	db := ks.DB(0)
	var name []byte
	for i := range n {
		name = appendBenchName(name[:0], i)
		db.SetInt(ks.Key(name), int64(i), benchNow+1000_000+int64(i))
	}
	return ks, db
}

// benchNames draws names of keys that are there; name i is names[i*benchNameLen:][:benchNameLen].
func benchNames(n int) []byte {
	rnd := rand.New(rand.NewPCG(1, uint64(n)))
	names := make([]byte, 0, benchSample*benchNameLen)
	for range benchSample {
		names = appendBenchName(names, rnd.IntN(n))
	}
	return names
}

func benchSizes() []int {
	if *largeFlag {
		return []int{1, 100_000, 10_000_000}
	}
	return []int{1, 100_000}
}

// benchOver runs op over random keys, one after the other and in batches that are touched first.
func benchOver(b *testing.B, op func(db *DB, k Key, i int)) {
	for _, n := range benchSizes() {
		ks, db := benchKeyspace(n)
		names := benchNames(n)
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				at := i % benchSample * benchNameLen
				op(db, ks.Key(names[at:at+benchNameLen]), i)
			}
		})
		b.Run(fmt.Sprintf("keys=%d/touched", n), func(b *testing.B) {
			var keys [benchBatch]Key
			var sum uint64
			for i := 0; b.Loop(); i++ {
				if i%benchBatch == 0 {
					for j := range keys {
						at := (i + j) % benchSample * benchNameLen
						keys[j] = ks.Key(names[at : at+benchNameLen])
						sum += db.TouchBucket(keys[j].Hash)
					}
					for j := range keys {
						sum += db.TouchRecord(keys[j].Hash)
					}
				}
				op(db, keys[i%benchBatch], i)
			}
		})
		ks.Close()
	}
}

// BenchmarkFlush writes a key and flushes it, as tests of applications do again and again.
func BenchmarkFlush(b *testing.B) {
	ks := New(Options{})
	defer ks.Close()
	k := testKey(ks, "a")
	b.ReportAllocs()
	for b.Loop() {
		ks.DB(0).SetInt(k, 1, 0)
		ks.FlushAll()
	}
}

func BenchmarkFind(b *testing.B) {
	var sum int64
	benchOver(b, func(db *DB, k Key, _ int) {
		e, _ := db.Find(k, benchNow)
		n, _ := e.Int()
		sum += n
	})
}

func BenchmarkSetInt(b *testing.B) {
	benchOver(b, func(db *DB, k Key, i int) { db.SetInt(k, int64(i), benchNow+1000_000+int64(i)) })
}

// BenchmarkSetIntBesideSnapshot is of the first writes after a snapshot has begun, before it has come to the keys.
func BenchmarkSetIntBesideSnapshot(b *testing.B) {
	const keys, writes = 1_000_000, 100_000
	ks, db := benchKeyspace(keys)
	defer ks.Close()
	names := benchNames(keys)
	begin := func() *Snapshot { return ks.Snapshot(&countingSink{}, 1<<30) }
	s := begin()
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if i%writes == writes-1 {
			b.StopTimer()
			s.Abort()
			s = begin()
			b.StartTimer()
		}
		at := i % benchSample * benchNameLen
		db.SetInt(ks.Key(names[at:at+benchNameLen]), int64(i), benchNow+1000_000)
	}
	s.Abort()
}

// BenchmarkSnapshotGivenUp begins snapshots and gives them up at once: none may have to look at the keys, also when their numbers are
// used up.
func BenchmarkSnapshotGivenUp(b *testing.B) {
	for _, n := range benchSizes() {
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) {
			ks, _ := benchKeyspace(n)
			defer ks.Close()
			for b.Loop() {
				ks.Snapshot(&countingSink{}, 1<<30).Abort()
			}
		})
	}
}

func BenchmarkIncr(b *testing.B) {
	benchOver(b, func(db *DB, k Key, _ int) {
		e, _ := db.Find(k, benchNow)
		n, _ := e.Int()
		e.SetInt(n + 1)
	})
}

func BenchmarkSetString(b *testing.B) {
	value := []byte("a value of 22 letters.")
	benchOver(b, func(db *DB, k Key, _ int) { db.SetString(k, value, 0) })
}

// BenchmarkInsert fills an empty database again and again, splits included.
func BenchmarkInsert(b *testing.B) {
	for _, n := range benchSizes()[1:] {
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) {
			ks := New(Options{Databases: 1})
			defer ks.Close()
			db := ks.DB(0)
			var name []byte
			for i := 0; b.Loop(); i++ {
				if i%n == 0 {
					db.Flush()
				}
				name = strconv.AppendInt(append(name[:0], "limit:user:"...), int64(1e9+i), 10)
				db.SetInt(ks.Key(name), int64(i), benchNow)
			}
		})
	}
}

// TestMemoryPerKey reports what a key of 21 bytes with an integer and a TTL costs, by the store's own account and by the
// operating system's. Only with -large.
func TestMemoryPerKey(t *testing.T) {
	if !*largeFlag {
		t.Skip("only with -large")
	}
	for _, n := range []int{2_000_000, 10_000_000} {
		before := residentBytes(t)
		start := time.Now()
		ks, db := benchKeyspace(n)
		filled := time.Since(start)
		s := ks.Stats()
		t.Logf("%d keys: resident %.1f B/key by the store, %.1f B/key by the system; %d tables; filled in %v", n,
			float64(s.ArenaResident)/float64(n), float64(residentBytes(t)-before)/float64(n), s.Tables, filled)
		require.Less(t, float64(s.ArenaResident)/float64(n), 75.0)
		start = time.Now()
		db.Flush()
		t.Logf("flushed in %v", time.Since(start))
		ks.Close()
	}
}

// TestExpireManyAtOnce reports how long it takes to remove a million keys that expire in the same second, and how
// long the longest slice takes. Only with -large.
func TestExpireManyAtOnce(t *testing.T) {
	if !*largeFlag {
		t.Skip("only with -large")
	}
	const n, slice = 1_000_000, 256
	ks := New(Options{Databases: 1})
	defer ks.Close()
	db := ks.DB(0)
	var name []byte
	for i := range n {
		name = appendBenchName(name[:0], i)
		db.SetInt(ks.Key(name), 1, benchNow+int64(i%1000))
	}
	var longest time.Duration
	slices := 0
	start := time.Now()
	for db.Len() > 0 {
		begun := time.Now()
		ks.ExpireSlice(benchNow+1000, 0, slice)
		longest = max(longest, time.Since(begun))
		slices++
	}
	t.Logf("%v in %d slices, the longest %v", time.Since(start), slices, longest)
	require.EqualValues(t, n, ks.Stats().Expired)
}

// residentBytes is the process's resident memory, or 0 where /proc does not say.
func residentBytes(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.Atoi(strings.Fields(rest)[0])
			require.NoError(t, err)
			return kib << 10
		}
	}
	return 0
}

// BenchmarkSlidingLog is what a limiter does with a window of n entries, of its own members and of clients' ids. The last two find
// a window that has expired: one trims a slice of it, as a limiter does, and one all but an entry at once, as a script does.
// worst-ns is the longest of the calls.
func BenchmarkSlidingLog(b *testing.B) {
	const slice = 100
	for _, n := range []int{1000, 1_000_000} {
		fill := map[string]func(set *ZSet){
			"stamps": func(set *ZSet) {
				for i := range n {
					set.AppendStamps(benchNow+int64(i/4), 1, nil)
				}
			},
			"ids": func(set *ZSet) {
				var id []byte
				for i := range n {
					id = fmt.Appendf(id[:0], "request:%d", i)
					set.Add(benchNow+float64(i/4), id)
				}
			},
		}
		end := benchNow + int64(n/4)
		for _, members := range []string{"stamps", "ids"} {
			run := func(name string, expire bool, op func(set *ZSet, i int)) {
				b.Run(fmt.Sprintf("%s/%d/%s", members, n, name), func(b *testing.B) {
					ks, db := typesKeyspace(b, DefaultLimits())
					full, window := ks.Key([]byte("full")), ks.Key([]byte("window"))
					set, err := db.ZSetCreate(full, 0)
					require.NoError(b, err)
					fill[members](&set)
					require.True(b, db.Copy(full, db, window, true, 0))
					worst := time.Duration(0)
					b.ReportAllocs()
					b.ResetTimer()
					for i := range b.N {
						set, err := db.ZSetCreate(window, 0)
						if err != nil {
							b.Fatal(err)
						}
						if expire && set.Len() <= slice {
							b.StopTimer()
							require.True(b, db.Copy(full, db, window, true, 0))
							set, _ = db.ZSetCreate(window, 0)
							b.StartTimer()
						}
						start := time.Now()
						op(&set, i)
						worst = max(worst, time.Since(start))
					}
					b.ReportMetric(float64(worst.Nanoseconds()), "worst-ns")
				})
			}
			run("append", false, func(set *ZSet, i int) { set.AppendStamps(end+int64(i/4), 1, nil) })
			run("count", false, func(set *ZSet, i int) { set.CountAfter(benchNow + int64(i%(n/4))) })
			run("take back", false, func(set *ZSet, i int) {
				set.AppendStamps(end+int64(i/4), 1, nil)
				removeNewest(set, 1)
			})
			run("trim a slice", true, func(set *ZSet, _ int) { removeUntil(set, end, slice) })
			run("trim all", true, func(set *ZSet, _ int) { set.RemoveRank(0, n-2) })
		}
	}
}
