package recipes

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// SetPlans names what tenants have bought. A policy is changed without losing what is used up; policies in the configuration file
// (policy plan:free FIXED 1000 MONTH) survive a FLUSHALL too.
func SetPlans(ctx context.Context, rdb *redis.Client) error {
	plans := [][]any{
		{"plan:free", "FIXED", 1000, "MONTH"},
		{"plan:team", "FIXED", 50_000, "DAY", "TZ", "Europe/Berlin"},
		{"plan:own-servers", "UNLIMITED"},
	}
	for _, plan := range plans {
		if err := rdb.Do(ctx, append([]any{"RL.POLICY", "SET"}, plan...)...).Err(); err != nil {
			return err
		}
	}
	return nil
}

// UseQuota charges a tenant's quota by the plan that the tenant has now.
func UseQuota(ctx context.Context, rdb *redis.Client, tenant, plan string, cost int64) (Verdict, error) {
	_, verdicts, err := Take(ctx, rdb, cost, "plan:"+plan, "quota:"+tenant)
	if err != nil {
		return Verdict{}, err
	}
	return verdicts[0], nil
}
