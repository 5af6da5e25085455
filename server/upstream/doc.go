// Package upstream carries commands to the Redis servers that keep a gateway's keys, and carries their replies back: to a Redis Cluster, to
// the primary that a Sentinel names, to a single server, or to another headgate. It knows RESP and topology, and nothing of what the
// commands mean.
//
// A [Call] is a command under way. [Upstream.Send] queues it at the connection that it has to take, and does no I/O; [Upstream.Flush] has
// each connection's queue written by one write. Each connection has a goroutine that writes what its socket does not take at once. A [Watcher]
// reads, or where there is none another goroutine. A connection has at most two writes whose replies have not all come: what is queued
// meanwhile waits, and may still be given up without having run.
//
// Two promises hold whatever the servers do:
//
//   - A call is answered by its deadline, with a reply or a [Failure]. One timer per node sees to it.
//   - A command that a server may have executed is never sent again. It is sent again only after replies that prove that nothing has run:
//     MOVED, ASK, TRYAGAIN, CLUSTERDOWN, LOADING, MASTERDOWN, READONLY, NOSCRIPT, and when its bytes were not all given to the socket.
//     One exception is a call that waits ([Upstream.SendAlone]) at a node that is no primary any more, and is frozen.
//
// A node that does not answer, or cannot be reached, rests: calls for it fail at once until a probe has been answered.
//
// Addresses are believed only if the topology names them, so that no reply makes a gateway send its password elsewhere.
package upstream
