package clients

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	workers  = 50
	attempts = 10  // of each worker
	limit    = 120 // of workers*attempts calls
	window   = time.Hour
)

// limiter decides one call. id is different in each call.
type limiter func(id int) (admitted bool, err error)

// hammer lets all workers make all their attempts at once and returns how many were admitted.
func hammer(t *testing.T, allow limiter) int {
	t.Helper()
	var admitted atomic.Int64
	var group sync.WaitGroup
	errs := make(chan error, workers)
	for worker := range workers {
		group.Go(func() {
			for attempt := range attempts {
				ok, err := allow(worker*attempts + attempt)
				if err != nil {
					errs <- err
					return
				}
				if ok {
					admitted.Add(1)
				}
			}
		})
	}
	group.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	return int(admitted.Load())
}

func milliseconds() int64 { return time.Now().UnixMilli() }

// TestThreeCallWindow is the sliding window in three calls of their own: look, then add. It is not atomic, so workers
// that look at the same moment may all add; it never refuses what fits.
func TestThreeCallWindow(t *testing.T) {
	eachClient(t, func(t *testing.T, c limiterClient) {
		admitted := hammer(t, func(id int) (bool, error) {
			now := milliseconds()
			if _, err := c.do("ZREMRANGEBYSCORE", "window", "-inf", now-window.Milliseconds()); err != nil {
				return false, err
			}
			count, err := integer(c.do("ZCARD", "window"))
			if err != nil || count >= limit {
				return false, err
			}
			added, err := integer(c.do("ZADD", "window", now, id))
			return added == 1, err
		})
		require.GreaterOrEqual(t, admitted, limit)
		require.LessOrEqual(t, admitted, limit+workers-1)
		stored, err := integer(c.do("ZCARD", "window"))
		require.NoError(t, err)
		require.EqualValues(t, admitted, stored)
	})
}

// TestAddFirstWindow is the variant that adds, sets the expiry and then counts: it may refuse too much, and never admits
// too much.
func TestAddFirstWindow(t *testing.T) {
	eachClient(t, func(t *testing.T, c limiterClient) {
		allow := func(id int) (bool, error) {
			now := milliseconds()
			if _, err := c.do("ZADD", "window", now, id); err != nil {
				return false, err
			}
			if _, err := c.do("EXPIRE", "window", int64(window.Seconds())); err != nil {
				return false, err
			}
			if _, err := c.do("ZREMRANGEBYSCORE", "window", "-inf", now-window.Milliseconds()); err != nil {
				return false, err
			}
			count, err := integer(c.do("ZCARD", "window"))
			return count <= limit, err
		}
		admitted := hammer(t, allow)
		require.LessOrEqual(t, admitted, limit)
		stored, err := integer(c.do("ZCARD", "window"))
		require.NoError(t, err)
		require.EqualValues(t, workers*attempts, stored)
		again, err := allow(workers * attempts)
		require.NoError(t, err)
		require.False(t, again)
	})
}

// TestTransactionWindow is the window in one MULTI/EXEC: exact.
func TestTransactionWindow(t *testing.T) {
	eachClient(t, func(t *testing.T, c limiterClient) {
		admitted := hammer(t, func(id int) (bool, error) {
			now := milliseconds()
			replies, err := c.transaction(
				[]any{"ZADD", "window", now, id},
				[]any{"ZREMRANGEBYSCORE", "window", "-inf", now - window.Milliseconds()},
				[]any{"ZCARD", "window"},
				[]any{"EXPIRE", "window", int64(window.Seconds())},
			)
			if err != nil {
				return false, err
			}
			count, err := integer(replies[2], nil)
			return count <= limit, err
		})
		require.Equal(t, limit, admitted)
	})
}

// TestWatchedWindow looks first and adds under WATCH, again and again until nobody came between: exact.
func TestWatchedWindow(t *testing.T) {
	const retries = 10_000
	eachClient(t, func(t *testing.T, c limiterClient) {
		admitted := hammer(t, func(id int) (bool, error) {
			for range retries {
				full := false
				executed, err := c.watched("window", func(do func(args ...any) (any, error)) ([][]any, error) {
					now := milliseconds()
					if _, err := do("ZREMRANGEBYSCORE", "window", "-inf", now-window.Milliseconds()); err != nil {
						return nil, err
					}
					count, err := integer(do("ZCARD", "window"))
					if full = count >= limit; err != nil || full {
						return nil, err
					}
					return [][]any{{"ZADD", "window", now, id}, {"EXPIRE", "window", int64(window.Seconds())}}, nil
				})
				if err != nil || executed || full {
					return executed, err
				}
			}
			return false, fmt.Errorf("somebody came between %d times", retries)
		})
		require.Equal(t, limit, admitted)
	})
}

// TestFixedWindow counts with INCR and gives the first hit's key its expiry: exact.
func TestFixedWindow(t *testing.T) {
	eachClient(t, func(t *testing.T, c limiterClient) {
		admitted := hammer(t, func(int) (bool, error) {
			count, err := integer(c.do("INCR", "fixed"))
			if err == nil && count == 1 {
				_, err = c.do("EXPIRE", "fixed", int64(window.Seconds()))
			}
			return count <= limit, err
		})
		require.Equal(t, limit, admitted)
		ttl, err := integer(c.do("TTL", "fixed"))
		require.NoError(t, err)
		require.Positive(t, ttl)
	})
}

