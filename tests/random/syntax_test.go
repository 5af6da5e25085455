package random

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"headgate/tests/internal/harness"
)

// argument is one argument of a command as redis-server's COMMAND DOCS describes it.
type argument struct {
	name, kind, token                 string
	optional, multiple, multipleToken bool
	parts                             []argument
}

// command is one command that the stream may contain.
type command struct {
	words []string // its name, or its container's and its own
	args  []argument
}

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
func commands(t testing.TB, reference, subject *harness.Client) []command {
	t.Helper()
	var found []command
	docs := reference.Ask("COMMAND", "DOCS")
	for i := 0; i+1 < len(docs.Items); i += 2 {
		name := docs.Items[i].Text
		fields := pairs(docs.Items[i+1])
		if skipped[name] || !slices.Contains(dataGroups, fields["group"].Text) || slices.Contains(flagsOf(fields["doc_flags"]), "syscmd") {
			continue
		}
		if info := subject.Ask("COMMAND", "INFO", name); info.Items[0].Null {
			t.Logf("not in this server: %s", name)
			continue
		}
		if subcommands, ok := fields["subcommands"]; ok {
			for j := 0; j+1 < len(subcommands.Items); j += 2 {
				_, own, _ := strings.Cut(subcommands.Items[j].Text, "|")
				if own != "help" {
					found = append(found, command{[]string{name, own}, argumentsOf(pairs(subcommands.Items[j+1])["arguments"])})
				}
			}
			continue
		}
		found = append(found, command{[]string{name}, argumentsOf(fields["arguments"])})
	}
	slices.SortFunc(found, func(a, b command) int { return slices.Compare(a.words, b.words) })
	return found
}

func pairs(v harness.Value) map[string]harness.Value {
	m := make(map[string]harness.Value, len(v.Items)/2)
	for i := 0; i+1 < len(v.Items); i += 2 {
		m[v.Items[i].Text] = v.Items[i+1]
	}
	return m
}

func flagsOf(v harness.Value) []string { return v.Strings() }

func argumentsOf(v harness.Value) []argument {
	args := make([]argument, 0, len(v.Items))
	for _, item := range v.Items {
		fields := pairs(item)
		flags := flagsOf(fields["flags"])
		args = append(args, argument{
			name: fields["name"].Text, kind: fields["type"].Text, token: fields["token"].Text,
			optional: slices.Contains(flags, "optional"), multiple: slices.Contains(flags, "multiple"),
			multipleToken: slices.Contains(flags, "multiple_token"), parts: argumentsOf(fields["arguments"]),
		})
	}
	return args
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
	keys       = 50
	maxRepeats = 4
	numkeys    = "\x00numkeys" // stands for the number of the keys that follow
)

// call draws one call of c: mostly well-formed, now and then with an argument too few, too many or of the wrong kind.
func (d *dice) call(c command) []string {
	args := d.arguments(c.args, nil)
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
		case d.one(120) && !strings.HasSuffix(c.words[0], "rank"): // ZRANK has WITHSCORE here, as in Redis 7.2
			args = append(args, d.pick("junk", "1", "NX", "WITHSCORES"))
		}
	}
	name := slices.Clone(c.words)
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

func (d *dice) arguments(args []argument, out []string) []string {
	for _, a := range args {
		if a.optional && !d.one(3) {
			continue
		}
		repeats := 1
		if a.multiple {
			repeats = 1 + d.IntN(maxRepeats)
		}
		for i := range repeats {
			if a.token != "" && a.kind != "pure-token" && (i == 0 || a.multipleToken) {
				out = append(out, a.token)
			}
			out = d.argument(a, out)
		}
	}
	return out
}

func (d *dice) argument(a argument, out []string) []string {
	switch a.kind {
	case "block":
		return d.arguments(a.parts, out)
	case "oneof":
		choice := a.parts[d.IntN(len(a.parts))]
		if choice.token == "*" { // an id made from the time: the two servers would differ
			choice = a.parts[len(a.parts)-1]
		}
		choice.optional = false
		return d.arguments([]argument{choice}, out)
	case "pure-token":
		return append(out, a.token)
	case "key":
		return append(out, "k:"+strconv.Itoa(d.IntN(keys)))
	case "integer":
		return append(out, d.number(a.name))
	case "double":
		return append(out, d.float(a.name))
	case "pattern":
		return append(out, d.pick("*", "k:*", "k:1*", "k:[0-3]?", "k:?", "nothing*", "k:\\1", "k:*->f1", "#", "k:[^1]*"))
	case "unix-time":
		if d.one(5) {
			return append(out, strconv.FormatInt(d.now-d.Int64N(1000), 10)) // past
		}
		return append(out, strconv.FormatInt(d.now+10000+d.Int64N(10000), 10))
	}
	return append(out, d.text(a.name))
}

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
