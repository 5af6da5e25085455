package config

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMatch(t *testing.T) {
	live := load(t, "", "--requirepass", "pw")
	for _, tt := range []struct {
		patterns []string
		want     []Pair
	}{
		{[]string{"port"}, []Pair{{"port", "6379"}}},
		{[]string{"PORT", "p?rt", "port"}, []Pair{{"PORT", "6379"}}},
		{[]string{"P?RT", "PoRt"}, []Pair{{"port", "6379"}}},
		{[]string{"nothing", "no*thing", ""}, nil},
		{[]string{"require*"}, []Pair{{"requirepass", "pw"}}},
		{[]string{"hash-max-ziplist-value"}, []Pair{{"hash-max-ziplist-value", "64"}}},
		{[]string{"lazyfree-lazy-expire", "lazyfree*"}, nil},
		{[]string{"save", "appendonly"}, []Pair{{"save", "3600 1 300 100 60 10000"}, {"appendonly", "no"}}},
		{[]string{"zset-max-*-value"}, []Pair{{"zset-max-listpack-value", "64"}, {"zset-max-ziplist-value", "64"}}},
	} {
		require.ElementsMatch(t, tt.want, live.Match(tt.patterns), "%v", tt.patterns)
	}
	all := live.Match([]string{"*"})
	names := map[string]bool{}
	for _, p := range all {
		names[p.Name] = true
	}
	for name, d := range byName {
		require.Equal(t, !d.Hidden, names[name], name)
	}
	require.Len(t, all, len(names))
}

func TestSet(t *testing.T) {
	const failed = "ERR CONFIG SET failed (possibly related to argument '"
	for _, tt := range []struct {
		name  string
		pairs []Pair
		local bool
		err   string
	}{
		{name: "several", pairs: []Pair{{"timeout", "1"}, {"HZ", "20"}}},
		{name: "an alias beside its directive", pairs: []Pair{{"hash-max-ziplist-entries", "1"}, {"hash-max-listpack-entries", "2"}}},
		{name: "guarded, on this machine", pairs: []Pair{{"dir", "x"}}, local: true},
		{name: "unknown", pairs: []Pair{{"timeout", "x"}, {"Nope", "1"}}, err: "ERR Unknown option or number of arguments for CONFIG SET - 'Nope'"},
		{name: "ignored is unknown", pairs: []Pair{{"lazyfree-lazy-expire", "no"}}, err: "ERR Unknown option or number of arguments for CONFIG SET - 'lazyfree-lazy-expire'"},
		{name: "second is bad", pairs: []Pair{{"timeout", "1"}, {"hz", "x"}}, err: failed + "hz') - argument couldn't be parsed into an integer"},
		{name: "immutable", pairs: []Pair{{"Databases", "x"}, {"nope", "1"}}, err: failed + "Databases') - can't set immutable config"},
		{name: "guarded", pairs: []Pair{{"dir", "x"}}, err: failed + "dir') - can't set protected config"},
		{name: "duplicate", pairs: []Pair{{"timeout", "1"}, {"TIMEOUT", "2"}}, err: failed + "TIMEOUT') - duplicate parameter"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			live := load(t, "", "--enable-protected-configs", "local")
			before := live.Get()
			err := live.Set(tt.pairs, tt.local)
			if tt.err != "" {
				require.EqualError(t, err, tt.err)
				require.Same(t, before, live.Get())
				return
			}
			require.NoError(t, err)
			last := tt.pairs[len(tt.pairs)-1]
			require.Contains(t, value(t, live, last.Name), last.Value)
		})
	}
}

func TestPublishedConfigNeverChanges(t *testing.T) {
	live := load(t, "")
	before := *live.Get()
	held := live.Get()
	require.NoError(t, live.Set([]Pair{{"client-output-buffer-limit", "normal 1 2 3"}, {"timeout", "9"}}, false))
	require.Equal(t, before, *held)
	require.NotEqual(t, before, *live.Get())
}

