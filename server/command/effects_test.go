package command

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// word notes an effect, shown by its first word alone.
func (e *Effects) word(db int, name string) { e.Add(db, []any{name}) }

// plainly shows effects as their words.
func plainly(p []byte) string {
	var words []string
	for line := range strings.SplitSeq(string(p), "\r\n") {
		if line != "" && line[0] != '*' && line[0] != '$' {
			words = append(words, line)
		}
	}
	return strings.Join(words, " ")
}

// unit runs what notes effects as one command.
func (e *Effects) unit(note func()) {
	e.start, e.startDB, e.count = len(e.Buf), e.DB, 0
	e.Depth++
	note()
	e.End()
}

func TestStreamAndLogOfTheSameEffects(t *testing.T) {
	var e Effects
	var stream []byte
	e.Enable(1 << 20)
	e.unit(func() { e.word(0, "a") })
	e.Stream(func(p []byte) { stream = append(stream, p...) })
	require.Empty(t, stream, "what was before is not its")
	e.unit(func() { e.word(0, "b"); e.word(0, "c") })
	e.unit(func() {
		e.word(0, "d")
		e.Feed()
		require.Equal(t, "MULTI SELECT 0 b c EXEC", plainly(stream), "a unit goes when it is whole")
	})
	e.Feed()
	require.Equal(t, "MULTI SELECT 0 b c EXEC d", plainly(stream))
	require.Equal(t, "SELECT 0 a "+plainly(stream), plainly(e.Take(nil)))

	// Without a log nothing is kept.
	e.Disable()
	require.True(t, e.On)
	stream = nil
	e.unit(func() { e.word(3, "e") })
	e.Feed()
	require.Equal(t, "SELECT 3 e", plainly(stream))
	require.Empty(t, e.Buf)
	require.True(t, e.RoomFor(1<<40))
	e.Stream(nil)
	require.False(t, e.On)
}

// TestAsides: what is for the stream alone is in no log, wherever in a unit it stands, and the log names its databases for itself.
func TestAsides(t *testing.T) {
	var e Effects
	var stream []byte
	e.Enable(1 << 20)
	e.Stream(func(p []byte) { stream = append(stream, p...) })
	aside := func(db int, name string) { e.Aside(func() { e.word(db, name) }) }
	e.unit(func() { e.word(0, "a") })
	e.unit(func() { aside(0, "x") })
	e.unit(func() { e.word(0, "b"); aside(1, "y"); e.word(1, "c") })
	e.unit(func() { aside(1, "z"); e.word(1, "d") })
	e.NoteGap()
	e.unit(func() { e.word(1, "e"); e.NoteGap(); aside(1, "w") })
	aside(2, "v")
	e.word(1, "f")
	log := plainly(e.Take(nil))
	require.Equal(t, "SELECT 0 a MULTI b SELECT 1 c EXEC MULTI d EXEC #GAP #GAP MULTI e EXEC SELECT 1 f", log)
	require.Equal(t, "SELECT 0 a x MULTI b SELECT 1 y SELECT 1 c EXEC MULTI z d EXEC MULTI e w EXEC SELECT 2 v SELECT 1 f", plainly(stream))
	require.Empty(t, e.asides)
}

// TestRandomAsides notes effects in random units, and takes and feeds them at random moments: the stream has all of them, the log those that are
// its, and both of them name the same databases.
func TestRandomAsides(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	for range 500 {
		var e Effects
		var stream, log []byte
		var all, logged []string
		e.Enable(1 << 20)
		e.Stream(func(p []byte) { stream = append(stream, p...) })
		note := func(aside bool) {
			name, db := string(rune('a'+len(all)%26)), rnd.IntN(2)
			all = append(all, string(rune('0'+db))+name)
			if aside {
				e.Aside(func() { e.word(db, name) })
				return
			}
			logged = append(logged, all[len(all)-1])
			if rnd.IntN(2) == 0 {
				e.addGone(db, []byte(name))
			} else {
				e.word(db, name)
			}
		}
		for range 1 + rnd.IntN(20) {
			switch rnd.IntN(5) {
			case 0:
				note(rnd.IntN(2) == 0)
			case 1:
				e.Feed()
			case 2:
				log = append(log, e.Take(nil)...)
			case 3:
				e.NoteGap()
			default:
				e.unit(func() {
					for range rnd.IntN(4) {
						if rnd.IntN(5) == 0 {
							e.NoteGap()
						}
						if rnd.IntN(4) == 0 {
							e.Feed()
						}
						if rnd.IntN(4) == 0 {
							log = append(log, e.Take(nil)...)
						}
						note(rnd.IntN(2) == 0)
					}
				})
			}
		}
		log = append(log, e.Take(nil)...)
		require.NotContains(t, string(stream), "#GAP")
		require.Equal(t, all, byDatabase(t, stream))
		require.Equal(t, logged, byDatabase(t, log))
	}
}

