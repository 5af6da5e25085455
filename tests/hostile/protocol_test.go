package hostile

import (
	"strings"
	"testing"

	"headgate/tests/internal/harness"
)

const kib = 1 << 10

func protocolError(text string) string { return "-ERR Protocol error: " + text + "\r\n" }

func repeat(s string, n int) string { return strings.Repeat(s, n) }

func command(args ...string) string { return string(harness.Command(args...)) }

// lengths are arrays and bulk strings whose counts are wrong.
var lengths = []attack{
	{name: "bulk length max int64", send: "*1\r\n$9223372036854775807\r\n", want: protocolError("invalid bulk length"), closes: true},
	{name: "array length max int64", send: "*9223372036854775807\r\n", want: protocolError("invalid multibulk length"), closes: true},
	{name: "array length min int64", send: "*-9223372036854775808\r\n"},
	{name: "array length -10", send: "*-10\r\n"},
	{name: "array length -1", send: "*-1\r\n"},
	{name: "array length 0", send: "*0\r\n"},
	{name: "array length 3000000000", send: "*3000000000\r\n", want: protocolError("invalid multibulk length"), closes: true},
	{name: "array length over 2^31", send: "*2147483648\r\n", want: protocolError("invalid multibulk length"), closes: true},
	{name: "array length over the limit", send: "*1048577\r\n", want: protocolError("invalid multibulk length"), closes: true,
		ours: "the limit is 1,048,576 arguments, where Redis 7 allows 2^31-1"},
	{name: "array length at the limit", send: "*1048576\r\n", silent: true},
	{name: "array length of 20 digits", send: "*99999999999999999999\r\n", want: protocolError("invalid multibulk length"), closes: true},
	{name: "array length of -20 digits", send: "*-99999999999999999999\r\n", want: protocolError("invalid multibulk length"), closes: true},
	{name: "array length blabla", send: "*blabla\r\n", want: protocolError("invalid multibulk length"), closes: true},
	{name: "array length empty", send: "*\r\n", want: protocolError("invalid multibulk length"), closes: true},
	{name: "array length with a space", send: "* 1\r\n", want: protocolError("invalid multibulk length"), closes: true},
	{name: "array length with a plus", send: "*+1\r\n", want: protocolError("invalid multibulk length"), closes: true},
	{name: "array length with a zero first", send: "*01\r\n", want: protocolError("invalid multibulk length"), closes: true},
	{name: "array length in hex", send: "*0x1\r\n", want: protocolError("invalid multibulk length"), closes: true},
	{name: "array length a fraction", send: "*1.0\r\n", want: protocolError("invalid multibulk length"), closes: true},
	{name: "array length with NUL", send: "*1\x00\r\n", silent: true}, // the NUL hides the line's end
	{name: "array length ended by LF alone", send: "*1\n$4\nPING\r\n", want: protocolError("invalid multibulk length"), closes: true},
	{name: "bulk length -1", send: "*1\r\n$-1\r\n", want: protocolError("invalid bulk length"), closes: true},
	{name: "bulk length -10", send: "*1\r\n$-10\r\n", want: protocolError("invalid bulk length"), closes: true},
	{name: "bulk length min int64", send: "*1\r\n$-9223372036854775808\r\n", want: protocolError("invalid bulk length"), closes: true},
	{name: "bulk length 2000000000", send: "*1\r\n$2000000000\r\n", want: protocolError("invalid bulk length"), closes: true},
	{name: "bulk length 512 MiB + 1", send: "*1\r\n$536870913\r\n", want: protocolError("invalid bulk length"), closes: true},
	{name: "bulk length 512 MiB and no more", send: "*1\r\n$536870912\r\n", silent: true},
	{name: "bulk length of 20 digits", send: "*1\r\n$99999999999999999999\r\n", want: protocolError("invalid bulk length"), closes: true},
	{name: "bulk length blabla", send: "*1\r\n$blabla\r\n", want: protocolError("invalid bulk length"), closes: true},
	{name: "bulk length empty", send: "*1\r\n$\r\n", want: protocolError("invalid bulk length"), closes: true},
	{name: "bulk length with NUL", send: "*1\r\n$4\x00\r\nPING\r\n", silent: true},
	{name: "second bulk too long", send: "*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$20000000000\r\n", want: protocolError("invalid bulk length"), closes: true},
	{name: "no dollar before a bulk", send: "*1\r\nfoo\r\n", want: protocolError("expected '$', got 'f'"), closes: true},
	{name: "no dollar before the third bulk", send: "*3\r\n$3\r\nSET\r\n$1\r\nx\r\nfooz\r\n", want: protocolError("expected '$', got 'f'"), closes: true},
	{name: "an empty line instead of a bulk", send: "*1\r\n\r\n", want: protocolError("expected '$', got ' '"), closes: true},
	{name: "an array inside an array", send: "*2\r\n*1\r\n$4\r\nPING\r\n", want: protocolError("expected '$', got '*'"), closes: true},
	{name: "an integer as the argument", send: "*1\r\n:4\r\n", want: protocolError("expected '$', got ':'"), closes: true},
	{name: "bytes instead of a bulk's CRLF", send: "*1\r\n$4\r\nPINGxy", want: "+PONG\r\n"},
	{name: "a bulk longer than it says", send: "*1\r\n$4\r\nPINGPONG\r\n", want: "+PONG\r\n-ERR unknown command 'NG', with args beginning with: \r\n"},
	{name: "count line without an end", send: "*" + repeat("1", 64*kib+1), want: protocolError("too big mbulk count string"), closes: true},
	{name: "bulk line without an end", send: "*1\r\n$" + repeat("1", 64*kib+1), want: protocolError("too big bulk count string"), closes: true},
	{name: "error in the middle of a pipeline", send: "PING\r\n*1\r\n$x\r\nPING\r\n", want: "+PONG\r\n" + protocolError("invalid bulk length"), closes: true},
	{name: "error after a transaction began", send: "MULTI\r\nSET multi 1\r\n*x\r\n", want: "+OK\r\n+QUEUED\r\n" + protocolError("invalid multibulk length"), closes: true},
}