func TestOnChange(t *testing.T) {
	live := load(t, "")
	var calls []string
	published := live.Get()
	note := func(name string, refuse func(c *Config) error) func(old, new *Config) error {
		return func(old, new *Config) error {
			calls = append(calls, name+" "+byName["timeout"].Format(old)+" to "+byName["timeout"].Format(new))
			require.Same(t, published, live.Get(), "nothing is published before all agree")
			return refuse(new)
		}
	}
	agree := func(*Config) error { return nil }
	live.OnChange(note("all", agree))
	live.OnChange(note("hash", agree), "hash-max-ziplist-value")
	live.OnChange(note("timeout", func(c *Config) error {
		if c.Timeout > 5e9 {
			return errors.New("too long for this server")
		}
		return nil
	}), "timeout", "maxclients")

	require.NoError(t, live.Set([]Pair{{"timeout", "0"}}, false))
	require.Empty(t, calls, "nothing has changed")
	require.NoError(t, live.Set([]Pair{{"timeout", "5"}}, false))
	require.Equal(t, []string{"all 0 to 5", "timeout 0 to 5"}, calls)

	calls, published = nil, live.Get()
	err := live.Set([]Pair{{"hz", "20"}, {"Timeout", "6"}}, false)
	require.EqualError(t, err, "ERR CONFIG SET failed (possibly related to argument 'timeout') - too long for this server")
	require.Equal(t, []string{"all 5 to 6", "timeout 5 to 6", "all 6 to 5"}, calls)
	require.Equal(t, "5", value(t, live, "timeout"))
	require.Equal(t, "10", value(t, live, "hz"))

	calls = nil
	require.NoError(t, live.Set([]Pair{{"hash-max-listpack-value", "1"}}, false))
	require.Equal(t, []string{"all 5 to 5", "hash 5 to 5"}, calls)
	require.Panics(t, func() { live.OnChange(note("x", agree), "nope") })
}

func TestOnChangeThatCannotReturn(t *testing.T) {
	live := load(t, "")
	times := 0
	live.OnChange(func(_, _ *Config) error {
		if times++; times == 2 {
			return errors.New("stuck")
		}
		return nil
	})
	live.OnChange(func(_, _ *Config) error { return errors.New("refused") })
	err := live.Set([]Pair{{"timeout", "1"}}, false)
	require.EqualError(t, err, "ERR CONFIG SET failed (possibly related to argument 'timeout') - refused, and the old value could not be restored: stuck")
}

// TestReloadWithoutSources: a configuration that was made in the process is not replaced by the default.
func TestReloadWithoutSources(t *testing.T) {
	cfg := Default()
	cfg.Port, cfg.Hz = 0, 20
	live := NewLive(cfg)
	require.NoError(t, live.Set([]Pair{{"timeout", "7"}}, false))
	_, err := live.Reload()
	require.NoError(t, err)
	require.Equal(t, []string{"0", "20", "7"}, []string{value(t, live, "port"), value(t, live, "hz"), value(t, live, "timeout")})
}

