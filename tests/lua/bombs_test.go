package lua

import (
	"bytes"
	"flag"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

var timeLimit = flag.Duration("lua.limit", 150*time.Millisecond, "script-time-limit of the server that the bombs are thrown at")

const (
	overLimit  = 100 * time.Millisecond // what a bomb may take beyond the limit; reported
	patience   = 5 * time.Second        // the same, asserted
	maxGrowth  = 192 << 20              // of resident memory, for each bomb: three times what a script may hold, since the collector runs beside it
	bombTries  = 4                      // a busy machine does not decide
	bombServer = 20 * time.Second       // until a bomb's reply counts as never
	maxReply   = 64 << 20               // of a reply that is read
)

// A bomb is a script that wants all of the processor or all of the memory. The server has a time limit; what can be
// refused at once has to be an error too.
type bomb struct {
	name   string
	script string
	fails  bool // an error is the only right answer: it can never come to its end
	args   []string
}

var bombs = []bomb{
	{name: "an endless loop", script: "while true do end", fails: true},
	{name: "an endless repeat", script: "local i = 0 repeat i = i + 1 until false", fails: true},
	{name: "a for loop to infinity", script: "for i = 1, math.huge do end", fails: true},
	{name: "an endless loop inside pcall", script: "while true do pcall(function() while true do end end) end", fails: true},
	{name: "an error handler that never ends", script: "xpcall(error, function() while true do end end)", fails: true},
	{name: "an endless coroutine", script: "coroutine.wrap(function() while true do end end)()", fails: true},
	{name: "coroutines that resume each other's heirs", script: "local function f() return coroutine.wrap(f)() end return f()", fails: true},
	{name: "a flood of coroutines", script: "local t = {} for i = 1, 1e7 do local co = coroutine.create(function() coroutine.yield() end) coroutine.resume(co) t[i] = co end", fails: true},
	{name: "endless tail calls", script: "local function f() return f() end f()", fails: true},
	{name: "two functions in turn", script: "local a, b a = function() return b() end b = function() return a() end a()", fails: true},
	{name: "deep recursion", script: "local function f(n) return 1 + f(n + 1) end return f(1)", fails: true},
	{name: "deep recursion, caught again and again", script: "local function f(n) return 1 + f(n + 1) end while true do pcall(f, 1) end", fails: true},
	{name: "pcall inside pcall", script: "local function f() return pcall(f) end return f()"},
	{name: "string.rep of a gigabyte", script: "return #string.rep('x', 1e9)", fails: true},
	{name: "string.rep of a petabyte", script: "return #string.rep('x', 1e15)"},
	{name: "string.rep again and again", script: "while true do local s = string.rep('x', 3e7) end", fails: true},
	{name: "string.rep of every size", script: "for e = 6, 15 do pcall(string.rep, 'x', 10 ^ e) end return 1"},
	{name: "string.rep of nothing", script: "return #string.rep('', 1e15)"},
	{name: "doubling a string", script: "local s = 'x' while true do s = s .. s end", fails: true},
	{name: "many long strings", script: "local t = {} for i = 1, 1e6 do t[i] = string.rep('x', 1e6) .. i end", fails: true},
	{name: "a high index", script: "local t = {} t[67108863] = 1 return #t"},
	{name: "higher and higher indexes", script: "local t = {} for e = 0, 53 do t[2 ^ e] = 1 end return 1"},
	{name: "indexes one by one and far apart", script: "local t = {} for i = 1, 1e9, 1000 do t[i] = 1 end return 1", fails: true},
	{name: "table.insert for ever", script: "local t = {} while true do table.insert(t, 1) end", fails: true},
	{name: "table.insert at a high place", script: "local t = {} table.insert(t, 67108863, 1) return #t"},
	{name: "tables in a table for ever", script: "local t = {} while true do t = {t, {}, {}} end", fails: true},
	{name: "a huge hash", script: "local t = {} local i = 0 while true do i = i + 1 t['k' .. i] = i end", fails: true},
	{name: "unpack without end", script: "return unpack({}, 1, 2 ^ 31 - 1)", fails: true},
	{name: "unpack by the million", script: "return #{unpack({}, 1, 1e7)}", fails: true},
	{name: "select by the million", script: "local function f(...) return select('#', ...) end return f(unpack({}, 1, 8e6))", fails: true},
	{name: "table.concat of much", script: "local t = {} for i = 1, 1000 do t[i] = string.rep('x', 1e6) end return #table.concat(t)", fails: true},
	{name: "table.sort with a liar", script: "local t = {} for i = 1, 1e5 do t[i] = i end table.sort(t, function(a, b) return math.random() < 0.5 end) return 1"},
	{name: "gsub that grows", script: "local s = string.rep('x', 1e6) return #s:gsub('x', string.rep('y', 1e6))", fails: true},
	{name: "gsub callbacks in turn", script: "local function a(s) return (s:gsub('.', function(c) return (('xx'):gsub('.', a)) end)) end return a('xx')", fails: true},
	{name: "a pattern of many stars", script: "return (string.rep('a', 5e6) .. 'b'):match('.-.-.-.-.-.-c')", fails: true},
	{name: "a pattern that fails slowly", script: "return string.rep('a', 3e4):find(string.rep('a*', 30) .. 'b')", fails: true},
	{name: "a balanced pattern of open parentheses", script: "return string.rep('(', 1e6):find('%b()') == nil"},
	{name: "a deep pattern", script: "return #string.rep('a', 1e6):match(string.rep('a?', 1e5)) > 0"},
	{name: "format widths", script: "local s = '' for i = 1, 1e6 do s = s .. string.format('%99.99f%99s', 1, 'x') end return #s"},
	{name: "format of a long string", script: "local s = string.rep('x', 6e7) return #string.format(string.rep('%s', 20), s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s)", fails: true},
	{name: "an __index that goes round", script: "local t = {} setmetatable(t, {__index = t}) return t.x"},
	{name: "an __index that calls itself", script: "local t t = setmetatable({}, {__index = function(_, k) return t[k + 1] end}) return t[1]", fails: true},
	{name: "a chain of __index", script: "local t = {} for i = 1, 1e5 do t = setmetatable({}, {__index = t}) end return t.x"},
	{name: "a __gc", script: "for i = 1, 1e5 do setmetatable({}, {__gc = function() while true do end end}) end collectgarbage() return 1"},
	{name: "a collectgarbage loop", script: "while true do collectgarbage() end", fails: true},
	{name: "a reply that holds itself", script: "local t = {} t[1] = t return t"},
	{name: "a deep reply", script: "local t = {} for i = 1, 1e5 do t = {t} end return t"},
	{name: "a map that holds itself", script: "local t = {map = {}} t.map.a = t return t"},
	{name: "a million calls", script: "for i = 1, 1e9 do redis.call('get', 'k') end", fails: true},
	{name: "a million errors", script: "for i = 1, 1e9 do redis.pcall('nosuch') end", fails: true},
	{name: "calls with huge arguments", script: "local s = string.rep('x', 3e7) while true do redis.call('echo', s) end", fails: true},
	{name: "calls with huge arguments and results", script: "local s = string.rep('x', 3e7) while true do s = redis.call('echo', s) end", fails: true},
	{name: "pcalls with huge arguments", script: "local s = string.rep('x', 3e7) while true do redis.pcall('nosuch', s) end", fails: true},
	{name: "calls with many arguments", script: "local t = {} for i = 1, 7000 do t[i] = 'x' end while true do redis.call('exists', unpack(t)) end", fails: true},
	{name: "cmsgpack of a cycle", script: "local t = {} t.t = t while true do cmsgpack.pack(t) end", fails: true},
	{name: "cmsgpack of a wide cycle", script: "local t = {} for i = 1, 10 do t[i] = t end return #cmsgpack.pack(t)", fails: true},
	{name: "cmsgpack that promises much", script: "return cmsgpack.unpack('\\221\\255\\255\\255\\255')", fails: true},
	{name: "cmsgpack of nested arrays", script: "return #cmsgpack.unpack(string.rep('\\145', 1e6))", fails: true},
	{name: "cjson of a cycle", script: "local t = {} t[1] = t return cjson.encode(t)", fails: true},
	{name: "cjson of two gigabytes", script: "local s = string.rep('\\1', 6e7) local t = {} for i = 1, 40 do t[i] = s end return #cjson.encode(t)", fails: true},
	{name: "cjson of nested arrays", script: "return cjson.decode(string.rep('[', 1e6))", fails: true},
	{name: "struct of a long string", script: "local s = string.rep('x', 6e7) return #struct.pack(string.rep('s', 20), s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s)", fails: true},
	{name: "struct padding", script: "return #struct.pack(string.rep('x', 1e6))"},
	{name: "bit.tohex of much", script: "return #bit.tohex(1, 2 ^ 31)"},
	{name: "sha1hex of much", script: "local s = string.rep('x', 6e7) while true do redis.sha1hex(s) end", fails: true},
	{name: "loadstring of a loop", script: "return loadstring('while true do end')()", fails: true},
	{name: "loadstring of many chunks", script: "local i = 0 while true do i = i + 1 loadstring('return ' .. i) end", fails: true},
	{name: "load of an endless stream", script: "return load(function() return 'local x = 1 ' end)"},
	{name: "loadstring of nested parentheses", script: "return loadstring('return ' .. string.rep('(', 1e5))()", fails: true},
	{name: "ten megabytes of script", script: "return 1 -- " + strings.Repeat("x", 10<<20)},
	{name: "a hundred thousand parentheses", script: "return " + strings.Repeat("(", 100_000) + "1" + strings.Repeat(")", 100_000), fails: true},
	{name: "a hundred thousand braces", script: "return " + strings.Repeat("{", 100_000) + strings.Repeat("}", 100_000), fails: true},
	{name: "a hundred thousand minus signs", script: "return " + strings.Repeat("- ", 100_000) + "1", fails: true},
	{name: "a hundred thousand nots", script: "return " + strings.Repeat("not ", 100_000) + "1", fails: true},
	{name: "a hundred thousand powers", script: "return " + strings.Repeat("2^", 100_000) + "1", fails: true},
	{name: "a hundred thousand concatenations", script: "return " + strings.Repeat("'a'..", 100_000) + "''", fails: true},
	{name: "a hundred thousand functions", script: strings.Repeat("return function() ", 100_000) + strings.Repeat(" end", 100_000), fails: true},
	{name: "a hundred thousand blocks", script: strings.Repeat("do ", 100_000) + strings.Repeat(" end", 100_000), fails: true},
	{name: "a hundred thousand ifs", script: strings.Repeat("if 1 then ", 100_000) + strings.Repeat(" end", 100_000), fails: true},
	{name: "a hundred thousand elseifs", script: "if nil then " + strings.Repeat("elseif nil then ", 100_000) + "end return 1"},
	{name: "a hundred thousand calls in a row", script: "return tostring" + strings.Repeat("(1)", 100_000), fails: true},
	{name: "a hundred thousand indexes in a row", script: "local t = {} return t" + strings.Repeat(".x", 100_000), fails: true},
	{name: "a hundred thousand additions", script: "return " + strings.Repeat("1+", 100_000) + "1"},
	{name: "three hundred locals", script: strings.Repeat("local x = 1 ", 300) + "return x", fails: true},
	{name: "a hundred thousand constants", script: "return {" + strings.Repeat("'a',", 100_000) + "}"},
	{name: "nothing but stores", script: "local t = {} " + strings.Repeat("t = {} t[8000] = 1 ", 40_000)},
	{name: "stores, a loop of them", script: "local t = {} while true do " + strings.Repeat("t = {} t[8000] = 1 ", 9000) + " end", fails: true},
	{name: "stores that stay", script: "local t, n = {}, 0 while true do " + strings.Repeat("n = n + 1 t[n] = {} t[n][8000] = 1 ", 4000) + " end", fails: true},
	{name: "forty thousand functions", script: "local f " + strings.Repeat("f = function() end ", 40_000)},
	{name: "two thousand functions", script: "local f " + strings.Repeat("f = function() end ", 1990)},
	{name: "forty thousand loops", script: strings.Repeat("while nil do end ", 40_000)},
	{name: "ten thousand loops", script: strings.Repeat("while nil do end ", 10_000)},
	{name: "two hundred thousand assignments", script: "local a " + strings.Repeat("a=a;", 200_000)},
	{name: "sixty thousand assignments", script: "local a " + strings.Repeat("a=a;", 60_000)},
	{name: "three hundred thousand items", script: "return #{" + strings.Repeat("{},", 300_000) + "}"},
	{name: "ninety thousand items", script: "return #{" + strings.Repeat("{},", 90_000) + "}"},
	{name: "one of four thousand constants", script: constants(4000)},
	{name: "an unfinished long string", script: "return [[" + strings.Repeat("x", 1<<20), fails: true},
	{name: "cjson of a hundred megabytes", script: "local s = string.rep('x', 2e7) return #cjson.encode({s, s, s, s, s})", fails: true},
	{name: "cjson of a string that becomes six times as long", script: "return #cjson.encode(string.rep('\\1', 17e6))", fails: true},
	{name: "cmsgpack of a hundred megabytes", script: "local s = string.rep('x', 2e7) return #cmsgpack.pack(s, s, s, s, s)", fails: true},
	{name: "struct of a hundred megabytes", script: "local s = string.rep('x', 2e7) return #struct.pack('sssss', s, s, s, s, s)", fails: true},
	{name: "format of a hundred megabytes", script: "local s = string.rep('x', 2e7) return #string.format('%s%s%s%s%s', s, s, s, s, s)", fails: true},
	{name: "concat of a hundred megabytes", script: "local s = string.rep('x', 2e7) return #table.concat({s, s, s, s, s})", fails: true},
	{name: "gsub of a hundred megabytes", script: "local s = string.rep('x', 2e7) return #('abcde'):gsub('.', s)", fails: true},
	{name: "echoes of a hundred megabytes", script: "local t, s = {}, string.rep('x', 2e7) for i = 1, 5 do t[i] = redis.call('echo', s) end return #t", fails: true},
	{name: "small parts of long strings", script: "local t = {} for i = 1, 100 do t[i] = string.rep('x', 4e6):sub(1, 2) end return #t"},
	{name: "small captures of long strings", script: "local t = {} for i = 1, 100 do t[i] = string.rep('x', 4e6):match('xx') end return #t"},
	{name: "small parts of JSON", script: "local t = {} for i = 1, 1e5 do t[i] = cjson.decode('[\"ab\",\"' .. string.rep('x', 4000) .. '\"]')[1] end return #t"},
	{name: "buffers that calls inside each other hold", fails: true,
		script: "local function f(n) return (('xy'):gsub('.', function(c) if c == 'y' then f(n + 1) end return string.rep('z', 4e6) end)) end return f(1)"},
	{name: "pivots that are nowhere else", fails: true,
		script: "local function f() local t = {} for i = 1, 4 do t[i] = string.rep('x', 4e6) .. i end " +
			"table.sort(t, function(a, b) local less = a < b a, b = nil, nil t[1], t[2], t[3], t[4] = 1, 2, 3, 4 f() return less end) end f()"},
	{name: "tables of JSON", script: "return #cjson.decode('[' .. string.rep('[],', 1e6) .. '[]]')", fails: true},
	{name: "tables of MessagePack", script: "return #cmsgpack.unpack('\\221\\0\\15\\66\\64' .. string.rep('\\144', 1e6))", fails: true},
	{name: "iterators over long strings", script: "local t = {} for i = 1, 1e4 do t[i] = string.gmatch(string.rep('x', 1e6), 'y') end", fails: true},
	{name: "coroutines with long strings", fails: true,
		script: "local t = {} for i = 1, 1e4 do local s = string.rep('x', 1e6) t[i] = coroutine.wrap(function() return s end) end"},
	{name: "long names of chunks", script: "local t = {} for i = 1, 1e4 do t[i] = loadstring('return 1', i .. string.rep('x', 1e6)) end", fails: true},
	{name: "numbers that each keep a block", script: "local t = {} for i = 1, 1e7 do t[i] = i + 0.5 for j = 1, 31 do local n = i + j + 0.5 end end", fails: true},
	{name: "long arguments", script: "return #(ARGV[1] .. ARGV[1])", args: []string{strings.Repeat("x", 8<<20)}},
}

// constants is a script that mentions n strings, and the last of them very often.
func constants(n int) string {
	var text strings.Builder
	text.WriteString("local t = {} ")
	for i := range n {
		fmt.Fprintf(&text, "t.k%d = 1 ", i)
	}
	return text.String() + strings.Repeat(fmt.Sprintf("t.k%d = 1 ", n-1), 20_000)
}

// TestBombs throws each bomb and wants the same of each: an answer in time, little memory, and a server that goes on.
func TestBombs(t *testing.T) {
	if harness.SubjectIsReference(t) {
		t.Skip("redis-server has no script-time-limit, and some of these end it")
	}
	server := harness.Start(t, "--script-time-limit", strconv.FormatInt(timeLimit.Milliseconds(), 10))
	slow, chosen := 0, bombs
	if *calls < wholeCalls {
		chosen = harness.Draw(t, bombs, len(bombs)/3)
	}
	for _, b := range chosen {
		if !server.Alive() {
			require.Fail(t, "headgate is gone", "before %s", b.name)
		}
		var result thrown
		for range bombTries {
			result = throw(t, server, b)
			if result.fits() {
				break
			}
		}
		if result.took > *timeLimit+overLimit {
			slow++
		}
		t.Logf("%-45s %6d ms  +%3d MiB  %s", b.name, result.took.Milliseconds(), result.growth>>20, result.answer())
		assert.NoError(t, result.err, b.name)
		assert.Less(t, result.took, *timeLimit+patience, "%s takes too long", b.name)
		assert.LessOrEqual(t, result.growth, int64(maxGrowth), "%s takes too much memory", b.name)
		if b.fails {
			assert.True(t, bytes.HasPrefix(result.reply, []byte("-")), "%s must fail", b.name)
		}
	}
	t.Logf("%d bombs; %d took more than %v beyond the limit of %v", len(chosen), slow, overLimit, *timeLimit)
}

// thrown is what one bomb did.
type thrown struct {
	reply  []byte // as it came over the wire, and no longer than maxReply
	took   time.Duration
	growth int64 // of resident memory at its highest
	err    error
}

func (r thrown) fits() bool {
	return r.err == nil && r.took <= *timeLimit+overLimit && r.growth <= maxGrowth
}

// answer is the beginning of the reply.
func (r thrown) answer() string {
	if r.err != nil {
		return r.err.Error()
	}
	const shown = 90
	return fmt.Sprintf("%q", r.reply[:min(len(r.reply), shown)])
}

// throw runs the bomb on a connection of its own, then a script as people write them.
func throw(t *testing.T, server *harness.Server, b bomb) (r thrown) {
	t.Helper()
	harness.Dial(t, server.Addr).Do("SET", "k", "v")
	resetPeak(t, server)
	before := server.RSS()
	begin := time.Now()
	r.reply, r.err = rawReply(server.Addr, append([]string{"EVAL", b.script, "0"}, b.args...)...)
	r.took = time.Since(begin)
	if !server.Alive() {
		return r
	}
	r.growth = max(0, peak(t, server)-before)
	if r.err == nil {
		r.err = ordinary(harness.Dial(t, server.Addr))
	}
	return r
}

// endMark is echoed behind a command, so that the end of its reply is known without reading its form.
const endMark = "the reply before this one is complete"

// rawReply is the bytes of the reply to one command, which may be nested deeper than the harness reads.
func rawReply(addr string, command ...string) ([]byte, error) {
	conn, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(bombServer)); err != nil {
		return nil, err
	}
	if _, err := conn.Write(append(harness.Command(command...), harness.Command("ECHO", endMark)...)); err != nil {
		return nil, err
	}
	end := fmt.Appendf(nil, "$%d\r\n%s\r\n", len(endMark), endMark)
	var reply []byte
	buf := make([]byte, 64<<10)
	for !bytes.HasSuffix(reply, end) {
		n, err := conn.Read(buf)
		if reply = append(reply, buf[:n]...); err != nil {
			return reply, err
		}
		if len(reply) > maxReply {
			return reply, fmt.Errorf("a reply of more than %d bytes", maxReply)
		}
	}
	return bytes.TrimSuffix(reply, end), nil
}

