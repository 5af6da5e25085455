package store

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// typesKeyspace is a keyspace with one database and limits that suit a test.
func typesKeyspace(t testing.TB, limits Limits) (*Keyspace, *DB) {
	t.Helper()
	ks := New(Options{Databases: 1, Limits: limits})
	t.Cleanup(ks.Close)
	return ks, ks.DB(0)
}

// encodings are limits under which the same operations run in every encoding, and
// over and over from one to the next.
var encodings = map[string]Limits{
	"packed": {
		HashMaxListpackEntries: 1 << 20, HashMaxListpackValue: 1 << 20, ZSetMaxListpackEntries: 1 << 20, ZSetMaxListpackValue: 1 << 20,
		ListMaxListpackSize: -5, SetMaxIntsetEntries: 1 << 20,
	},
	"big": {
		HashMaxListpackEntries: 0, HashMaxListpackValue: 1, ZSetMaxListpackEntries: 0, ZSetMaxListpackValue: 1,
		ListMaxListpackSize: 1, SetMaxIntsetEntries: 0,
	},
	"conversion": {
		HashMaxListpackEntries: 12, HashMaxListpackValue: 310, ZSetMaxListpackEntries: 12, ZSetMaxListpackValue: 310,
		ListMaxListpackSize: 12, SetMaxIntsetEntries: 12,
	},
}

// randomName is a short text out of few, or now and then none, or one longer than 255 bytes.
func randomName(rnd *rand.Rand, few int) []byte {
	name := []byte{byte('a' + rnd.IntN(3))}
	for n := rnd.IntN(few); n > 0; n /= 3 {
		name = append(name, byte('a'+n%3))
	}
	switch rnd.IntN(40) {
	case 0:
		return nil
	case 1:
		return slices.Repeat(name, 1+300/len(name))
	}
	return name
}

// modelEntry is what a sorted set holds, for comparison.
type modelEntry struct {
	Member string
	Score  float64
}

// modelZSet is the sorted set that needs no thought: a map, sorted when asked.
type modelZSet map[string]float64

func (m modelZSet) sorted() []modelEntry {
	entries := make([]modelEntry, 0, len(m))
	for member, score := range m {
		entries = append(entries, modelEntry{member, score})
	}
	slices.SortFunc(entries, compareEntries)
	return entries
}

func compareEntries(a, b modelEntry) int {
	if c := cmp.Compare(a.Score, b.Score); c != 0 {
		return c
	}
	return strings.Compare(a.Member, b.Member)
}

func (m modelZSet) add(score float64, member string) (added, changed bool) {
	held, ok := m[member]
	if !ok || held != score {
		m[member] = score
	}
	return !ok, ok && held != score
}

func (m modelZSet) remove(entries []modelEntry) int {
	for _, e := range entries {
		delete(m, e.Member)
	}
	return len(entries)
}

func (m modelZSet) inScore(r ScoreRange) []modelEntry {
	return filterEntries(m.sorted(), func(e modelEntry) bool {
		above := e.Score > r.Min || !r.MinEx && e.Score == r.Min
		below := e.Score < r.Max || !r.MaxEx && e.Score == r.Max
		return above && below
	})
}

func (m modelZSet) inLex(r LexRange) []modelEntry {
	return filterEntries(m.sorted(), func(e modelEntry) bool {
		low, high := strings.Compare(e.Member, string(r.Min)), strings.Compare(e.Member, string(r.Max))
		above := r.MinInf || low > 0 || !r.MinEx && low == 0
		below := r.MaxInf || high < 0 || !r.MaxEx && high == 0
		return above && below && !r.Empty
	})
}

func filterEntries(entries []modelEntry, keep func(modelEntry) bool) []modelEntry {
	kept := []modelEntry{}
	for _, e := range entries {
		if keep(e) {
			kept = append(kept, e)
		}
	}
	return kept
}

// page applies order, offset and limit as EachScore and EachLex do.
func page(entries []modelEntry, reverse bool, offset, limit int) []modelEntry {
	entries = slices.Clone(entries)
	if reverse {
		slices.Reverse(entries)
	}
	if offset < 0 || offset >= len(entries) {
		return []modelEntry{}
	}
	entries = entries[offset:]
	if limit >= 0 {
		entries = entries[:min(limit, len(entries))]
	}
	return entries
}

// collector gathers what a walk shows. It copies, for members are valid for a moment only.
type collector struct{ entries []modelEntry }

func newCollector() *collector { return &collector{entries: []modelEntry{}} }

func (c *collector) each(member []byte, score float64) bool {
	c.entries = append(c.entries, modelEntry{string(member), score})
	return true
}

func (c *collector) scan(member []byte, score float64) { c.each(member, score) }

// requireEntries compares members and scores; 0 and -0 are equal, see TestZSetSignOfZero.
func requireEntries(t *testing.T, want, got []modelEntry) {
	t.Helper()
	require.True(t, slices.Equal(want, got), "want %v, got %v", want, got)
}