// inlines are lines that no array begins.
var inlines = []attack{
	{name: "inline of 64 KiB + 1 without an end", send: repeat("A", 64*kib+1), want: protocolError("too big inline request"), closes: true},
	{name: "inline of 128 KiB without an end", send: repeat("A ", 64*kib), want: protocolError("too big inline request"), closes: true},
	{name: "inline of 60 KiB", send: "ECHO " + repeat("A", 60*kib) + "\r\n", want: "$61440\r\n" + repeat("A", 60*kib) + "\r\n"},
	{name: "inline of 30000 arguments", send: "ECHO" + repeat(" a", 30000) + "\r\n", want: "-ERR wrong number of arguments for 'echo' command\r\n"},
	{name: "unbalanced double quote", send: "ECHO \"abc\r\n", want: protocolError("unbalanced quotes in request"), closes: true},
	{name: "unbalanced single quote", send: "ECHO 'abc\r\n", want: protocolError("unbalanced quotes in request"), closes: true},
	{name: "text right after a quote", send: "ECHO \"abc\"def\r\n", want: protocolError("unbalanced quotes in request"), closes: true},
	{name: "an escaped closing quote", send: "ECHO \"abc\\\"\r\n", want: protocolError("unbalanced quotes in request"), closes: true},
	{name: "a quote alone", send: "\"\r\n", want: protocolError("unbalanced quotes in request"), closes: true},
	{name: "a backslash at the end", send: "ECHO \"abc\\\r\n", want: protocolError("unbalanced quotes in request"), closes: true},
	{name: "line feed alone", send: "\n"},
	{name: "carriage return alone", send: "\r", silent: true},
	{name: "10000 empty lines", send: repeat("\r\n", 10000)},
	{name: "10000 line feeds", send: repeat("\n", 10000)},
	{name: "10000 empty arrays", send: repeat("*0\r\n", 10000)},
	{name: "10000 null arrays", send: repeat("*-1\r\n", 10000)},
	{name: "spaces and tabs", send: " \t \t \r\n"},
	{name: "NUL, then broken lines", send: "\x00" + repeat("A", kib) + "\"\n" + repeat("A", kib) + "\"\n", silent: true},
	{name: "NUL, then 70 KiB of broken lines", send: "\x00" + repeat(repeat("A", kib)+"\"\n", 70), want: protocolError("too big inline request"), closes: true},
	{name: "star and NUL, then 70 KiB of lines", send: "*\x00" + repeat(repeat("A", kib)+"\"\r\n", 70), want: protocolError("too big mbulk count string"), closes: true},
	{name: "dollar and NUL, then 70 KiB of lines", send: "$\x00" + repeat(repeat("A", kib)+"\"\n", 70), want: protocolError("too big inline request"), closes: true},
	{name: "1 KiB of NUL without an end", send: repeat("\x00", kib), silent: true},
	{name: "100 KiB of NUL", send: repeat("\x00", 100*kib), want: protocolError("too big inline request"), closes: true},
	{name: "100 KiB of 0xff", send: repeat("\xff", 100*kib), want: protocolError("too big inline request"), closes: true},
	{name: "a status reply", send: "+PONG\r\n", want: "-ERR unknown command '+PONG', with args beginning with: \r\n"},
	{name: "an error reply", send: "-ERR no\r\n", want: "-ERR unknown command '-ERR', with args beginning with: 'no' \r\n"},
	{name: "an integer", send: ":1\r\n", want: "-ERR unknown command ':1', with args beginning with: \r\n"},
	{name: "a bulk string alone", send: "$4\r\nPING\r\n", want: "-ERR unknown command '$4', with args beginning with: \r\n+PONG\r\n"},
	{name: "a RESP3 map", send: "%1\r\n", want: "-ERR unknown command '%1', with args beginning with: \r\n"},
	{name: "a RESP3 push", send: ">1\r\n", want: "-ERR unknown command '>1', with args beginning with: \r\n"},
	{name: "a RESP3 null", send: "_\r\n", want: "-ERR unknown command '_', with args beginning with: \r\n"},
}

