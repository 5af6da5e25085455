package limiter

import (
	"strings"
	"testing"

	"headgate/throttle"

	"github.com/stretchr/testify/require"
)

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 1, "60000": 60_000, "15ms": 15, "1s": 1000, "90m": 5_400_000, "24h": 86_400_000, "30d": 2_592_000_000,
		"2w": 1_209_600_000, "1000us": 1, "60000000us": 60_000, "36525d": 36525 * 86_400_000, "3155760000000": 36525 * 86_400_000, "876600h": 36525 * 86_400_000, "5217w": 5217 * 604_800_000,
	} {
		got, err := ParseDuration([]byte(text))
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "01", "s", "1.5s", "+1", "1S", "1 s", "1mss", "1W", "1u", "1\x00", "-", "-x"} {
		_, err := ParseDuration([]byte(text))
		require.EqualError(t, err, "ERR invalid duration '"+text+"', use a number with us, ms, s, m, h, d or w (none: ms)")
		_, err = parsePeriod([]byte(text))
		require.EqualError(t, err, "ERR invalid duration '"+text+"', use a number with us, ms, s, m, h, d or w (none: ms)")
	}
	for text, want := range map[string]int64{
		"1us": 1_000, "250us": 250_000, "1": 1_000_000, "1ms": 1_000_000, "36525d": 36525 * 86_400e9, "3155760000000000us": 36525 * 86_400e9,
	} {
		got, err := parsePeriod([]byte(text))
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	_, err := parsePeriod([]byte("3155760000000001us"))
	require.Error(t, err)
	_, err = ParseDuration([]byte("250us"))
	require.EqualError(t, err, "ERR duration '250us' is below 1ms")
}

func TestFormatDuration(t *testing.T) {
	for ms, want := range map[int64]string{1: "1ms", 999: "999ms", 1000: "1s", 1001: "1001ms", 60_000: "1m", 90_000: "90s", 5_400_000: "90m", 86_400_000: "1d", 14 * 86_400_000: "2w", 25 * 3_600_000: "25h"} {
		text := FormatDuration(ms)
		require.Equal(t, want, string(text))
		again, err := ParseDuration(text)
		require.NoError(t, err)
		require.Equal(t, ms, again)
	}
}

func TestZonesAreFoundOnce(t *testing.T) {
	first, err := parseZone([]byte("America/Argentina/Buenos_Aires"))
	require.NoError(t, err)
	again, err := parseZone([]byte("America/Argentina/Buenos_Aires"))
	require.NoError(t, err)
	require.Same(t, first, again)
	for _, name := range []string{"Etc/GMT+5", "Etc/GMT-9", "Etc/GMT0", "UTC", "EST5EDT"} {
		_, err := parseZone([]byte(name))
		require.NoError(t, err, name)
	}
}

