// Package exec runs commands: batches, dispatch, clients that wait, transactions, and background work between batches.
//
// # A batch
//
// Parsing needs no lock (worker.go): all complete commands of all ready connections are read, up to 64 at a time.
// Arguments point into the input buffers; nothing is copied. A command is looked up, its keys are hashed. One that is
// the same as an earlier one except for its key (resp.Shape) is recognised by two comparisons, neither parsed nor looked
// up; limiters then keep what the other arguments say. Then the executor's lock is taken once, the slots of all keys
// are touched, then their records, so that their cache misses overlap, and the commands are executed in each
// connection's order. What one client may have of a batch is bounded (budget.go): commands, bytes of replies, and time;
// 2 ms altogether for those that were left over. A client that may not continue has its reader rewound to the command in
// question. Before authentication only one command is parsed at a time, because AUTH changes what the next may be.
//
// # Clients that wait for a key
//
// A command that blocks copies its arguments, puts its client into the queue of each of its keys, and tells the store
// that these names are awaited (blocking.go). After the command, transaction or script that made a key ready, never in
// its middle, the queues of the ready keys are served in the order in which clients came; a client that
// waits for another type goes to the end. Serving may make another key ready, but each turn ends a wait, so it terminates.
// What a blocked client sends stays in its input, and its reader is resumed when its wait ends. Timeouts are in a heap;
// background work is scheduled for the first of them. While no client is blocked and no pause is
// on, all of this is one branch per command, and adding a key checks that the set of awaited names is empty.
//
// # Background work
//
// Expiry, idle clients and what clients have left behind run in slices of at most 100 µs on the loop, between batches
// (cron.go). A snapshot's are 0.4 ms apart while clients are served, and wait for an iteration in which no client wants
// anything, though not for longer than another 2 ms: beside a loop that never sleeps, the goroutine that writes would
// have its turns in the midst of requests.
//
// # Memory
//
// Eviction (eviction.go) comes before a command, while more is in use than maxmemory. First the clock hand of expiry
// goes round, at most every 100 ms, so that no live key goes while others are past their time. Then keys are sampled
// (see package store). How long that may take at a time is maxmemory-eviction-tenacity's, and the rest happens between
// batches. The Go runtime is given a limit for its heap: 90 % of what the container or the process's own limits allow,
// less what lies outside the heap; where only maxmemory is known, half as much again as that and 64 MiB. It moves when
// it is off by a 64th, since each move stops the world.
package exec
