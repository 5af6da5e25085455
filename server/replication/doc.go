// Package replication has the server follow another one, its primary, in Redis's protocol. What was tried is redis-server
// 7.0; servers that speak as it does should do as well.
//
// A link goes through the steps of redis-server's own replicas (https://redis.io/docs/latest/operate/oss_and_stack/management/replication/,
// and replication.c of version 7.0):
//
//	PING                                     +PONG, or an error that asks for a password
//	AUTH [user] password                     masteruser and masterauth
//	REPLCONF listening-port n                what ROLE and INFO of the primary show; errors are no hindrance
//	REPLCONF ip-address a                    replica-announce-ip
//	REPLCONF capa eof capa psync2
//	PSYNC id offset                          the history that is known and the first byte that is wanted, or ? -1
//	  +CONTINUE [id]                         the stream goes on at that offset, maybe under another name
//	  +FULLRESYNC id offset                  a snapshot comes: $length and so many bytes, or $EOF: with forty bytes that also end it; then the stream
//	  -NOMASTERLINK …, -LOADING …            not now
//
// While the primary makes a snapshot it sends empty lines. The stream is commands as clients send them, and each byte of it counts: the
// offset is how many there were since the history began. REPLCONF ACK offset is sent every second, and when REPLCONF GETACK * comes in the
// stream; while a snapshot is loaded, an empty line.
//
// What is in this package: dialogue.go and payload.go speak the protocol over any net.Conn and know no server; link.go is one connection from
// its beginning to its end; replica.go decides which primary is followed, tries again, and tells of it; commands.go has the commands. Commands of
// the stream are run by [exec.Follower], snapshots are loaded by [journal.LoadBeside].
package replication
