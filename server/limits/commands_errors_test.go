package limits_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"headgate/server/command"
	"headgate/server/limiter"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// goodArguments are values for the arguments of limiters that declare an error, by their names.
var goodArguments = map[string]string{
	"capacity": "5", "limit": "5", "count": "2", "refill": "2", "period": "1s", "window": "1m", "n": "2", "slices": "3", "zone": "UTC",
	"ttl": "1s", "tokens-per-period": "2", "numpairs": "1", "policy": "user", "name": "user", "integer": "1", "float": "1",
	"length": "10m", "each": "1", "max-burst": "5", "quantity": "1", "id": "an id",
}

func goodArgument(a command.Arg) string {
	if a.Name == "period" && a.Type != "string" { // CL.THROTTLE's and GCRA's are in seconds
		return "60"
	}
	return goodArguments[a.Name]
}

var notIntegers = []string{"", "x", "1.5", "9223372036854775808", "-9223372036854775809", "+1", "01"}

// badArguments are values that none of the arguments takes which declare the same error, with what it quotes.
var badArguments = map[string][]string{
	limiter.InvalidLimit:    {"", "x", "-2", "1.5", "9223372036854775808", "+1", " 1", "1 ", "01", "0x10", "-0", "1e3", "nan"},
	limiter.InvalidCount:    {"", "x", "0", "-1", "1.5", "9223372036854775808", "+1", "01"},
	limiter.InvalidDuration: {"", "x", "01s", "1.5s", "1S", "1W", "1y", "us", "1msec", "1 s", "s", "+1s", "-1x", "-s", "--1s"},
	limiter.InvalidDuration + ", or one of MINUTE, HOUR, DAY, WEEK, MONTH, YEAR": {"", "x", "01s", "1.5s", "1S", "1W", "1y", "us", "1msec", "1 s", "s", "+1s", "MONTHS", "3MONTH"},
	"ERR slices must be from 1 to 1000, not '%s'":                                {"", "x", "0", "-1", "1001", "1.5"},
	"ERR numpairs must be from 1 to 128, not '%s'":                               {"", "x", "0", "-1", "129", "1.5"},
	"ERR no such policy '%s'":                                                    {"", "none", "USER"},
	"ERR value is not a valid float":                                             {"", "x", "nan", " 1", "1 ", "1,5"},
	"ERR unknown time zone '%s'":                                                 {"", "x", "Local", "europe/berlin/", "/UTC", "../UTC", "Europe//Berlin", "Europe", strings.Repeat("A", 65)},
	"ERR value is not an integer or out of range":                                notIntegers,
	limiter.InvalidInteger("COST"):                                               notIntegers, limiter.InvalidInteger("COSTS"): notIntegers, limiter.InvalidInteger("ACTUAL"): notIntegers, limiter.InvalidInteger("ACTUALS"): notIntegers,
	"Cell error: Store error: Couldn't parse as integer: %s":            {"", "x", "1.5", "9223372036854775808", " 1"},
	"ERR policy name must be 1 to 64 characters of A-Z a-z 0-9 _ . : -": {"", "a b", "ä", strings.Repeat("a", 65)},
}

// callWith builds a call of every argument that is not optional, and of the one in question with the given value.
func callWith(args []command.Arg, target, value string) (words []string, found bool) {
	for _, arg := range args {
		holds := !found && (arg.Name == target && arg.Error != "" || slices.ContainsFunc(servertest.WithErrors(arg.Args), func(a command.Arg) bool { return a.Name == target }))
		if arg.Optional && !holds {
			continue
		}
		if arg.Token != "" {
			words = append(words, arg.Token)
		}
		switch {
		case arg.Type == "pure-token":
		case arg.Type == "oneof" || arg.Type == "block":
			branch := arg.Args
			if arg.Type == "oneof" {
				i := slices.IndexFunc(arg.Args, func(a command.Arg) bool {
					return a.Name == target || slices.ContainsFunc(servertest.WithErrors(a.Args), func(a command.Arg) bool { return a.Name == target })
				})
				branch = arg.Args[max(i, 0):][:1]
			}
			inner, within := callWith(branch, target, value)
			words, found = append(words, inner...), found || within
		case holds:
			words, found = append(words, value), true
		case arg.Type == "key":
			words = append(words, "k")
		default:
			words = append(words, goodArgument(arg))
		}
	}
	return words, found
}