// strangers are other protocols.
var strangers = []attack{
	{name: "HTTP POST", send: "POST / HTTP/1.1\r\nHost: localhost\r\n\r\n", closes: true},
	{name: "HTTP post in lower case", send: "post / HTTP/1.1\r\n\r\n", closes: true},
	{name: "HTTP GET with Host", send: "GET / HTTP/1.1\r\nHost: localhost:6379\r\n\r\n",
		want: "-ERR wrong number of arguments for 'get' command\r\n", closes: true, abrupt: true},
	{name: "HTTP GET without Host", send: "GET / HTTP/1.0\r\n\r\n", want: "-ERR wrong number of arguments for 'get' command\r\n"},
	{name: "HTTP headers, Host later", send: "GET / HTTP/1.1\r\nAccept: */*\r\nHost: x\r\n\r\nSET evil 1\r\n",
		want: "-ERR wrong number of arguments for 'get' command\r\n" +
			"-ERR unknown command 'Accept:', with args beginning with: '*/*' \r\n", closes: true, abrupt: true},
	{name: "Host: as an array", send: command("Host:", "x"), closes: true},
	{name: "HTTP POST with a command in its body", send: "POST / HTTP/1.1\r\nContent-Length: 12\r\n\r\nSET evil 1\r\n", closes: true},
	{name: "HTTP PRI (HTTP/2)", send: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		want: "-ERR unknown command 'PRI', with args beginning with: '*' 'HTTP/2.0' \r\n-ERR unknown command 'SM', with args beginning with: \r\n"},
	{name: "TLS hello without a line feed", send: "\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03" + repeat("\xab\xcd", 77), silent: true},
	{name: "TLS hello with a line feed", send: "\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03" + repeat("\xab", 31) + "\n", silent: true},
	{name: "SSL 2 hello", send: "\x80\x2e\x01\x03\x01" + repeat("\xcd", 40) + "\n",
		want: "-ERR unknown command '\x80.\x01\x03\x01" + repeat("\xcd", 40) + "', with args beginning with: \r\n"},
	{name: "SSH banner", send: "SSH-2.0-OpenSSH_9.2\r\n", want: "-ERR unknown command 'SSH-2.0-OpenSSH_9.2', with args beginning with: \r\n"},
	{name: "SMTP", send: "EHLO mail.example\r\n", want: "-ERR unknown command 'EHLO', with args beginning with: 'mail.example' \r\n"},
	{name: "memcached", send: "stats\r\n", want: "-ERR unknown command 'stats', with args beginning with: \r\n"},
	{name: "JSON", send: "{\"a\":1}\r\n", want: protocolError("unbalanced quotes in request"), closes: true},
}

