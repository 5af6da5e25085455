package clients

import (
	"context"
	"strconv"
	"sync"
	"testing"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// TestQueue has producers push jobs while consumers wait for them with BLPOP, BRPOP, BLMOVE and BLMPOP: each job is done once.
func TestQueue(t *testing.T) {
	const producers, consumers, each = 4, 16, 1000
	server := harness.Start(t)
	for _, protocol := range []int{2, 3} {
		ctx := context.Background()
		client := newGoRedis(t, server, protocol).Client
		done := make(chan string, producers*each)
		var consuming, producing sync.WaitGroup
		for i := range consumers {
			consuming.Go(func() {
				for {
					jobs, err := takeJobs(ctx, client, i%4)
					if err != nil {
						t.Error(err)
						return
					}
					for _, job := range jobs {
						if job == "stop" {
							return
						}
						done <- job
					}
				}
			})
		}
		for p := range producers {
			producing.Go(func() {
				for i := range each {
					job := strconv.Itoa(p) + "-" + strconv.Itoa(i)
					if err := client.RPush(ctx, "jobs", job).Err(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		producing.Wait()
		seen := make(map[string]bool)
		for range producers * each {
			job := <-done
			require.False(t, seen[job], job)
			seen[job] = true
		}
		for range consumers { // one takes no more than one: each is pushed when the last has been taken
			require.NoError(t, client.RPush(ctx, "jobs", "stop").Err())
			require.Eventually(t, func() bool { return client.Exists(ctx, "jobs").Val() == 0 }, harness.ReplyTimeout, 1)
		}
		consuming.Wait()
		require.Zero(t, client.LLen(ctx, "jobs").Val())
		client.Del(ctx, "doing")
	}
}

// takeJobs waits for jobs in one of the ways that there are.
func takeJobs(ctx context.Context, client *goredis.Client, way int) ([]string, error) {
	switch way {
	case 0:
		reply, err := client.BLPop(ctx, 0, "urgent", "jobs").Result()
		if err != nil {
			return nil, err
		}
		return reply[1:], nil
	case 1:
		reply, err := client.BRPop(ctx, 0, "jobs").Result()
		if err != nil {
			return nil, err
		}
		return reply[1:], nil
	case 2:
		job, err := client.BLMove(ctx, "jobs", "doing", "LEFT", "RIGHT", 0).Result()
		return []string{job}, err
	default:
		_, jobs, err := client.BLMPop(ctx, 0, "LEFT", 3, "urgent", "jobs").Result()
		return jobs, err
	}
}