// outOfRange are durations outside the range of all of them, and what these are answered with.
var outOfRange = map[string]string{
	"0": limiter.ZeroDuration, "0s": limiter.ZeroDuration, "00us": limiter.ZeroDuration, "-1s": limiter.ZeroDuration, "-0": limiter.ZeroDuration, "-36526d": limiter.ZeroDuration,
	"36526d": limiter.LongDuration, "3155760000001": limiter.LongDuration, "99999999999999999999s": limiter.LongDuration,
}

// TestDurationsOutOfRange puts these in the place of every argument that is a duration.
func TestDurationsOutOfRange(t *testing.T) {
	w := servertest.NewClockClient(t)
	w.Call("RL.POLICY SET user UNLIMITED")
	tried := 0
	for _, cmd := range servertest.DeclaredCommands().All {
		for _, arg := range servertest.WithErrors(cmd.Args) {
			if !strings.HasPrefix(arg.Error, limiter.InvalidDuration) {
				continue
			}
			for value, want := range outOfRange {
				words, _ := callWith(cmd.Args, arg.Name, value)
				words = append(strings.Split(cmd.FullName, "|"), words...)
				require.Equal(t, fmt.Sprintf(want, value), w.Ask(words...), "%q", words)
				require.Contains(t, cmd.Errors, want, cmd.FullName)
				tried++
			}
		}
	}
	require.Greater(t, tried, 100)
}

// TestErrorsOfPolicies: RL.POLICY SET listed errors for calls, of which a policy has neither the key nor the cost.
func TestErrorsOfPolicies(t *testing.T) {
	set := servertest.DeclaredCommands().ByFullName([]byte("rl.policy|set"))
	require.Contains(t, set.Errors, string(limiter.ErrNotInteger))
	for _, ofCalls := range []string{string(limiter.ErrForeign), string(limiter.ErrLogCost), "ERR with MEMBER the cost must be 1 or less"} {
		require.NotContains(t, set.Errors, ofCalls)
	}
}

// TestLimiterBadArguments puts every kind of wrong value in the place of every argument that declares its error.
func TestLimiterBadArguments(t *testing.T) {
	w := servertest.NewClockClient(t)
	w.Call("RL.GCRA k 5 1 1s")
	w.Call("RL.POLICY SET user UNLIMITED")
	tried := 0
	for _, cmd := range servertest.DeclaredCommands().All {
		for _, arg := range servertest.WithErrors(cmd.Args) {
			require.NotEmpty(t, badArguments[arg.Error], "%s: no wrong values for %q", cmd.FullName, arg.Error)
			for _, value := range badArguments[arg.Error] {
				words, found := callWith(cmd.Args, arg.Name, value)
				require.True(t, found, "%s %s", cmd.FullName, arg.Name)
				want := arg.Error
				if strings.Contains(want, "%s") {
					want = fmt.Sprintf(want, value)
				}
				words = append(strings.Split(cmd.FullName, "|"), words...)
				require.Equal(t, want, w.Ask(words...), "%q", words)
				tried++
			}
		}
	}
	require.Equal(t, "[0 5 4 -1 1000]", w.Call("RL.GCRA k 5 1 1s PEEK"), "an error changes nothing")
	require.Equal(t, "2", w.Call("DBSIZE"))
	require.Equal(t, "[user UNLIMITED]", w.Call("RL.POLICY LIST"))
	t.Logf("%d calls with a wrong value", tried)
}

// usages are how the commands are called, as their errors say.
var usages = map[string]string{
	"RL.GCRA":    "RL.GCRA key capacity count period [COST n] [PEEK] [WAIT duration]",
	"RL.BUCKET":  "RL.BUCKET key capacity refill period [COST n] [PEEK] [WAIT duration]",
	"RL.QUEUE":   "RL.QUEUE key capacity count period [COST n] [PEEK] [WAIT duration]",
	"RL.FIXED":   "RL.FIXED key limit <window [ALIGNED] | <MINUTE | HOUR | DAY | WEEK | MONTH | YEAR> [TZ zone]> [COST n] [PEEK] [WAIT duration]",
	"RL.SLIDING": "RL.SLIDING key limit window [SLICES slices] [COST n] [PEEK] [WAIT duration]",
	"RL.LOG":     "RL.LOG key limit window [MEMBER id] [COST n] [PEEK] [WAIT duration]",
}

