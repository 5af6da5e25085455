package config

import (
	"maps"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/internal/reference"
)

// redisDirectives are the values that both servers start with, so that their answers can be compared.
var redisDirectives = []string{
	"--bind", "127.0.0.1", "--enable-protected-configs", "local", "--unixsocketperm", "0700",
	"--client-output-buffer-limit", "normal", "64mb", "16mb", "30",
}

// startRedis runs the reference server.
func startRedis(t *testing.T) *reference.Server {
	t.Helper()
	redis := reference.Start(t, redisDirectives...)
	info, err := redis.Text("INFO", "server")
	require.NoError(t, err)
	require.Contains(t, info, "redis_version:7.0.", "the reference is redis-server 7.0")
	return redis
}

// different are directives that have another range, default or mutability here, each for the reason given.
var different = map[string]string{
	"bind":              "listeners do not change while the server runs",
	"databases":         "has a smaller range",
	"daemonize":         "has no effect",
	"maxmemory-clients": "takes no sizes beyond a signed number, which redis-server takes for percentages",
	"maxmemory":         "may be a share of the memory that there is",
	"port":              "listeners do not change while the server runs",
	"repl-backlog-ttl":  "has a smaller range",

	"tls-replication": "needs no certificate before a primary is connected to",

	"cluster-announce-ip": "is an address or a name, and nothing else",
	"cluster-enabled":     "has another word for it",

	"tls-ciphers":   "names what is served, where Redis does not look before TLS is on",
	"tls-port":      "opens a port, for which there is no certificate here",
	"tls-protocols": "has no versions before 1.2",
}

// differentialValues are given to every settable directive, on top of its own samples.
var differentialValues = []string{
	"", " ", "0", "1", "2", "-1", "01", "+1", " 1", "1 ", "1 2", "abc", "yes", "NO", "maybe", "10", "500", "501", "65535", "65536", "1048575", "1048576",
	"2147483647", "2147483648", "4294967295", "9223372036854775807", "9223372036854775808", "18446744073709551615", "18446744073709551616",
	"1k", "1kb", "1K", "2mb", "2M", "3GB", "1gB", "1b", "1t", "kb", "1.5gb", "1 kb", "10%", "0x10", "-5mb", "99999999999gb",
	"debug", "WARNING", "nothing", "notice warning",
	"normal 1 2", "normal 1 2 3", "NORMAL 1kb 2mb 3", "slave 1 2 3", "replica 4 5 6", "pubsub 0 0 0 normal 7 8 9", "normal 1 1 1 normal 2 2 2",
	"master 1 2 3", "foo 1 2 3", "normal x 2 3", "normal 1 y 3", "normal 1 2 z", "normal 1 2 -3", "normal 1 2 010", "normal 1 2 +5", "normal  1 2",
	" normal 1 2 3", "normal 1 2 0x10", "normal -1 2 3", "normal 1 2 ",
	"/tmp", ".", "/nonexistent/x", "/etc/hostname", "1 x", "0 1", "1 -1", "10x 1", "900  1",
}

// peers are redis-server and us with the same directives.
type peers struct {
	*testing.T
	redis *reference.Server
	live  *Live
}

// same requires the same answer to CONFIG GET. Of what a pattern finds, the directives that only one side has do not count.
func (p peers) same(patterns ...string) {
	p.Helper()
	theirs, err := p.redis.Map(append([]string{"CONFIG", "GET"}, patterns...)...)
	require.NoError(p, err)
	ours := map[string]string{}
	for _, pair := range p.live.Match(patterns) {
		ours[pair.Name] = pair.Value
	}
	if strings.ContainsAny(patterns[0], globMarks) {
		maps.DeleteFunc(theirs, func(name, _ string) bool { _, found := byName[strings.ToLower(name)]; return !found })
		maps.DeleteFunc(ours, func(name, _ string) bool { _, found := theirs[name]; return !found })
		require.NotEmpty(p, ours)
	}
	require.Equal(p, theirs, ours, "CONFIG GET %q", patterns)
}

// set requires the same answer to CONFIG SET.
func (p peers) set(pairs ...Pair) {
	p.Helper()
	args := []string{"CONFIG", "SET"}
	for _, pair := range pairs {
		args = append(args, pair.Name, pair.Value)
	}
	_, theirs := p.redis.Do(args...)
	ours := p.live.Set(pairs, true)
	if theirs == nil {
		require.NoError(p, ours, "CONFIG SET %q", pairs)
		return
	}
	require.IsType(p, reference.Error(""), theirs, "CONFIG SET %q", pairs)
	require.EqualError(p, ours, theirs.Error(), "CONFIG SET %q", pairs)
}

// TestAgainstRedis has redis-server and us answer the same CONFIG SET and CONFIG GET for every directive that both know.
func TestAgainstRedis(t *testing.T) {
	redis := startRedis(t)
	live, _, err := Load(redis.Flags, nil, OSHost())
	require.NoError(t, err)
	p := peers{t, redis, live}
	for _, d := range directives {
		for _, name := range d.names() {
			theirs, err := redis.Do("CONFIG", "GET", name)
			require.NoError(t, err)
			if len(theirs) > 0 && different[d.Name] == "" {
				p.same(name)
				p.tryValues(d, name)
			}
		}
	}

	p.set(Pair{"client-output-buffer-limit", "normal 0 0 0"}, Pair{"timeout", "0"}) // neither may cut the long answer short
	p.same("*")
	p.same("hash-max-*", "TIMEOUT", "zset*")
	p.same("TIMEOUT", "timeout", "Time*")
	p.same("nothing")
	for _, pairs := range [][]Pair{
		{{"nosuch", "1"}, {"port", "x"}}, {{"databases", "1"}, {"nosuch", "x"}}, {{"timeout", "x"}, {"nosuch", "1"}}, {{"timeout", "3"}, {"timeout", "x"}},
		{{"hz", "10"}, {"HZ", "11"}}, {{"timeout", "44"}, {"hz", "abc"}}, {{"hash-max-ziplist-value", "x"}, {"hash-max-listpack-value", "y"}},
		{{"hash-max-ziplist-entries", "1"}, {"hash-max-listpack-entries", "2"}}, {{"Timeout", "5"}, {"TCP-KeepAlive", "6"}}, {{"dir", "/nonexistent/x"}},
		{{"LOGLEVEL", "x"}}, {{"pidfile", "a"}, {"pidfile", "b"}}, {{"include", "x"}}, {{"", ""}}, {{"dir", ""}}, {{"dir", "/etc/hostname"}}, {{"time out", "1"}},
		{{"requirepass", "a"}, {"nosuch", "b"}},
	} {
		p.set(pairs...)
		p.same("timeout", "hz", "tcp-keepalive", "loglevel", "hash-max-ziplist-entries", "hash-max-listpack-entries", "hash-max-listpack-value")
	}
}

// tryValues gives one directive all the values there are.
func (p peers) tryValues(d *Directive, name string) {
	p.Helper()
	if d.Secret {
		return // a password would close the door on the next command
	}
	for _, text := range append([]string{samples[d.Name].written, d.Default}, differentialValues...) {
		if n, err := strconv.Atoi(text); d.Name == "maxclients" && err == nil && n > 1000 {
			continue // Redis spends seconds on trying to raise the limit on open files
		}
		p.set(Pair{name, text})
		p.same(name)
	}
}
