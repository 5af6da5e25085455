package store

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// accessed is a keyspace with a clock, and one key.
type accessed struct {
	*Keyspace
	now int64 // seconds
	key Key
}

func newAccessed(t *testing.T) *accessed {
	ks := New(Options{Random: rand.New(rand.NewPCG(1, 2))})
	t.Cleanup(ks.Close)
	a := &accessed{Keyspace: ks, key: ks.Key([]byte("key"))}
	a.wait(1_700_000_000)
	ks.DB(0).SetInt(a.key, 1, 0)
	return a
}

func (a *accessed) wait(seconds int64) {
	a.now += seconds
	a.Tick(a.now * 1000)
}

func (a *accessed) entry() Entry {
	e, _ := a.DB(0).Peek(a.key)
	return e
}

func (a *accessed) idle() int64 {
	e := a.entry()
	return e.Idle()
}

func (a *accessed) uses() int {
	e := a.entry()
	return e.Uses()
}

func TestIdle(t *testing.T) {
	a := newAccessed(t)
	require.Zero(t, a.idle())
	a.wait(2)
	require.EqualValues(t, 2, a.idle())
	a.DB(0).Look(a.key, 0)
	require.EqualValues(t, 2, a.idle(), "Look is no use")
	a.IgnoreUses(true)
	a.DB(0).Find(a.key, 0)
	a.IgnoreUses(false)
	require.EqualValues(t, 2, a.idle(), "a use that is ignored")
	a.DB(0).Find(a.key, 0)
	require.Zero(t, a.idle())
	a.wait(3)
	a.DB(0).SetString(a.key, []byte("replaced"), 0)
	require.Zero(t, a.idle())
	a.wait(3)
	to := a.Key([]byte("to"))
	require.True(t, a.DB(0).Copy(a.key, a.DB(1), to, false, 0))
	a.wait(3)
	require.True(t, a.DB(0).Move(a.key, a.DB(2), 0))
	e, _ := a.DB(2).Peek(a.key)
	require.Zero(t, e.Idle(), "finding the key to move it is a use")
}

// TestIdleLasts lets keys rest for longer than either form of the clock can tell, with and without a look at them.
func TestIdleLasts(t *testing.T) {
	a := newAccessed(t)
	for n := range 2000 {
		a.DB(n%3).SetInt(a.Key(fmt.Append(nil, n)), 1, 0)
	}
	begin := a.now
	for a.now-begin < 200*24*3600 {
		a.wait(1777)
		for range 5 {
			a.AgeSlice(500)
		}
		idle := a.now - begin
		switch {
		case idle < restAfter:
			require.Equal(t, idle, a.idle())
		case idle < maxIdle-4000:
			require.InDelta(t, idle, a.idle(), 1<<restShift)
		}
	}
	a.wait(-1) // a clock that is set back
	require.Positive(t, a.idle())
}

func TestSetIdle(t *testing.T) {
	a := newAccessed(t)
	for _, seconds := range []int64{0, 1, restAfter - 1, restAfter, 100_000, maxIdle, 1 << 40} {
		e := a.entry()
		e.SetIdle(seconds)
		want := min(seconds, maxIdle)
		if want >= restAfter {
			require.InDelta(t, want, a.idle(), 1<<restShift)
			continue
		}
		require.Equal(t, want, a.idle())
	}
}

func TestUses(t *testing.T) {
	a := newAccessed(t)
	a.CountUses(&UseCounts{LogFactor: 10, DecayMinutes: 1})
	fresh := a.Key([]byte("fresh"))
	a.DB(0).SetInt(fresh, 1, 0)
	a.key = fresh
	require.Equal(t, freshCount, a.uses())
	for range 100_000 {
		a.DB(0).Find(a.key, 0)
	}
	require.InDelta(t, 142, a.uses(), 12, "as the table in redis.conf says of factor 10 and 100K hits")
	high := a.uses()
	a.wait(59 * minuteSeconds)
	require.Equal(t, high-59, a.uses())
	a.AgeSlice(1000)
	require.Equal(t, high-59, a.uses())
	for range 100 {
		a.wait(90 * minuteSeconds)
		a.AgeSlice(1000)
	}
	require.Zero(t, a.uses())
	e := a.entry()
	e.SetUses(200)
	require.Equal(t, 200, a.uses())
}

// TestDecay takes the clock past its end for each length of a decay.
func TestDecay(t *testing.T) {
	for _, minutes := range []int{0, 1, 2, 7, 63, 64, 65, 100, 1000, 1 << 31} {
		t.Run(fmt.Sprint(minutes), func(t *testing.T) {
			a := newAccessed(t)
			a.CountUses(&UseCounts{LogFactor: 1, DecayMinutes: minutes})
			e := a.entry()
			e.SetUses(maxCount)
			begin := a.now
			for range 500 {
				a.wait(minuteSeconds * 50)
				a.AgeSlice(1000)
				want := maxCount
				if minutes > 0 {
					want = max(0, maxCount-int(a.now-begin)/minuteSeconds/minutes)
				}
				require.InDelta(t, want, a.uses(), 3)
			}
		})
	}
}

func TestUsesWithoutFactor(t *testing.T) {
	a := newAccessed(t)
	a.CountUses(&UseCounts{LogFactor: 0, DecayMinutes: 1})
	e := a.entry()
	e.SetUses(0)
	for n := range 300 {
		require.Equal(t, min(n, maxCount), a.uses())
		a.DB(0).Find(a.key, 0)
	}
}