// names are commands that nobody has, and arguments that nobody should send.
var names = []attack{
	{name: "CRLF inside an unknown name", send: command("NO\r\nSUCH"), want: "-ERR unknown command 'NO  SUCH', with args beginning with: \r\n"},
	{name: "a reply inside an unknown name", send: command("X\r\n+OK\r\n"), want: "-ERR unknown command 'X  +OK  ', with args beginning with: \r\n"},
	{name: "CRLF inside its arguments", send: command("NOSUCH", "a\r\n$3\r\nfoo", "\n"),
		want: "-ERR unknown command 'NOSUCH', with args beginning with: 'a  $3  foo' ' ' \r\n"},
	{name: "CRLF inside an unknown sub-command", send: command("CLIENT", "a\r\nb"), want: "-ERR unknown subcommand 'a  b'. Try CLIENT HELP.\r\n"},
	{name: "CRLF inside an option", send: command("CONFIG", "SET", "a\r\nb", "1"),
		want: "-ERR Unknown option or number of arguments for CONFIG SET - 'a  b'\r\n"},
	{name: "an empty name", send: command(""), want: "-ERR unknown command '', with args beginning with: \r\n"},
	{name: "an empty name and empty arguments", send: command("", "", ""), want: "-ERR unknown command '', with args beginning with: '' '' \r\n"},
	{name: "a name of 100 KiB", send: command(repeat("N", 100*kib)),
		want: "-ERR unknown command '" + repeat("N", 128) + "', with args beginning with: \r\n"},
	{name: "10000 arguments for nobody", send: command(append([]string{"NOSUCH"}, strings.Split(repeat("a ", 10000), " ")...)...),
		want: "-ERR unknown command 'NOSUCH', with args beginning with: " + repeat("'a' ", 32) + "\r\n"},
	{name: "an argument of 200 KiB for nobody", send: command("NOSUCH", repeat("b", 200*kib)),
		want: "-ERR unknown command 'NOSUCH', with args beginning with: '" + repeat("b", 128) + "' \r\n"},
	{name: "a sub-command of 1 KiB", send: command("CLIENT", repeat("s", kib)),
		want: "-ERR unknown subcommand '" + repeat("s", 128) + "'. Try CLIENT HELP.\r\n"},
	{name: "escape sequences in a name", send: command("\x1b[2J\x1b]0;x\x07"),
		want: "-ERR unknown command '\x1b[2J\x1b]0;x\x07', with args beginning with: \r\n"},
	{name: "10000 wrong calls in one pipeline", send: repeat("GET\r\n", 10000),
		want: repeat("-ERR wrong number of arguments for 'get' command\r\n", 10000)},
	{name: "20000 PING in one pipeline", send: repeat("PING\r\n", 20000), want: repeat("+PONG\r\n", 20000)},
	{name: "commands after QUIT", send: "QUIT\r\n" + repeat("PING\r\n", 1000), want: "+OK\r\n", closes: true},
	{name: "half a command after a whole one", send: "PING\r\n*2\r\n$4\r\nECHO\r\n$100\r\nabc", want: "+PONG\r\n", silent: true},
	{name: "half a count", send: "*1", silent: true},
	{name: "half a line end", send: "*1\r", silent: true},
	{name: "half a bulk", send: "*1\r\n$4\r\nPI", silent: true},
	{name: "a bulk without its line end", send: "*1\r\n$4\r\nPING", silent: true},
}