func TestReload(t *testing.T) {
	files := map[string]string{"/srv/h.conf": "timeout 1\nhz 20\nmaxclients 30\nclient-output-buffer-limit normal 1 1 1\n"}
	live, _, err := Load([]string{"h.conf", "--maxclients", "40"}, []string{"HEADGATE_SHUTDOWN_TIMEOUT=3"}, memoryHost(files))
	require.NoError(t, err)
	require.NoError(t, live.Set([]Pair{{"timeout", "7"}, {"tcp-keepalive", "8"}, {"loglevel", "debug"}}, false))

	files["/srv/h.conf"] = "timeout 2\nmaxclients 31\nshutdown-timeout 5\ndatabases 7\nactivedefrag no\nrequirepass \"new\"\n"
	notices, err := live.Reload()
	require.NoError(t, err)
	for name, want := range map[string]string{
		"timeout":                    "2",  // the file names it
		"hz":                         "10", // no longer in the file
		"maxclients":                 "40", // the flag wins
		"shutdown-timeout":           "3",  // the variable wins
		"tcp-keepalive":              "8",  // set at run time, not in the file
		"loglevel":                   "debug",
		"databases":                  "16", // not while the server runs
		"requirepass":                "new",
		"client-output-buffer-limit": "normal 67108864 16777216 30 slave 268435456 67108864 60 pubsub 33554432 8388608 60",
	} {
		require.Equal(t, want, value(t, live, name), name)
	}
	require.Equal(t, []Notice{
		{"/srv/h.conf:5", "activedefrag is ignored: headgate manages its memory in its own way"},
		{"/srv/h.conf", "maxclients in the file is overridden by --maxclients"},
		{"/srv/h.conf", "databases has changed; it takes effect at the next start"},
		{"/srv/h.conf", "shutdown-timeout in the file is overridden by HEADGATE_SHUTDOWN_TIMEOUT"},
	}, notices)

	before := live.Get()
	files["/srv/h.conf"] = "timeout 3\nnope 1\n"
	_, err = live.Reload()
	require.ErrorContains(t, err, `/srv/h.conf:2: unknown directive "nope"`)
	require.Same(t, before, live.Get())

	live.OnChange(func(_, _ *Config) error { return errors.New("not now") }, "timeout")
	files["/srv/h.conf"] = "timeout 3\n"
	_, err = live.Reload()
	require.EqualError(t, err, "timeout: not now")
	require.Same(t, before, live.Get())
}

// TestReloadAfterALineThatSaidTheDefault: the line had said what holds without it, and so its end was no change, although CONFIG SET had made one.
func TestReloadAfterALineThatSaidTheDefault(t *testing.T) {
	files := map[string]string{"/srv/h.conf": "hz 10\n"}
	live, _, err := Load([]string{"h.conf"}, nil, memoryHost(files))
	require.NoError(t, err)
	require.NoError(t, live.Set([]Pair{{"hz", "20"}}, true))
	files["/srv/h.conf"] = "\n"
	_, err = live.Reload()
	require.NoError(t, err)
	require.Equal(t, "10", value(t, live, "hz"))
}

// TestReloadTellsWhatIsOverridden: who changes the file and sends SIGHUP takes the change for done.
func TestReloadTellsWhatIsOverridden(t *testing.T) {
	files := map[string]string{"/srv/h.conf": "timeout 1\nmaxclients 30\npolicy a UNLIMITED\n", "-": "tcp-keepalive 5\n"}
	args := []string{"h.conf", "-", "--maxclients", "40", "--policy", "b", "UNLIMITED", "--bind", "127.0.0.1", "--client-output-buffer-limit", "normal 1 1 1"}
	env := []string{"HEADGATE_REQUIREPASS=oldsecret", "HEADGATE_TIMEOUT=1"}
	live, _, err := Load(args, env, memoryHost(files))
	require.NoError(t, err)
	reload := func() (lines []string) {
		t.Helper()
		notices, err := live.Reload()
		require.NoError(t, err)
		for _, n := range notices {
			lines = append(lines, n.String())
			require.NotContains(t, n.String(), "secret")
		}
		require.Equal(t, "oldsecret", value(t, live, "requirepass"))
		return lines
	}
	require.Empty(t, reload(), "maxclients has long been so")

	require.NoError(t, live.Set([]Pair{{"requirepass", "newsecret"}}, true))
	require.NoError(t, live.Rewrite(func(path string, data []byte) error { files[path] = string(data); return nil }))
	require.Contains(t, files["/srv/h.conf"], "newsecret")
	files["/srv/h.conf"] = strings.Replace(files["/srv/h.conf"], "bind 127.0.0.1", "bind ::1", 1)
	require.Equal(t, []string{
		"/srv/h.conf: bind in the file is overridden by --bind",
		"/srv/h.conf: requirepass in the file is overridden by HEADGATE_REQUIREPASS",
	}, reload(), "maxclients and others are in the file now as they have been, and overridden by the same")
	require.Empty(t, reload(), "that was told")
	require.NoError(t, live.Set([]Pair{{"requirepass", "newsecret"}}, true))
	require.Equal(t, []string{"/srv/h.conf: requirepass in the file is overridden by HEADGATE_REQUIREPASS"}, reload(), "CONFIG SET has done what the file says")

	files["/srv/h.conf"] = "timeout 2\ntcp-keepalive 6\npolicy a UNLIMITED, c UNLIMITED\nrequirepass oldsecret\nclient-output-buffer-limit pubsub 2 2 2\n"
	require.Equal(t, []string{
		"/srv/h.conf: tcp-keepalive in the file is overridden by stdin:1",
		"/srv/h.conf: timeout in the file is overridden by HEADGATE_TIMEOUT",
	}, reload(), "flags add to policy and to client-output-buffer-limit, of which the file's part counts as well")
	require.Contains(t, value(t, live, "policy"), "c UNLIMITED")
	require.Contains(t, value(t, live, "client-output-buffer-limit"), "pubsub 2 2 2")

	files["/srv/h.conf"] = "timeout 1\n"
	require.Empty(t, reload(), "the file says what the environment says, or nothing")
}

