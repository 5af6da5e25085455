package lua

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// describe turns any value into text, the keys of a table in order.
const describe = `
local function describe(v, depth)
  if type(v) == 'table' then
    if depth > 6 then return '...' end
    local out = {}
    for k, x in pairs(v) do out[#out + 1] = '[' .. describe(k, depth + 1) .. ']=' .. describe(x, depth + 1) end
    table.sort(out)
    return '{' .. table.concat(out, ',') .. '}'
  end
  return type(v) == 'userdata' and 'null' or type(v) .. ':' .. (tostring(v):gsub('^%-nan$', 'nan'))
end
local function all(...)
  local out = {}
  for i = 1, select('#', ...) do out[i] = describe((select(i, ...)), 0) end
  return out
end
local A, N = ARGV, {}
for i = 1, #ARGV do N[i] = tonumber(ARGV[i]) or ARGV[i] end
`

// probes are calls of the libraries with random arguments.
var probes = []struct {
	name   string
	script string
	args   func(r *dice) []string
}{
	{"numbers as text", `return all(pcall(function() return N[1], A[1] + 0, N[1] .. '', -A[1], ('%d'):format(A[1]), ('%x'):format(A[1]), ('%g'):format(A[1]) end))`,
		func(r *dice) []string { return []string{r.number()} }},
	{"a number as an integer", `return {tonumber(A[1]), {tonumber(A[2])}}`,
		func(r *dice) []string { return []string{r.number(), r.number()} }},
	{"tonumber with a base", `return all(pcall(tonumber, A[1], tonumber(A[2])))`,
		func(r *dice) []string { return []string{r.text("01279afzAFZ -+.x", 8), strconv.Itoa(r.IntN(38))} }},
	{"arithmetic", `return all(pcall(function() local a, b = A[1], A[2] return a + b, a - b, a * b, a / b, a % b, a ^ math.floor(b % 4), N[1] < N[2], N[1] == N[2], a < b, a .. b end))`,
		func(r *dice) []string { return []string{r.number(), r.number()} }},
	{"math", `local f = math[A[1]] return all(pcall(f, N[2], N[3]))`,
		func(r *dice) []string {
			return []string{r.pick("floor", "ceil", "abs", "max", "min", "fmod", "modf", "frexp", "sqrt", "mod", "deg", "rad"), r.number(), r.number()}
		}},
	{"bit", `local f = bit[A[1]] return all(pcall(f, N[2], N[3]))`,
		func(r *dice) []string {
			return []string{r.pick("band", "bor", "bxor", "bnot", "lshift", "rshift", "arshift", "rol", "ror", "bswap", "tobit", "tohex"), r.integer(), r.integer()}
		}},
	{"string.format", `return all(pcall(string.format, A[1], N[2], N[3]))`,
		func(r *dice) []string {
			return []string{r.format(), r.number(), r.pick(r.number(), r.text("ab \n\"\\", 6))}
		}},
	{"sub, byte, rep and reverse", `local s = A[1] return all(pcall(function() return s:sub(N[2], N[3]), s:byte(N[2], N[3]) end)), all(s:rep(#A[2]), s:reverse(), s:upper(), s:lower(), #s)`,
		func(r *dice) []string {
			return []string{r.bytes(8), strconv.Itoa(r.IntN(24) - 12), strconv.Itoa(r.IntN(24) - 12)}
		}},
	{"find and match", `return all(pcall(string.find, A[1], A[2], N[3]), pcall(string.match, A[1], A[2], N[3]))`,
		func(r *dice) []string {
			return []string{r.text("ab1 .(-]", 10), r.pattern(), strconv.Itoa(r.IntN(8) - 3)}
		}},
	{"captures", `return all(pcall(string.match, A[1], A[2]))`,
		func(r *dice) []string { return []string{r.text("ab1 .(-]", 10), r.pattern()} }},
	{"gsub", `return all(pcall(string.gsub, A[1], A[2], A[3], N[4]))`,
		func(r *dice) []string {
			return []string{r.text("ab1 .(-]", 10), r.pattern(), r.text("%%012x", 4), strconv.Itoa(r.IntN(5))}
		}},
	{"gmatch", `local out = {} local ok, e = pcall(function() for a, b in A[1]:gmatch(A[2]) do out[#out + 1] = tostring(a) .. '/' .. tostring(b) end end) return {out, tostring(e)}`,
		func(r *dice) []string { return []string{r.text("ab1 .(-]", 10), r.pattern()} }},
	{"cjson.decode", `return all(pcall(cjson.decode, A[1]))`,
		func(r *dice) []string { return []string{r.damaged(r.json(3))} }},
	{"cjson both ways", `return all(pcall(function() return cjson.encode(cjson.decode(A[1])) end))`,
		func(r *dice) []string { return []string{r.json(3)} }},
	{"cjson.encode of text", `return cjson.encode({A[1], N[2]})`,
		func(r *dice) []string { return []string{r.bytes(10), r.finite()} }},
	{"cmsgpack.unpack", `return all(pcall(cmsgpack.unpack, A[1]))`,
		func(r *dice) []string { return []string{r.msgpack()} }},
	{"cmsgpack.pack", `return all(pcall(function() local v = cjson.decode(A[1]) return cmsgpack.pack(v, N[2], A[2]), cmsgpack.unpack(cmsgpack.pack(v, N[2])) end))`,
		func(r *dice) []string { return []string{r.json(3), r.number()} }},
	{"struct.pack", `return all(pcall(struct.pack, A[1], N[2], N[3], N[4]))`,
		func(r *dice) []string { return []string{r.layout(), r.integer(), r.integer(), r.integer()} }},
	{"struct.unpack", `return all(pcall(struct.unpack, A[1], A[2], N[3])), all(pcall(struct.size, A[1]))`,
		func(r *dice) []string { return []string{r.layout(), r.bytes(24), strconv.Itoa(1 + r.IntN(4))} }},
	{"sort and concat", `local ok, e = pcall(table.sort, A) return {table.concat(A, ','), tostring(ok), table.concat(A, A[1], 1, #A)}`,
		func(r *dice) []string {
			args := make([]string, 1+r.IntN(12))
			for i := range args {
				args[i] = r.text("abZ019\x00\xff ", 4)
			}
			return args
		}},
	{"sort by number", `for i = 1, #N do N[i] = tonumber(N[i]) or 0 if N[i] ~= N[i] then N[i] = 0 end end table.sort(N, function(a, b) return a > b end) return all(unpack(N))`,
		func(r *dice) []string {
			args := make([]string, 1+r.IntN(30))
			for i := range args {
				args[i] = r.number()
			}
			return args
		}},
	{"comparison", `return {A[1] < A[2], A[1] <= A[2], A[1] == A[2], A[1] > A[2]}`,
		func(r *dice) []string { return []string{r.text("a\x00\xff", 4), r.text("a\x00\xff", 4)} }},
	{"insert and remove", `local t, out = {}, {} for i = 1, #N do local ok, e = pcall(function() if N[i] % 3 == 0 then return table.remove(t, N[i] % 5) else return table.insert(t, #t > 0 and N[i] % #t + 1 or 1, N[i]) end end) out[i] = tostring(e) end return {t, #t, out}`,
		func(r *dice) []string {
			args := make([]string, 1+r.IntN(20))
			for i := range args {
				args[i] = strconv.Itoa(r.IntN(100))
			}
			return args
		}},
}

