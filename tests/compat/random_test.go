package compat

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

var (
	randomN    = flag.Int("random.n", 4_000, "random commands of each family that TestRandomCommands compares")
	randomSeed = flag.Uint64("random.seed", 0, "seed of TestRandomCommands; 0 draws one")
)

// randomFamilies make random commands of one kind each: few keys, and arguments that meet again and again. What they
// ask for is the same on both servers: no random replies, and no times that the server sets.
var randomFamilies = []struct {
	name string
	next func(d *dice) []string
}{
	{"zset", randomZSet},
	{"log", randomLog},
	{"hyperloglog", randomHLL},
	{"list", randomList},
	{"set", randomSet},
	{"stream", randomStream},
	{"sort", randomSort},
}

// TestRandomCommands runs random commands on both servers and compares every reply.
func TestRandomCommands(t *testing.T) {
	const batch = 50
	seed := *randomSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-random.seed %d", seed)
	for i, family := range randomFamilies {
		t.Run(family.name, func(t *testing.T) {
			d := &dice{rand.New(rand.NewPCG(seed, uint64(i)))}
			l := startPair(t).dial(t, 2+i%2)
			reports := 0
			for n := 0; n < *randomN && reports <= maxReports; n += batch {
				calls := make([][]string, batch)
				var raw []byte
				for j := range calls {
					calls[j] = family.next(d)
					raw = append(raw, harness.Command(calls[j]...)...)
				}
				require.NoError(t, l.send(raw))
				for _, call := range calls {
					reference, subject, err := l.read()
					require.NoError(t, err, "%q", call)
					if reference.Wire() != subject.Wire() {
						reports++
						want, got := whereTheyPart(reference.Wire(), subject.Wire())
						t.Errorf("%q\n  redis-server: %q\n  headgate:     %q", call, want, got)
					}
				}
			}
		})
	}
}

// whereTheyPart cuts two replies down to what surrounds their first difference.
func whereTheyPart(a, b string) (string, string) {
	const before, after = 60, 200
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	i = max(i-before, 0)
	return a[i:min(i+after, len(a))], b[i:min(i+after, len(b))]
}

// dice choose a command's parts.
type dice struct{ *rand.Rand }

// one returns one of the texts.
func (d *dice) one(texts ...string) string { return texts[d.IntN(len(texts))] }

// maybe returns the words or, as often as not, nothing.
func (d *dice) maybe(words ...string) []string {
	if d.IntN(2) == 0 {
		return nil
	}
	return words
}

// name returns prefix with a number below n.
func (d *dice) name(prefix string, n int) string { return fmt.Sprint(prefix, d.IntN(n)) }

// names returns one to most names.
func (d *dice) names(prefix string, n, most int) []string {
	names := make([]string, 1+d.IntN(most))
	for i := range names {
		names[i] = d.name(prefix, n)
	}
	return names
}

// each calls fn n times and joins what it returns.
func (d *dice) each(n int, fn func() []string) []string {
	var words []string
	for range n {
		words = append(words, fn()...)
	}
	return words
}

// words joins single words and lists of them.
func words(parts ...any) []string {
	var all []string
	for _, part := range parts {
		switch part := part.(type) {
		case string:
			all = append(all, part)
		case int:
			all = append(all, fmt.Sprint(part))
		case []string:
			all = append(all, part...)
		}
	}
	return all
}

func (d *dice) score() string {
	return d.one("0", "1", "-1", "2.5", "0.1", "0.2", "3", "inf", "-inf", "1e300", "-0", "7", "100")
}

