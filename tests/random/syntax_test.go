package random

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"headgate/tests/internal/harness"
	"headgate/tests/internal/syntax"
)

// skipped are commands whose replies or effects depend on chance, on time or on what only one server has; and those that
// have suites of their own because they reach beyond the keys.
var skipped = map[string]bool{
	"randomkey": true, "srandmember": true, "hrandfield": true, "zrandmember": true, "spop": true,
	"scan": true, "hscan": true, "sscan": true, "zscan": true,
	"wait": true, "waitaof": true, "migrate": true, "dump": true, "restore": true, "object": true, "swapdb": true,
	"xinfo": true, "xpending": true, "xclaim": true, "xautoclaim": true, "pfdebug": true, "pfselftest": true,
	"restore-asking": true, "xsetid": true, // the latter lets redis-server keep entries out of order
}

// blocking commands are sent inside transactions only, where they do not block.
var blocking = map[string]bool{
	"blpop": true, "brpop": true, "blmove": true, "brpoplpush": true, "blmpop": true, "bzpopmin": true, "bzpopmax": true, "bzmpop": true,
	"xread": true, "xreadgroup": true,
}

// unordered commands answer in no promised order; the value says whether their items come in pairs.
var unordered = map[string]bool{
	"keys": false, "smembers": false, "sinter": false, "sunion": false, "sdiff": false, "hkeys": false, "hvals": false, "hgetall": true,
}

// timed commands answer with a time that depends on when the server ran an earlier command.
var timed = map[string]bool{"ttl": true, "pttl": true, "expiretime": true, "pexpiretime": true}

var dataGroups = []string{"generic", "string", "hash", "list", "set", "sorted-set", "stream", "bitmap", "hyperloglog"}

// commands reads from the reference which commands there are and how they are written, and keeps those that subject has too.
func commands(t testing.TB, reference, subject *harness.Client) []syntax.Command {
	t.Helper()
	return commandsBut(t, skipped, reference, subject)
}

// commandsBut is commands without those that are named.
func commandsBut(t testing.TB, without map[string]bool, reference, subject *harness.Client) []syntax.Command {
	t.Helper()
	return slices.DeleteFunc(syntax.Read(reference), func(c syntax.Command) bool {
		if without[c.Words[0]] || !slices.Contains(dataGroups, c.Group) || c.Words[len(c.Words)-1] == "help" {
			return true
		}
		if info := subject.Ask("COMMAND", "INFO", c.Words[0]); info.Items[0].Null {
			t.Logf("not in this server: %s", c.Words[0])
			return true
		}
		return false
	})
}

// dice draws the stream's arguments. The same seed draws the same stream.
type dice struct {
	*rand.Rand
	now int64 // a fixed instant in seconds, from which times are counted
}

func (d *dice) pick(from ...string) string { return from[d.IntN(len(from))] }

// one is true once in n.
func (d *dice) one(n int) bool { return d.IntN(n) == 0 }

const (
	keys    = 50
	numkeys = "\x00numkeys" // stands for the number of the keys that follow
)

// call draws one call of c: mostly well-formed, now and then with an argument too few, too many or of the wrong kind.
func (d *dice) call(c syntax.Command) []string {
	args := d.arguments(c.Args)
	for i, a := range args {
		if a == numkeys {
			args[i] = strconv.Itoa(len(keysAfter(args[i+1:])))
			if d.one(30) {
				args[i] = d.integer()
			}
		}
	}
	if len(args) > 0 {
		switch at := d.IntN(len(args)); {
		case d.one(60):
			args = slices.Delete(args, at, at+1)
		case d.one(60):
			args[at] = d.pick("", "junk", "-1", "0", "nan", "9223372036854775807", "1.5", "~", "-inf")
		case d.one(120) && !strings.HasSuffix(c.Words[0], "rank"): // ZRANK has WITHSCORE here, as in Redis 7.2
			args = append(args, d.pick("junk", "1", "NX", "WITHSCORES"))
		}
	}
	name := slices.Clone(c.Words)
	if d.one(10) {
		name[0] = strings.ToUpper(name[0])
	}
	return append(name, args...)
}