// TestClauses: a policy says what policies of every algorithm may say once each and in any order, behind or among the algorithm's own options; its canonical
// text has it in one order. What keeps nothing says none of it.
func TestClauses(t *testing.T) {
	for _, c := range []struct{ text, canonical string }{
		{"bucket 5 1 60s lease", "BUCKET 5 1 60s LEASE"},
		{"sliding 9 1h nolease slices 3 failure open when-unwritable memory", "SLIDING 9 1h SLICES 3 WHEN-UNWRITABLE MEMORY FAILURE OPEN NOLEASE"},
		{"fixed 9 day FAILURE local tz UTC", "FIXED 9 DAY TZ UTC FAILURE LOCAL"},
		{"log 5 60s failure open block 600000 double 1d shadow", "LOG 5 60s SHADOW BLOCK 600000ms DOUBLE 1d FAILURE OPEN"},
		{"log 5 60s block 10m", "LOG 5 60s BLOCK 10m"},
		{"log 5 60s block 10m double 10m", "LOG 5 60s BLOCK 10m DOUBLE 10m"},
	} {
		_, canonical, err := Standard.ParseText(Words(c.text))
		require.NoError(t, err, c.text)
		require.Equal(t, c.canonical, canonical)
	}
	p, _, err := Standard.ParseText(Words("GCRA 10 5 1s NOLEASE FAILURE CLOSED WHEN-UNWRITABLE ERROR"))
	require.NoError(t, err)
	require.Equal(t, []any{LeaseNo, FailClosed, true, Refuse, true}, []any{p.Leasing, p.Failure, p.SaysFailure, p.Unwritable, p.SaysUnwritable})
	for _, text := range []string{
		"GCRA 10 5 1s LEASE LEASE", "GCRA 10 5 1s LEASE NOLEASE", "GCRA 10 5 1s FAILURE", "GCRA 10 5 1s FAILURE shut", "GCRA 10 5 1s FAILURE OPEN FAILURE OPEN",
		"GCRA 10 5 1s WHEN-UNWRITABLE OPEN", "LEASE GCRA 10 5 1s", "UNLIMITED LEASE", "UNLIMITED FAILURE OPEN",
		"LOG 5 60s BLOCK", "LOG 5 60s DOUBLE 1h", "LOG 5 60s BLOCK 10m DOUBLE", "LOG 5 60s BLOCK DOUBLE 1h", "LOG 5 60s BLOCK 10m DOUBLE 599s", "LOG 5 60s BLOCK 10m DOUBLE 1h DOUBLE 1h",
		"LOG 5 60s SHADOW SHADOW", "UNLIMITED SHADOW", "UNLIMITED BLOCK 10m",
	} {
		_, _, err := Standard.ParseText(Words(text))
		require.Error(t, err, text)
	}
}

// TestLeaseOfWhatHasNone: LEASE was accepted, and did nothing, for algorithms that never have leases. NOLEASE is true of them.
func TestLeaseOfWhatHasNone(t *testing.T) {
	leasing := 0
	for _, a := range Standard.All() {
		if a.CommandOnly || a.Kind == NoState {
			continue
		}
		text := a.Name + " " + a.Example
		p, _, err := Standard.ParseText(Words(text + " NOLEASE"))
		require.NoError(t, err)
		_, _, err = Standard.ParseText(Words(text + " LEASE"))
		if p.LeaseTerms(throttle.LeaseOptions{Overshoot: 0.05, Max: 1e9}) != (throttle.LeaseTerms{}) {
			leasing++
			require.NoError(t, err, a.Name)
			require.Contains(t, a.PolicySyntax(), "<LEASE | NOLEASE>")
			continue
		}
		require.EqualError(t, err, "ERR LEASE is not possible with "+a.Name+", use NOLEASE or leave it out")
		require.Contains(t, a.PolicySyntax(), " [NOLEASE]")
	}
	require.NotZero(t, leasing)
}

// TestInstead: what one key's own words do not say besides the limit is the policy's.
func TestInstead(t *testing.T) {
	const clauses = " BLOCK 10m DOUBLE 1d WHEN-UNWRITABLE MEMORY FAILURE OPEN NOLEASE"
	for _, c := range []struct{ policy, words, want string }{
		{"LOG 5 60s" + clauses, "LOG 9 60s", "LOG 9 60s" + clauses},
		{"LOG 5 60s", "LOG 9 60s" + clauses, "LOG 9 60s" + clauses},
		{"LOG 5 60s" + clauses, "LOG 9 60s BLOCK 1m WHEN-UNWRITABLE ERROR FAILURE CLOSED", "LOG 9 60s BLOCK 1m WHEN-UNWRITABLE ERROR FAILURE CLOSED NOLEASE"},
		{"FIXED 5 60s" + clauses, "FIXED 9 60s LEASE", "FIXED 9 60s BLOCK 10m DOUBLE 1d WHEN-UNWRITABLE MEMORY FAILURE OPEN LEASE"},
		{"LOG 5 60s FAILURE LOCAL", "LOG 9 60s WHEN-UNWRITABLE MEMORY", "LOG 9 60s WHEN-UNWRITABLE MEMORY FAILURE LOCAL"},
		{"LOG 5 60s SHADOW", "LOG 9 60s", "LOG 9 60s SHADOW"},
		{"LOG 5 60s" + clauses, "UNLIMITED", "UNLIMITED"},
	} {
		read := func(text string) Policy {
			p, _, err := Standard.ParseText(Words(text))
			require.NoError(t, err, text)
			p.Words = "" // which are the override's alone
			return p
		}
		p := read(c.policy)
		require.Equal(t, read(c.want), p.Instead(read(c.words)), c)
	}
}

