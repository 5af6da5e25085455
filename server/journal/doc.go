// Package journal persists the data: the append-only file, snapshots, and loading them.
//
// # Commits
//
// A worker that has run a batch of commands commits before its replies go out (aof.go): the effects are taken under the
// executor's lock, framed with the time and a CRC, written, and under always synced, all without that lock.
// AppendOnly.commits keeps batches in order; it is taken before the executor's lock, never inside it. Package aof has
// the format in its comment.
//
// Before a batch runs, the log has room on the disk for what its commands may change (exec.Worker.makeRoom,
// aof.Log.Reserve): fallocate keeps some MiB behind the file's end, asked for in steps of 16, so nearly every batch
// only compares two numbers. If there is none, writes are refused before they run; limiters ask only when they know
// that they have something to write. If a batch cannot be written even so, its replies become MISCONF and say that
// the changes may persist, its effects stay in memory, and writes are refused until it has been written.
//
// The log contains the time with each batch, once a second while the clock is ahead of the wall clock, and when the server
// ends; a snapshot contains its own. If the wall clock is behind that time at a start, the clock continues from it.
//
// Under everysec (aof_sync.go) a sync begins within a second of each write, also while one is still under way, so that
// a power cut loses at most a second and the duration of one sync. When a third sync would be needed, writers wait. With
// no-appendfsync-on-rewrite that is not so during a rewrite: what is written then is synced within a second of its end.
//
// # Snapshots and rewrites
//
// A snapshot is walked in slices on the loop, see package store. Its bytes go to a goroutine in chunks, at most 32 MiB
// of them, which computes the checksum and writes, past the page cache where the file system can do that; a disk slower
// than the writes makes them wait.
//
// A rewrite is a snapshot and a new increment that begin at one moment (aof_rewrite.go). One goroutine, the rewriter,
// does it: it prepares the files, takes both locks for as long as it takes to begin the snapshot, and puts the new base
// in the old files' place when the snapshot's goroutine has written it. AppendOnly.files excludes DEBUG LOADAOF, which
// reads the files again, meanwhile. While only a part of the data is in memory, no rewrite and no snapshot begins: either
// would replace the complete data.
//
// A server that ends gives a rewrite up, since the files so far have everything; but where there were none, it finishes
// the first (aof_first.go).
//
// # The data directory
//
// A directory in which files are written is locked (datadir.go): flock of the directory itself, so that there is no
// file whose deletion would free it, and the kernel frees it however the process ends. headgate.lock only names the
// process. Locks are counted: the configuration's directory once the server writes there, the append-only file's as
// long as there is one, a snapshot's while it is written; after CONFIG SET dir these differ. Before each use the path
// is compared with what is locked, by device and inode: another directory in its place is locked again while no file is
// open in the old one, and refused otherwise. No data directory is ever made.
//
// Loading (load.go) first reads a file without running anything, to find where its last whole unit ends, then runs it
// in slices of at most 64 commands under the executor's lock, at a time so early that no key expires.
package journal
