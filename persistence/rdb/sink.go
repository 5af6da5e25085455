package rdb

// Sink is told what a file holds, in its order. Byte slices are valid until the method returns. An error ends the reading, and the
// Reader returns it with the place it was at; a Sink refuses what it has no room or no type for in this way.
type Sink interface {
	ValueSink
	Aux(name, value []byte) error
	Function(code []byte) error
	Database(n int) error
	// Sizes says how many keys the database has, and with a TTL. The figures are a file's claim: good for a guess only.
	Sizes(keys, expires uint64) error
	// Key begins a key: a value follows. expireAt is in Unix milliseconds, 0 for no TTL.
	Key(name []byte, expireAt int64) error
}

// ValueSink is told one value: by Int, Text, or the method that names another type, what that asks for, and End. What it is told of
// counts is a claim; more or less may follow, and nothing may be twice in a collection: the Sink refuses that with
// ErrDuplicate. No collection is empty, but for streams.
type ValueSink interface {
	Int(n int64) error
	Text(v []byte) error

	Hash(n int) error
	Pair(field, value []byte) error

	Set(n int) error
	Member(m []byte) error

	ZSet(n int) error
	Scored(member []byte, score float64) error // in any order; never NaN

	List(n int) error
	Element(v []byte) error // from the head on

	// Stream begins a stream: all of its nodes follow in the order of their IDs, then StreamInfo, then each group with its pending
	// entries in the order of theirs, and after those each of its consumers with the IDs that it has. Every such ID is among the
	// group's pending ones, and every one of those is a consumer's.
	Stream(nodes int) error
	// StreamNode is told a node's listpack, which has been checked: it has live entries that are not deleted, with IDs that are
	// above those of the nodes before.
	StreamNode(id StreamID, listpack []byte, live int) error
	StreamInfo(length int, last, first, maxDeleted StreamID, added uint64) error
	// StreamGroup is told how many entries a group has read: -1 if nobody knows, UntoldReads if files of that version do not say.
	StreamGroup(name []byte, last StreamID, read int64) error
	StreamPending(id StreamID, deliveredMs int64, deliveries uint64) error
	StreamConsumer(name []byte, seenMs int64) error
	StreamOwned(id StreamID) error

	End() error
}

// TextOwner is a sink that can keep a long string's memory instead of copying it.
type TextOwner interface {
	// OwnText is Text for bytes that nobody else has a use for.
	OwnText(v []byte) error
}
