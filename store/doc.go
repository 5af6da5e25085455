// Package store is the keyspace of headgate: numbered databases of keys with a time to live, and the types of their
// values.
//
// It is pure: no network, no protocol, no clock (the time is an argument, in Unix milliseconds), no goroutine, no
// logging. Nothing here is safe for concurrent use; whoever executes commands holds one lock around them.
//
// # Memory
//
// A key, its expiry and a small value are one record in an arena outside the Go heap (arena.go, record.go), so that
// the garbage collector never sees them: ten million keys cost it nothing. The index (table.go) holds four-byte refs to
// records in tables of 8 KiB that are in the arena too. Only what does not fit a block of the arena, or has outgrown its
// packed encoding, is an object on the Go heap (object.go). A database owns its arena, so a flush is an unmapping.
//
// What is unsafe is confined to the arena's addresses and the overlays of record and buckets on them. A slice that a
// method documents as aliasing the store's memory is valid until the next change, no longer.
//
// # Writes
//
// Every change of the keyspace passes DB.mutate first, or for a swap Keyspace.mutateSwap (mutate.go). Expired keys are
// removed when a command meets them (DB.Find) and by Keyspace.ExpireSlice, which the server calls between commands.
package store
