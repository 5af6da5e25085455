package recipes

import (
	"context"
	"math/rand/v2"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// Spread limits one thing by n keys, of which each call takes one at random. Each has its share of the limit, so the sum is never
// exceeded; a caller may meet an empty share while another one has room.
func Spread(ctx context.Context, rdb *redis.Client, key string, n, capacity, perSecond int64) (Verdict, error) {
	suffix := strconv.FormatInt(rand.Int64N(n), 10)
	return Ask(ctx, rdb, "RL.GCRA", key+":"+suffix, capacity/n, perSecond/n, "1s")
}
