package recipes

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Budget is how many tokens of a language model a user may spend: what may be saved up, and what comes back each minute.
const budgetCapacity, budgetRefill = 100_000, 20_000

func budget(ctx context.Context, rdb *redis.Client, user string, cost int64) (Verdict, error) {
	return Ask(ctx, rdb, "RL.BUCKET", "tokens:"+user, budgetCapacity, budgetRefill, "1m", "COST", cost)
}

// Reserve takes an estimate before the call: the prompt's tokens and as many as the answer may have.
func Reserve(ctx context.Context, rdb *redis.Client, user string, estimate int64) (Verdict, error) {
	return budget(ctx, rdb, user, estimate)
}

// Settle charges the difference once the call has told what it took. What was too much comes back (a negative cost). What is missing
// is charged as far as the budget goes, since a charge that does not fit charges nothing.
func Settle(ctx context.Context, rdb *redis.Client, user string, estimate, actual int64) error {
	if actual == estimate {
		return nil
	}
	v, err := budget(ctx, rdb, user, actual-estimate)
	if err == nil && v.Limited && v.Remaining > 0 {
		_, err = budget(ctx, rdb, user, v.Remaining)
	}
	return err
}
