package glob

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMatch(t *testing.T) {
	for _, tc := range []struct {
		pattern, text string
		nocase        bool
		want          bool
	}{
		{"", "", false, true},
		{"", "a", false, false},
		{"a", "", false, false},
		{"*", "", false, false}, // as in Redis
		{"**", "", false, false},
		{"*", "a", false, true},
		{"**", "abc", false, true},
		{"hello", "hello", false, true},
		{"hello", "hello!", false, false},
		{"hello!", "hello", false, false},
		{"h?llo", "hallo", false, true},
		{"h?llo", "hllo", false, false},
		{"?", "\xff", false, true},
		{"h*llo", "hllo", false, true},
		{"h*llo", "heeeello", false, true},
		{"h*llo", "heeeell", false, false},
		{"*a*b", "xaxbxb", false, true},
		{"*a*b", "xaxbx", false, false},
		{"a**", "a", false, true},
		{"*ab*ab*", "xabxab", false, true},
		{"*ab*ab*", "xabxb", false, false},
		{"*?", "a", false, true},
		{"*??", "a", false, false},

		{"h[ae]llo", "hallo", false, true},
		{"h[ae]llo", "hillo", false, false},
		{"h[^e]llo", "hallo", false, true},
		{"h[^e]llo", "hello", false, false},
		{"h[a-b]llo", "hbllo", false, true},
		{"h[a-b]llo", "hcllo", false, false},
		{"h[b-a]llo", "hallo", false, true},
		{"[a-c][0-9]", "b7", false, true},
		{"[a-c-e]", "-", false, true},
		{"[a-c-e]", "d", false, false},
		{"[a-]", "_", false, true}, // the range from ] to a, left open
		{"[a-]", "-", false, false},
		{"[a-", "-", false, true},
		{"[]", "]", false, false},
		{"[]a", "a", false, false},
		{"[^]", "x", false, true},
		{"[^]x", "ax", false, true},
		{"[", "[", false, false},
		{"[^", "x", false, true},
		{"[abc", "b", false, true},
		{"[abc", "bc", false, false},
		{`[\]]`, "]", false, true},
		{`[\^]`, "^", false, true},
		{`[\a-c]`, "b", false, false}, // an escape starts no range
		{`[\a-c]`, "-", false, true},
		{`[a\`, `\`, false, true},
		{"[*]", "*", false, true},
		{"[?]", "a", false, false},
		{"[\x80-a]", "\xff", false, true}, // bytes compare as signed
		{"[\x80-a]", "b", false, false},
		{"[a-\xff]", "b", false, false},

		{`\*`, "*", false, true},
		{`\*`, "a", false, false},
		{`\\`, `\`, false, true},
		{`\`, `\`, false, true},
		{`a\`, `a\`, false, true},
		{`\a`, "a", false, true},
		{`*\*`, "ab*", false, true},
		{`*\?*`, "a?b", false, true},

		{"HELLO", "hello", false, false},
		{"HELLO", "hello", true, true},
		{"h[A]llo", "hallo", true, true},
		{"h[A-C]llo", "hbllo", true, true},
		{"h[a-c]llo", "hBllo", true, true},
		{"[Z-a]", "z", true, false}, // the ends change sides in lower case
		{"[^a]", "A", true, false},
		{`[\A]`, "a", true, false},
		{`[\A]`, "A", true, true},
		{`\A`, "a", true, true},
		{"[@-_]", "A", true, false}, // A is compared as a
		{"[@-_]", "A", false, true},
		{"\xc4", "\xe4", true, false},
	} {
		require.Equal(t, tc.want, Match([]byte(tc.pattern), []byte(tc.text), tc.nocase), "%+v", tc)
	}
}

// TestMatchAgainstModel compares Match with the same rules written down as a
// recursion, on short texts over an alphabet that is mostly syntax.
func TestMatchAgainstModel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	random := func(alphabet string, lengthMax int) string {
		b := make([]byte, rng.IntN(lengthMax+1))
		for i := range b {
			b[i] = alphabet[rng.IntN(len(alphabet))]
		}
		return string(b)
	}
	matched := 0
	for range 300_000 {
		pattern := random("aabBcz*?*[]^-\\\xe4", 9)
		text := random("aabBcz]-\\^\xe4", 6)
		nocase := rng.IntN(2) == 0
		want := text == "" && pattern == "" || text != "" && model(pattern, text, nocase)
		require.Equal(t, want, Match([]byte(pattern), []byte(text), nocase), "%q %q %v", pattern, text, nocase)
		if want {
			matched++
		}
	}
	require.Greater(t, matched, 10_000)
}

// model matches recursively: slow, and short enough to be seen to be right.
func model(pattern, text string, nocase bool) bool {
	switch {
	case pattern == "":
		return text == ""
	case pattern[0] == '*':
		return model(pattern[1:], text, nocase) || text != "" && model(pattern, text[1:], nocase)
	case text == "":
		return false
	case pattern[0] == '?':
		return model(pattern[1:], text[1:], nocase)
	case pattern[0] == '[':
		ok, rest := modelClass(pattern[1:], text[0], nocase)
		return ok && model(rest, text[1:], nocase)
	case pattern[0] == '\\' && len(pattern) > 1:
		pattern = pattern[1:]
	}
	return modelEqual(pattern[0], text[0], nocase) && model(pattern[1:], text[1:], nocase)
}

// modelClass matches c against the class behind an opening bracket, and
// returns the pattern behind it.
func modelClass(pattern string, c byte, nocase bool) (ok bool, rest string) {
	if strings.HasPrefix(pattern, "^") {
		ok, rest = modelMembers(pattern[1:], c, nocase)
		return !ok, rest
	}
	return modelMembers(pattern, c, nocase)
}

func modelMembers(pattern string, c byte, nocase bool) (ok bool, rest string) {
	switch {
	case pattern == "":
		return false, ""
	case pattern[0] == ']':
		return false, pattern[1:]
	case pattern[0] == '\\' && len(pattern) > 1:
		ok, rest = modelMembers(pattern[2:], c, nocase)
		return ok || pattern[1] == c, rest
	case len(pattern) > 2 && pattern[1] == '-':
		ok, rest = modelMembers(pattern[3:], c, nocase)
		first, last := int8(pattern[0]), int8(pattern[2])
		if first > last {
			first, last = last, first
		}
		if nocase {
			first, last, c = int8(lower(byte(first))), int8(lower(byte(last))), lower(c)
		}
		return ok || int8(c) >= first && int8(c) <= last, rest
	}
	ok, rest = modelMembers(pattern[1:], c, nocase)
	return ok || modelEqual(pattern[0], c, nocase), rest
}

func modelEqual(a, b byte, nocase bool) bool {
	if nocase {
		return lower(a) == lower(b)
	}
	return a == b
}

// TestMatchHostile runs patterns that take a recursive matcher exponential
// time or a deep stack. It would not come to an end if they did so here.
func TestMatchHostile(t *testing.T) {
	text := bytes.Repeat([]byte("a"), 10_000)
	long := strings.Repeat("a", 10<<20)
	for _, tc := range []struct {
		name, pattern string
		want          bool
	}{
		{"50 stars", strings.Repeat("a*", 50) + "b", false},
		{"50 stars that match", strings.Repeat("a*", 50) + "a", true},
		{"5000 stars", strings.Repeat("*a", 5000) + "b", false},
		{"10 MiB of text", "*" + long, false},
		{"10 MiB of stars", strings.Repeat("*", 10<<20), true},
		{"10 MiB of stars and text", strings.Repeat("*a", 5<<20), false},
		{"10 MiB of class", "*[" + strings.Repeat("b", 10<<20) + "]", false},
		{"10 MiB of ranges", "*[" + strings.Repeat("\x00-Z", 3<<20) + "]", false},
		{"open brackets", "*" + strings.Repeat("[", 10_000), false},
		{"classes", "*" + strings.Repeat("[ab]", 5000) + "b", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			require.Equal(t, tc.want, Match([]byte(tc.pattern), text, false))
		})
	}
}

func TestMatchAllocatesNothing(t *testing.T) {
	pattern, text := []byte("user:*:[0-9a-f]?\\*"), []byte("user:000012345678:a7*")
	require.True(t, Match(pattern, text, false))
	require.Zero(t, testing.AllocsPerRun(100, func() {
		Match(pattern, text, false)
		Match(pattern, text, true)
	}))
}

func BenchmarkMatch(b *testing.B) {
	text := []byte("user:000012345678:tokens")
	for _, pattern := range []string{"user:*", "*:tokens", "user:[0-9]*:tokens"} {
		b.Run(pattern, func(b *testing.B) {
			for b.Loop() {
				Match([]byte(pattern), text, false)
			}
		})
	}
}