// TestFixedWindowSetNX opens the window with SET NX EX and counts with INCRBY, in one pipeline: exact, and never without
// an expiry.
func TestFixedWindowSetNX(t *testing.T) {
	eachClient(t, func(t *testing.T, c limiterClient) {
		admitted := hammer(t, func(int) (bool, error) {
			replies, err := c.pipeline(
				[]any{"SET", "fixed", 0, "EX", int64(window.Seconds()), "NX"},
				[]any{"INCRBY", "fixed", 1},
				[]any{"TTL", "fixed"},
			)
			if err != nil {
				return false, err
			}
			if ttl, err := integer(replies[2], nil); err != nil || ttl <= 0 {
				return false, fmt.Errorf("the window's TTL is %d: %v", ttl, err)
			}
			count, err := integer(replies[1], nil)
			return count <= limit, err
		})
		require.Equal(t, limit, admitted)
	})
}

// TestUserCounter counts who is inside: INCR on entry, EXPIRE for who comes when it is full, DEL when the user is done,
// after which the whole limit is free again.
func TestUserCounter(t *testing.T) {
	eachClient(t, func(t *testing.T, c limiterClient) {
		enter := func(int) (bool, error) {
			count, err := integer(c.do("INCR", "user"))
			if err == nil && count > limit {
				_, err = c.do("EXPIRE", "user", int64(window.Seconds()))
			}
			return count <= limit, err
		}
		for range 2 {
			require.Equal(t, limit, hammer(t, enter))
			ttl, err := integer(c.do("TTL", "user"))
			require.NoError(t, err)
			require.Positive(t, ttl)
			deleted, err := integer(c.do("DEL", "user"))
			require.NoError(t, err)
			require.EqualValues(t, 1, deleted)
		}
	})
}

// TestLockedFunnel keeps a funnel in a hash, read and written under a lock of SET NX PX: exact while the lock holds. The
// leak is slower than the test.
func TestLockedFunnel(t *testing.T) {
	const leakPerHour = 1
	eachClient(t, func(t *testing.T, c limiterClient) {
		_, err := c.do("HSET", "funnel", "capacity", limit, "left", limit, "rate", leakPerHour, "last", milliseconds())
		require.NoError(t, err)
		admitted := hammer(t, func(id int) (bool, error) {
			release, err := lock(c, "funnel-lock", strconv.Itoa(id))
			if err != nil {
				return false, err
			}
			ok, err := pour(c, "funnel")
			if err := release(); err != nil {
				return false, err
			}
			return ok, err
		})
		require.Equal(t, limit, admitted)
	})
}

// lock takes the lock, waiting until it is free, and returns what gives it back.
func lock(c limiterClient, key, token string) (release func() error, err error) {
	const holdMs, patience = 60_000, 30 * time.Second
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		v, err := c.do("SET", key, token, "NX", "PX", holdMs)
		if err != nil {
			return nil, err
		}
		if v != nil {
			return func() error {
				holder, err := c.do("GET", key)
				if err != nil || text(holder) != token {
					return fmt.Errorf("the lock of %s is held by %s: %v", token, text(holder), err)
				}
				_, err = c.do("DEL", key)
				return err
			}, nil
		}
		time.Sleep(time.Duration(rand.Int64N(int64(2 * time.Millisecond))))
	}
	return nil, fmt.Errorf("no lock within %v", patience)
}

// pour takes one unit of the funnel's room, after giving back what has leaked since the last time.
func pour(c limiterClient, key string) (bool, error) {
	state, err := fields(c.do("HGETALL", key))
	if err != nil {
		return false, err
	}
	now := milliseconds()
	leaked := (now - state["last"]) * state["rate"] / time.Hour.Milliseconds()
	left := min(state["capacity"], state["left"]+leaked)
	if left < 1 {
		return false, nil
	}
	_, err = c.do("HSET", key, "left", left-1, "last", now)
	return true, err
}

// TestBuckets counts in ten buckets of 100 ms in a hash, in one transaction: exact in each window of a second. The
// clock is the clients', so the test sets it.
func TestBuckets(t *testing.T) {
	const buckets = 10
	eachClient(t, func(t *testing.T, c limiterClient) {
		for slot := int64(100); slot < 130; slot += buckets {
			admitted := hammer(t, func(int) (bool, error) {
				replies, err := c.transaction(
					[]any{"HINCRBY", "buckets", slot, 1},
					[]any{"HGETALL", "buckets"},
					[]any{"EXPIRE", "buckets", int64(window.Seconds())},
				)
				if err != nil {
					return false, err
				}
				counts, err := fields(replies[1], nil)
				var used int64
				for at := slot - buckets + 1; at <= slot; at++ {
					used += counts[strconv.FormatInt(at, 10)]
				}
				return used <= limit, err
			})
			require.Equal(t, limit, admitted)
		}
	})
}

// TestTokenBucket fills with INCRBY and EXPIRE and takes with DECR: what was filled is what can be taken.
func TestTokenBucket(t *testing.T) {
	eachClient(t, func(t *testing.T, c limiterClient) {
		for round := range 2 {
			owed := max(0, round*(workers*attempts-limit))
			_, err := c.transaction([]any{"INCRBY", "tokens", limit + owed}, []any{"EXPIRE", "tokens", int64(window.Seconds())})
			require.NoError(t, err)
			admitted := hammer(t, func(int) (bool, error) {
				left, err := integer(c.do("DECR", "tokens"))
				return left >= 0, err
			})
			require.Equal(t, limit, admitted)
		}
	})
}