func randomZSet(d *dice) []string {
	key, few := d.name("z", 6), d.IntN(3) > 0
	member := func() string {
		if few {
			return d.name("m", 10)
		}
		return d.name("m", 400)
	}
	inputs := append(d.names("z", 6, 4), d.maybe("set")...)
	weights := d.each(len(inputs), func() []string { return []string{d.score()} })
	combine := words(len(inputs), inputs, d.maybe(words("WEIGHTS", weights)...), d.maybe("AGGREGATE", d.one("SUM", "MIN", "MAX")))
	switch d.IntN(20) {
	case 0:
		return words("SADD", "set", member(), d.name("", 20))
	case 1, 2, 3, 4:
		return words("ZADD", key, d.each(1+d.IntN(5), func() []string { return []string{d.score(), member()} }))
	case 5:
		return words("ZREM", key, member(), member())
	case 6:
		return words("ZMPOP", len(inputs), inputs, d.one("MIN", "MAX"), d.maybe("COUNT", d.one("1", "2", "5")))
	case 7:
		return words("ZRANGESTORE", key, d.name("z", 6), d.one("0", "3", "-5"), d.one("-1", "9"), d.maybe("REV"))
	case 8, 9, 10:
		return words(d.one("ZUNION", "ZINTER"), combine, d.maybe("WITHSCORES"))
	case 11, 12:
		return words(d.one("ZUNIONSTORE", "ZINTERSTORE"), key, combine)
	case 13:
		return words("ZDIFF", len(inputs), inputs, d.maybe("WITHSCORES"))
	case 14:
		return words("ZDIFFSTORE", key, len(inputs), inputs)
	case 15:
		return words("ZINTERCARD", len(inputs), inputs, d.maybe("LIMIT", d.one("0", "1", "3")))
	case 16:
		return words("ZRANGE", key, d.score(), d.score(), "BYSCORE", d.maybe("WITHSCORES"))
	case 17:
		if d.IntN(5) > 0 {
			return words("ZADD", key, d.each(60, func() []string { return []string{d.score(), d.name("m", 400)} }))
		}
		return words("DEL", key)
	case 18:
		return words("OBJECT", "ENCODING", key)
	}
	return words("ZRANGE", key, "0", "-1", "WITHSCORES")
}

// randomLog drives sorted sets that are mostly windows of limiters: members that are their own score.
func randomLog(d *dice) []string {
	key := d.name("w", 4)
	stamp := func() (score, member string) {
		ms := fmt.Sprint(1_700_000_000_000 + d.IntN(300)*7)
		switch d.IntN(12) {
		case 0:
			return ms, d.name("id", 200)
		case 1:
			return d.score(), ms
		case 2, 3, 4, 5:
			return ms, ms
		case 6:
			us := ms + fmt.Sprintf("%03d", d.IntN(1000))
			return us, us
		case 7, 8:
			ns := ms + fmt.Sprintf("000%03d", d.IntN(1000)) // of one ms, some four doubles
			return ns, ns
		}
		return ms, fmt.Sprintf("%s-%d", ms, d.IntN(15))
	}
	score := func() string { s, _ := stamp(); return d.one("", "", "", "(") + s }
	member := func() string { _, m := stamp(); return m }
	pair := func() []string { s, m := stamp(); return []string{s, m} }
	withScores := d.maybe("WITHSCORES")
	switch d.IntN(24) {
	case 0, 1, 2, 3:
		return words("ZADD", key, pair())
	case 4, 5, 6:
		return words("ZADD", key, d.each(90, pair))
	case 7:
		return words("ZADD", key, d.one("NX", "XX", "GT", "LT", "CH"), d.maybe("CH"), pair(), pair())
	case 8:
		return words("ZINCRBY", key, d.one("0", "7", "-7", "0.5", "700"), member())
	case 9:
		return words(d.one("ZRANK", "ZREVRANK", "ZSCORE"), key, member())
	case 10:
		return words("ZCOUNT", key, score(), score())
	case 11, 12:
		return words("ZRANGEBYSCORE", key, score(), score(), withScores, d.maybe("LIMIT", d.one("0", "3"), d.one("5", "-1")))
	case 13:
		return words("ZRANGE", key, score(), score(), "BYSCORE", "REV", withScores)
	case 14:
		return words("ZREM", key, member(), member(), member())
	case 15:
		return words("ZREMRANGEBYSCORE", key, d.one("-inf", "(1700000000000"), "("+fmt.Sprint(1_700_000_000_000+d.IntN(100)*7))
	case 16:
		return words("ZREMRANGEBYRANK", key, d.one("0", "-3", "5"), d.one("0", "-1", "9"))
	case 17:
		return words(d.one("ZPOPMIN", "ZPOPMAX"), key, d.one("1", "3"))
	case 18:
		return words("COPY", key, d.name("w", 4), "REPLACE")
	case 19:
		return words(d.one("ZUNIONSTORE", "ZINTERSTORE"), key, 2, d.name("w", 4), d.name("w", 4), "AGGREGATE", d.one("MIN", "MAX"))
	case 20:
		return words("ZRANGESTORE", key, d.name("w", 4), d.one("0", "20"), "-1")
	case 21:
		return words(d.one("ZCARD", "TYPE"), key)
	case 22:
		return words("OBJECT", "ENCODING", key)
	}
	return words("ZRANGE", key, "0", "-1", withScores, d.maybe("REV"))
}

