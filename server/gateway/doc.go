// Package gateway serves clients whose keys lie with an upstream: a Redis, a Redis Cluster, or another headgate. It stands between the
// executor and package upstream.
//
// What becomes of a command derives from its declaration (routes.go): those of limiters become scripts that the upstream runs (limiters.go),
// or go as they are to a headgate; those with keys go as they are (pass.go), and a transaction as one write (transaction.go); what is about
// connections and about this process is answered here; what can be done neither there nor here is refused. Nothing falls silently to the
// keyspace here, which holds the upstream's policies (policies.go) and, if a limiter is to go on by itself while its node does not answer,
// that limiter's state (failure.go).
//
// A command is a call on its way to the answer (call.go). Its handler defers the answer, gives the call to the upstream, and returns; the
// loop flushes once per iteration. Replies are heard on the upstream's goroutines, which work out the answers without any lock, and told to
// clients in groups, under the executor's.
package gateway
