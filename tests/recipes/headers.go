package recipes

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// limiterTimeout bounds each step of a call: the connection, the request, the reply.
const limiterTimeout = 50 * time.Millisecond

// NewClient returns a client that does not hold requests up for long, and sends no call twice: that might charge twice.
func NewClient(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr:        addr,
		MaxRetries:  -1,
		DialTimeout: limiterTimeout, ReadTimeout: limiterTimeout, WriteTimeout: limiterTimeout, PoolTimeout: limiterTimeout,
	})
}

// WriteHeaders tells an HTTP client where it stands. Headers count whole seconds; up is the safe side.
func WriteHeaders(h http.Header, v Verdict) {
	if v.Limit >= 0 { // else there is no limit, but a block is possible
		h.Set("RateLimit-Limit", strconv.FormatInt(v.Limit, 10))
		h.Set("RateLimit-Remaining", strconv.FormatInt(v.Remaining, 10))
		h.Set("RateLimit-Reset", seconds(v.ResetAfter))
	}
	if v.Limited && v.RetryAfter >= 0 {
		h.Set("Retry-After", seconds(v.RetryAfter))
	}
}

func seconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}

// Limit lets each address make 100 requests a minute, 20 of them at once. When the limiter cannot be asked, requests pass: say the
// opposite where that is safer. rdb is NewClient's. A client that hangs up is charged all the same, or its requests would pass uncounted.
func Limit(rdb *redis.Client, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		address, _, _ := net.SplitHostPort(r.RemoteAddr)
		v, err := Ask(context.WithoutCancel(r.Context()), rdb, "RL.GCRA", "http:"+address, 20, 100, "1m")
		if err == nil {
			WriteHeaders(w.Header(), v)
		}
		if v.Limited {
			http.Error(w, "too many requests", http.StatusTooManyRequests)
			return
		}
		next.ServeHTTP(w, r)
	})
}