func randomHLL(d *dice) []string {
	key := d.name("h", 8)
	elements := func(n, of int) []string {
		return d.each(d.IntN(n), func() []string { return []string{d.name("element", of)} })
	}
	switch d.IntN(24) {
	case 0, 1, 2, 3, 4, 5:
		return words("PFADD", key, elements(4, 1000))
	case 6, 7:
		return words("PFADD", key, elements(20, 100_000))
	case 8:
		if d.IntN(10) == 0 {
			return words("PFADD", key, elements(2000, 1_000_000_000))
		}
		return words("PFADD", key, elements(100, 1_000_000_000))
	case 9, 10, 11, 12:
		return words("PFCOUNT", key)
	case 13, 14:
		return words("PFCOUNT", d.names("h", 8, 4))
	case 15:
		return words("PFMERGE", key, d.names("h", 8, 3))
	case 16:
		return words("PFMERGE", key)
	case 17:
		return words("STRLEN", key)
	case 18:
		if d.IntN(4) > 0 {
			return words("OBJECT", "ENCODING", key)
		}
		return words("DEL", key)
	case 19:
		// What anybody can do to a string: most of it is found out, some of it counts.
		if d.IntN(8) > 0 {
			return words("TYPE", key)
		}
		at := d.one("0", "3", "4", "5", "8", "15", "16", "17", "18", "19", "20", "40", "100", "2000")
		return words("SETRANGE", key, at, string([]byte{byte(d.IntN(256))}))
	case 20:
		return words("CONFIG", "SET", "hll-sparse-max-bytes", d.one("3000", "3000", "100", "16000", "0"))
	case 21:
		return words("APPEND", key, d.one("", "", "", "\x80", "\x7f\xff"))
	}
	return words("GET", key)
}

