package upstream

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseURL(t *testing.T) {
	for url, want := range map[string]Config{
		"redis://h":                                    {Addrs: []string{"h:6379"}},
		"redis://h:1/":                                 {Addrs: []string{"h:1"}},
		"redis://h:1/0":                                {Addrs: []string{"h:1"}},
		"redis://me@h1:7001,h2:7002":                   {User: "me", Addrs: []string{"h1:7001", "h2:7002"}},
		"redis://h:1,h:1,h:2":                          {Addrs: []string{"h:1", "h:2"}},
		"redis://[::1]:7001,[fe80::2]":                 {Addrs: []string{"[::1]:7001", "[fe80::2]:6379"}},
		"redis://m%40e@h":                              {User: "m@e", Addrs: []string{"h:6379"}},
		"redis+unix:///run/r.sock":                     {Unix: "/run/r.sock"},
		"redis+unix://me@/run/r%20.sock":               {User: "me", Unix: "/run/r .sock"},
		"redis-sentinel://h1,h2:2/mymaster":            {Kind: Sentinel, Addrs: []string{"h1:26379", "h2:2"}, Master: "mymaster"},
		"redis-sentinel://user@h:26379,h2:26379/a%2Fb": {Kind: Sentinel, User: "user", Addrs: []string{"h:26379", "h2:26379"}, Master: "a/b"},
	} {
		got, err := ParseURL(url)
		require.NoError(t, err, url)
		require.Equal(t, want, got, url)
	}
	for _, url := range []string{"rediss://h", "rediss-sentinel://h/m"} {
		got, err := ParseURL(url)
		require.NoError(t, err)
		require.NotNil(t, got.TLS, url)
	}
	for url, want := range map[string]string{
		"":                           "not a URL",
		"h:6379":                     "not a URL",
		"http://h":                   "is not one of",
		"redis://":                   "names no host",
		"redis://h:":                 "no port",
		"redis://h:0":                "no port",
		"redis://h:70000":            "no port",
		"redis://h,,h2":              "names no host",
		"redis://::1":                "in brackets",
		"redis://user:secret@h":      "upstream-password",
		"redis://:secret@h":          "upstream-password",
		"redis://%zz@h":              "hexadecimal",
		"redis://h/1":                "names no database",
		"redis-sentinel://h":         "name that it has for the primary",
		"redis-sentinel://h/":        "name that it has for the primary",
		"redis+unix://run/r.sock":    "a path only",
		"redis+unix://":              "absolute path",
		"redis+unix:///":             "absolute path",
		"redis+unix://u:secret@/run": "a path only",
	} {
		_, err := ParseURL(url)
		require.ErrorContains(t, err, want, url)
		require.NotContains(t, err.Error(), "secret", url)
	}
}

// TestSlot: the slots that redis-server's CLUSTER KEYSLOT answers.
func TestSlot(t *testing.T) {
	for key, want := range map[string]uint16{
		"": 0, "123456789": 12739, "foo": 12182, "bar": 5061, "{foo}bar": 12182, "x{foo}{bar}": 12182, "foo{}{bar}": 8363, "foo{{bar}}zap": 4015, "{": 4092,
	} {
		require.Equal(t, want, Slot([]byte(key)), key)
	}
}
