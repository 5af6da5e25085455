package fuzzer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"headgate/tests/internal/syntax"
)

const (
	keys    = 40  // few, so that commands of all types meet at them
	maxHuge = 18  // log2 of the longest argument
	users   = 3   // that ACL rules are about
	deep    = 600 // nested brackets and the like
)

// dice draw command lines. The same seed draws the same ones.
type dice struct {
	*rand.Rand
	commands   []syntax.Command
	aggressive bool // this batch's arguments need not make sense
}

func (d *dice) pick(from ...string) string { return from[d.IntN(len(from))] }

// one is true once in n.
func (d *dice) one(n int) bool { return d.IntN(n) == 0 }

// line draws a command line.
func (d *dice) line() []string {
	for {
		c := d.commands[d.IntN(len(d.commands))]
		if rare[c.Name()] && !d.one(100) {
			continue
		}
		line := append(slices.Clone(c.Words), d.arguments(c.Args)...)
		if own := ownLines[c.Name()]; own != nil {
			line = own(d, line)
		}
		if d.aggressive {
			line = d.spoil(line, len(c.Words))
		}
		if allowed(line) {
			return line
		}
	}
}

func (d *dice) arguments(args []syntax.Argument) []string {
	draw := syntax.Draw{Rand: d.Rand, Choose: func(of []syntax.Argument) syntax.Argument { return of[d.IntN(len(of))] }, Value: d.value}
	return draw.Arguments(args, nil)
}

// value draws an argument that suits its kind and name, unless it need not.
func (d *dice) value(a syntax.Argument) string {
	switch {
	case a.Kind == "key":
		return d.key()
	case a.Name == "timeout":
		return d.pick("1", "2", "0.01")
	case d.aggressive && d.one(3):
		return d.odd()
	}
	switch a.Kind {
	case "integer", "unix-time":
		return d.integer(a.Name)
	case "double":
		return d.pick("0", "1", "-1.5", "2.25", "1e3", "inf", "-inf", "(1", strconv.Itoa(d.IntN(100)))
	case "pattern":
		return d.pick("*", "k*", "k?", "[a-k]*", "k[^1]", "nothing", "\\k*")
	}
	return d.text(a.Name)
}

func (d *dice) key() string { return "k" + strconv.Itoa(d.IntN(keys)) }

// integer draws a number that suits the argument's name.
func (d *dice) integer(name string) string {
	switch name {
	case "numkeys", "numpairs":
		return strconv.Itoa(1 + d.IntN(3))
	case "seconds", "unix-time-seconds":
		return d.pick("1", "100", "100000", "9999999999")
	case "milliseconds", "unix-time-milliseconds":
		return d.pick("1", "20", "100000", "9999999999999")
	case "offset":
		return strconv.Itoa(d.IntN(2000))
	case "destination-db", "db", "index":
		return strconv.Itoa(d.IntN(16))
	}
	return strconv.Itoa(d.IntN(30) - 5)
}

// text draws a value: mostly from few, so that members and fields meet again.
func (d *dice) text(name string) string {
	switch name {
	case "id", "lastid", "start", "end", "min", "max", "threshold":
		return d.pick("-", "+", "0", "$", ">", "*", "5-*", "(3", "[m1", "(m2", "-inf", "+inf", strconv.Itoa(d.IntN(40)), fmt.Sprint(d.IntN(40), "-", d.IntN(3)))
	case "period", "window", "duration", "ttl":
		return d.pick("1", "1000", "1s", "60s", "1h", "100ms", "1d")
	case "policy", "name":
		return d.pick("login", "api", "none")
	case "command":
		return d.commands[d.IntN(len(d.commands))].Words[0]
	case "username":
		return "u" + strconv.Itoa(d.IntN(users))
	case "script", "function-code":
		return d.script()
	case "encoding":
		return d.pick("u1", "u8", "i8", "u63", "i64", "i5")
	}
	switch {
	case d.one(20):
		return strings.Repeat(d.pick("x", "\x00", "é", "yz"), 1+d.IntN(200))
	case d.one(4):
		return strconv.Itoa(d.IntN(2000) - 1000)
	}
	return d.pick("m", "f", "v") + strconv.Itoa(d.IntN(20))
}

