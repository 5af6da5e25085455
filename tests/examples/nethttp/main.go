// Nethttp is a server that allows each client address ten requests at once and five a second:
//
//	REDIS_URL=redis://127.0.0.1:6379 PORT=8080 go run .
package main

import (
	"context"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

func limit(l *limiter, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ip, _, _ := net.SplitHostPort(r.RemoteAddr)
		if limited, retryAfter := l.ask(r.Context(), "RL.GCRA", "ip:"+ip, 10, 5, "1s"); limited {
			w.Header().Set("Retry-After", strconv.FormatInt((retryAfter+999)/1000, 10))
			http.Error(w, "too many requests", http.StatusTooManyRequests)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// limiter asks headgate, and does not hold requests up when it cannot be reached.
type limiter struct {
	client *redis.Client
	again  atomic.Int64 // Unix time in ns: not to be asked before, after a failure
}

func newLimiter(url string) (*limiter, error) {
	options, err := redis.ParseURL(url)
	if err != nil {
		return nil, err
	}
	options.ContextTimeoutEnabled = true // a call ends with its context
	options.MaxRetries = -1              // a call that was sent twice may be charged twice
	return &limiter{client: redis.NewClient(options)}, nil
}

// ask sends one command and returns whether the request is limited, and after how many milliseconds it would pass. Without an answer within
// 50 ms it passes (this limiter fails open), and for a second the limiter is not asked again.
func (l *limiter) ask(ctx context.Context, command ...any) (limited bool, retryAfter int64) {
	if time.Now().UnixNano() < l.again.Load() {
		return false, 0
	}
	// A client that hangs up must not count as a failure of the limiter: its cancellation is left out.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 50*time.Millisecond)
	defer cancel()
	reply, err := l.client.Do(ctx, command...).Int64Slice()
	if err != nil {
		log.Print("limiter: ", err)
		l.again.Store(time.Now().Add(time.Second).UnixNano())
		return false, 0
	}
	return reply[0] == 1, reply[3]
}

func main() {
	l, err := newLimiter(os.Getenv("REDIS_URL"))
	if err != nil {
		log.Fatal(err)
	}
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello\n")) })
	addr := net.JoinHostPort("127.0.0.1", os.Getenv("PORT"))
	log.Fatal(http.ListenAndServe(addr, limit(l, hello)))
}
