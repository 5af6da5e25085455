// Package recipes holds the code that docs/recipes.md shows. Each file is a recipe; what stands below its imports is in the
// document, and its test runs it against the built server.
package recipes

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// Verdict is the answer of a limiter.
type Verdict struct {
	Limited    bool
	Limit      int64 // -1 when there is none
	Remaining  int64
	RetryAfter time.Duration // below 0 when the call was allowed, or can never pass
	ResetAfter time.Duration
}

// Ask calls a limiter: Ask(ctx, rdb, "RL.GCRA", "user:42", 100, 100, "1m").
func Ask(ctx context.Context, rdb *redis.Client, command ...any) (Verdict, error) {
	n, err := rdb.Do(ctx, command...).Int64Slice()
	if err != nil {
		return Verdict{}, err
	}
	return verdict(n), nil
}

func verdict(n []int64) Verdict {
	return Verdict{
		Limited: n[0] == 1, Limit: n[1], Remaining: n[2],
		RetryAfter: time.Duration(n[3]) * time.Millisecond,
		ResetAfter: time.Duration(n[4]) * time.Millisecond,
	}
}