// byDatabase is effects' names, each behind the number of its database.
func byDatabase(t *testing.T, p []byte) (list []string) {
	words := strings.Fields(plainly(p))
	db, open := "", false
	for i := 0; i < len(words); i++ {
		switch word := words[i]; word {
		case "SELECT":
			i++
			db = words[i]
		case "MULTI", "EXEC":
			require.Equal(t, word == "EXEC", open, "%q", words)
			open = word == "MULTI"
		case "#GAP", "DEL":
		default:
			list = append(list, db+word)
		}
	}
	require.False(t, open)
	return list
}

// TestSetEffects: each SET has its own key and numbers, whether those are the ones before or not.
func TestSetEffects(t *testing.T) {
	var e, want Effects
	e.Enable(1 << 20)
	want.Enable(1 << 20)
	numbers := []int64{0, 0, 9, 10, -1, 1_700_000_000_000, 1_700_000_000_000, 1_700_000_000_000_000_001, math.MaxInt64, math.MinInt64, 0}
	for i, n := range numbers {
		for _, at := range []int64{0, n, 1_700_000_000_000, 1_700_000_000_000} {
			key := []byte(strings.Repeat("k", i))
			e.addSet(i%2, key, n, at)
			want.Add(i%2, []any{"SET", key, n, "PXAT", at})
		}
		if i == len(numbers)/2 {
			require.Equal(t, string(want.Take(nil)), string(e.Take(nil)))
			e.Disable()
			want.Disable()
			e.Enable(1 << 20)
			want.Enable(1 << 20)
		}
	}
	require.Equal(t, string(want.Buf), string(e.Buf))
}

// TestGoneKeys: keys that go one after the other share DELs, as long as nothing comes between and nobody has been given the DEL.
func TestGoneKeys(t *testing.T) {
	var e Effects
	var stream []byte
	gone := func(db int, keys ...string) {
		for _, key := range keys {
			e.addGone(db, []byte(key))
		}
	}
	taken := func(want ...[]any) {
		t.Helper()
		var w Effects
		for _, args := range want {
			w.Add(0, args)
		}
		require.Equal(t, string(w.Buf), string(e.Take(nil)))
	}
	e.Enable(1 << 20)
	gone(0, "a", "b", "c")
	taken([]any{"SELECT", 0}, []any{"DEL", "a", "b", "c"})
	gone(0, "a", "b", "c", "d", "e", "f", "g", "h", "i", "j")
	taken([]any{"DEL", "a", "b", "c", "d", "e", "f", "g", "h"}, []any{"DEL", "i", "j"})
	gone(0, "a")
	e.word(0, "b")
	gone(0, "c", "d")
	e.unit(func() { gone(0, "e") })
	gone(0, "f")
	taken([]any{"DEL", "a"}, []any{"b"}, []any{"DEL", "c", "d"}, []any{"DEL", "e"}, []any{"DEL", "f"})
	gone(0, "a")
	gone(1, "b")
	taken([]any{"DEL", "a"}, []any{"SELECT", 1}, []any{"DEL", "b"})
	gone(1, "a")
	e.unit(func() { gone(1, "b"); e.forgetDeletion([]byte("b")) })
	gone(1, "c")
	taken([]any{"DEL", "a", "c"})
	gone(1, "a")
	e.NoteGap()
	gone(1, "b")
	require.Equal(t, "DEL a #GAP DEL b", plainly(e.Take(nil)))
	gone(1, "a")
	e.Annotate([]byte("#GAP\r\n"))
	gone(1, "b")
	require.Equal(t, "DEL a #GAP DEL b", plainly(e.Take(nil)))

	e.Stream(func(p []byte) { stream = append(stream, p...) })
	gone(0, "a", "b")
	e.Feed()
	gone(0, "c", "d")
	e.Aside(func() { gone(0, "x", "y") })
	gone(0, "e")
	e.Feed()
	require.Equal(t, "SELECT 0 DEL a b DEL c d DEL x DEL y DEL e", plainly(stream))
	require.Equal(t, "SELECT 0 DEL a b DEL c d DEL e", plainly(e.Take(nil)))
}
