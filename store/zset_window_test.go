package store

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// windowLimits are limits under which a window of some dozens of entries goes through every encoding.
var windowLimits = map[string]Limits{
	"packed":     encodings["packed"],
	"big":        encodings["big"],
	"conversion": encodings["conversion"],
}

func TestZSetAppendStamps(t *testing.T) {
	for name, limits := range windowLimits {
		t.Run(name, func(t *testing.T) {
			ks, db := typesKeyspace(t, limits)
			set, err := db.ZSetCreate(ks.Key([]byte("k")), 0)
			require.NoError(t, err)
			var added []string
			add := func(ms int64, n int) []string {
				added = nil
				set.AppendStamps(ms, n, func(member []byte) { added = append(added, string(member)) })
				return added
			}
			require.Empty(t, add(1000, 0))
			require.Zero(t, db.Len())
			require.Equal(t, []string{"1000-0", "1000-1"}, add(1000, 2))
			require.Equal(t, []string{"1000-2"}, add(1000, 1))
			require.Equal(t, []string{"1001-0"}, add(1001, 1))
			// A member that is gone, or of another score, or in the way.
			set.Remove([]byte("1000-1"))
			require.Equal(t, []string{"1000-3"}, add(1000, 1))
			set.Add(7, []byte("1002-0"))
			require.Equal(t, []string{"1002-1"}, add(1002, 1))
			set.Add(1001, []byte("an id"))
			require.Equal(t, []string{"1001-2", "1001-3"}, add(1001, 2))
			score, _ := set.Score([]byte("1002-0"))
			require.Equal(t, 7.0, score)
			set.AppendStamps(1003, 1, nil)
			require.Equal(t, 10, set.Len())
		})
	}
}

// removeNewest takes out the n entries of the highest ranks, or all if there are fewer, as a limiter that gives back does.
func removeNewest(z *ZSet, n int) int { return z.RemoveRank(max(0, z.Len()-n), z.Len()-1) }

// removeUntil takes out the oldest entries with a score of at most t, but no more than most of them, as a limiter that trims in slices does.
func removeUntil(z *ZSet, t int64, most int) int {
	return z.RemoveRank(0, min(z.Len()-z.CountAfter(t), most)-1)
}

func TestZSetWindow(t *testing.T) {
	for name, limits := range windowLimits {
		t.Run(name, func(t *testing.T) {
			rnd := newRand(t)
			z := newZSetTest(t, rnd, limits)
			for now := int64(1000); now < 3000; now += rnd.Int64N(10) {
				set := z.open()
				bound := now - rnd.Int64N(100)
				within := z.model.inScore(ScoreRange{Min: float64(bound), MinEx: true, Max: math.Inf(1)})
				require.Equal(t, len(within), set.CountAfter(bound))
				switch rnd.IntN(5) {
				case 0:
					n := rnd.IntN(5)
					entries := z.model.sorted()
					entries = entries[max(0, len(entries)-n):]
					require.Equal(t, z.model.remove(entries), removeNewest(&set, n))
				case 1:
					most := rnd.IntN(20)
					until := now - rnd.Int64N(200)
					entries := z.model.inScore(ScoreRange{Min: math.Inf(-1), Max: float64(until)})
					require.Equal(t, z.model.remove(entries[:min(most, len(entries))]), removeUntil(&set, until, most))
				case 2:
					id := fmt.Sprintf("id:%d", rnd.IntN(50))
					z.model.add(float64(now), id)
					set.Add(float64(now), []byte(id))
				default:
					set.AppendStamps(now, rnd.IntN(15), func(member []byte) {
						added, changed := z.model.add(float64(now), string(member))
						require.True(t, added)
						require.False(t, changed)
					})
				}
				require.Equal(t, len(z.model), set.Len())
			}
			z.verify()
		})
	}
}

func TestZSetWindowMissing(t *testing.T) {
	ks, db := typesKeyspace(t, Limits{})
	set, err := db.ZSetCreate(ks.Key([]byte("k")), 0)
	require.NoError(t, err)
	require.Zero(t, set.CountAfter(0))
	require.Zero(t, removeNewest(&set, 3))
	require.Zero(t, removeUntil(&set, math.MaxInt64, 3))
	set.AppendStamps(5, 0, nil)
	require.Zero(t, ks.Dirty())
	require.Zero(t, db.Len())
}
