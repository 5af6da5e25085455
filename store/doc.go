// Package store is the keyspace of headgate: numbered databases of keys with a time to live, and the types of their
// values.
//
// It is pure: no network, no protocol, no clock (the time is an argument, in Unix milliseconds), no goroutine, no
// logging. Nothing here is safe for concurrent use; the executor of commands holds one lock around them.
//
// # Memory
//
// A key, its expiry and a small value are one record in an arena outside the Go heap, so that the garbage collector
// never sees them: ten million keys cost it nothing. Only what does not fit a block of the arena, or has outgrown its
// packed encoding, is an object on the Go heap (object.go).
//
//   - Arena (arena.go), one for each database, so that a flush is an unmapping: chunks of 1 MiB from mmap, cut into
//     runs of 64 KiB, each serving one size class. A run that becomes empty goes back to the operating system.
//     References are 32 bits wide, in units of 8 bytes: 32 GiB of keys and small values in a database.
//   - Record (record.go): 24 bytes of header (kind, size class, key length, expiry, one word of value), the key, and
//     the value if it is small. A counter or a limiter's state needs nothing more than the header's word.
//   - Table (table.go): extendible hashing. A directory of sub-tables in the arena, each of 128 buckets of 64 bytes; a
//     bucket is a cache line with 12 tags, 12 references and a count of keys that overflowed it. A full sub-table
//     splits into two, so a resize never moves more than some 1,300 keys; the directory doubling copies pointers only.
//
// What is unsafe is confined to the arena's addresses and the overlays of record and buckets on them. A slice that a
// method documents as aliasing the store's memory is valid until the next change, no longer.
//
// # Values
//
// Integers are inline; strings beside the key; small hashes, lists, sets and sorted sets one packed block beside the
// key; what is larger lives on the Go heap and is found through a slab of objects.
//
//   - Sorted sets past 128 members are tidwall/btree beside an index of members; hashes past 512 fields are the same
//     index with values, and sets past 128 members (512 if they are whole numbers, which are packed in order) without.
//     That index keeps elements in a list without gaps beside an extendible hash of positions, so that random picks and
//     scans by position are cheap and no insertion copies much.
//   - Long lists are chains of chunks of 8 KiB at most (list-max-listpack-size). An element is its bytes between two
//     copies of its length, so that a chunk can be read from either end; a chunk has its spare room at the end where
//     elements were last added, so that neither LPUSH nor RPUSH moves the others. 15 bytes for an element of 13.
//   - Streams are listpacks in Redis's own bytes, one after the other, since their sizes decide what trimming with ~
//     removes; a consumer group's pending entries are in two B-trees, its own and their consumer's. A snapshot takes
//     copies of the trees that share what does not change. A stream tells those who wait for it of each entry.
//   - HyperLogLogs are strings in Redis's own bytes, sparse or dense.
//   - Sliding logs (stamp_log.go): a sorted set whose members tell their own score, <score> or <score>-<n> as limiters
//     and their scripts write them, is kept without members: distances from the base of a block of up to 508 entries,
//     each in as many bytes as the block needs, in pages of up to 128 blocks. 2.7 to 6 bytes an entry at a million of
//     them, where the tree takes 87 to 107. An operation reads one block and adds up the counts of a page and of the
//     list of pages; expired entries go by the block and by the page without being read. Copies share blocks until one
//     side changes them. Anything else that is added lives beside the entries in an ordinary tree, and ranks run
//     through both: there is no conversion that could stall, except that 128 entries or fewer join the tree once they
//     are outnumbered.
//
// # Writes
//
// Every change of the keyspace passes DB.mutate first, or for a swap Keyspace.mutateSwap (mutate.go). It counts the
// change, tells WATCH and has a snapshot visit the key first. Where an observer listens it tells an [Observer]
// (observer.go), which also hears of keys that are new or have expired. [DB.Follow] counts the changes of one name,
// whatever command they come by. A name that is awaited is noted as ready when a key of that name is added, by
// whichever way, for clients that wait for it.
//
// # Snapshots
//
// A snapshot (snapshot.go) shows one moment, without a fork. Each bucket knows which of its keys the last snapshot has
// visited: four bits for the snapshot's number, one for each slot. When the fifteen numbers have been given out, what
// the buckets of a table knew is forgotten when the next snapshot first comes to that table. The snapshot walks the
// buckets in slices; a write to a key that it has not reached has that key visited first. Long values wait in a queue:
// packed ones as a copy; big ones as a view that survives changes, since trees and logs copy what they change, hashes
// and sets put aside the members that are about to change, and lists and streams copy a chunk before they write to it.
// When more than an eighth of the memory in use waits, each write does a part of the work. A flush leaves the old
// contents to the snapshot.
//
// # Expiry, memory, eviction
//
// Expired keys are removed when a command meets them (DB.Find), and by a clock hand that sweeps the buckets
// (Keyspace.ExpireSlice), which the server calls between commands. Each sub-table knows a lower bound of its keys'
// expiry times, so tables in which nothing is due are skipped. SCAN walks sub-tables in hash order by home bucket; its
// cursor carries the table's depth, so splits and merges between two calls lose nothing.
//
// Memory in use is counted as it changes: blocks of the arena by the arena, values on the Go heap by their own books or
// from a few of their parts (usage.go), each measured again after it has changed. Garbage is not counted. The sum is
// what maxmemory bounds, and within 10 % of what the heap's profile and the mappings say, for every form of value.
//
// Keys to evict are sampled (evict.go), a run of them from a random key of a random bucket in each database on, into a
// pool of the 16 best, as Redis does: under Zipf's law and allkeys-lru 84.6 % of requests found their key, in Redis
// 85.0 %, under allkeys-lfu 87.7 and 87.8 % (make evict). A record has 16 bits for when or how often its key was used,
// which is less than Redis's 24: a walk over all keys, an hour long, rewrites them before they wrap (access.go).
package store