// usage is the error for a call whose options are wrong as the hint says.
func usage(call, hint string) string {
	return "ERR syntax error, try " + usages[strings.Fields(call)[0]] + " (" + hint + ")"
}

// TestLimiterBadOptions: options stand last, each once, and only those that go together; the error says which word is wrong.
func TestLimiterBadOptions(t *testing.T) {
	w := servertest.NewClockClient(t)
	for options, hint := range map[string]string{
		"COST": "COST needs a value", "COST 1 COST 1": "COST is given twice", "PEEK PEEK": "PEEK is given twice", "x": "unknown word 'x'", "1": "unknown word '1'",
		"PEEK x": "unknown word 'x'", "COST 1 x": "unknown word 'x'", "WAIT": "WAIT needs a value",
		"ALIGNED": "unknown word 'ALIGNED'", "SLICES 3": "unknown word 'SLICES'", "MEMBER a": "unknown word 'MEMBER'", "TZ UTC": "unknown word 'TZ'",
	} {
		for _, call := range []string{
			"RL.GCRA k 5 1 1s", "RL.BUCKET k 5 1 1s", "RL.QUEUE k 5 1 1s", "RL.FIXED k 5 1s", "RL.FIXED k 5 DAY", "RL.SLIDING k 5 1s", "RL.LOG k 5 1s",
		} {
			name := strings.Fields(options)[0]
			switch {
			case name == "ALIGNED" && call == "RL.FIXED k 5 1s", name == "SLICES" && strings.HasPrefix(call, "RL.SLIDING"),
				name == "MEMBER" && strings.HasPrefix(call, "RL.LOG"), name == "TZ" && call == "RL.FIXED k 5 DAY":
				require.Equal(t, usage(call, name+" is given twice"), w.Call(call+" "+options+" "+options), "%s %s twice", call, options)
				if name != "ALIGNED" {
					require.Equal(t, usage(call, name+" needs a value"), w.Call(call+" "+name), "%s %s", call, name)
				}
			case name == "ALIGNED" && call == "RL.FIXED k 5 DAY":
				require.Equal(t, usage(call, "ALIGNED goes only with a window of a duration"), w.Call(call+" "+options))
			case name == "TZ" && call == "RL.FIXED k 5 1s":
				require.Equal(t, usage(call, "TZ goes only with a window of the calendar, such as DAY"), w.Call(call+" "+options))
			default:
				require.Equal(t, usage(call, hint), w.Call(call+" "+options), "%s %s", call, options)
			}
		}
	}
	require.Equal(t, "ERR with MEMBER the cost must be 1 or less", w.Call("RL.LOG k 5 1s MEMBER a COST 2"))
	const tooMany = "ERR cost of a log must be <= 100000, for all logs of a call together"
	require.Equal(t, tooMany, w.Call("RL.LOG k 9000000 1s COST 100001"))
	require.Equal(t, "[1 5 5 -1 0]", w.Call("RL.LOG k 5 1s COST 100001"))
	require.Equal(t, tooMany, w.Call("RL.TAKE 2 LOG~9000000~1s a LOG~9000000~1s b COST 50001"))
	require.Equal(t, "[1 0 [[1 5 5 -1 0] [0 9000000 9000000 -1 0]]]", w.Call("RL.TAKE 2 LOG~5~1s a LOG~9000000~1s b COST 50001"))
	require.Equal(t, "0", w.Call("DBSIZE"))
	w.Call("RL.POLICY SET l LOG 10 1h")
	for _, key := range []string{"a", "b"} {
		require.Equal(t, "OK", w.Call("RL.POLICY OVERRIDE SET l "+key+" LOG 9000000000000000000 1h"))
	}
	require.Equal(t, tooMany, w.Call("RL.TAKE 2 l a l b COST 5000000000000000000"))
}

