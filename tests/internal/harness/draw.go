package harness

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Draw returns n of all, or all if there are no more, in their order: what a short run takes of what the whole one goes through. The test's log has the
// seed, and how many there are; what the same seed draws of the same list is the same.
func Draw[T any](t testing.TB, all []T, n int) []T {
	t.Helper()
	if n >= len(all) {
		return all
	}
	seed := rand.Uint64()
	t.Logf("%d of %d are drawn, with seed %d", n, len(all), seed)
	places := rand.New(rand.NewPCG(seed, 0)).Perm(len(all))[:n]
	slices.Sort(places)
	drawn := make([]T, n)
	for i, place := range places {
		drawn[i] = all[place]
	}
	return drawn
}