// operands are commands that exist, with arguments made to hurt.
var operands = []attack{
	{name: "SETRANGE at 2^32-1", send: command("SETRANGE", "far", "4294967295", "x"),
		want: "-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n"},
	{name: "SETRANGE at max int64", send: command("SETRANGE", "far", "9223372036854775807", "x"),
		want: "-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n"},
	{name: "SETRANGE at -1", send: command("SETRANGE", "far", "-1", "x"), want: "-ERR offset is out of range\r\n"},
	{name: "expiry at max int64", send: command("SET", "k", "v", "PX", "9223372036854775807"), want: "-ERR invalid expire time in 'set' command\r\n"},
	{name: "NaN score", send: command("ZADD", "nan", "nan", "m"), want: "-ERR value is not a valid float\r\n"},
	{name: "infinity plus minus infinity", before: [][]string{{"ZADD", "inf", "inf", "m"}}, send: command("ZINCRBY", "inf", "-inf", "m"),
		want: "-ERR resulting score is not a number (NaN)\r\n"},
	{name: "infinite HINCRBYFLOAT", send: command("HINCRBYFLOAT", "hinf", "f", "inf"), want: "-ERR value is NaN or Infinity\r\n"},
	{name: "infinite INCRBYFLOAT", send: command("INCRBYFLOAT", "finf", "inf"), want: "-ERR increment would produce NaN or Infinity\r\n"},
	{name: "INCRBYFLOAT of 1e5000", send: command("INCRBYFLOAT", "fhuge", "1e5000"), want: "-ERR value is not a valid float\r\n"},
	{name: "a float of 10000 digits", send: command("INCRBYFLOAT", "flong", repeat("9", 10000)), want: "-ERR value is not a valid float\r\n"},
	{name: "an integer of 10000 digits", send: command("INCRBY", "ilong", repeat("9", 10000)), want: "-ERR value is not an integer or out of range\r\n"},
	{name: "HRANDFIELD with min int64", before: [][]string{{"HSET", "hrand", "f", "v"}}, send: command("HRANDFIELD", "hrand", "-9223372036854775808"),
		want: "-ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807\r\n"},
	{name: "ZRANGE over all of int64", before: [][]string{{"DEL", "zall"}, {"ZADD", "zall", "1", "m"}},
		send: command("ZRANGE", "zall", "-9223372036854775808", "9223372036854775807"), want: "*1\r\n$1\r\nm\r\n"},
	{name: "LIMIT over all of int64", before: [][]string{{"DEL", "zall"}, {"ZADD", "zall", "1", "m"}},
		send: command("ZRANGEBYSCORE", "zall", "-inf", "+inf", "LIMIT", "9223372036854775807", "9223372036854775807"), want: "*0\r\n"},
	{name: "SCAN with a cursor of 100 digits", send: command("SCAN", repeat("9", 100)), want: "-ERR invalid cursor\r\n"},
	{name: "SCAN by max int64", before: [][]string{{"FLUSHALL"}}, send: command("SCAN", "0", "COUNT", "9223372036854775807"), want: "*2\r\n$1\r\n0\r\n*0\r\n"},
	{name: "50 stars against 10 kB of a", before: [][]string{{"FLUSHALL"}, {"SET", repeat("a", 10000), "1"}},
		send: command("KEYS", repeat("a*", 50)+"b"), want: "*0\r\n"},
	{name: "100 kB of stars", before: [][]string{{"FLUSHALL"}, {"SET", "b", "1"}}, send: command("KEYS", repeat("*", 100000)), want: "*1\r\n$1\r\nb\r\n"},
	{name: "10000 opening brackets", before: [][]string{{"FLUSHALL"}, {"SET", "b", "1"}}, send: command("KEYS", repeat("[", 10000)), want: "*0\r\n"},
	{name: "10000 backslashes", before: [][]string{{"FLUSHALL"}, {"SET", "b", "1"}}, send: command("KEYS", repeat("\\", 10000)), want: "*0\r\n"},
	{name: "10000 stars with letters between", before: [][]string{{"FLUSHALL"}, {"SET", repeat("a", 1000), "1"}},
		send: command("KEYS", repeat("*a", 10000)), want: "*0\r\n"},
	{name: "SELECT of max int64", send: command("SELECT", "9223372036854775807"), want: "-ERR value is out of range, value must between -2147483648 and 2147483647\r\n"},
	{name: "HELLO of max int64", send: command("HELLO", "9223372036854775807"), want: "-NOPROTO unsupported protocol version\r\n"},
	{name: "a client name with a line end", send: command("CLIENT", "SETNAME", "a\r\nb"),
		want: "-ERR Client names cannot contain spaces, newlines or special characters.\r\n"},
	{name: "EXEC without MULTI", send: "EXEC\r\n", want: "-ERR EXEC without MULTI\r\n"},
	{name: "MULTI in MULTI", send: "MULTI\r\nMULTI\r\nEXEC\r\n", want: "+OK\r\n-ERR MULTI calls can not be nested\r\n*0\r\n"},
	{name: "5000 bad calls in MULTI", send: "MULTI\r\n" + repeat("GET\r\n", 5000) + "EXEC\r\n",
		want: "+OK\r\n" + repeat("-ERR wrong number of arguments for 'get' command\r\n", 5000) +
			"-EXECABORT Transaction discarded because of previous errors.\r\n"},
	{name: "10000 WATCH of one key", send: repeat("WATCH k\r\n", 10000), want: repeat("+OK\r\n", 10000)},
}

