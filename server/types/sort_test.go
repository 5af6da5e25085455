package types

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSortFirst: the first elements of an order are those that sorting all finds, whichever of its two ways is taken.
func TestSortFirst(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		numbers, order := make([]int, random.IntN(200)), []int32(nil)
		for i := range numbers {
			numbers[i], order = random.IntN(50), append(order, int32(i))
		}
		all := slices.Clone(order)
		slices.SortStableFunc(all, func(i, j int32) int { return cmp.Compare(numbers[i], numbers[j]) })
		n := random.IntN(len(order) + 1)
		sortFirst(order, n, func(i, j int32) int { return cmp.Or(cmp.Compare(numbers[i], numbers[j]), cmp.Compare(i, j)) })
		require.Equal(t, all[:n], order[:n])
	}
}

// TestTextsAreCopied: a text stays as it is when others are copied behind it, and when it grows.
func TestTextsAreCopied(t *testing.T) {
	var kept texts
	var copies [][]byte
	for i := range 3_000 {
		copies = append(copies, kept.copy(slices.Repeat([]byte{byte(i)}, i%300)))
	}
	for i, text := range copies {
		require.NotNil(t, text)
		require.Equal(t, slices.Repeat([]byte{byte(i)}, i%300), append(text, 'x')[:i%300])
		require.Equal(t, len(text), cap(text))
	}
}
