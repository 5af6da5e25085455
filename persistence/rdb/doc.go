// Package rdb reads and writes Redis's snapshot format and, since they are made of the same parts, the payloads of DUMP and
// FUNCTION DUMP. It does not know the keyspace: an [Encoder] takes values, and a [Reader] passes them to a [Sink].
//
// A file of version 10, as the Encoder writes it:
//
//	bytes               what
//	"REDIS" "0010"      magic, and the version in four digits
//	FA name value       an auxiliary field, both strings; any number
//	F5 code             a library of functions; any number
//	FE n                the keys that follow belong to database n
//	FB keys expires     how many keys the database has, and how many of them have a TTL
//	FC ms               the next key's expiry: Unix milliseconds, 8 bytes, little-endian
//	type key value      a key: the type is one byte, below 64; the key is a string
//	FF crc              the end, and the CRC-64 of all bytes before it, 8 bytes, little-endian; 0 if there is none
//
// A length is 1, 2, 5 or 9 bytes: two bits choose between 6 bits of length, 14 bits, and 32 or 64 bits that follow, all
// big-endian. With both bits set a string is special instead: an integer of 8, 16 or 32 bits, little-endian, or LZF: the
// compressed length, the original length, and the compressed bytes. Any other string is its length and its bytes.
//
// Values by type:
//
//	0   string
//	2   set: n, n strings
//	4   hash: n, n times field and value
//	5   sorted set: n, n times member and score (float64, little-endian), from the highest score down
//	11  set: a string that holds an intset: width and count (uint32), integers in ascending order, all little-endian
//	16  hash: a string that holds a listpack of fields and values by turns
//	17  sorted set: a string that holds a listpack of members and scores by turns
//	18  list: n, n times a container (2; a reader knows 1, one plain element, too) and a string that holds a listpack
//	19  stream; see stream.go
//
// A DUMP payload is a type and a value, the version (uint16, little-endian) and the CRC-64 of all that, little-endian.
//
// The Reader takes versions 5 to 12, which is what Redis 2.6 to 7.4 and Valkey 8 write, with the types that those
// versions had: 1, 3, 10, 12 and 13 (ziplists), 14, 15, 20 and 21 as well. It refuses, by name, what headgate does not support:
// modules, zipmaps and hashes whose fields expire.
//
// Nothing that is read is trusted. Memory is taken as bytes arrive and never because a length announces them, so the
// Reader itself needs at most twice the longest string, as it is when decompressed, beyond its fixed buffers.
package rdb

// Version is the format's version that the Encoder writes: the newest one that Redis 7.0 reads.
const Version = 10

// The versions that the Reader takes.
const (
	oldestVersion = 5
	newestVersion = 12
)

const magic = "REDIS"

// Opcodes: bytes that stand where a type could.
const (
	opSlotInfo   = 244 // Valkey and Redis clusters: numbers about a slot
	opFunction   = 245
	opFunctionRC = 246 // functions as release candidates of Redis 7 wrote them
	opModuleAux  = 247
	opIdle       = 248 // seconds since the next key was used
	opFreq       = 249 // how often the next key is used
	opAux        = 250
	opResize     = 251
	opExpireMs   = 252
	opExpire     = 253 // in seconds, 4 bytes
	opSelect     = 254
	opEnd        = 255
	firstOpcode  = opSlotInfo
)

// Types of values.
const (
	typeString          = 0
	typeList            = 1
	typeSet             = 2
	typeZSetText        = 3 // scores as text
	typeHash            = 4
	typeZSet            = 5
	typeModuleRC        = 6
	typeModule          = 7
	typeHashZipmap      = 9
	typeListZiplist     = 10
	typeSetIntset       = 11
	typeZSetZiplist     = 12
	typeHashZiplist     = 13
	typeListQuick       = 14 // quicklist of ziplists
	typeStream1         = 15
	typeHashListpack    = 16
	typeZSetListpack    = 17
	typeListQuick2      = 18 // quicklist of listpacks
	typeStream2         = 19
	typeSetListpack     = 20
	typeStream3         = 21
	typeHashTTLRC       = 22
	typeHashTTLPackedRC = 23
	typeHashTTL         = 24
	typeHashTTLPacked   = 25
)

// What a special string is.
const (
	specialInt8 = iota
	specialInt16
	specialInt32
	specialLZF
)

// Containers of a quicklist's node.
const (
	containerPlain  = 1
	containerPacked = 2
)