// keysAfter are the keys at the beginning of args.
func keysAfter(args []string) []string {
	for i, a := range args {
		if !strings.HasPrefix(a, "k:") {
			return args[:i]
		}
	}
	return args
}

func (d *dice) arguments(args []syntax.Argument) []string {
	draw := syntax.Draw{Rand: d.Rand, Choose: d.choose, Value: d.value}
	return draw.Arguments(args, nil)
}

// choose draws one of several arguments, but no id that a server makes from the time: the two servers would differ.
func (d *dice) choose(of []syntax.Argument) syntax.Argument {
	choice := of[d.IntN(len(of))]
	if choice.Token == "*" {
		choice = of[len(of)-1]
	}
	return choice
}

// value draws an argument that suits its kind and name.
func (d *dice) value(a syntax.Argument) string {
	switch a.Kind {
	case "key":
		return d.key()
	case "integer":
		return d.number(a.Name)
	case "double":
		return d.float(a.Name)
	case "pattern":
		return d.pick("*", "k:*", "k:1*", "k:[0-3]?", "k:?", "nothing*", "k:\\1", "k:*->f1", "#", "k:[^1]*")
	case "unix-time":
		if d.one(5) {
			return strconv.FormatInt(d.now-d.Int64N(1000), 10) // past
		}
		return strconv.FormatInt(d.now+10000+d.Int64N(10000), 10)
	}
	return d.text(a.Name)
}

func (d *dice) key() string { return "k:" + strconv.Itoa(d.IntN(keys)) }

// number draws an integer that suits the argument's name: sizes stay small, so that no call takes long or much memory.
func (d *dice) number(name string) string {
	switch name {
	case "numkeys":
		return numkeys
	case "seconds", "milliseconds":
		if d.one(12) {
			return d.pick("0", "-1")
		}
		return strconv.Itoa(100_000_000 + d.IntN(1000))
	case "destination-db", "db", "index":
		return strconv.Itoa(d.IntN(4))
	case "offset":
		return strconv.Itoa(d.IntN(300) - 5)
	case "increment", "decrement", "value":
		if d.one(20) {
			return d.pick("9223372036854775807", "-9223372036854775808", "0")
		}
	}
	return d.integer()
}

func (d *dice) integer() string {
	if d.one(50) {
		return d.pick("9223372036854775807", "-9223372036854775808", "2147483648", "4294967296", "00", "+1", " 1", "0x1")
	}
	return strconv.Itoa(d.IntN(16) - 4)
}

func (d *dice) float(name string) string {
	if name == "timeout" {
		return d.pick("0", "0.01", "1")
	}
	if d.one(8) {
		// Not -0: whether Redis keeps a score's sign depends on the encoding, which SORT changes as a side effect.
		return d.pick("inf", "-inf", "(1", "1e3", "0.1", "1e308", "3.14159265358979", "nan")
	}
	return strconv.FormatFloat(float64(d.IntN(80)-20)/4, 'f', -1, 64)
}

// text draws a value, mostly from few, so that members and fields meet again.
func (d *dice) text(name string) string {
	switch name {
	case "id", "lastid", "threshold", "start", "end", "min", "max":
		return d.pick("-", "+", strconv.Itoa(d.IntN(40)), strconv.Itoa(d.IntN(40))+"-"+strconv.Itoa(d.IntN(3)), "(3", "[m1", "(m2", "0", "-inf", "+inf")
	case "encoding":
		return d.pick("u1", "u8", "i8", "u63", "i64", "i5", "u64", "x1")
	}
	switch {
	case d.one(25):
		return strings.Repeat(d.pick("x", "yz", "\x00", "é"), 1+d.IntN(100))
	case d.one(6):
		return strconv.Itoa(d.IntN(2000) - 1000)
	}
	return d.pick("m", "f", "v") + strconv.Itoa(d.IntN(24))
}
