package peer

import (
	"flag"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFlags: each tool had flags of its own, so that headgate bench did not know -p, nor headgate cli --addr. However they are read, they mean the same.
func TestFlags(t *testing.T) {
	bound := func(words []string) (*Flags, error) {
		f, set := &Flags{}, flag.NewFlagSet("", flag.ContinueOnError)
		f.Bind(set)
		return f, set.Parse(words)
	}
	taken := func(words []string) (*Flags, error) {
		f := &Flags{}
		for len(words) > 0 {
			n, err := f.Take(words)
			if err != nil {
				return f, err
			}
			require.NotZero(t, n, words)
			words = words[n:]
		}
		return f, nil
	}
	for _, read := range []func([]string) (*Flags, error){bound, taken} {
		for _, c := range []struct{ words, network, address, err string }{
			{"", "tcp", "127.0.0.1:6379", ""},
			{"-h ::1", "tcp", "[::1]:6379", ""},
			{"--host a --port 7000", "tcp", "a:7000", ""},
			{"-p 7000", "tcp", "127.0.0.1:7000", ""},
			{"--addr a:7000", "tcp", "a:7000", ""},
			{"--addr /run/h.sock", "unix", "/run/h.sock", ""},
			{"--addr unix:h.sock", "unix", "h.sock", ""},
			{"-s h.sock", "unix", "h.sock", ""},
			{"--addr nowhere", "", "", "neither host:port nor the path of a Unix socket"},
			{"--addr a:7000 -p 7000", "", "", "leave out -h, -p and -s"},
			{"-p 70000", "", "", `"70000" is no port`},
			{"--user u", "", "", "needs --pass"},
			{"--cert c", "", "", "belong together"},
		} {
			f, err := read(strings.Fields(c.words))
			require.NoError(t, err, c.words)
			var network, address string
			if err = f.Finish(nil); err == nil {
				network, address, err = f.Address()
			}
			if c.err != "" {
				require.ErrorContains(t, err, c.err, c.words)
				continue
			}
			require.NoError(t, err, c.words)
			require.Equal(t, []string{c.network, c.address}, []string{network, address}, c.words)
		}
		f, err := read(strings.Fields("--user u --cacert ca"))
		require.NoError(t, err)
		require.NoError(t, f.Finish([]string{"REDISCLI_AUTH=secret"}))
		require.Equal(t, Flags{User: "u", Pass: "secret", CACert: "ca", TLS: true}, *f)
		f, err = read(strings.Fields("-a given --insecure"))
		require.NoError(t, err)
		require.NoError(t, f.Finish([]string{"REDISCLI_AUTH=secret"}))
		require.Equal(t, Flags{Pass: "given", TLS: true, Insecure: true}, *f)
		_, err = read([]string{"-p"})
		require.Error(t, err)
	}
	for _, name := range Names() {
		require.Regexp(t, "(^|\n)  (-[a-z], )?"+name+"[ ,]", Help())
	}
}
