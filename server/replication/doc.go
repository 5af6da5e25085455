// Package replication lets the server follow a primary, in Redis's protocol, and be a primary that others follow. It is tested with redis-server
// 7.0 in both roles; other servers that speak the same protocol should work, too.
//
// A link goes through the steps of redis-server's own replicas (https://redis.io/docs/latest/operate/oss_and_stack/management/replication/,
// and replication.c of version 7.0):
//
//	PING                                     +PONG, or an error that asks for a password
//	AUTH [user] password                     masteruser and masterauth
//	REPLCONF listening-port n                what ROLE and INFO of the primary show; errors are ignored
//	REPLCONF ip-address a                    replica-announce-ip
//	REPLCONF capa eof capa psync2 capa run-id:id
//	  +OK, +OK run-id:id …                   a headgate names itself and those that it follows, so that a loop is noticed (own.go)
//	PSYNC id offset                          the history that is known and the first byte that is wanted, or ? -1
//	  +CONTINUE [id]                         the stream continues at that offset, maybe under another name
//	  +FULLRESYNC id offset                  a snapshot comes: $length and so many bytes, or $EOF: with forty bytes that also end it; then the stream
//	  -NOMASTERLINK …, -LOADING …            not now
//
// While the primary makes a snapshot it sends empty lines. The stream is commands as clients send them, and each byte of it counts: the
// offset is how many there were since the history began. REPLCONF ACK offset is sent every second, and when REPLCONF GETACK * comes in the
// stream; while a snapshot is loaded, an empty line.
//
// A primary answers the same dialogue. A replica that asks for the changes behind an offset gets them as long as the backlog has them and knows the
// history by that name, or by the one that it had before. All others are sent one snapshot, as it is made with repl-diskless-sync and if they
// take it without a length, else by way of a file.
//
// The files: dialogue.go and payload.go speak the protocol over any net.Conn and know no server; link.go is one connection to a
// primary from its beginning to its end; replica.go decides which primary is followed, tries again, and reports it; primary.go knows the
// replicas, feed.go writes to them, backlog.go is the stream that they read, wait.go is WAIT; commands.go has the other commands, failover.go
// FAILOVER, and own.go keeps a server from following itself. Commands of
// a primary's stream are run by [exec.Follower], its snapshots are loaded by [journal.LoadBeside], and those for replicas made by
// [journal.Send].
package replication
