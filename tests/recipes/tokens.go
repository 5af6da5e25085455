package recipes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// SetTokenLimits are those of one user of a language model: requests, tokens, and calls at a time.
func SetTokenLimits(ctx context.Context, rdb *redis.Client) error {
	_, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.Do(ctx, "RL.POLICY", "SET", "llm-requests", "GCRA", 60, 60, "1m")
		p.Do(ctx, "RL.POLICY", "SET", "llm-tokens", "BUCKET", 100_000, 20_000, "1m")
		p.Do(ctx, "RL.POLICY", "SET", "llm-parallel", "ACQUIRE", 5, "2m")
		return nil
	})
	return err
}

// callTimeout is how long a call may take. The lease of llm-parallel is as long, so that a crashed caller's place is free when its reservation is.
const callTimeout = 2 * time.Minute

// Reserve takes a request, an estimate of its tokens (the prompt's and as many as the answer may have) and a place among the calls at a
// time: all of them or none. limited is nil if they passed, and else says when to come back.
func Reserve(ctx context.Context, rdb *redis.Client, user string, estimate int64) (id string, limited *Verdict, err error) {
	reply, err := rdb.Do(ctx, "RL.RESERVE", 3,
		"llm-requests", "rl:llm:requests:"+user, "llm-tokens", "rl:llm:tokens:"+user, "llm-parallel", "rl:llm:calls:"+user,
		"COSTS", 1, estimate, 1, "TTL", callTimeout.Milliseconds()).Slice()
	if err != nil {
		return "", nil, err
	}
	if which := reply[1].(int64); which >= 0 {
		var n []int64
		for _, v := range reply[3].([]any)[which].([]any) {
			n = append(n, v.(int64))
		}
		v := verdict(n)
		return "", &v, nil
	}
	return reply[2].(string), nil, nil
}

// Settle says what a call has used in the end: the rest of the estimate comes back, or what goes beyond it is charged, and the place is free.
func Settle(ctx context.Context, rdb *redis.Client, id string, tokens int64) error {
	return rdb.Do(ctx, "RL.SETTLE", id, "ACTUALS", 1, tokens, 0).Err()
}

// Complete makes one call of a model within the user's limits. A call that fails costs nothing; one whose process crashes costs
// nothing after callTimeout.
func Complete(ctx context.Context, rdb *redis.Client, user string, estimate int64, call func(ctx context.Context) (tokens int64, err error)) error {
	id, limited, err := Reserve(ctx, rdb, user, estimate)
	if err != nil {
		return err
	}
	if limited != nil && limited.RetryAfter < 0 {
		return fmt.Errorf("can never pass: the limit is %d", limited.Limit)
	}
	if limited != nil {
		return fmt.Errorf("over the limit: try again in %v", limited.RetryAfter)
	}
	timed, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	tokens, err := call(timed)
	ending := context.WithoutCancel(ctx) // also if the user has gone meanwhile
	if err != nil {
		return errors.Join(err, rdb.Do(ending, "RL.CANCEL", id).Err())
	}
	return Settle(ending, rdb, id, tokens)
}