// odd draws what hardly any command expects: limits of numbers, long and binary text, words of other commands.
func (d *dice) odd() string {
	switch d.IntN(8) {
	case 0, 1:
		return d.pick("0", "-0", "-1", "1", "127", "128", "255", "256", "32767", "65535", "65536", "2147483647", "2147483648", "-2147483648", "-2147483649",
			"4294967295", "4294967296", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "18446744073709551615", "99999999999999999999",
			"1e308", "-1e308", "1e-308", "nan", "inf", "-inf", "0x10", "1.7976931348623157e+309", "00", "+1", " 1", "1 ", "", "1_0")
	case 2:
		b := make([]byte, d.IntN(64))
		for i := range b {
			b[i] = byte(d.Uint32())
		}
		return string(b)
	case 3:
		return strings.Repeat(d.pick("a", "\x00", "\xff", "[", "*", "0", "(", "\r\n"), 1<<d.IntN(maxHuge))
	case 4:
		c := d.commands[d.IntN(len(d.commands))]
		return d.pick("STREAMS", "STORE", "GET", "BY", "LIMIT", "WITHSCORES", "COUNT", "MATCH", "*", "BLOCK", "NX", "XX", "PEEK", "COST", c.Words[0], strings.ToUpper(c.Words[0]))
	case 5:
		return strings.Repeat(d.pick("(", "{", "[", "a*", "*a"), 1+d.IntN(deep))
	case 6:
		return d.key()
	}
	return d.pick("\xc2\x00", "\x01\x00\x00", "HYLL", "*3\r\n$1\r\na\r\n", "%n%s", "../../x", "nil", "true", "{}", "[1,2", "~*", "+@all", "(+get", "%R~", "100 400")
}

// spoil changes a line so that it fits its command less.
func (d *dice) spoil(line []string, name int) []string {
	for range d.IntN(3) {
		if len(line) <= name {
			return append(line, d.odd())
		}
		at := name + d.IntN(len(line)-name)
		switch d.IntN(6) {
		case 0:
			line = slices.Delete(line, at, at+1)
		case 1:
			line = slices.Insert(line, at, d.odd())
		case 2:
			line[at] = d.odd()
		case 3:
			other := name + d.IntN(len(line)-name)
			line[at], line[other] = line[other], line[at]
		case 4:
			line = append(line, line[at])
		case 5:
			line[0] = d.pick(strings.ToUpper(line[0]), line[0]+"x", line[0])
		}
	}
	return line
}

// scripts that EVAL and FUNCTION LOAD are given beside text that is none.
var scripts = []string{
	"return 1", "return {1,2,{3,'x'}}", "return redis.call('get', KEYS[1])", "return redis.pcall(unpack(ARGV))", "return {err='x y'}", "return {ok='z'}",
	"redis.call('set', KEYS[1], ARGV[1]) return redis.call('incr', KEYS[1])", "for i=1,100 do redis.call('rpush', KEYS[1], i) end return redis.call('llen', KEYS[1])",
	"return cjson.encode(redis.call('hgetall', KEYS[1]))", "return cmsgpack.unpack(ARGV[1])", "redis.setresp(3) return redis.call('smembers', KEYS[1])",
	"return redis.call('cl.throttle', KEYS[1], 5, 10, 60)", "error('x')", "return redis.error_reply('A B')", "return string.rep('x', 1000)", "return 1 +", "return nil",
	"local t = {} for i=1,1000 do t[i] = i end return t", "return redis.call('zadd', KEYS[1], 1, ARGV[1], 2, 'b')", "return struct.unpack('>I', ARGV[1])", "return redis.call(ARGV[1], KEYS[1])",
}

func (d *dice) script() string {
	if d.one(4) {
		return "#!lua name=" + d.pick("lib", "lib2") + "\nredis.register_function('" + d.pick("f", "g") + "', function(keys, args) " + d.pick(scripts...) + " end)"
	}
	return d.pick(scripts...)
}