// TestWrongNumbersAreQuoted: arguments in the wrong order, and an expression in place of a number, are seen at once; what is quoted is bounded.
func TestWrongNumbersAreQuoted(t *testing.T) {
	w := servertest.NewClockClient(t)
	for call, want := range map[string]string{
		"RL.GCRA k 10 1s 5":                               "ERR count must be >= 1, not '1s'",
		"RL.GCRA k ten 5 1s":                              "ERR limit must be -1 or >= 0, not 'ten'",
		"RL.LOG login:u1 60s 5":                           "ERR limit must be -1 or >= 0, not '60s'",
		"RL.GCRA k 10 5 1s COST 1.5":                      "ERR COST must be an integer of 64 bits, not '1.5'",
		"RL.TAKE api k":                                   "ERR wrong number of arguments for 'rl.take' command",
		"RL.TAKE api k 1":                                 "ERR numpairs must be from 1 to 128, not 'api'",
		"RL.GCRA k " + strings.Repeat("x", 300) + " 5 1s": "ERR limit must be -1 or >= 0, not '" + strings.Repeat("x", 128) + "'",
	} {
		require.True(t, strings.HasPrefix(w.Call(call), want), "%s: %s", call, w.Call(call))
	}
	require.Equal(t, "ERR limit must be -1 or >= 0, not 'a  b'", w.Ask("RL.GCRA", "k", "a\r\nb", "5", "1s"))
}

// TestUnknownWordsAreNamed: an error with nothing but the syntax left it to the reader to find what was wrong with it.
func TestUnknownWordsAreNamed(t *testing.T) {
	w := servertest.NewClockClient(t)
	w.Call("RL.POLICY SET p FIXED 5 1m")
	for call, want := range map[string][2]string{
		"RL.GCRA k 5 1 1s COTS 2":                        {"ERR syntax error, try RL.GCRA key capacity ", "(unknown word 'COTS', did you mean COST?)"},
		"RL.FIXED k 5 1m aligend":                        {"ERR syntax error, try RL.FIXED key limit ", "(unknown word 'aligend', did you mean ALIGNED?)"},
		"RL.FIXED k 5 1 MONTHS":                          {"ERR syntax error, try RL.FIXED key limit ", "(unknown word 'MONTHS')"},
		"RL.FIXED k 5 MONTHS":                            {"ERR invalid duration 'MONTHS', use a number with us, ms, s, m, h, d or w (none: ms), or one of MINUTE, HOUR, DAY, WEEK, MONTH, YEAR", ""},
		"RL.POLICY SET p FIXED 5 1m BLOK 3s":             {"ERR syntax error, try RL.POLICY SET name FIXED limit ", "(unknown word 'BLOK', did you mean BLOCK?)"},
		"RL.POLICY SET p FIXED 5 1m no-lease":            {"ERR syntax error, try RL.POLICY SET name FIXED limit ", "(unknown word 'no-lease', did you mean NOLEASE?)"},
		"RL.POLICY SET p FIXED 5 1m SHADOW SHADOW":       {"ERR syntax error, try RL.POLICY SET name FIXED limit ", "(SHADOW is given twice)"},
		"RL.POLICY SET p FIXED 5 1m FAILURE FOO":         {"ERR syntax error, try RL.POLICY SET name FIXED limit ", "(FAILURE must be ERROR, OPEN, CLOSED or LOCAL, not 'FOO')"},
		"RL.POLICY SET p FIXED 5 1m WHEN-UNWRITABLE":     {"ERR syntax error, try RL.POLICY SET name FIXED limit ", "(WHEN-UNWRITABLE needs a value)"},
		"RL.POLICY SET p FIXED 5 1m BLOCK 1m DOUBLE":     {"ERR syntax error, try RL.POLICY SET name FIXED limit ", "(DOUBLE needs a value)"},
		"RL.TAKE 1 p k p k2":                             {"ERR syntax error, try RL.TAKE numpairs ", "(unknown word 'p' after 1 pair)"},
		"RL.TAKE 1 GCRA 10 5 1s k":                       {"ERR syntax error, try RL.TAKE numpairs ", "(unknown word '5' after 1 pair; a limit is one argument: quote it in full, as in \"GCRA …\")"},
		"RL.RESERVE 2 p k gcra 10 5 1s k TTL 1s":         {"ERR syntax error, try RL.RESERVE numpairs ", "(unknown word '5' after 2 pairs; a limit is one argument: quote it in full, as in \"gcra …\")"},
		"RL.TAKE 2 p k p k2 x y":                         {"ERR syntax error, try RL.TAKE numpairs ", "(unknown word 'x' after 2 pairs)"},
		"RL.TAKE 1 p k COTS 2":                           {"ERR syntax error, try RL.TAKE numpairs ", "(unknown word 'COTS' after 1 pair, did you mean COST?)"},
		"RL.TAKE 1 p k COSTS 1 2":                        {"ERR COSTS must give one cost for each pair", ""},
		"RL.TAKE 1 p k COSTS 1 x":                        {"ERR syntax error, try RL.TAKE numpairs ", "(unknown word 'x' after COSTS with one number for each pair)"},
		"RL.TAKE 1 p k COST":                             {"ERR syntax error, try RL.TAKE numpairs ", "(COST needs a value)"},
		"RL.TAKE 1 p k PEEK PEEK":                        {"ERR syntax error, try RL.TAKE numpairs ", "(PEEK is given twice)"},
		"RL.RESERVE 1 p k COST 1":                        {"ERR syntax error, try RL.RESERVE numpairs ", "(TTL is missing)"},
		"RL.RESERVE 1 p k TTL 1s ID":                     {"ERR syntax error, try RL.RESERVE numpairs ", "(ID needs a value)"},
		"RL.POLICY OVERRIDE SET p k 9 1m BLOK 3s":        {"ERR syntax error, try RL.POLICY OVERRIDE SET policy key FIXED limit ", "(unknown word 'BLOK', did you mean BLOCK?)"},
		"RL.POLICY OVERRIDE SET p k 9":                   {"ERR syntax error, try RL.POLICY OVERRIDE SET policy key FIXED limit ", ""},
		"RL.TAKE 1 FIXED~5~1m~BLOK~3s k":                 {"ERR syntax error, try FIXED limit ", "(unknown word 'BLOK', did you mean BLOCK?)"},
		"RL.GCRA k 5 1 1s " + strings.Repeat("x", 1<<10): {"ERR syntax error, try RL.GCRA key capacity ", "(unknown word '" + strings.Repeat("x", 128) + "')"},
	} {
		require.True(t, strings.HasPrefix(w.Call(call), want[0]), "%s: %s", call, w.Call(call))
		require.True(t, strings.HasSuffix(w.Call(call), want[1]), "%s: %s", call, w.Call(call))
	}
}

