package lua

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

const (
	accounts  = 10
	endowment = 100
	transfers = 100 // of each worker
)

// transfer moves an amount in two steps that nobody may see one of; it fails in the middle when there is not enough.
const transfer = `
local amount = tonumber(ARGV[1])
local left = redis.call('DECRBY', KEYS[1], amount)
if left < 0 then
  redis.call('INCRBY', KEYS[1], amount)
  return redis.error_reply('POOR only ' .. left + amount)
end
return {left, redis.call('INCRBY', KEYS[2], amount)}`

// TestScriptsAreOneStep lets workers transfer between accounts while others add them up, by MGET and by a
// script. No sum is ever another.
func TestScriptsAreOneStep(t *testing.T) {
	server := harness.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr, PoolSize: workers, PoolTimeout: time.Minute})
	defer func() { _ = client.Close() }()
	keys := make([]string, accounts)
	for i := range keys {
		keys[i] = fmt.Sprintf("account:%d", i)
		require.NoError(t, client.Set(t.Context(), keys[i], endowment, 0).Err())
	}
	script := redis.NewScript(transfer)
	move := func(ctx context.Context) error {
		from, to := rand.IntN(accounts), rand.IntN(accounts)
		err := script.Run(ctx, client, []string{keys[from], keys[to]}, rand.IntN(endowment)).Err()
		if err != nil && redis.HasErrorPrefix(err, "POOR") {
			return nil
		}
		return err
	}
	adding := redis.NewScript(`local sum = 0 for _, v in ipairs(redis.call('MGET', unpack(KEYS))) do sum = sum + v end return {sum, 0}`)
	add := func(ctx context.Context) error {
		for _, read := range []func() ([]any, error){
			func() ([]any, error) { return client.MGet(ctx, keys...).Result() },
			func() ([]any, error) { return adding.Run(ctx, client, keys).Slice() },
		} {
			values, err := read()
			if err != nil {
				return err
			}
			if sum := total(values); sum != accounts*endowment {
				return fmt.Errorf("the accounts hold %d, not %d: %v", sum, accounts*endowment, values)
			}
		}
		return nil
	}
	var group sync.WaitGroup
	errs := make(chan error, 2*workers)
	for worker := range workers {
		group.Go(func() {
			work := move
			if worker%5 == 0 {
				work = add
			}
			for range transfers {
				if err := work(context.Background()); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	group.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	require.NoError(t, add(t.Context()))
}

func total(values []any) int {
	sum := 0
	for _, value := range values {
		switch v := value.(type) {
		case int64:
			sum += int(v)
		case string:
			n, _ := strconv.Atoi(v)
			sum += n
		}
	}
	return sum
}
