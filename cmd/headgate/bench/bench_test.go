package bench

import (
	"bytes"
	"encoding/xml"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTemplate(t *testing.T) {
	tpl := newTemplate([][]string{{"SET", "a:__key__", "__id__", "x"}, {"GET", "a:__rand_int__:__now__"}})
	require.Equal(t, 2, tpl.replies)
	require.Equal(t, "*4\r\n$3\r\nSET\r\n$14\r\na:000000000000\r\n$16\r\n0000000000000000\r\n$1\r\nx\r\n"+
		"*2\r\n$3\r\nGET\r\n$28\r\na:000000000000:0000000000000\r\n", string(tpl.bytes))
	f := newFiller(1, 1, 1000)
	f.now = 1_732_100_000_123
	before := len(tpl.bytes)
	f.fill(tpl, tpl.bytes)
	require.Len(t, tpl.bytes, before)
	text := string(tpl.bytes)
	key := text[strings.Index(text, "a:")+2:][:12]
	require.Equal(t, 2, strings.Count(text, "a:"+key), "an operation has one key")
	require.Less(t, key, "000000001000")
	require.Contains(t, text, ":1732100000123\r\n")
}

func TestFindLoad(t *testing.T) {
	for _, l := range Loads {
		found, err := FindLoad(l.Name)
		require.NoError(t, err)
		require.NotContains(t, commandsText(found.Commands), "__sha__", l.Name)
		if l.Without != "" {
			_, err := FindLoad(l.Without)
			require.NoError(t, err, "what stands for %s", l.Name)
		}
	}
	l, err := FindLoad(`SET "a b" 'c;d' ; PING ;x`)
	require.NoError(t, err)
	require.Equal(t, [][]string{{"SET", "a b", "c;d"}, {"PING", ";x"}}, l.Commands)
	require.False(t, l.known)
	l, err = FindLoad(`INCR x; SET y ';' "z;"; PING`)
	require.NoError(t, err)
	require.Equal(t, [][]string{{"INCR", "x"}, {"SET", "y", ";", "z;"}, {"PING"}}, l.Commands)
	l, err = FindLoad("INCR x ; rl.gcra k 1 1 1s")
	require.NoError(t, err)
	require.True(t, l.known)
	require.Equal(t, 1, l.reply)
	for _, wrong := range []string{"nope", "PING ; ", "PING x;", "; PING", `SET "a`, "PING" + strings.Repeat(" x", maxArgs), "PING " + strings.Repeat("x", maxRawLoad)} {
		_, err := FindLoad(wrong)
		require.Error(t, err, "%.20s", wrong)
	}
}

// readInParts feeds a stream in pieces of so many bytes.
func readInParts(r *replies, text string, size int) (ops int, err error) {
	for len(text) > 0 && err == nil {
		n := min(size, len(text))
		var more int
		more, err = r.read([]byte(text[:n]))
		ops += more
		text = text[n:]
	}
	return ops, err
}

func TestReplies(t *testing.T) {
	const limited, allowed = "*5\r\n:1\r\n:16\r\n:0\r\n:2\r\n:32\r\n", "*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n"
	cases := []struct {
		name    string
		load    string
		text    string
		want    tally
		problem string
	}{
		{name: "limiters", load: "throttle", text: limited + allowed + allowed, want: tally{ops: 3, allowed: 2, limited: 1}},
		{name: "a transaction", load: "multi", text: "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*4\r\n:9\r\n:9\r\n:1\r\n:1\r\n" +
			"+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*4\r\n:0\r\n:10\r\n:1\r\n:1\r\n", want: tally{ops: 2, allowed: 1, limited: 1}},
		{name: "a counter", load: "window", text: ":100\r\n:0\r\n:101\r\n:1\r\n", want: tally{ops: 2, allowed: 1, limited: 1}},
		{name: "a script", load: "script", text: ":0\r\n:1\r\n", want: tally{ops: 2, allowed: 1, limited: 1}},
		{name: "strings", load: "get", text: "$3\r\na\r\n\r\n$-1\r\n$0\r\n\r\n*-1\r\n*0\r\n*2\r\n*1\r\n$1\r\nx\r\n:1\r\n", want: tally{ops: 6}},
		{name: "errors", load: "throttle", text: "-ERR one\r\n-ERR two\r\n" + limited, want: tally{ops: 3, limited: 1, errors: 2, firstError: "ERR one"}},
		{name: "not Redis", load: "get", text: "HTTP/1.1 400 Bad Request\r\n", problem: "where a reply should begin"},
		{name: "too deep", load: "get", text: strings.Repeat("*1\r\n", 100), problem: "deeper"},
		{name: "too long a number", load: "get", text: ":" + strings.Repeat("1", 40) + "\r\n", problem: "too long"},
		{name: "no number", load: "get", text: "$x\r\n", problem: "where a number"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			l, err := FindLoad(c.load)
			require.NoError(t, err)
			for _, size := range []int{1, 2, 3, 7, 1 << 20} {
				r := &replies{verdict: l.verdict, perOp: len(l.Commands)}
				ops, err := readInParts(r, c.text, size)
				if c.problem != "" {
					require.ErrorContains(t, err, c.problem)
					continue
				}
				require.NoError(t, err)
				require.EqualValues(t, c.want.ops, ops)
				require.Equal(t, c.want, r.count, "in parts of %d", size)
			}
		})
	}
}