// TestLimiterNumbersBeyond64Bits: products that leave int64 are refused, and everything up to there is answered.
func TestLimiterNumbersBeyond64Bits(t *testing.T) {
	w := servertest.NewClockClient(t)
	for _, tc := range []struct{ call, want string }{
		{"RL.GCRA k0 5 1000000001 1s", "[0 5 4 -1 1]"},
		{"RL.GCRA k1 9223372036854775807 9223372036854775807 1s COST 9223372036854775807", "[0 9223372036854775807 0 -1 1000]"},
		{"RL.GCRA k 5 1000000000 1s", "[0 5 4 -1 1]"},
		{"RL.GCRA k2 9223372036854775807 1000000000 1s", "[0 9223372036854775807 9223372036854775806 -1 1]"},
		{"RL.GCRA k2 9223372036854775807 500000000 1s", command.ErrNotInteger},
		{"RL.GCRA k3 3 1 36525d", command.ErrNotInteger},
		{"RL.GCRA k3 2 1 36525d", "[0 2 1 -1 3155760000000]"},
		{"RL.GCRA k3 2 1 36525d COST 9223372036854775807", "[1 2 1 -1 3155760000000]"},
		{"RL.GCRA k3 2 1 36525d COST -9223372036854775808", "[0 2 2 -1 0]"},
		{"RL.FIXED f 9223372036854775807 36525d COST 9223372036854775807", "[0 9223372036854775807 0 -1 3155760000000]"},
		{"RL.FIXED f 9223372036854775807 36525d COST 1", "[1 9223372036854775807 0 3155760000000 3155760000000]"},
		{"RL.FIXED f 9223372036854775807 36525d COST -9223372036854775808", "[0 9223372036854775807 9223372036854775807 -1 0]"},
		{"RL.SLIDING s 9223372036854775807 36525d COST 9223372036854775807", "[0 9223372036854775807 0 -1 3253947290000]"},
		{"RL.SLIDING s 9223372036854775807 36525d COST -9223372036854775808", "[0 9223372036854775807 9223372036854775807 -1 0]"},
		{"RL.LOG l 9223372036854775807 36525d COST -9223372036854775808", "[0 9223372036854775807 9223372036854775807 -1 0]"},
	} {
		require.Equal(t, tc.want, w.Call(tc.call), tc.call)
	}
}
