// Nethttp is a server that allows each client address ten requests at once and five a second:
//
//	REDIS_URL=redis://127.0.0.1:6379 PORT=8080 go run .
package main

import (
	"log"
	"net"
	"net/http"
	"os"
	"strconv"

	"github.com/redis/go-redis/v9"
)

func limit(rdb *redis.Client, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ip, _, _ := net.SplitHostPort(r.RemoteAddr)
		reply, err := rdb.Do(r.Context(), "RL.GCRA", "ip:"+ip, 10, 5, "1s").Int64Slice()
		if err == nil && reply[0] == 1 {
			w.Header().Set("Retry-After", strconv.FormatInt((reply[3]+999)/1000, 10))
			http.Error(w, "too many requests", http.StatusTooManyRequests)
			return
		}
		next.ServeHTTP(w, r) // an error lets the request pass: this limiter fails open
	})
}

func main() {
	options, err := redis.ParseURL(os.Getenv("REDIS_URL"))
	if err != nil {
		log.Fatal(err)
	}
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello\n")) })
	addr := net.JoinHostPort("127.0.0.1", os.Getenv("PORT"))
	log.Fatal(http.ListenAndServe(addr, limit(redis.NewClient(options), hello)))
}