// TestLibraries calls the libraries with random arguments on both servers.
func TestLibraries(t *testing.T) {
	random := *seed
	if random == 0 {
		random = uint64(time.Now().UnixNano())
	}
	t.Logf("%d calls, -lua.seed %d", *calls, random)
	r := &dice{rand.New(rand.NewPCG(random, random))}
	p := startPair(t)
	links := map[int]link{2: p.dial(t, 2), 3: p.dial(t, 3)}
	reports := make(map[string]int)
	const perProbe = 5
	for done := 0; done < *calls; done += batch {
		l := links[2+r.IntN(2)]
		texts := make([]string, batch)
		names := make([]string, batch)
		var raw []byte
		for i := range batch {
			probe := probes[r.IntN(len(probes))]
			args := probe.args(r)
			names[i], texts[i] = probe.name, fmt.Sprintf("%s: %s\n  %q", probe.name, probe.script, args)
			raw = append(raw, harness.Command(append([]string{"EVAL", describe + probe.script, "0"}, args...)...)...)
		}
		require.NoError(t, l.send(raw))
		for i := range batch {
			subject, reference, err := l.read()
			require.NoError(t, err, "%s", texts[i])
			if subject.Wire() == reference.Wire() {
				continue
			}
			if reports[names[i]]++; reports[names[i]] <= perProbe {
				t.Errorf("%s\n  redis-server: %q\n  headgate:     %q", texts[i], reference.Wire(), subject.Wire())
			}
		}
	}
	for name, n := range reports {
		t.Logf("%s: %d differences", name, n)
	}
}

// dice makes random arguments.
type dice struct{ *rand.Rand }

func (r *dice) pick(from ...string) string { return from[r.IntN(len(from))] }

// text is up to most bytes of the alphabet.
func (r *dice) text(alphabet string, most int) string {
	out := make([]byte, r.IntN(most+1))
	for i := range out {
		out[i] = alphabet[r.IntN(len(alphabet))]
	}
	return string(out)
}

func (r *dice) bytes(most int) string {
	out := make([]byte, r.IntN(most+1))
	for i := range out {
		out[i] = byte(r.Uint32())
	}
	return string(out)
}

