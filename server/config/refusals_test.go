package config

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/internal/quoting"
)

// wrongValues returns values that a directive cannot have, by what its kind says of them. Any text is right for some.
func wrongValues(d *Directive) []string {
	number := func(low, high int64) []string {
		list := []string{"x", "1.5", "0x10", " 1", "+1", "007", "99999999999999999999"}
		if low > math.MinInt64 {
			list = append(list, strconv.FormatInt(low-1, 10))
		}
		if high < math.MaxInt64 {
			list = append(list, strconv.FormatInt(high+1, 10))
		}
		return list
	}
	switch k := d.kind.(type) {
	case yesNoKind:
		return []string{"", "perhaps", "1", "yes no", "true"}
	case integerKind:
		return append(number(k.low, k.high), "")
	case secondsKind:
		return append(number(0, maxSeconds), "", "1s")
	case memoryKind:
		return []string{"x", "1.5gb", "1 gb", "1tb", "-1", "99999999999gb"}
	case textKind:
		return nil
	}
	if d.kind.several() {
		return nil // TestValues has the words of each
	}
	return []string{"no such value", "?"}
}

// TestEveryDirectiveRefuses gives each directive what it cannot have, in every way: the error is one line that says where it was, of
// which directive, and shows no secret; and nothing has changed.
func TestEveryDirectiveRefuses(t *testing.T) {
	refused := 0
	check := func(t *testing.T, err error, where string, d *Directive, value string) {
		t.Helper()
		require.Error(t, err, "%s %q by %s", d.Name, value, where)
		require.True(t, strings.HasPrefix(err.Error(), where+": "+d.Name), "%q by %s: %v", value, where, err)
		require.NotContains(t, err.Error(), "\n")
		require.Greater(t, len(err.Error()), len(where)+len(d.Name)+len(value)+10, "it says why: %v", err)
		refused++
	}
	for _, d := range directives {
		if d.Name == "unixsocketperm" || d.Name == "dir" {
			continue // TestValues has them
		}
		for _, value := range wrongValues(d) {
			line := d.Name + " " + quoting.Quote(value)
			_, _, err := Load([]string{"h.conf"}, nil, memoryHost(map[string]string{"/srv/h.conf": "# first\n" + line + "\n"}))
			check(t, err, "/srv/h.conf:2", d, value)
			_, _, err = Load([]string{"-"}, nil, memoryHost(map[string]string{"-": line}))
			check(t, err, "stdin:1", d, value)
			_, _, err = Load([]string{"--" + d.Name, value}, nil, memoryHost(nil))
			check(t, err, "--"+d.Name, d, value)
			_, _, err = Load(nil, []string{variableOf(d.Name) + "=" + value}, memoryHost(nil))
			check(t, err, variableOf(d.Name), d, value)
			if !d.Settable {
				continue
			}
			live := load(t, "", "--enable-protected-configs", "yes")
			before := live.Get()
			err = live.Set([]Pair{{"loglevel", "debug"}, {d.Name, value}}, true)
			if d.Name == "loglevel" {
				continue
			}
			require.Error(t, err, "CONFIG SET %s %q", d.Name, value)
			require.Contains(t, err.Error(), "'"+d.Name+"'")
			require.Same(t, before, live.Get(), "all or nothing")
		}
		if d.kind.several() {
			continue
		}
		for _, words := range []string{"", ` "secret one" two`} {
			_, _, err := Load([]string{"h.conf"}, nil, memoryHost(map[string]string{"/srv/h.conf": d.Name + words + "\n"}))
			check(t, err, "/srv/h.conf:1", d, "")
			if d.Secret {
				require.NotContains(t, err.Error(), "secret one")
			}
		}
	}
	t.Logf("%d refusals of %d directives", refused, len(directives))
}
