// Package gateway serves clients whose keys are stored by an upstream: a Redis, a Redis Cluster, or another headgate. It stands between the
// executor and package upstream.
//
// A command's route derives from its declaration (routes.go). Limiters become scripts that the upstream runs (limiters.go), or are sent
// unchanged to a headgate. Other commands with keys are sent unchanged (pass.go), and a transaction in one write (transaction.go). Commands
// about connections and about this process are answered here, and all others are refused. No command silently uses the local keyspace, which
// holds only the upstream's policies (policies.go) and the state of limiters that continue locally while their node does not answer
// (failure.go).
//
// A command waits for its answer as a call (call.go). Its handler defers the answer, gives the call to the upstream, and returns; the loop
// flushes once per iteration. Replies arrive on the upstream's goroutines, which compute the answers without a lock and pass them to clients in
// groups, under the executor's lock.
package gateway
