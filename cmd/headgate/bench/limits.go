package bench

import "time"

// What a load may be at most.
const (
	maxClients   = 10_000
	maxThreads   = 64
	maxPipeline  = 10_000
	maxOutBytes  = 16 << 20 // of one connection's pipeline
	maxKeys      = 999_999_999_999
	maxRounds    = 1000
	maxDuration  = 24 * time.Hour
	maxRate      = 1e8
	maxArgs      = 1024
	maxRawLoad   = 64 << 10
	maxDepth     = 8   // of a reply
	maxErrorText = 200 // of a server's error that is kept
)

const (
	dialTimeout  = 5 * time.Second
	replyTimeout = 10 * time.Second // a server that is silent for so long is given up
	drainTime    = 2 * time.Second  // for what is due when the time is over
	readBytes    = 256 << 10
)

// Latencies are kept in nanoseconds to three digits; what is longer counts as the longest.
const (
	longestLatency = int64(time.Minute)
	latencyDigits  = 3
)