// TestOptionsOfCalls may stand in any order, each once.
func TestOptionsOfCalls(t *testing.T) {
	for _, c := range []struct {
		algorithm, words string
		want             Request
	}{
		{"GCRA", "10 5 1s", Request{Call: throttle.Call{Cost: 1}}},
		{"GCRA", "10 5 1s COST 3", Request{Call: throttle.Call{Cost: 3}}},
		{"GCRA", "10 5 1s cost 3 peek", Request{Call: throttle.Call{Cost: 3, Peek: true}}},
		{"GCRA", "10 5 1s PEEK COST 3", Request{Call: throttle.Call{Cost: 3, Peek: true}}},
		{"GCRA", "10 5 1s WAIT 2s COST 3", Request{Call: throttle.Call{Cost: 3}, Wait: 2000}},
		{"LOG", "5 60s COST -1 MEMBER COST", Request{Call: throttle.Call{Cost: -1}, Member: []byte("COST"), HasMember: true}},
	} {
		var p Policy
		var r Request
		require.NoError(t, Standard.Find(c.algorithm).ReadCall(&p, &r, Words(c.words)), c.words)
		require.Equal(t, c.want, r, c.words)
	}
	for _, words := range []string{"COST", "COST x", "COST PEEK", "COST 1 COST 1", "PEEK PEEK", "WAIT", "WAIT 1s WAIT 1s", "3"} {
		var p Policy
		var r Request
		require.Error(t, Standard.Find("GCRA").ReadCall(&p, &r, Words("10 5 1s "+words)), words)
	}
}

// FuzzParseText: what can be read as a policy has a canonical text, which reads as the same policy and is its own canonical text.
func FuzzParseText(f *testing.F) {
	for _, text := range []string{"GCRA 10 5 1s", "log 5 60s", "FIXED 9 1h ALIGNED", "fixed 9 month tz UTC", "SLIDING 9 1h SLICES 60", "UNLIMITED", "QUEUE -1 1 1", "log 5 60s when-unwritable memory", "SLIDING 9 1h when-unwritable ERROR slices 3", "log 5 60s nolease failure closed", "GCRA 10 5 1s LEASE", "GCRA 10 5 1s SHADOW BLOCK 10m DOUBLE 1d", "GCRA 10 5 60", "BUCKET 1 1 10us", "fixed 9 minute"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, canonical, err := Standard.ParseText(Words(text))
		if err != nil {
			require.True(t, strings.HasPrefix(err.Error(), "ERR "), err)
			return
		}
		again, same, err := Standard.ParseText(Words(canonical))
		require.NoError(t, err, canonical)
		require.Equal(t, canonical, same)
		require.Equal(t, p, again)
	})
}

// TestShareOfAPolicy: of a limit of 1, too, the rate is divided.
func TestShareOfAPolicy(t *testing.T) {
	for text, want := range map[string]string{"GCRA 1 10 1s": "GCRA 1 5 1s", "GCRA 8 10 1s": "GCRA 4 5 1s"} {
		p, _, err := Standard.ParseText(Words(text))
		require.NoError(t, err)
		half, _, err := Standard.ParseText(Words(want))
		require.NoError(t, err)
		part, err := p.Share(0.5)
		require.NoError(t, err)
		require.Equal(t, half.Limit, part.Limit, text)
		require.Equal(t, half.Rate, part.Rate, text)
	}
}

// TestZoneNamesHaveALength that may be reached.
func TestZoneNamesHaveALength(t *testing.T) {
	longest := strings.Repeat("z", maxZoneName)
	require.True(t, isZoneName([]byte(longest)))
	require.False(t, isZoneName([]byte(longest+"z")))
}