// TestDeepReplies: a reply nested deeply, but not without end, is answered whole.
func TestDeepReplies(t *testing.T) {
	p := startPair(t)
	for _, script := range []string{
		"local t = {} for i = 1, 100 do t = {t} end return t",
		"local t = {} for i = 1, 3000 do t = {t} end return t",
		"local t = {} t.map = {a = 1} for i = 1, 50 do t = {map = {a = t}} end return t",
	} {
		want, err := rawReply(p.reference.Addr, "EVAL", script, "0")
		require.NoError(t, err)
		got, err := rawReply(p.subject.Addr, "EVAL", script, "0")
		require.NoError(t, err, script)
		assert.True(t, bytes.Equal(want, got), "%s: redis-server sends %d bytes that end in %q, headgate %d that end in %q",
			script, len(want), tail(want), len(got), tail(got))
	}
}

func tail(reply []byte) []byte { return reply[max(0, len(reply)-60):] }

// worker needs some memory and leaves some garbage.
const worker = "local t, n = {}, 0 for i = 1, 30000 do t[i] = 'k' .. i local g = {i} n = n + #g end return n"

// ordinary runs a common limiter, and a script that works a little, and says what is wrong with its answers.
func ordinary(client *harness.Client) error {
	defer client.Close()
	client.Do("DEL", "ordinary")
	for want := range 3 {
		reply := client.Ask("EVAL", windows[0].script, "1", "ordinary", strconv.Itoa(want+1), "3600", "2")
		expected := ":1\r\n"
		if want == 2 {
			expected = ":0\r\n"
		}
		if reply.Wire() != expected {
			return fmt.Errorf("the next script answered %q", reply.Wire())
		}
	}
	reply := client.Ask("EVAL", worker, "0")
	for begin := time.Now(); strings.Contains(reply.Wire(), "script-time-limit") && time.Since(begin) < patience; { // a machine is busy
		reply = client.Ask("EVAL", worker, "0")
	}
	if reply.Wire() != ":30000\r\n" {
		return fmt.Errorf("the next script that works answered %q", reply.Wire())
	}
	return nil
}

// resetPeak lets the kernel forget how much memory the process had at its highest.
func resetPeak(t *testing.T, server *harness.Server) {
	t.Helper()
	require.NoError(t, os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", server.PID()), []byte("5"), 0))
}

// peak is the highest resident memory since resetPeak, in bytes.
func peak(t *testing.T, server *harness.Server) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", server.PID()))
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			require.NoError(t, err)
			return kib << 10
		}
	}
	require.FailNow(t, "no VmHWM in /proc/PID/status")
	return 0
}
