// Package aof reads and writes the append-only file as Redis 7 lays it out: a directory with a manifest, at most one base file that
// holds all keys as they were at one moment, and incremental files with what has changed since.
//
// # The manifest
//
// <name>.manifest is text, one line for each file, which Redis reads and writes alike:
//
//	file appendonly.aof.1.base.rdb seq 1 type b
//	file appendonly.aof.1.incr.aof seq 1 type i
//
// type is b for the base, i for an increment, and h for a file that is not needed any more and can be deleted. Increments are
// in the order of their numbers. The manifest is replaced in one step, so it names either the files before a change or those
// after it. Pairs of words that are not known are skipped, and so are lines that begin with #.
//
// # An incremental file
//
// A sequence of commands, each an array of bulk strings in RESP:
//
//	*3 CR LF  $3 CR LF SET CR LF  $1 CR LF k CR LF  $1 CR LF v CR LF
//
// Between commands there may be lines that begin with #, have no zero byte and are shorter than 1024 bytes. Redis skips them. What is
// appended at once, a batch, is
//
//	#NOW:<time in ms since the Unix epoch> CR LF
//	commands
//	#CRC:<8 hexadecimal digits>:<n> CR LF
//
// The last line has the CRC-32C of the n bytes before it. These are the batch and the #CRC line before it if that was
// written by the same process, so that each such line is itself covered by the next. Bytes that Redis has appended have no
// such line and are taken as they are.
//
// #GAP marks changes that are missing, because the disk was full and they were made in memory only. Later commands may depend on them.
//
// #REPL:<id>:<offset>:<db> is the position, in the history of changes that replicas follow, of the data up to this line. A server writes it as
// its last line when it ends.
//
// Commands between MULTI and EXEC are one unit: if EXEC is missing, none of them counts. A unit does not reach over a #CRC line.
//
// # Loading a damaged file
//
// A file may end anywhere, because of a crash, in its last batch: it is loaded up to its last whole unit. In a batch whose
// #CRC line is missing, a unit with a zero byte at the end of a 512-byte sector does not count as whole: storage that lost power
// may have kept the sectors behind it and not that one. Nor does a unit whose last value ends like a #CRC line: a length with a flipped
// bit may have taken in the line that is missing. A batch with a wrong CRC, or anything that is not of the form above, is
// damage: everything from there to the end is cut off if that is no more than MaxSalvage bytes, without zero bytes at the end, and
// else the file is refused. What is cut off because of damage may have whole batches in it, and is kept in <file>.cut-at-<offset>, or with
// -2 and so on behind that if there is such a file. No server reads it.
package aof
