package throttle

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
)

// byTerms decides by terms as their documentation says, in numbers of any size.
func byTerms(terms Terms, now, tat int64, exists bool) (limited bool, newTAT *big.Int) {
	at, from := big.NewInt(now), big.NewInt(now)
	if exists && tat > now {
		from = big.NewInt(tat)
	}
	newTAT = new(big.Int).Add(from, big.NewInt(terms.Charge))
	if newTAT.Cmp(at) < 0 {
		newTAT = at
	}
	return newTAT.Cmp(new(big.Int).Add(at, big.NewInt(terms.Tolerance))) > 0, newTAT
}

// TestTermsDecideAlike: what Terms says to compare leads to the decisions of GCRA and Rate.
func TestTermsDecideAlike(t *testing.T) {
	numbers := []int64{0, 1, -1, 2, 5, -5, 15, 30, 1e9, -1e9, 60e9, 1 << 53, 1 << 62, math.MaxInt64, math.MinInt64}
	const now = 1_700_000_000_000_000_000
	for _, a := range numbers {
		for _, quantity := range numbers {
			for _, tat := range []int64{0, now - 1, now, now + 1, now + 4, now + 5, now + 6, now + 60e9, now + 61e9, math.MaxInt64} {
				if rate, err := NewRate(max(a, 0), 3, 10); err == nil {
					var d Decision
					terms, ok := rate.Terms(quantity)
					err := rate.ChargeTo(&d, now, tat, tat != 0, Call{Cost: quantity})
					checkTerms(t, terms, ok, &d, err, now, tat)
				}
				if g, err := NewGCRA(Quota{MaxBurst: a, Count: 1e9, Period: 5}); err == nil {
					terms, ok := g.Terms(quantity)
					d, err := g.Decide(now, tat, tat != 0, quantity)
					checkTerms(t, terms, ok, &d, err, now, tat)
				}
			}
		}
	}
	g, err := NewGCRA(Quota{MaxBurst: 5, Count: -30, Period: 60})
	require.NoError(t, err)
	terms, ok := g.Terms(1)
	d, err := g.Decide(now, 0, false, 1)
	checkTerms(t, terms, ok, &d, err, now, 0)
	require.True(t, d.Limited)
}

func checkTerms(t *testing.T, terms Terms, ok bool, d *Decision, err error, now, tat int64) {
	t.Helper()
	if !ok {
		require.Error(t, err)
		return
	}
	limited, newTAT := byTerms(terms, now, tat, tat != 0)
	if err != nil {
		require.False(t, newTAT.IsInt64(), "%+v leads to an error", terms)
		return
	}
	require.Equal(t, d.Limited, limited, "%+v, a TAT %d ahead", terms, tat-now)
	wrote := !limited && terms.Charge != 0 && (newTAT.Int64() > now || tat != 0)
	require.Equal(t, d.Write != Keep, wrote, "%+v, a TAT %d ahead", terms, tat-now)
	if d.Write == Set {
		require.Equal(t, d.TAT, newTAT.Int64())
	}
}
