package compat

import (
	"flag"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// edges are what each numeric argument is replaced by.
var edges = []string{
	"9223372036854775807", "-9223372036854775808", "9223372036854775808", "-9223372036854775809",
	"9223372036854775806", "-9223372036854775807", "18446744073709551615", "18446744073709551616",
	"4611686018427387904", "2147483647", "2147483648", "-2147483649", "4294967296", "9223372036854775", "9223372036854776",
	"0", "-0", "-1", "nan", "-nan", "inf", "-inf", "+inf", "infinity", "1e400", "-1e400", "1e-400", "0x10", "0x", "1e3",
	" 1", "1 ", "1\n", "1\x00", "+1", "+0", "01", "1.0", "1.5", ".5", "5.", "1,5", "1_000", "--1", "-", "+", "e", "1e", "a",
	"1234567890123456789012345", "-1234567890123456789012345", "0.1234567890123456789012345", "",
	"(1", "((1", "(", "(inf", "(nan", "[1", "\xff",
}

// setting is what every case starts from.
var setting = []string{
	"FLUSHALL",
	"SET s hello-world", "SET n 10", "SET f 10.5", "SET max 9223372036854775807", "SET t v PXAT 4102444800000",
	"HSET h n 5 f 1.5 s abc", "ZADD z 1 a 2 b 3 c", "ZADD lex 0 a 0 b",
	"XADD x 1-1 f v", "XADD x 2-1 f v", "XADD x 3-1 g w", "XGROUP CREATE x g 0", "RPUSH l a b c a b",
	"SADD set 1 2 3",
}

// readAsC are commands whose number redis-server reads as a C string: it ends at a NUL, where headgate sees a byte that
// is no digit. The edges with a NUL are left out for them.
var readAsC = []string{"SCAN", "HSCAN", "SSCAN", "ZSCAN", "CONFIG"}

// numbers are commands with {default} at each numeric argument, and what is looked at afterwards. Random replies and
// replies that count time are left to the probes.
var numbers = []struct {
	command string
	probes  []string
}{
	{"SELECT {0}", []string{"GET s"}},
	{"SWAPDB {0} {1}", nil},
	{"COPY s c DB {1}", []string{"EXISTS c"}},
	{"MOVE s {1}", []string{"EXISTS s"}},
	{"WAIT {0} 1", nil}, // with 0 redis-server would wait for good
	{"WAIT 0 {0}", nil},
	{"SET s v EX {100}", []string{"EXISTS s"}},
	{"SET s v PX {100000}", []string{"EXISTS s"}},
	{"SET s v EXAT {4102444800}", []string{"GET s", "PEXPIRETIME s"}},
	{"SET s v PXAT {4102444800000}", []string{"GET s", "PEXPIRETIME s"}},
	{"SETEX s {100} v", []string{"EXISTS s"}},
	{"PSETEX s {100000} v", []string{"EXISTS s"}},
	{"GETEX s EX {100}", []string{"EXISTS s"}},
	{"GETEX s PX {100000}", []string{"EXISTS s"}},
	{"GETEX s EXAT {4102444800}", []string{"PEXPIRETIME s"}},
	{"GETEX s PXAT {4102444800000}", []string{"PEXPIRETIME s"}},
	{"EXPIRE s {100}", []string{"EXISTS s"}},
	{"EXPIRE nosuch {100}", nil},
	{"EXPIRE t {100} GT", []string{"EXISTS t"}},
	{"EXPIRE t {100} LT", []string{"EXISTS t"}},
	{"PEXPIRE s {100000}", []string{"EXISTS s"}},
	{"PEXPIRE s {100000} NX", []string{"EXISTS s"}},
	{"EXPIREAT s {4102444800}", []string{"PEXPIRETIME s", "EXPIRETIME s"}},
	{"EXPIREAT t {4102444801} GT", []string{"PEXPIRETIME t"}},
	{"PEXPIREAT s {4102444800000}", []string{"PEXPIRETIME s", "EXPIRETIME s"}},
	{"PEXPIREAT t {4102444800000} LT", []string{"PEXPIRETIME t"}},
	{"GETRANGE s {0} {5}", nil},
	{"GETRANGE n {0} {-1}", nil},
	{"GETRANGE nosuch {0} {-1}", nil},
	{"SUBSTR s {0} {5}", nil},
	{"SETRANGE s {2} XY", []string{"GET s"}},
	{"SETRANGE nosuch {2} ''", []string{"EXISTS nosuch"}},
	// Offsets that are accepted stop at the bit or the value after them, so that no string of 512 MB is made.
	{"SETBIT s {7} 2", []string{"GET s"}},
	{"SETBIT s 7 {1}", []string{"GET s"}},
	{"SETBIT n 7 {1}", []string{"GET n"}},
	{"GETBIT s {7}", nil},
	{"GETBIT nosuch {7}", nil},
	{"BITCOUNT s {0} {-1}", nil},
	{"BITCOUNT s {3} {60} BIT", nil},
	{"BITCOUNT n {0} {-1} BYTE", nil},
	{"BITCOUNT nosuch {0} {-1}", nil},
	{"BITPOS s {1}", nil},
	{"BITPOS s {1} {2}", nil},
	{"BITPOS s {0} {2} {-1}", nil},
	{"BITPOS s {1} {9} {60} BIT", nil},
	{"BITPOS nosuch {0} {2} {-1}", nil},
	{"BITFIELD s GET i8 {0} GET u63 {9}", nil},
	{"BITFIELD s SET u8 {0} x", []string{"GET s"}},
	{"BITFIELD_RO s SET u8 {0} 1", []string{"GET s"}},
	{"BITFIELD s SET u7 3 {1} OVERFLOW SAT SET u8 17 {1} OVERFLOW FAIL SET u8 33 {1}", []string{"GET s"}},
	{"BITFIELD s SET i7 3 {1} OVERFLOW SAT SET i8 17 {1} OVERFLOW FAIL SET i8 33 {1}", []string{"GET s"}},
	{"BITFIELD s SET i64 3 {1} OVERFLOW SAT SET i63 1 {1} OVERFLOW FAIL SET u63 33 {1}", []string{"GET s"}},
	{"BITFIELD s INCRBY u7 3 {1} OVERFLOW SAT INCRBY u8 17 {1} OVERFLOW FAIL INCRBY u8 33 {1}", []string{"GET s"}},
	{"BITFIELD s INCRBY i7 3 {1} OVERFLOW SAT INCRBY i8 17 {1} OVERFLOW FAIL INCRBY i8 33 {1}", []string{"GET s"}},
	{"BITFIELD s INCRBY i64 3 {1} OVERFLOW SAT INCRBY i64 1 {1} OVERFLOW FAIL INCRBY u63 33 {1}", []string{"GET s"}},
	{"INCRBY n {1}", []string{"GET n"}},
	{"INCRBY max {1}", []string{"GET max"}},
	{"INCRBY nosuch {1}", []string{"GET nosuch"}},
	{"DECRBY n {1}", []string{"GET n"}},
	{"DECRBY max {1}", []string{"GET max"}},
	{"DECRBY nosuch {1}", []string{"GET nosuch"}},
	{"INCRBYFLOAT n {1}", []string{"GET n"}},
	{"INCRBYFLOAT f {1}", []string{"GET f"}},
	{"INCRBYFLOAT max {1}", []string{"GET max"}},
	{"INCRBYFLOAT nosuch {1}", []string{"GET nosuch"}},
	// A value that is read as a number is a numeric argument too.
	{"SET v {1}", []string{"GET v", "INCR v", "DECRBY v 2", "INCRBYFLOAT v 1.5", "GET v", "STRLEN v"}},
	{"SET v {1}", []string{"INCRBYFLOAT v 1", "APPEND v 0", "GET v", "GETRANGE v 0 1"}},
	{"HSET h v {1}", []string{"HINCRBY h v 1", "HINCRBYFLOAT h v 1.5", "HGET h v", "HSTRLEN h v"}},
	{"HSET h v {1}", []string{"HINCRBYFLOAT h v 1", "HGET h v"}},
	{"HINCRBY h n {1}", []string{"HGET h n"}},
	{"HINCRBY h nosuch {1}", []string{"HGET h nosuch"}},
	{"HINCRBYFLOAT h n {1}", []string{"HGET h n"}},
	{"HINCRBYFLOAT h f {1}", []string{"HGET h f"}},
	{"HINCRBYFLOAT h nosuch {1}", []string{"HGET h nosuch"}},
	{"HRANDFIELD nosuch {1}", nil},
	{"HRANDFIELD nosuch {1} WITHVALUES", nil},
	{"HSCAN h {0} COUNT {10}", nil},
	{"HSCAN nosuch {0} COUNT {10}", nil},
	{"SCAN 0 COUNT {1000} MATCH nosuch", nil},
	{"ZRANGESTORE d z {0} {-1}", []string{"ZRANGE d 0 -1 WITHSCORES"}},
	{"ZRANGESTORE d z {1} {3} BYSCORE LIMIT {0} {2}", []string{"ZRANGE d 0 -1 WITHSCORES"}},
	{"ZADD z {1.5} m", []string{"ZRANGE z 0 -1 WITHSCORES", "ZSCORE z m"}},
	{"ZADD z {1.5} a", []string{"ZRANGE z 0 -1 WITHSCORES"}},
	{"ZADD z 5 x {1.5} y", []string{"ZRANGE z 0 -1 WITHSCORES"}},
	{"ZADD z XX CH {1.5} a", []string{"ZSCORE z a"}},
	{"ZADD z GT CH {1.5} a", []string{"ZSCORE z a"}},
	{"ZADD z LT CH {1.5} a", []string{"ZSCORE z a"}},
	{"ZADD z INCR {1.5} a", []string{"ZSCORE z a"}},
	{"ZADD z GT INCR {1.5} a", []string{"ZSCORE z a"}},
	{"ZADD z {1} a {2} b", []string{"ZRANGE z 0 -1 WITHSCORES"}},
	{"ZINCRBY z {1.5} a", []string{"ZSCORE z a"}},
	{"ZINCRBY nosuch {1.5} a", []string{"ZRANGE nosuch 0 -1 WITHSCORES"}},
	{"ZCOUNT z {1} {3}", nil},
	{"ZCOUNT nosuch {1} {3}", nil},
	{"ZRANGE z {0} {-1}", nil},
	{"ZRANGE z {0} {-1} REV WITHSCORES", nil},
	{"ZRANGE z {1} {3} BYSCORE", nil},
	{"ZRANGE z {3} {1} BYSCORE REV WITHSCORES", nil},
	{"ZRANGE z -inf +inf BYSCORE LIMIT {0} {2}", nil},
	{"ZRANGE z +inf -inf BYSCORE REV LIMIT {0} {2}", nil},
	{"ZRANGE lex - + BYLEX LIMIT {0} {2}", nil},
	{"ZRANGE lex {-} {+} BYLEX", nil},
	{"ZREVRANGE z {0} {-1} WITHSCORES", nil},
	{"ZRANGEBYSCORE z {1} {3} WITHSCORES", nil},
	{"ZRANGEBYSCORE z -inf +inf LIMIT {0} {2}", nil},
	{"ZREVRANGEBYSCORE z {3} {1}", nil},
	{"ZREVRANGEBYSCORE z +inf -inf LIMIT {0} {2}", nil},
	{"ZRANGEBYLEX lex {-} {+}", nil},
	{"ZRANGEBYLEX lex - + LIMIT {0} {2}", nil},
	{"ZREVRANGEBYLEX lex + - LIMIT {0} {2}", nil},
	{"ZLEXCOUNT lex {-} {+}", nil},
	{"ZREMRANGEBYSCORE z {1} {2}", []string{"ZRANGE z 0 -1"}},
	{"ZREMRANGEBYRANK z {0} {1}", []string{"ZRANGE z 0 -1"}},
	{"ZREMRANGEBYLEX lex {-} {+}", []string{"ZRANGE lex 0 -1"}},
	{"ZPOPMIN z {1}", []string{"ZRANGE z 0 -1"}},
	{"ZPOPMAX z {1}", []string{"ZRANGE z 0 -1"}},
	{"ZPOPMIN nosuch {1}", nil},
	{"ZRANDMEMBER nosuch {1}", nil},
	{"ZRANDMEMBER nosuch {1} WITHSCORES", nil},
	{"ZUNION {1} z", nil},
	{"ZUNION 2 z lex WEIGHTS {1} {2} WITHSCORES", nil},
	{"ZUNIONSTORE d {2} z lex WEIGHTS {1} 0.5 AGGREGATE MAX", []string{"ZRANGE d 0 -1 WITHSCORES"}},
	{"ZINTER 2 z z WEIGHTS {1} {2} AGGREGATE MIN WITHSCORES", nil},
	{"ZINTERSTORE d 2 z lex WEIGHTS {1} {2}", []string{"ZRANGE d 0 -1 WITHSCORES"}},
	{"ZDIFF {2} z nosuch", nil},
	{"ZDIFFSTORE d {2} z nosuch", []string{"ZRANGE d 0 -1 WITHSCORES"}},
	{"ZINTERCARD {2} z lex LIMIT {1}", nil},
	{"ZMPOP {1} z MIN COUNT {2}", []string{"ZRANGE z 0 -1"}},
	{"BZPOPMIN z nosuch {1}", nil},
	{"BZMPOP {1} {2} nosuch z MAX COUNT {1}", []string{"ZRANGE z 0 -1"}},
	{"ZSCAN z {0} COUNT {10}", nil},
	{"SORT z LIMIT {0} {2}", nil},
	{"SORT_RO z BY nosort LIMIT {0} {2}", nil},
	{"XADD x {5} f v", []string{"XRANGE x - +"}},
	{"XADD x {5}-{1} f v", []string{"XRANGE x - +"}},
	{"XADD x MAXLEN {2} 9-9 f {1}", []string{"XRANGE x - +"}},
	{"XADD x MINID ~ {2} LIMIT {10} 9-9 f v", []string{"XRANGE x - +"}},
	{"XTRIM x MAXLEN {1}", []string{"XLEN x"}},
	{"XTRIM x MAXLEN ~ {1} LIMIT {1}", []string{"XLEN x"}},
	{"XTRIM x MINID {2}", []string{"XLEN x"}},
	{"XDEL x {1-1}", []string{"XLEN x"}},
	{"XRANGE x {1} {3} COUNT {2}", nil},
	{"XREVRANGE x {3} {1} COUNT {2}", nil},
	{"XREAD COUNT {2} STREAMS x {0}", nil},
	{"XREAD BLOCK {1} STREAMS x 0", nil},
	{"XSETID x {9} ENTRIESADDED {7} MAXDELETEDID {5}", []string{"XINFO STREAM x"}},
	{"XGROUP CREATE x h {1} ENTRIESREAD {1}", []string{"XINFO GROUPS x"}},
	{"XGROUP SETID x g {1} ENTRIESREAD {1}", []string{"XINFO GROUPS x"}},
	{"XREADGROUP GROUP g c COUNT {2} STREAMS x {0}", nil},
	{"XPENDING x g {0} {9} {10}", nil},
	{"XPENDING x g IDLE {0} - + {10}", nil},
	{"XACK x g {1}", nil},
	{"XCLAIM x g c {0} {1-1} FORCE JUSTID", nil},
	{"XCLAIM x g c 0 1-1 FORCE JUSTID IDLE {1} RETRYCOUNT {5} LASTID {1}", []string{"XINFO GROUPS x"}},
	{"XCLAIM x g c 0 1-1 FORCE JUSTID TIME {1}", nil},
	{"XAUTOCLAIM x g c {0} {0} COUNT 5", nil},
	{"XINFO STREAM x FULL COUNT {2}", nil},
	{"CONFIG SET stream-node-max-entries {100}", []string{"CONFIG GET stream-node-max-entries", "CONFIG SET stream-node-max-entries 100"}},
	{"CONFIG SET stream-node-max-bytes {4096}", []string{"CONFIG GET stream-node-max-bytes", "CONFIG SET stream-node-max-bytes 4096"}},
	{"CONFIG SET hll-sparse-max-bytes {3000}", []string{"CONFIG GET hll-sparse-max-bytes", "CONFIG SET hll-sparse-max-bytes 3000"}},
	{"LPOP l {1}", []string{"LRANGE l 0 -1"}},
	{"RPOP l {1}", []string{"LRANGE l 0 -1"}},
	{"LPOP nosuch {1}", nil},
	{"LINDEX l {1}", nil},
	{"LINDEX nosuch {1}", nil},
	{"LSET l {1} x", []string{"LRANGE l 0 -1"}},
	{"LSET nosuch {1} x", nil},
	{"LRANGE l {0} {-1}", nil},
	{"LRANGE nosuch {0} {-1}", nil},
	{"LTRIM l {0} {-1}", []string{"LRANGE l 0 -1"}},
	{"LREM l {1} a", []string{"LRANGE l 0 -1"}},
	{"LREM nosuch {1} a", nil},
	{"LPOS l a RANK {1} COUNT {1} MAXLEN {5}", nil},
	{"LPOS l a RANK {-1} COUNT {1} MAXLEN {5}", nil},
	{"LMPOP {1} l LEFT COUNT {1}", []string{"LRANGE l 0 -1"}},
	{"BLMPOP {1} {1} l RIGHT COUNT {1}", []string{"LRANGE l 0 -1"}},
	{"BLPOP l {1}", []string{"LRANGE l 0 -1"}},
	{"BRPOP l {1.5}", nil},
	{"BLMOVE l m LEFT RIGHT {1}", nil},
	{"BRPOPLPUSH l m {1}", nil},
	{"SADD set {1} {5}", []string{"OBJECT ENCODING set", "SCARD set", "SISMEMBER set 1"}},
	{"SREM set {1}", []string{"SMEMBERS set"}},
	{"SISMEMBER set {1}", nil},
	{"SPOP nosuch {1}", nil},
	{"SPOP set {10}", []string{"SCARD set"}},
	{"SRANDMEMBER nosuch {1}", nil},
	{"SINTERCARD {1} set LIMIT {1}", nil},
	{"SSCAN set {0} COUNT {10}", nil},
	{"SSCAN nosuch {0} COUNT {10}", nil},
	{"CONFIG SET set-max-intset-entries {512}", []string{"CONFIG GET set-max-intset-entries", "CONFIG SET set-max-intset-entries 512"}},
	{"CLIENT UNBLOCK {99999999}", nil},
	{"CONFIG SET list-max-listpack-size {-2}", []string{"CONFIG GET list-max-listpack-size", "RPUSH l x y z", "CONFIG SET list-max-listpack-size -2"}},
	{"CLIENT LIST ID {99999999}", nil},
	{"CLIENT KILL ID {99999999}", nil},
	{"HELLO {5}", nil},
	{"MEMORY USAGE nosuch SAMPLES {5}", nil},
	{"CONFIG SET timeout {0}", []string{"CONFIG GET timeout", "CONFIG SET timeout 0"}},
	{"CONFIG SET hash-max-listpack-entries {512}", []string{"CONFIG GET hash-max-listpack-entries", "CONFIG SET hash-max-listpack-entries 512"}},
	{"CONFIG SET proto-max-bulk-len {536870912}", []string{"CONFIG GET proto-max-bulk-len", "CONFIG SET proto-max-bulk-len 512mb"}},
}

// offered tells whether the program under test has the command of a template: what it has not is not compared.
func offered(t *testing.T, server *harness.Server) func(template string) bool {
	t.Helper()
	names := harness.Dial(t, server.Addr).Ask("COMMAND", "LIST").Strings()
	known := make(map[string]bool, len(names))
	for _, name := range names {
		known[strings.ToUpper(name)] = true
	}
	return func(template string) bool { return known[strings.Fields(template)[0]] }
}

// substitute returns the template once for each numeric argument and edge, the other arguments at their defaults.
func substitute(t *testing.T, template string) [][]string {
	t.Helper()
	words, err := harness.SplitWords(template)
	require.NoError(t, err)
	defaults := make([]string, len(words))
	var positions []int
	for i, word := range words {
		defaults[i] = strings.Trim(word, "{}")
		if strings.HasPrefix(word, "{") {
			positions = append(positions, i)
		}
	}
	calls := [][]string{defaults}
	for _, position := range positions {
		for _, edge := range edges {
			if strings.Contains(edge, "\x00") && slices.Contains(readAsC, words[0]) {
				continue
			}
			call := append([]string(nil), defaults...)
			call[position] = edge
			calls = append(calls, call)
		}
	}
	return calls
}

var whole = flag.Bool("whole", false, "run each script, and put every edge into every numeric argument, in both protocols, and not in one that is drawn for each")

// protocols are those that one script, or one command, is compared in.
func protocols(t *testing.T) []int {
	both := []int{2, 3}
	if *whole {
		return both
	}
	return harness.Draw(t, both, 1)
}

// TestNumbers puts every edge into every numeric argument and compares reply and state.
func TestNumbers(t *testing.T) {
	servers := newPool(t)
	var compared atomic.Int64
	t.Run("templates", func(t *testing.T) {
		for _, number := range numbers {
			t.Run(number.command, func(t *testing.T) {
				t.Parallel()
				p := <-servers
				defer func() { servers <- p }()
				if !offered(t, p.subject)(number.command) {
					return
				}
				for _, protocol := range protocols(t) {
					compared.Add(int64(compareNumbers(t, p, protocol, number.command, number.probes)))
				}
			})
		}
	})
	t.Logf("%d request and reply pairs compared", compared.Load())
}

// compareNumbers runs each call in one pipeline with what sets it up and what looks at its effect, and counts the
// replies compared.
func compareNumbers(t *testing.T, p pair, protocol int, template string, probes []string) (compared int) {
	t.Helper()
	l := p.dial(t, protocol)
	defer l.close()
	var before []byte
	for _, line := range setting {
		before = append(before, encode(t, line)...)
	}
	reports := 0
	for _, call := range substitute(t, template) {
		batch := append(append([]byte(nil), before...), harness.Command(call...)...)
		for _, probe := range probes {
			batch = append(batch, encode(t, probe)...)
		}
		batch = append(batch, encode(t, "SELECT 0")...)
		require.NoError(t, l.send(batch))
		for i := range len(setting) + 1 + len(probes) + 1 {
			reference, subject, err := l.read()
			require.NoError(t, err, "%q", call)
			if i >= len(setting) {
				compared++
			}
			if reference.Wire() == subject.Wire() {
				continue
			}
			about := "the reply"
			if probe := i - len(setting) - 1; probe >= 0 && probe < len(probes) {
				about = probes[probe]
			}
			t.Errorf("RESP%d: %q: %s differs\n  redis-server: %q\n  headgate:     %q",
				protocol, call, about, reference.Wire(), subject.Wire())
			if reports++; reports > maxReports {
				return compared
			}
		}
	}
	return compared
}

func encode(t *testing.T, line string) []byte {
	t.Helper()
	words, err := harness.SplitWords(line)
	require.NoError(t, err)
	return harness.Command(words...)
}
