// Package servertest runs whole servers within a test's process, for the tests of the packages below package server. None of them needs a
// socket, and each kind has a file of its own:
//
//   - [NewWorkerClient]: one client on a worker that is driven by hand (worker.go). Most tests need no more.
//   - [NewClockClient]: the same on a clock that stands where the test puts it, with replies in one line (clock.go);
//     [NewHandClockClient] for another configuration and replies as they are sent.
//   - [NewFullClient]: the same on a server that has hardly any memory left (full.go).
//   - [NewEffectsClient]: the same, and what would be logged (effects.go).
//   - [NewUserClients]: an administrator and a user with rules (worker.go).
//   - [NewPipeServer]: a server with background work and many connections at once, which are pipes (pipe.go).
//   - [StartAOF]: a server with an append-only file, on a disk that loses power or gets full (aof.go), with histories to compare what
//     is left with what was acknowledged (history.go).
//   - [NewSaver]: a server with save points, on a disk that fails (disk.go).
//
// Replies are bytes unless a kind says otherwise; wire.go makes and reads them. The rest is for one sort of test each: all limiters
// (limiters.go), all commands (commands.go), generated documents (docs.go), what Prometheus reads (scrape.go).
package servertest