// TestMaxClientsAboveTheRoom that the machine has are lowered where they are read, as CONFIG GET tells, and refused where they are set.
func TestMaxClientsAboveTheRoom(t *testing.T) {
	files := map[string]string{"/srv/headgate.conf": "maxclients 5000"}
	live, _, err := Load([]string{"headgate.conf"}, nil, memoryHost(files))
	require.NoError(t, err)
	live.LimitClients(func(*Config) int { return 68 })
	is := func(want string) {
		t.Helper()
		require.Equal(t, []Pair{{"maxclients", want}}, live.Match([]string{"maxclients"}))
	}
	is("68")
	set := func(value string) error { return live.Set([]Pair{{"maxclients", value}}, true) }
	require.EqualError(t, set("69"), "ERR CONFIG SET failed (possibly related to argument 'maxclients') - "+
		"The operating system is not able to handle the specified number of clients, try with 68")
	is("68")
	require.NoError(t, set("50"))
	is("50")
	files["/srv/headgate.conf"] = "maxclients 6000\ntimeout 7"
	_, err = live.Reload()
	require.NoError(t, err)
	is("68")
	require.Equal(t, "7", value(t, live, "timeout"))
}

func TestReloadWithoutFile(t *testing.T) {
	live := NewLive(Default())
	require.NoError(t, live.Set([]Pair{{"timeout", "7"}}, false))
	notices, err := live.Reload()
	require.NoError(t, err)
	require.Empty(t, notices)
	require.Equal(t, "7", value(t, live, "timeout"))
}

func TestConcurrentUse(t *testing.T) {
	live := load(t, "timeout 1\n")
	var wg sync.WaitGroup
	for _, work := range []func(){
		func() { _ = live.Set([]Pair{{"timeout", "2"}, {"hz", "2"}}, false) },
		func() { _ = live.Set([]Pair{{"timeout", "1"}, {"hz", "1"}}, false) },
		func() { _, _ = live.Reload() },
		func() { _ = live.Match([]string{"*"}) },
		func() { _ = live.Rewrite(func(string, []byte) error { return nil }) },
	} {
		wg.Go(func() {
			for range 100 {
				work()
			}
		})
	}
	wg.Wait()
}

func TestDirectivesIsACopy(t *testing.T) {
	list := Directives()
	slices.Reverse(list)
	require.NotEqual(t, list[0], directives[0])
}
