package exchange

import (
	"flag"
	"math/rand/v2"
	"testing"
)

var (
	seedFlag = flag.Uint64("exchange.seed", 0, "seed of what is written; 0 draws one")
	allFlag  = flag.Bool("exchange.all", false, "exchange files in every way; without it one of each kind is drawn")
)

// drawn returns the ways in which files are exchanged in this run.
func drawn[T any](t *testing.T, ways ...T) []T {
	t.Helper()
	if *allFlag {
		return ways
	}
	i := rand.IntN(len(ways))
	t.Logf("way %d of %d: %v; all of them with -exchange.all", i+1, len(ways), ways[i])
	return ways[i : i+1]
}
