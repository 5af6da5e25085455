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

func limit(rdb *redis.Client, next http.Handler) http.Handler {
	var again atomic.Int64 // Unix time in ns: not to be asked before, after a failure
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if time.Now().UnixNano() < again.Load() {
			next.ServeHTTP(w, r)
			return
		}
		ip, _, _ := net.SplitHostPort(r.RemoteAddr)
		// A client that hangs up must not count as a failure of the limiter: its cancellation is left out.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 50*time.Millisecond)
		reply, err := rdb.Do(ctx, "RL.GCRA", "ip:"+ip, 10, 5, "1s").Int64Slice()
		cancel()
		if err == nil && reply[0] == 1 {
			w.Header().Set("Retry-After", strconv.FormatInt((reply[3]+999)/1000, 10))
			http.Error(w, "too many requests", http.StatusTooManyRequests)
			return
		}
		if err != nil { // the request passes: this limiter fails open
			log.Print("limiter: ", err)
			again.Store(time.Now().Add(time.Second).UnixNano())
		}
		next.ServeHTTP(w, r)
	})
}

func newClient(url string) (*redis.Client, error) {
	options, err := redis.ParseURL(url)
	if err != nil {
		return nil, err
	}
	options.ContextTimeoutEnabled = true // a call ends with its context
	options.MaxRetries = -1              // a call that was sent twice may be charged twice
	return redis.NewClient(options), nil
}

func main() {
	rdb, err := newClient(os.Getenv("REDIS_URL"))
	if err != nil {
		log.Fatal(err)
	}
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello\n")) })
	addr := net.JoinHostPort("127.0.0.1", os.Getenv("PORT"))
	log.Fatal(http.ListenAndServe(addr, limit(rdb, hello)))
}
