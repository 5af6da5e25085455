package servertest

import (
	"bytes"
	"flag"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"headgate/server"
	"headgate/server/command"
	"headgate/store"

	"github.com/stretchr/testify/require"
)

var aofSeed = flag.Uint64("aof.seed", 0, "seed of the tests that lose power; 0 draws one")

// SeedOf returns the seed of a randomised test, and prints it.
func SeedOf(t *testing.T) uint64 {
	seed := *aofSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-aof.seed %d", seed)
	return seed
}

// RandomUnit returns what a client may send as one unit, over a few keys.
func RandomUnit(rnd *rand.Rand) []byte {
	key := "k" + strconv.Itoa(rnd.IntN(6))
	switch rnd.IntN(10) {
	case 0:
		return EncodeCommand("SET", key, randomValue(rnd), "PX", strconv.Itoa(1+rnd.IntN(100_000)))
	case 1:
		return EncodeCommand("INCR", "n"+key)
	case 2:
		return EncodeCommand("HSET", "h"+key, "f"+strconv.Itoa(rnd.IntN(4)), randomValue(rnd))
	case 3:
		return EncodeCommand("ZADD", "z"+key, strconv.Itoa(rnd.IntN(1000)), "m"+strconv.Itoa(rnd.IntN(4)))
	case 4:
		return EncodeCommand("DEL", key, "h"+key)
	case 5, 6:
		return EncodeCommand("CL.THROTTLE", "t"+key, "10000", "10", "60")
	case 7:
		return slices.Concat(EncodeCommand("MULTI"), EncodeCommand("SET", "a", randomValue(rnd)), EncodeCommand("INCR", "multi"),
			EncodeCommand("SET", "b", randomValue(rnd)), EncodeCommand("EXEC"))
	case 8:
		return EncodeCommand("EVAL", "redis.call('SET',KEYS[1],ARGV[1]) redis.call('INCR',KEYS[2])", "2", "e"+key, "eval", randomValue(rnd))
	default:
		return EncodeCommand("SET", key, randomValue(rnd))
	}
}

// randomValue returns text that may be long, and may have zero bytes.
func randomValue(rnd *rand.Rand) string {
	b := make([]byte, rnd.IntN(40))
	if rnd.IntN(8) == 0 {
		b = make([]byte, rnd.IntN(3000))
	}
	for i := range b {
		if rnd.IntN(10) > 0 {
			b[i] = byte(rnd.IntN(256))
		}
	}
	return string(b)
}

// Digest is the whole content of the databases, as text. Tests make hundreds of thousands of them.
func Digest(s *server.Server) string {
	var all []string
	for i := range s.Keys.Databases() {
		db := s.Keys.DB(i)
		var names [][]byte
		db.Each(0, func(e *store.Entry) bool {
			names = append(names, bytes.Clone(e.Name()))
			return true
		})
		for _, name := range names {
			all = append(all, string(appendDigest(nil, s, db, name)))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// appendDigest appends what a key holds. Names and texts stand behind their lengths.
func appendDigest(text []byte, s *server.Server, db *store.DB, name []byte) []byte {
	bulk := func(text, b []byte) []byte {
		text = append(strconv.AppendInt(text, int64(len(b)), 10), ':')
		return append(append(text, b...), ' ')
	}
	k := s.Keys.Key(name)
	e, _ := db.Peek(k)
	text = append(strconv.AppendInt(text, int64(db.Index()), 10), ' ')
	text = append(strconv.AppendInt(bulk(text, name), e.ExpireAt(), 10), ' ')
	switch e.Kind() {
	case store.KindString:
		var digits command.IntegerText
		text = bulk(text, e.Bytes(digits[:]))
	case store.KindHash:
		h, _, _ := db.Hash(k, 0)
		var fields []string
		h.Each(func(field, v []byte) bool { fields = append(fields, string(bulk(bulk(nil, field), v))); return true })
		slices.Sort(fields)
		text = append(text, strings.Join(fields, "")...)
	case store.KindZSet:
		z, _, _ := db.ZSet(k, 0)
		z.Range(0, z.Len()-1, false, func(m []byte, score float64) bool {
			text = append(strconv.AppendFloat(bulk(text, m), score, 'g', -1, 64), ' ')
			return true
		})
	}
	return text
}

// History is what a server's data were after each unit.
type History struct {
	last map[string]int // the last unit after which they were so
	N    int            // units so far
}

// NewHistory begins with the data that a server starts with, as Digest has them.
func NewHistory(start string) *History { return &History{last: map[string]int{start: 0}} }

// Add notes what the data are after the next unit.
func (h *History) Add(state string) {
	h.N++
	h.last[state] = h.N
}

// Require checks that a state is one of the history, after unit number acknowledged or later.
func (h *History) Require(t *testing.T, state string, acknowledged int, what string) {
	t.Helper()
	at, known := h.last[state]
	require.True(t, known, "%s: the data are as they never were", what)
	require.GreaterOrEqual(t, at, acknowledged, "%s: acknowledged writes are lost", what)
}