func randomStream(d *dice) []string {
	key, group, consumer := d.name("x", 3), d.name("g", 2), d.name("c", 3)
	id := func() string {
		return d.one(fmt.Sprint(d.IntN(3000)), fmt.Sprintf("%d-%d", d.IntN(3000), d.IntN(3)), "0", "-", "+", "1", "2999")
	}
	fields := func() []string {
		if d.IntN(3) > 0 {
			return words("field", d.name("", 100000))
		}
		return d.each(1+d.IntN(4), func() []string {
			return words(d.name("f", 3), d.one("1", "-70000", "text", "", d.name("more text ", 1000)))
		})
	}
	trim := func() []string {
		return words(d.one("MAXLEN", "MINID"), d.one("~", "=", "~"), d.one("0", "10", "100", "500", "1000", "2000"))
	}
	add := func(options ...string) []string {
		randomStreamID += uint64(d.IntN(2))
		return words("XADD", key, options, fmt.Sprintf("%d-*", randomStreamID), fields())
	}
	switch d.IntN(39) {
	case 0, 1, 2, 3, 4, 5, 6, 7:
		return add()
	case 8:
		return add(trim()...)
	case 9:
		return words("XADD", key, id(), fields())
	case 10:
		if d.IntN(3) > 0 {
			return words("XTRIM", key, d.one("MAXLEN", "MINID"), "~", d.one("100", "300", "1000"), "LIMIT", d.one("0", "50", "100", "1000"))
		}
		return words("XTRIM", key, trim())
	case 11, 12, 13:
		return words("XDEL", key, d.each(1+d.IntN(4), func() []string { return []string{id()} }))
	case 14, 15:
		return words("XRANGE", key, d.one("(", "")+id(), d.one("(", "")+id(), d.maybe("COUNT", d.one("0", "1", "5")))
	case 16, 17:
		return words("XREVRANGE", key, d.one("(", "")+id(), d.one("(", "")+id(), d.maybe("COUNT", d.one("1", "5")))
	case 18:
		return words("XLEN", key)
	case 19, 20:
		return words("XINFO", "STREAM", key)
	case 21:
		return words("XGROUP", "CREATE", key, group, d.one("0", "$", id()), d.maybe("ENTRIESREAD", d.one("0", "5")))
	case 22:
		if d.IntN(3) > 0 {
			return words("XGROUP", "SETID", key, group, d.one("0", "$", id()), d.maybe("ENTRIESREAD", d.one("0", "5")))
		}
		return words("XGROUP", d.one("DESTROY", "DESTROY"), key, group)
	case 23:
		return words("XGROUP", d.one("CREATECONSUMER", "DELCONSUMER"), key, group, consumer)
	case 24, 25, 26, 27:
		return words("XREADGROUP", "GROUP", group, consumer, "COUNT", d.one("1", "3", "10"), d.maybe("NOACK"), "STREAMS", key, ">")
	case 28:
		return words("XREADGROUP", "GROUP", group, consumer, "COUNT", d.one("1", "3", "10"), "STREAMS", key, id())
	case 29, 30:
		return words("XACK", key, group, id(), id(), id())
	case 31, 32:
		return words("XPENDING", key, group)
	case 33:
		return words("XCLAIM", key, group, consumer, "0", id(), id(), d.maybe("FORCE"), d.maybe("JUSTID"), d.maybe("RETRYCOUNT", "3"),
			d.maybe("LASTID", d.one("5", "100")))
	case 34:
		return words("XAUTOCLAIM", key, group, consumer, "0", id(), "COUNT", d.one("1", "3", "10"), d.maybe("JUSTID"))
	case 35, 36:
		return words("XINFO", "GROUPS", key)
	case 37:
		return words("XREAD", "COUNT", d.one("1", "4"), "STREAMS", key, d.name("x", 3), id(), id())
	}
	// Not XSETID: below entries that were deleted, redis-server goes on to keep entries out of order.
	if d.IntN(40) == 0 {
		return words("DEL", key)
	}
	return words("CONFIG", "SET", d.one("stream-node-max-entries", "stream-node-max-bytes"), d.one("100", "100", "4096", "10", "500"))
}

// randomStreamID is the time of the last entry that randomStream has added.
var randomStreamID uint64

func randomSort(d *dice) []string {
	key, element := d.name("l", 3), d.one("1", "2", "3", "10", "-5", "2.5", "1e3", "a", "b", "")
	if d.IntN(20) > 0 {
		element = d.name("", 30)
	}
	pattern := func() string {
		return d.one("w_*", "h_*->f", "t_*", "#", "nosuch_*", "w_*->f", "*", "h_*->g", "h_*->", "x")
	}
	switch d.IntN(12) {
	case 0, 1:
		return words(d.one("LPUSH", "RPUSH"), key, element)
	case 2:
		return words("SADD", "s", element)
	case 3:
		return words("ZADD", "z", d.score(), element)
	case 4:
		return words("SET", d.one("w_", "w_", "t_")+element, d.name(d.one("", "", "text "), 50))
	case 5:
		return words("HSET", "h_"+element, d.one("f", "g"), d.name("", 50))
	case 6:
		return words("LRANGE", "stored", "0", "-1")
	case 7:
		return words("DEL", d.one(key, key, "s", "z", "w_"+element))
	}
	from := d.one(key, key, "s", "z")
	options := words(d.maybe("BY", d.one("w_*", "h_*->f", "nosuch_*")), d.maybe("LIMIT", d.one("0", "2", "-1", "50"), d.one("2", "5", "-1", "0")),
		d.maybe("GET", pattern()), d.maybe("GET", pattern()), d.maybe("DESC"), d.maybe("STORE", "stored"))
	if d.IntN(4) == 0 {
		options = words("ALPHA", d.maybe("DESC"), d.maybe("GET", pattern()), d.maybe("LIMIT", "1", "5"), d.maybe("STORE", "stored"))
	}
	return words("SORT", from, options)
}