// FuzzReplies: whatever comes, it is read in bounded memory, and the same in one part as byte by byte.
func FuzzReplies(f *testing.F) {
	f.Add("*2\r\n:1\r\n$3\r\nabc\r\n-ERR no\r\n")
	f.Add("*1\r\n*1\r\n*-1\r\n+OK\r\n:-9223372036854775808\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		whole, parts := &replies{verdict: native, perOp: 1}, &replies{verdict: native, perOp: 1}
		ops1, err1 := readInParts(whole, text, len(text)+1)
		ops2, err2 := readInParts(parts, text, 1)
		require.Equal(t, err1, err2)
		if err1 == nil {
			require.Equal(t, ops1, ops2)
			require.Equal(t, whole.count, parts.count)
		}
	})
}

// TestNothingIsAllocated: neither for an operation's bytes nor for its reply.
func TestNothingIsAllocated(t *testing.T) {
	o, err := ParseOptions([]string{"--pipeline", "16"}, nil, io.Discard)
	require.NoError(t, err)
	r := &round{Options: o, load: o.Load, template: newTemplate(o.Load.Commands)}
	c, f, h := newClient(r), newFiller(1, 1, o.Keys), newHistogram()
	answer := []byte(strings.Repeat("*5\r\n:0\r\n:1000\r\n:999\r\n:-1\r\n:1\r\n", o.Pipeline))
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		f.tick()
		c.begin(r.template, f, 0)
		if ops, err := c.received(answer, 1000, h); err != nil || ops != o.Pipeline {
			t.Fatal(ops, err)
		}
	}))
}

// TestScheduleFeelsAStall: operations that a stall has delayed count from when they were meant to begin.
func TestScheduleFeelsAStall(t *testing.T) {
	s := schedule{open: true, gap: 1000}
	for i := range 10 {
		require.EqualValues(t, 1000*i, s.next())
		s.taken++
	}
	require.EqualValues(t, 90, s.overdue(100_000))
	require.Zero(t, s.overdue(10_000))
	require.Zero(t, (&schedule{}).overdue(1000), "a closed loop is never late")
}

