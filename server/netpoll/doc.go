// Package netpoll moves bytes between sockets and the executor.
//
// The package does not know the commands. A Worker parses what [Conn.In] holds, appends replies to [Conn.Out], and calls
// [Conn.CloseAfterReply] or [Conn.CloseNow] when a connection has to be closed. Two fronts share that contract.
//
// # Loops
//
// On Linux, a [Loop] owns many sockets through one edge-triggered epoll instance: in an iteration it reads each
// readable socket once, hands all of them to its [Worker] as one batch, and only then writes, with one send per
// connection.
//
// Its first sleep is at most four milliseconds long and made without the scheduler's knowledge, since under load the
// next event is never far; only then its goroutine parks in Go's network poller, which watches the loop's epoll
// instance for as long, and no longer. (Four, since a shorter one has the kernel set a timer of its own each time: with
// one of 1 ms a lone client's requests cost a third more.)
//
// With a group of loops ([Loop.Share]) the first accepts, and hands the connections to the loops in turn. A listener
// that closes ([Loop.Unlisten]) may have the loop accepting from it: the socket is shut down at once, which frees its
// address, and the descriptor is the loop's to close.
//
// # Fairness
//
// What a connection may have of an iteration is bounded: readMax bytes are read and sendMax sent, and the Worker
// postpones what is more than it wants to run at a time. The rest is left over for the next iteration, in which such
// connections come after all others, the one that has waited longest first; so do those whose last turn was too long,
// and those that have had none yet, or none except AUTH and its like. One long turn after many quick ones is forgiven,
// but seldom: it may be the machine's. Others are judged by the time that they have had the processor. A connection that
// an iteration had no time for keeps its place, before all others.
// New connections are accepted and read for a limited time in each iteration, so that a crowd that comes at once does
// not keep those waiting that are known.
// After a turn of more than 10 ms the slow connections pause for as long (at most 500 ms) while others have something
// to do: a command cannot be interrupted, so the others catch up before the next one. Those that wait for the end of a
// pause wait for no longer than that, whatever else takes long meanwhile.
//
// A connection with commands left over is not read: what its client sends stays in the socket, and a buffer grows only
// for one command that is not complete. A connection whose socket is full rests until its peer has taken some, or for 5
// ms, whenever another 128 KiB of replies have piled up behind that. A client that may not continue is not parsed before
// it is resumed ([Conn.Rest]); one that is to be closed is read no more.
//
// A command that takes long may yield ([Conn.Yield]): the loop serves all other clients in an iteration within it, with
// another Worker, and leaves the command's own connection alone. Those of the batch that it interrupts are taken over
// as connections that are left over, once.
//
// # Connections behind a net.Conn
//
// Elsewhere, and for every connection that only a net.Conn can carry, [ServeConn] gives each connection two goroutines
// that hand batches of one to a Worker of their own.
package netpoll
