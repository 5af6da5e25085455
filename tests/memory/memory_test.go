package memory

import (
	"flag"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

var (
	keys   = flag.Int("memory.keys", 50_000, "keys of the shapes that are measured by the key")
	values = flag.Int("memory.values", 5_000, "small collections, or as many as fit into -memory.bytes")
	room   = flag.Int("memory.bytes", 32<<20, "bytes that the small collections of one shape take up at most")
	zset   = flag.Int("memory.zset", 50_000, "members of the big sorted set")
	all    = flag.Bool("memory.all", false, "measure every shape and every policy, and not some of each kind")
)

const (
	mib       = 1 << 20
	idleLimit = 18 * mib // resident bytes of an idle server: 2 to 4 MiB of them are the program and tables of gRPC
	once      = 8 * mib  // resident bytes that a server with any data has more than an idle one: buffers, the heap's spare room
)

// shape is a kind of key. Both servers get the same, but for what only one of them knows.
type shape struct {
	name   string
	n      int // keys
	each   int // entries of a key, 0 if it is measured by the key
	lines  int // of a reply
	own    func(i int) []string
	theirs func(i int) []string // nil: the same
	most   float64              // bytes a key, or an entry; 0: not more than Redis's by a fifth
	usual  bool                 // measured without -memory.all too
}

// text is a word of n bytes that differs with i.
func text(n, i int) string {
	s := strconv.Itoa(i * 7919)
	return strings.Repeat("x", max(n-len(s), 0)) + s[:min(len(s), n)]
}

func user(i int) string { return fmt.Sprintf("limit:user:%010d", i) } // 21 bytes

// small is a collection of so many entries, each of the given words.
func small(name string, each int, head []string, entry func(key, i int) []string) shape {
	return shape{name: name, lines: 1, own: func(key int) []string {
		words := append([]string{head[0], user(key)}, head[1:]...)
		for i := range each {
			words = append(words, entry(key, i)...)
		}
		return words
	}}
}

func shapes() []shape {
	word := func(n int) func(key, i int) []string {
		return func(key, i int) []string { return []string{text(n, key*1000+i)} }
	}
	pair := func(field, value int) func(key, i int) []string {
		return func(key, i int) []string { return []string{text(field, i), text(value, key+i)} }
	}
	score := func(n int) func(key, i int) []string {
		return func(key, i int) []string { return []string{strconv.Itoa(key + i), text(n, key*1000+i)} }
	}
	number := func(key, i int) []string { return []string{strconv.Itoa(key%1000 + i*37)} }
	collections := []shape{
		small("hash, 3 fields of 8 and 8 bytes", 3, []string{"HSET"}, pair(8, 8)),
		small("hash, 10 fields of 10 and 20", 10, []string{"HSET"}, pair(10, 20)),
		small("hash, 10 fields, numbers", 10, []string{"HSET"}, func(key, i int) []string { return []string{text(6, i), strconv.Itoa(i * key % 100)} }),
		small("hash, 64 fields of 64 and 64", 64, []string{"HSET"}, pair(64, 64)),
		small("list, 4 elements of 10", 4, []string{"RPUSH"}, word(10)),
		small("list, 32 elements of 16", 32, []string{"RPUSH"}, word(16)),
		small("list, 128 elements of 64", 128, []string{"RPUSH"}, word(64)),
		small("set, 4 members of 10", 4, []string{"SADD"}, word(10)),
		small("set, 50 numbers", 50, []string{"SADD"}, number),
		small("set, 128 members of 64", 128, []string{"SADD"}, word(64)),
		small("sorted set, 4 members of 10", 4, []string{"ZADD"}, score(10)),
		small("sorted set, 32 members of 16", 32, []string{"ZADD"}, score(16)),
		small("sorted set, 128 members of 64", 128, []string{"ZADD"}, score(64)),
	}
	for i := range collections {
		size := 0
		for _, w := range collections[i].own(0) {
			size += len(w) + 2
		}
		collections[i].n = min(*values, *room/size)
		collections[i].usual = i%4 == 1
	}
	throttle := func(i int) []string { return []string{"CL.THROTTLE", user(i), "100", "100", "100000"} }
	set := func(i int) []string { return []string{"SET", user(i), "1700000000000000000", "PX", "100000000"} }
	return append([]shape{
		{name: "CL.THROTTLE (Redis: SET … PX)", n: *keys, lines: 6, usual: true, own: throttle, theirs: set, most: 75},
		{name: "SET of 32 bytes with PX", n: *keys, lines: 1, usual: true, own: func(i int) []string {
			return []string{"SET", user(i), text(32, i), "PX", "100000000"}
		}, most: 130},
		{name: "one sorted set, members of 16", n: *zset, each: *zset, usual: true, lines: 1, own: func(i int) []string {
			return []string{"ZADD", "z", strconv.Itoa(i * 7919 % *zset), text(16, i)}
		}, most: 110},
	}, collections...)
}

// measured is what a shape takes up on one server, in bytes a key or an entry.
type measured struct{ resident, used, told float64 }

func measure(t *testing.T, s *harness.Server, sh shape, command func(i int) []string, lines int) (m measured) {
	c := harness.Dial(t, s.Addr)
	defer c.Close()
	c.Do("FLUSHALL")
	idle, before := settled(t, s, c), c.InfoNumber("used_memory")
	load(t, s, sh.n, lines, command)
	n := float64(sh.n)
	m.used = float64(c.InfoNumber("used_memory")-before) / n
	m.resident = float64(settled(t, s, c)-idle) / n
	key := command(sh.n / 2)[1]
	told, err := strconv.Atoi(c.Ask("MEMORY", "USAGE", key, "SAMPLES", "0").Text)
	require.NoError(t, err)
	m.told = float64(told) / float64(max(sh.each, 1))
	return m
}

// TestMemory measures each shape on both servers, each on a process of its own.
func TestMemory(t *testing.T) {
	t.Logf("%-40s %9s | %8s %8s %8s | %8s %8s %8s | %s", "bytes a key or entry", "keys", "resident", "used", "told", "Redis's", "used", "told", "resident ratio")
	for _, sh := range shapes() {
		if !sh.usual && !*all {
			continue
		}
		theirs, lines := sh.theirs, 1
		if theirs == nil {
			theirs, lines = sh.own, sh.lines
		}
		own := measure(t, harness.Start(t), sh, sh.own, sh.lines)
		peer := measure(t, harness.StartReference(t), sh, theirs, lines)
		t.Logf("%-40s %9d | %8.1f %8.1f %8.1f | %8.1f %8.1f %8.1f | %.2f", sh.name, sh.n, own.resident, own.used, own.told,
			peer.resident, peer.used, peer.told, own.resident/peer.resident)
		slack := float64(once) / float64(sh.n)
		if sh.most > 0 {
			assert.Less(t, own.resident, sh.most+slack, sh.name)
		} else {
			assert.Less(t, own.resident, 1.2*peer.resident+slack, sh.name)
			assert.Less(t, own.told, 1.2*peer.told, sh.name)
		}
		assert.InDelta(t, own.resident, own.used, own.resident/10+slack, "%s: used_memory is to be true", sh.name)
	}
}

// TestIdleAndBack measures a server that has nothing to do, fills it with keys, and waits until they have expired and their memory is
// given back.
func TestIdleAndBack(t *testing.T) {
	s := harness.Start(t)
	c := harness.Dial(t, s.Addr)
	idle := settled(t, s, c)
	require.LessOrEqual(t, idle, idleLimit)
	begin := time.Now()
	life := 5*time.Second + time.Duration(*keys)*20*time.Microsecond
	until := strconv.FormatInt(begin.Add(life).UnixMilli(), 10)
	load(t, s, *keys, 1, func(i int) []string { return []string{"SET", user(i), "1", "PXAT", until} })
	full := int(s.RSS())
	require.Less(t, time.Since(begin), life, "the keys expire before all are there: more time is needed")
	time.Sleep(life - time.Since(begin))
	most := idle + (full-idle)/10
	for int(s.RSS()) > most+once {
		require.Less(t, time.Since(begin), life+time.Minute, "resident: idle %d, full %d, now %d", idle, full, s.RSS())
		time.Sleep(50 * time.Millisecond)
	}
	t.Logf("%d keys: idle %.1f MiB, full %.1f, back at %.1f after %v", *keys, float64(idle)/mib, float64(full)/mib, float64(s.RSS())/mib,
		(time.Since(begin) - life).Round(10*time.Millisecond))
}
