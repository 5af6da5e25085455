package types

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRandomElementsAreUniform: each element comes as often as any other, within five standard deviations.
func TestRandomElementsAreUniform(t *testing.T) {
	const rounds, size, drawn, seed = 20_000, 10, 3, 1
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, seed))
	tests := []struct {
		name string
		draw func(seen []int)
	}{
		{"chooser", func(seen []int) {
			choice := chooser{left: size, want: drawn, rnd: random.IntN}
			for i := range size {
				if choice.take() {
					seen[i]++
				}
			}
		}},
		{"distinct", func(seen []int) {
			for _, i := range distinct(size, drawn, random.IntN) {
				seen[i]++
			}
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			seen := make([]int, size)
			for range rounds {
				test.draw(seen)
			}
			const deviation = 65 // sqrt(rounds * 0.3 * 0.7)
			for _, n := range seen {
				require.InDelta(t, rounds*drawn/size, n, 5*deviation, "%v", seen)
			}
		})
	}
}