// number is mostly a number, in one of the forms that Lua reads, and sometimes nearly one.
func (r *dice) number() string {
	switch r.IntN(12) {
	case 0:
		return r.pick("0", "-0", "1e15", "1e14", "99999999999999.5", "0.1", "1e100", "-1e-7", "123456789012345678", "9007199254740993", "2147483648", "-2147483649", "4294967295.5")
	case 1:
		return r.pick("", " ", "abc", "0x", "1e", "0x1F", " 12 ", "1 2", "inf", "1e400", "-1e400", ".5", "5.", "0x1p3", "1_0")
	case 2:
		return strconv.FormatFloat(math.Float64frombits(r.Uint64()&^(1<<62)), 'g', -1, 64)
	case 3, 4:
		return strconv.FormatFloat((r.Float64()-0.5)*math.Pow(10, float64(r.IntN(20))), 'g', -1, 64)
	case 5:
		return strconv.FormatInt(r.Int64()-1<<62, 10)
	default:
		return strconv.Itoa(r.IntN(2000) - 1000)
	}
}

func (r *dice) finite() string {
	return strconv.FormatFloat((r.Float64()-0.5)*math.Pow(10, float64(r.IntN(25)-5)), 'g', -1, 64)
}

// integer is near the edges of the integer types.
func (r *dice) integer() string {
	edge := int64(1) << r.IntN(40)
	return strconv.FormatInt((edge+int64(r.IntN(5))-2)*int64(1-2*r.IntN(2)), 10)
}

func (r *dice) format() string {
	var out strings.Builder
	for range 1 + r.IntN(2) {
		out.WriteString(r.text("a ", 2))
		out.WriteByte('%')
		out.WriteString(r.text("-+ #0", 2))
		out.WriteString(r.pick("", "", "", "5", "12", "100"))
		out.WriteString(r.pick("", "", ".", ".0", ".3", ".14"))
		out.WriteString(r.pick("d", "d", "i", "x", "X", "o", "c", "e", "f", "g", "G", "E", "s", "s", "q", "%", "y"))
	}
	return out.String()
}

func (r *dice) pattern() string {
	var out strings.Builder
	for range r.IntN(6) {
		out.WriteString(r.pick("a", "b", ".", "%a", "%d", "%s", "%p", "%w", "%S", "[ab]", "[^a]", "[a-b1]", "[%d.]", "[]]", "%.", "%(", "%]", "(", ")", "()", "(a)", "%1", "%b()", "%f[%a]", "^", "$", "[", "%", "-"))
		out.WriteString(r.pick("", "", "", "*", "+", "-", "?"))
	}
	return r.pick("", "", "^") + out.String() + r.pick("", "", "$")
}

// json is one value; an object has one member, since the order of more is free.
func (r *dice) json(depth int) string {
	kind := r.IntN(8)
	if depth == 0 {
		kind = r.IntN(5)
	}
	switch kind {
	case 0:
		return r.pick("true", "false", "null")
	case 1, 2:
		return r.finite()
	case 3, 4:
		return `"` + r.pick("", "a", `\n`, `\u00e9`, `\"`, "é", `\\`, "/", "1", "long enough to need a longer header") + `"`
	case 5, 6:
		items := make([]string, r.IntN(4))
		for i := range items {
			items[i] = r.json(depth - 1)
		}
		return "[" + strings.Join(items, r.pick(",", " , ")) + "]"
	}
	return `{"` + r.pick("a", "b", "key", "1", "") + `":` + r.json(depth-1) + "}"
}

// damaged is text with a byte changed, now and then.
func (r *dice) damaged(text string) string {
	if len(text) == 0 || r.IntN(2) == 0 {
		return text
	}
	raw := []byte(text)
	raw[r.IntN(len(raw))] = "[]{},:\"\\ 0-e.tnx\x00"[r.IntN(17)]
	return string(raw)
}

// msgpack is a value with a random header, cut short now and then.
func (r *dice) msgpack() string {
	headers := []byte{0x00, 0x7f, 0xe0, 0xff, 0xc0, 0xc2, 0xc3, 0x81, 0x92, 0xa2, 0xca, 0xcb, 0xcc, 0xcd, 0xce, 0xd0, 0xd1, 0xd2, 0xd9, 0xda, 0xdc, 0xde, 0x80, 0x90, 0xa0}
	var out []byte
	for range 1 + r.IntN(6) {
		out = append(out, headers[r.IntN(len(headers))])
		for range r.IntN(4) {
			out = append(out, byte(r.IntN(4)))
		}
	}
	return string(out)
}

func (r *dice) layout() string {
	var out strings.Builder
	for range 1 + r.IntN(4) {
		out.WriteString(r.pick("", "", ">", "<", "!", "!2", "!4", " "))
		out.WriteString(r.pick("b", "B", "h", "H", "i", "I", "l", "L", "i1", "i2", "I3", "i8", "x", "c0", "c2", "s", "f", "d", "T", "z"))
	}
	return out.String()
}