const (
	notAnInteger = "-ERR value is not an integer or out of range\r\n"
	zeroRates    = "-Cell error: Store error: Zero rates are not supported\r\n"
	noThrottle   = "redis-server has no CL.THROTTLE"
	maxInt       = "9223372036854775807"
	minInt       = "-9223372036854775808"
)

func throttle(args ...string) string {
	return command(append([]string{"CL.THROTTLE", "throttled"}, args...)...)
}

// throttles are calls at the edges of the limiter's arithmetic.
var throttles = []attack{
	{name: "throttle: everything max int64", ours: noThrottle, send: throttle(maxInt, maxInt, maxInt, maxInt), want: notAnInteger},
	{name: "throttle: everything min int64", ours: noThrottle, send: throttle(minInt, minInt, minInt, minInt), want: notAnInteger},
	{name: "throttle: count 0", ours: noThrottle, send: throttle("15", "0", "60"), want: zeroRates},
	{name: "throttle: period 0", ours: noThrottle, send: throttle("15", "30", "0"), want: zeroRates},
	{name: "throttle: period over int64 in ns", ours: noThrottle, send: throttle("15", "30", "9223372037"), want: notAnInteger},
	{name: "throttle: burst max int64", ours: noThrottle, send: throttle(maxInt, "1", "1"), want: notAnInteger},
	{name: "throttle: quantity max int64", ours: noThrottle, send: throttle("15", "30", "60", maxInt), want: notAnInteger},
	{name: "throttle: quantity min int64", ours: noThrottle, send: throttle("15", "30", "60", minInt), want: notAnInteger},
	{name: "throttle: rate above one per ns", ours: noThrottle, send: throttle("15", maxInt, "1"), want: zeroRates},
	{name: "throttle: negative count", ours: noThrottle, before: [][]string{{"DEL", "throttled"}}, send: throttle("15", "-30", "60"),
		want: "*5\r\n:1\r\n:16\r\n:0\r\n:-1\r\n:0\r\n"},
	{name: "throttle: a number over int64", ours: noThrottle, send: throttle("15", "30", "9223372036854775808"),
		want: "-Cell error: Store error: Couldn't parse as integer: 9223372036854775808\r\n"},
	{name: "throttle: CRLF for a number", ours: noThrottle, send: throttle("15", "30", "6\r\n0"),
		want: "-Cell error: Store error: Couldn't parse as integer: 6  0\r\n"},
	{name: "throttle: a key of another type", ours: noThrottle, before: [][]string{{"DEL", "throttled"}, {"HSET", "throttled", "f", "v"}},
		send: throttle("15", "30", "60"), want: "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"},
	{name: "throttle: a key that is no number", ours: noThrottle, before: [][]string{{"SET", "throttled", "abc"}},
		send: throttle("15", "30", "60"), want: notAnInteger},
	{name: "throttle: no arguments", ours: noThrottle, send: "CL.THROTTLE\r\n",
		want: "-Cell error: Store error: Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]\r\n"},
}

