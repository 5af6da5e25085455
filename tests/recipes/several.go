package recipes

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Take asks several limits at once: pairs are a policy and a key each. Either all of them pass and are charged, or none is. which is
// the first that refused, or -1.
func Take(ctx context.Context, rdb *redis.Client, cost int64, pairs ...string) (which int64, verdicts []Verdict, err error) {
	command := []any{"RL.TAKE", len(pairs) / 2}
	for _, p := range pairs {
		command = append(command, p)
	}
	reply, err := rdb.Do(ctx, append(command, "COST", cost)...).Slice()
	if err != nil {
		return -1, nil, err
	}
	for _, five := range reply[2].([]any) {
		var n []int64
		for _, v := range five.([]any) {
			n = append(n, v.(int64))
		}
		verdicts = append(verdicts, verdict(n))
	}
	return reply[1].(int64), verdicts, nil
}

// SetLimits are those of one user, of one address and of one endpoint for all.
func SetLimits(ctx context.Context, rdb *redis.Client) error {
	_, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.Do(ctx, "RL.POLICY", "SET", "per-user", "GCRA", 20, 100, "1m")
		p.Do(ctx, "RL.POLICY", "SET", "per-address", "SLIDING", 1000, "1h")
		p.Do(ctx, "RL.POLICY", "SET", "per-endpoint", "GCRA", 500, 500, "1s")
		return nil
	})
	return err
}

// MayCall charges all three. The endpoint's own allowance is not used up by a user who is refused.
func MayCall(ctx context.Context, rdb *redis.Client, user, address, endpoint string) (bool, error) {
	which, _, err := Take(ctx, rdb, 1,
		"per-user", "rl:user:"+user,
		"per-address", "rl:address:"+address,
		"per-endpoint", "rl:endpoint:"+endpoint)
	return which < 0, err
}
