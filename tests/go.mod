module headgate/tests

go 1.26

require (
	github.com/anishathalye/porcupine v1.3.1
	github.com/go-redis/redis_rate/v10 v10.0.1
	github.com/gomodule/redigo v1.9.2
	github.com/redis/go-redis/v9 v9.14.0
	github.com/redis/rueidis v1.0.67
	github.com/stretchr/testify v1.12.1
	github.com/throttled/throttled/v2 v2.13.0
	github.com/ulule/limiter/v3 v3.11.2
	github.com/valkey-io/valkey-go v1.0.67
	go.yaml.in/yaml/v3 v3.0.6
	golang.org/x/sys v0.35.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/dgryski/go-rendezvous v0.0.0-20200823014737-9f7001d12a5f // indirect
	github.com/pkg/errors v0.9.1 // indirect
)