// TestHostile runs every case that a server without a password can be sent.
func TestHostile(t *testing.T) {
	var all []attack
	for _, table := range [][]attack{lengths, inlines, strangers, names, operands, throttles} {
		all = append(all, table...)
	}
	runAll(t, all, "")
}

// TestHostileBeforeAuth: who has not said the password may send and be sent little.
func TestHostileBeforeAuth(t *testing.T) {
	const noAuth = "-NOAUTH Authentication required.\r\n"
	eleven := make([]string, 11)
	for i := range eleven {
		eleven[i] = "a"
	}
	runAll(t, []attack{
		{name: "11 arguments", send: command(eleven...), want: protocolError("unauthenticated multibulk length"), closes: true},
		{name: "10 arguments", send: command(append([]string{"MGET"}, eleven[:9]...)...), want: noAuth},
		{name: "a bulk of 16 KiB + 1", send: "*2\r\n$4\r\nPING\r\n$16385\r\n", want: protocolError("unauthenticated bulk length"), closes: true},
		{name: "a bulk of 16 KiB", send: command("GET", repeat("a", 16*kib)), want: noAuth},
		{name: "a password of 16 KiB", send: command("AUTH", repeat("a", 16*kib)),
			want: "-WRONGPASS invalid username-password pair or user is disabled.\r\n"},
		{name: "array length 1000000", send: "*1000000\r\n", want: protocolError("unauthenticated multibulk length"), closes: true},
		{name: "bulk length 512 MiB", send: "*1\r\n$536870912\r\n", want: protocolError("unauthenticated bulk length"), closes: true},
		{name: "inline of 64 KiB + 1", send: repeat("A", 64*kib+1), want: protocolError("too big inline request"), closes: true},
		{name: "300 commands", send: repeat("SET k v\r\n", 300), want: repeat(noAuth, 300)},
		{name: "CRLF in a password", send: command("AUTH", "a\r\n+OK\r\n"),
			want: "-WRONGPASS invalid username-password pair or user is disabled.\r\n"},
		{name: "CRLF in a user", send: command("AUTH", "a\r\nb", "c"),
			want: "-WRONGPASS invalid username-password pair or user is disabled.\r\n"},
		{name: "HELLO without AUTH", send: command("HELLO", "3"),
			want: "-NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time\r\n"},
		{name: "QUIT needs no password", send: "QUIT\r\n", want: "+OK\r\n", closes: true},
		{name: "HTTP POST, no password", send: "POST / HTTP/1.1\r\n\r\n", closes: true},
	}, "secret", "--requirepass", "secret")
}