func TestOptions(t *testing.T) {
	for _, c := range []struct{ args, problem string }{
		{"--clients 0", "--clients 0 is out of range: it must be between 1 and 10000"},
		{"--pipeline 10001", "out of range"},
		{"--keys 0", "out of range"},
		{"--rate -1", "out of range"},
		{"--rate NaN", "out of range"},
		{"--duration 25h", "out of range"},
		{"--rounds -1", "out of range"},
		{"--duration 5", `invalid value "5" for flag --duration: must be a number with a unit, such as 5s`},
		{"--duration", "flag needs an argument: --duration"},
		{"--nonsense", "flag provided but not defined: --nonsense; headgate bench --help lists"},
		{"word", `does not know "word"`},
		{"--user bob", "needs --pass"},
		{"--json x --svg x", "name the same file"},
		{"--json ./x --svg x", "name the same file"},
		{"--load nope", "there is no load"},
	} {
		_, err := ParseOptions(strings.Fields(c.args), nil, io.Discard)
		require.ErrorContains(t, err, c.problem, c.args)
	}
	_, err := ParseOptions([]string{"--pipeline", "10000", "--load", "SET k " + strings.Repeat("x", 10_000)}, nil, io.Discard)
	require.ErrorContains(t, err, "are sent at once")
	o, err := ParseOptions([]string{"--vs", "h:1"}, []string{"REDISCLI_AUTH=secret"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, 5, o.Rounds)
	require.Equal(t, "secret", o.Pass)
	var help bytes.Buffer
	_, err = ParseOptions([]string{"--help"}, nil, &help)
	require.ErrorIs(t, err, ErrHelp)
	for _, l := range Loads {
		require.Contains(t, help.String(), "  "+l.Name+" ")
	}
}

// sampleReport is of two made-up servers and two rounds.
func sampleReport(t *testing.T) *Report {
	t.Helper()
	o, err := ParseOptions([]string{"--vs", "b:1", "--rounds", "2"}, nil, io.Discard)
	require.NoError(t, err)
	var sides []*side
	for i, name := range []string{"headgate <1>", "redis 7"} {
		s := &side{target: &target{Options: o, addr: "a:1", name: name, load: o.Load}, total: &measured{latency: newHistogram()}}
		for n := range 2 {
			m := &measured{tally: tally{ops: 1000, allowed: 900, limited: 100}, latency: newHistogram(), elapsed: time.Second * time.Duration(i+n+1), cpu: time.Millisecond * time.Duration(i+1)}
			for v := range int64(1000) {
				require.NoError(t, m.latency.RecordValue(v*int64(i+1)*1e4+1))
			}
			s.rounds = append(s.rounds, m)
			s.total.add(m)
		}
		sides = append(sides, s)
	}
	return newReport(&Bench{Options: o, Stop: new(atomic.Bool)}, sides)
}

func TestTable(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, sampleReport(t).writeTable(&out))
	require.Equal(t, `throttle: 50 connections, pipelines of 1, closed loop, 100,000 keys, 10s for each server in 2 rounds, in turn
  headgate <1> at a:1: CL.THROTTLE bench:th:__key__ 999 1000 60 1
  redis 7 at a:1: CL.THROTTLE bench:th:__key__ 999 1000 60 1

                     headgate <1>  redis 7  ratio
operations                  2,000    2,000
per second                    667      400  1.75×
server CPU, µs each          1.00     2.00  0.50×
allowed                     1,800    1,800
limited                       200      200
mean, ms                    4.995    9.990  0.50×
p50, ms                     4.993    9.986  0.50×
p90, ms                     8.995   17.990  0.50×
p99, ms                     9.896   19.792  0.50×
p99.9, ms                   9.986   19.972  0.50×
p99.99, ms                  9.994   19.988  0.50×
max, ms                     9.994   19.988  0.50×
`, out.String())
}

// TestBusyLoader looks when a report says that the loader had too much to do.
func TestBusyLoader(t *testing.T) {
	busy := func(rate float64, threads int, own time.Duration) (share float64, text string) {
		r := sampleReport(t)
		r.Rate = rate
		m := &measured{elapsed: 2 * time.Second, own: own, threads: threads}
		r.Servers[1].LoaderBusy = m.busy()
		var out bytes.Buffer
		require.NoError(t, r.writeTable(&out))
		return m.busy(), out.String()
	}
	const warning = "The loader was busy for 95 % of the time"
	share, text := busy(1000, 1, 700*time.Millisecond)
	require.InDelta(t, 0.35, share, 1e-9)
	require.NotContains(t, text, "busy")
	share, text = busy(1000, 1, 1900*time.Millisecond)
	require.InDelta(t, 0.95, share, 1e-9)
	require.Contains(t, text, warning)
	_, text = busy(0, 1, 1900*time.Millisecond)
	require.NotContains(t, text, warning, "a closed loop leaves the loader no rest")
	share, text = busy(1000, 2, 1900*time.Millisecond)
	require.InDelta(t, 0.475, share, 1e-9)
	require.NotContains(t, text, warning)
}

func TestPlotIsXML(t *testing.T) {
	text := sampleReport(t).svg()
	require.Contains(t, text, "headgate &lt;1&gt;")
	require.Contains(t, text, "prefers-color-scheme:dark")
	require.NotContains(t, text, "NaN")
	require.NotContains(t, text, "Inf")
	for decoder := xml.NewDecoder(strings.NewReader(text)); ; {
		_, err := decoder.Token()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
	}
}
