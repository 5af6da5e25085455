package config

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/internal/quoting"
	"headgate/server/limiter"
)

func TestTableIsWellFormed(t *testing.T) {
	last := map[Group]string{}
	order := -1
	for _, d := range directives {
		require.Equal(t, strings.ToLower(d.Name), d.Name)
		require.NotEmpty(t, d.Summary, d.Name)
		require.True(t, strings.HasSuffix(d.Summary, "."), "%s: the summary is a sentence", d.Name)
		require.NotEmpty(t, d.Since, d.Name)
		require.NotEmpty(t, d.Default, d.Name)
		require.NotNil(t, d.kind, d.Name)
		require.True(t, d.Settable || !d.Guarded, "%s: guarded, so settable", d.Name)
		require.Greater(t, d.Name, last[d.Group], "sorted by name within a group")
		last[d.Group] = d.Name
		group := slices.Index(groups, d.Group)
		require.GreaterOrEqual(t, group, max(order, 0), "%s: groups are in order", d.Name)
		order = group
		_, found := findIgnored(d.Name)
		require.False(t, found, "%s is in both tables", d.Name)
	}
	for i, entry := range ignored {
		require.NotEmpty(t, entry.Reason, entry.Name)
		require.True(t, i == 0 || ignored[i-1].Name < entry.Name, "%s: sorted by name", entry.Name)
	}
}

func TestNameTwicePanics(t *testing.T) {
	require.Panics(t, func() {
		indexByName([]*Directive{{Name: "port"}, {Name: "portal", Aliases: []string{"port"}}})
	})
}

func TestDefaults(t *testing.T) {
	c := Default()
	require.Equal(t, []string{"127.0.0.1", "-::1"}, c.Bind)
	require.Equal(t, 6379, c.Port)
	require.Equal(t, 16, c.Databases)
	require.Equal(t, 1<<30, c.ClientQueryBufferLimit)
	require.Equal(t, OutputLimit{Hard: 64 << 20, Soft: 16 << 20, SoftTime: 30e9}, c.OutputLimits.Normal)
	require.Equal(t, LogNotice, c.LogLevel)
	require.Equal(t, LimitBurstPlusOne, c.CLThrottleLimit)
	require.True(t, c.ProtectedMode)
	require.Equal(t, []SavePoint{{3600, 1}, {300, 100}, {60, 10000}}, c.Save)
}

// TestDocumentsAreCurrent fails when the table has changed since the last go generate.
func TestDocumentsAreCurrent(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, Reference(&b))
	onDisk, err := os.ReadFile("../../docs/config.md")
	require.NoError(t, err)
	require.Equal(t, b.String(), string(onDisk), "run: go generate ./server/config")
}

// TestSampleFile: the sample is current and changes nothing, each of its lines is right by itself, and it leaves no directive out.
func TestSampleFile(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, SampleFile(&b))
	onDisk, err := os.ReadFile("../../headgate.conf")
	require.NoError(t, err)
	require.Equal(t, b.String(), string(onDisk), "run: go generate ./server/config")
	host := memoryHost(map[string]string{"/srv/headgate.conf": b.String()})
	live, notices, err := Load([]string{"/srv/headgate.conf"}, nil, host)
	require.NoError(t, err)
	require.Empty(t, notices)
	unchanged, _, err := Load(nil, nil, host)
	require.NoError(t, err)
	require.Equal(t, unchanged.Get(), live.Get())

	shown := map[string]bool{}
	for paragraph := range strings.SplitSeq(b.String(), "\n\n") {
		_, lines, _ := strings.Cut(paragraph, "\n#\n")
		for line := range strings.Lines(lines) {
			words, err := splitLine(strings.TrimPrefix(line, "# "))
			require.NoError(t, err, line)
			if len(words) == 0 {
				continue
			}
			if d := byName[words[0]]; d != nil {
				require.NoError(t, d.kind.parse(Default(), words[1:], false), line)
				shown[d.Name] = true
			}
		}
	}
	for _, d := range directives {
		require.True(t, shown[d.Name], d.Name)
		require.Equal(t, d.Default == `""`, d.Example != "", "%s has an example where its default shows no form", d.Name)
	}
}

func TestUsage(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, Usage(&b))
	for _, d := range directives {
		require.Contains(t, b.String(), " --"+d.Name+" ")
	}
	for line := range strings.Lines(b.String()) {
		require.LessOrEqual(t, len(line), 120, line)
	}
}

// sample is a value of a directive that is not its default.
type sample struct{ written, shown string }

// samples must name every directive.
var samples = map[string]sample{
	"bind":                       {"* -::*", "* -::*"},
	"busy-poll-us":               {"50", "50"},
	"io-threads":                 {"2", "2"},
	"busy-reply-threshold":       {"250", "250"},
	"cl-throttle-limit":          {"Capacity", "capacity"},
	"client-output-buffer-limit": {"pubsub 1mb 2k 3", "normal 67108864 16777216 30 slave 268435456 67108864 60 pubsub 1048576 2000 3"},
	"client-query-buffer-limit":  {"2mb", "2097152"},
	"daemonize":                  {"NO", "no"},
	"databases":                  {"4", "4"},
	"dir":                        {"data", "/srv/data"},
	"dbfilename":                 {"other.rdb", "other.rdb"},
	"enable-debug-command":       {"local", "local"},
	"enable-restore-command":     {"local", "local"},
	"enable-protected-configs":   {"yes", "yes"},
	"gc-percent":                 {"100", "100"},
	"hash-max-listpack-entries":  {"7", "7"},
	"hash-max-listpack-value":    {"1kb", "1024"},
	"hll-sparse-max-bytes":       {"2kb", "2048"},
	"stream-node-max-bytes":      {"1kb", "1024"},
	"stream-node-max-entries":    {"7", "7"},
	"hz":                         {"100", "100"},
	"latency-monitor-threshold":  {"5", "5"},
	"latency-tracking":           {"NO", "no"},
	"list-max-listpack-size":     {"-5", "-5"},
	"log-format":                 {"JSON", "json"},
	"logfile":                    {"/var/log/x y", "/var/log/x y"},
	"loglevel":                   {"WARNING", "warning"},
	"maxclients":                 {"12", "12"},
	"http-bind":                  {"::1 10.0.0.1", "::1 10.0.0.1"},
	"http-port":                  {"9122", "9122"},
	"http-unixsocket":            {"/run/h.sock", "/run/h.sock"},
	"http-unixsocketperm":        {"0770", "770"},
	"rls-bind":                   {"::1 10.0.0.1", "::1 10.0.0.1"},
	"rls-config":                 {"rules", "rules"},
	"rls-password":               {"s3cret", "s3cret"},
	"rls-port":                   {"8081", "8081"},
	"rls-response-headers":       {"yes", "yes"},
	"rls-tls":                    {"yes", "yes"},
	"rls-user":                   {"edge", "edge"},
	"metrics-bind":               {"::1 10.0.0.1", "::1 10.0.0.1"},
	"metrics-page-password":      {"s3cret", "s3cret"},
	"metrics-password":           {"s3cret", "s3cret"},
	"metrics-port":               {"9121", "9121"},
	"metrics-user":               {"prometheus", "prometheus"},
	"notify-keyspace-events":     {"KEgn", "gnKE"},
	"pidfile":                    {"/run/x.pid", "/run/x.pid"},
	"policy":                     {"login log 5 60s, api fixed 9 day tz UTC", "login LOG 5 60s, api FIXED 9 DAY TZ UTC"},
	"port":                       {"7000", "7000"},
	"protected-mode":             {"no", "no"},
	"proto-max-bulk-len":         {"1GB", "1073741824"},
	"requirepass":                {"open sesame", "open sesame"},
	"rdbchecksum":                {"no", "no"},
	"rdbcompression":             {"no", "no"},
	"save":                       {"900 1 60 5", "900 1 60 5"},
	"script-time-limit":          {"1000", "1000"},
	"set-max-intset-entries":     {"9", "9"},
	"shutdown-on-sigint":         {"FORCE now save", "save now force"},
	"shutdown-on-sigterm":        {"nosave", "nosave"},
	"shutdown-timeout":           {"3", "3"},
	"slowlog-log-slower-than":    {"-1", "-1"},
	"slowlog-max-len":            {"9", "9"},
	"tcp-backlog":                {"128", "128"},
	"tcp-keepalive":              {"60", "60"},
	"timeout":                    {"30", "30"},
	"tls-auth-clients":           {"Optional", "optional"},
	"tls-ca-cert-dir":            {"/etc/ssl/certs", "/etc/ssl/certs"},
	"tls-ca-cert-file":           {"tls/ca.crt", "tls/ca.crt"},
	"tls-cert-file":              {"tls/tls.crt", "tls/tls.crt"},
	"tls-ciphers":                {"ECDHE-RSA-AES128-GCM-SHA256:HIGH", "ECDHE-RSA-AES128-GCM-SHA256:HIGH"},
	"tls-key-file":               {"tls/tls.key", "tls/tls.key"},
	"tls-key-file-pass":          {"open sesame", "open sesame"},
	"tls-port":                   {"7001", "7001"},
	"tls-protocols":              {"TLSv1.3", "TLSv1.3"},
	"tls-session-caching":        {"no", "no"},
	"tracking-table-max-keys":    {"5", "5"},
	"unixsocket":                 {"/run/x.sock", "/run/x.sock"},
	"unixsocketperm":             {"0770", "770"},
	"top-keys":                   {"100", "100"},
	"top-window":                 {"60", "60"},
	"unknown-policy":             {"allow", "allow"},
	"wait-max-clients":           {"7", "7"},
	"wait-max-per-key":           {"7", "7"},
	"limiter-when-unwritable":    {"MEMORY", "memory"},
	"zset-max-listpack-entries":  {"8", "8"},
	"zset-max-listpack-value":    {"9b", "9"},

	"acl-pubsub-default": {"ALLCHANNELS", "allchannels"},
	"aclfile":            {"users.acl", "users.acl"},
	"acllog-max-len":     {"7", "7"},
	"rename-command":     {"flushall x debug y", "flushall x debug y"},
	"user":               {"alice on nopass", "alice on nopass"},

	"lfu-decay-time":              {"5", "5"},
	"lfu-log-factor":              {"3", "3"},
	"maxmemory":                   {"1gb", "1073741824"},
	"maxmemory-clients":           {"5%", "5%"},
	"maxmemory-eviction-tenacity": {"50", "50"},
	"maxmemory-policy":            {"Volatile-TTL", "volatile-ttl"},
	"maxmemory-samples":           {"7", "7"},

	"cluster-announce-hostname":       {"h.example", "h.example"},
	"cluster-announce-ip":             {"10.0.0.9", "10.0.0.9"},
	"cluster-announce-port":           {"6390", "6390"},
	"cluster-announce-tls-port":       {"6391", "6391"},
	"cluster-enabled":                 {"Emulated", "emulated"},
	"cluster-preferred-endpoint-type": {"Hostname", "hostname"},

	"aof-load-truncated":          {"no", "no"},
	"aof-timestamp-enabled":       {"yes", "yes"},
	"appenddirname":               {"log", "log"},
	"appendfilename":              {"log.aof", "log.aof"},
	"appendfsync":                 {"Always", "always"},
	"appendonly":                  {"YES", "yes"},
	"auto-aof-rewrite-min-size":   {"1mb", "1048576"},
	"auto-aof-rewrite-percentage": {"50", "50"},
	"no-appendfsync-on-rewrite":   {"yes", "yes"},

	"upstream":                  {"redis://gate@10.0.0.1:6379,10.0.0.2:6379", "redis://gate@10.0.0.1:6379,10.0.0.2:6379"},
	"upstream-failure":          {"Local", "local"},
	"upstream-lease":            {"YES", "yes"},
	"upstream-lease-max-ms":     {"250", "250"},
	"upstream-lease-overshoot":  {"0.10", "0.1"},
	"upstream-lease-strict":     {"yes", "yes"},
	"upstream-local-share":      {"0.50", "0.5"},
	"upstream-map":              {"10.0.0.1:6379 127.0.0.1:7001", "10.0.0.1:6379 127.0.0.1:7001"},
	"upstream-password":         {"open sesame", "open sesame"},
	"upstream-pending-max":      {"1mb 500", "1048576 500"},
	"upstream-rest-ms":          {"250", "250"},
	"upstream-take":             {"COMPENSATE", "compensate"},
	"upstream-timeout-ms":       {"20", "20"},
	"upstream-tls-ca-cert-file": {"ca.pem", "ca.pem"},
	"upstream-tls-cert-file":    {"cert.pem", "cert.pem"},
	"upstream-tls-key-file":     {"key.pem", "key.pem"},
	"upstream-user-map":         {"app gate-app", "app gate-app"},

	"latency-tracking-info-percentiles": {"50.0 99.99", "50 99.99"},
	"stop-writes-on-bgsave-error":       {"no", "no"},

	"repl-diskless-sync-max-replicas": {"2", "2"},

	"masterauth":               {"open sesame", "open sesame"},
	"masteruser":               {"alice", "alice"},
	"min-replicas-max-lag":     {"5", "5"},
	"min-replicas-to-write":    {"1", "1"},
	"repl-backlog-size":        {"10mb", "10485760"},
	"repl-backlog-ttl":         {"0", "0"},
	"repl-diskless-sync":       {"no", "no"},
	"repl-diskless-sync-delay": {"0", "0"},
	"repl-ping-replica-period": {"3", "3"},
	"repl-timeout":             {"90", "90"},
	"replica-announce-ip":      {"10.0.0.1", "10.0.0.1"},
	"replica-announce-port":    {"7000", "7000"},
	"replica-priority":         {"5", "5"},
	"replica-read-only":        {"No", "no"},
	"replica-serve-stale-data": {"no", "no"},
	"replicaof":                {"::1 6380", "::1 6380"},
	"tls-replication":          {"yes", "yes"},
}

// idleAlone are directives that do nothing by themselves, see TestNoticesOfDirectivesAtOdds.
var idleAlone = map[string]bool{
	"rls-config": true, "rls-bind": true, "rls-response-headers": true, "rls-user": true, "http-bind": true,
	"metrics-bind": true, "metrics-password": true, "metrics-page-password": true, "masteruser": true,
}

// TestEveryDirectiveEveryWay gives each directive by file, standard input, flag in two spellings, environment and, where it may be,
// CONFIG SET, under each of its names.
func TestEveryDirectiveEveryWay(t *testing.T) {
	for _, d := range directives {
		s, ok := samples[d.Name]
		require.True(t, ok, "add a sample for %s", d.Name)
		for _, name := range d.names() {
			line := name + " " + quoting.Quote(s.written)
			variable := "HEADGATE_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
			for _, way := range []struct {
				name, file, stdin string
				args, env         []string
			}{
				{name: "file", file: line + "\n", args: []string{"headgate.conf"}},
				{name: "stdin", stdin: strings.ToUpper(name) + " " + quoting.Quote(s.written), args: []string{"-"}},
				{name: "flag", args: []string{"--" + name, s.written}},
				{name: "flag in one word", args: []string{"--" + line}},
				{name: "environment", env: []string{"PATH=/bin", variable + "=" + s.written}},
			} {
				t.Run(name+"/"+way.name, func(t *testing.T) {
					host := memoryHost(map[string]string{"/srv/headgate.conf": way.file, "-": way.stdin})
					live, notices, err := Load(way.args, way.env, host)
					require.NoError(t, err)
					if !idleAlone[name] && (d.Group != Upstream || d.Name == "upstream") {
						require.Empty(t, notices)
					}
					require.Equal(t, s.shown, value(t, live, name))
				})
			}
			t.Run(name+"/CONFIG SET", func(t *testing.T) {
				live := load(t, "", "--enable-protected-configs", "local")
				err := live.Set([]Pair{{name, s.written}}, true)
				if d.Hidden {
					require.EqualError(t, err, "ERR Unknown option or number of arguments for CONFIG SET - '"+name+"'")
					return
				}
				if !d.Settable {
					require.EqualError(t, err, "ERR CONFIG SET failed (possibly related to argument '"+name+"') - can't set immutable config")
					return
				}
				require.NoError(t, err)
				require.Equal(t, s.shown, value(t, live, name))
			})
		}
	}
}

// TestNumericBounds tries, for each directive with bounds, both bounds and what lies just outside.
func TestNumericBounds(t *testing.T) {
	for _, d := range Directives() {
		var low, high int64
		unsigned := false
		switch k := d.kind.(type) {
		case integerKind:
			low, high = k.low, k.high
		case secondsKind:
			low, high = k.low, maxSeconds
		case memoryKind:
			low, high, unsigned = k.low, math.MaxInt, true
		default:
			continue
		}
		outside := fmt.Sprintf("argument must be between %d and %d inclusive", low, high)
		cases := map[string]string{
			fmt.Sprint(low): "", fmt.Sprint(high): "", fmt.Sprint(uint64(high) + 1): outside, "9999999999999999999": outside,
		}
		switch {
		case unsigned:
			cases["-1"], cases["x"], cases["1.5gb"] = "argument must be a memory value", "argument must be a memory value", "argument must be a memory value"
			cases["99999999999999999999999"], cases["99999999999gb"] = outside, outside
		default:
			cases[fmt.Sprint(low-1)] = outside
			for _, s := range []string{"", "x", "+1", " 1", "1 ", "01", "1kb", "-0", "0x10", "1_000"} {
				cases[s] = "argument couldn't be parsed into an integer"
			}
			cases["9999999999999999999"] = "argument couldn't be parsed into an integer"
			if high == math.MaxInt64 {
				cases[fmt.Sprint(uint64(high)+1)] = "argument couldn't be parsed into an integer"
			}
		}
		if low > 0 && unsigned {
			cases[fmt.Sprint(low-1)] = outside
		}
		for text, want := range cases {
			t.Run(d.Name+"/"+text, func(t *testing.T) {
				err := d.apply(Default(), []string{text}, false, memoryHost(nil))
				if want == "" {
					require.NoError(t, err)
					return
				}
				require.EqualError(t, err, want)
			})
		}
	}
}

func TestValues(t *testing.T) {
	socket := "/" + strings.Repeat("s", maxSocketPath-1)
	var addresses []string
	for i := range maxBindAddresses {
		addresses = append(addresses, fmt.Sprintf("::%d", i+1))
	}
	many := strings.Join(addresses, " ")
	for _, tt := range []struct{ name, value, want, err string }{
		{name: "hz", value: "0", want: "1"},
		{name: "hz", value: "501", want: "500"},
		{name: "hz", value: "500", want: "500"},
		{name: "unixsocketperm", value: "777", want: "777"},
		{name: "unixsocketperm", value: "1000", err: "argument must be between 0 and 777 inclusive"},
		{name: "unixsocketperm", value: "-1", err: "argument must be between 0 and 777 inclusive"},
		{name: "unixsocketperm", value: "8", err: "argument couldn't be parsed as an octal number"},
		{name: "http-unixsocket", value: socket + "s", err: "argument must be a path of at most 107 bytes"},
		{name: "unixsocket", value: socket, want: socket},
		{name: "unixsocket", value: socket + "s", err: "argument must be a path of at most 107 bytes"},
		{name: "bind", value: many, want: many},
		{name: "bind", value: many + " ::1", err: "Too many bind addresses specified."},
		{name: "bind", value: "127.0.0.1  ::1", err: "argument must be addresses with single spaces between them"},
		{name: "bind", value: "-", err: "argument must be addresses with single spaces between them"},
		{name: "bind", value: "", want: ""},
		{name: "protected-mode", value: "true", err: "argument must be 'yes' or 'no'"},
		{name: "loglevel", value: "nothing", err: "argument(s) must be one of the following: debug, verbose, notice, warning"},
		{name: "cl-throttle-limit", value: "burst", err: "argument(s) must be one of the following: burst+1, capacity"},
		{name: "policy", value: "", want: ""},
		{name: "policy", value: "login LOG 5 60s failure open when-unwritable memory", want: "login LOG 5 60s WHEN-UNWRITABLE MEMORY FAILURE OPEN"},
		{name: "policy", value: "exports ACQUIRE 5 60s LEASE", err: "LEASE is not possible with ACQUIRE, use NOLEASE or leave it out"},
		{name: "policy", value: "login LOG 5 60s FAILURE", err: "syntax error, try policy name LOG limit window [SHADOW] [BLOCK length [DOUBLE max]] [WHEN-UNWRITABLE <ERROR | MEMORY>] [FAILURE <ERROR | OPEN | CLOSED | LOCAL>] [NOLEASE] (FAILURE needs a value)"},
		{name: "upstream-local-share", value: "0", err: "argument must be a number from 0.001 to 1"},
		{name: "upstream-local-share", value: "1", want: "1"},
		{name: "upstream-map", value: "a b c", err: "argument must be an announced address and the one to use"},
		{name: "upstream-map", value: "a b a c", want: "a c"},
		{name: "upstream-map", value: "", want: ""},
		{name: "upstream-pending-max", value: "1mb", err: "argument must be a number of bytes and a number of commands"},
		{name: "upstream-pending-max", value: "1k 500", err: "argument must be between 65536 and 9223372036854775807 inclusive"},
		{name: "upstream-pending-max", value: "1mb 1", err: "argument must be between 16 and 2147483647 inclusive"},
		{name: "policy", value: "login LOG 5 60s, api UNLIMITED, login GCRA 5 1 1s", want: "api UNLIMITED, login GCRA 5 1 1s"},
		{name: "policy", value: `user "GCRA 10 5 1s"`, want: "user GCRA 10 5 1s"},
		{name: "policy", value: `"" GCRA 10 5 1s`, err: "policy name must be 1 to 64 characters of A-Z a-z 0-9 _ . : -"},
		{name: "policy", value: " LOG 5 60s", err: "policy name must be 1 to 64 characters of A-Z a-z 0-9 _ . : -"},
		{name: "policy", value: " login LOG 5 60s", want: "login LOG 5 60s"},
		{name: "policy", value: `user "GCRA 10 5 1s`, err: "unbalanced quotes, or text right behind a closing quote"},
		{name: "policy", value: "login", err: "argument must be a name, an algorithm and what follows it"},
		{name: "policy", value: "login LOG 5 60s,", err: "argument must be a name, an algorithm and what follows it"},
		{name: "policy", value: "lo/gin LOG 5 60s", err: "policy name must be 1 to 64 characters of A-Z a-z 0-9 _ . : -"},
		{name: "policy", value: "login LOGG 5 60s", err: strings.TrimPrefix(fmt.Sprintf(limiter.Standard.UnknownAlgorithm(), "LOGG"), "ERR ")},
		{name: "policy", value: "login LOG 5 60x", err: "invalid duration '60x', use a number with us, ms, s, m, h, d or w (none: ms)"},
		{name: "policy", value: "login LOG 5 60us", err: "duration '60us' is below 1ms"},
		{name: "policy", value: "login log 5 60", want: "login LOG 5 60ms"},
		{name: "policy", value: "login LOG 5 60s PEEK", err: "syntax error, try policy name LOG limit window [SHADOW] [BLOCK length [DOUBLE max]] [WHEN-UNWRITABLE <ERROR | MEMORY>] [FAILURE <ERROR | OPEN | CLOSED | LOCAL>] [NOLEASE] (unknown word 'PEEK')"},
		{name: "maxmemory", value: "60%", want: "60%"},
		{name: "maxmemory", value: "100mb", want: "104857600"},
		{name: "maxmemory", value: "101%", err: "percentage argument must be less or equal to 100"},
		{name: "maxmemory", value: "-1", err: "argument must be a memory or percent value"},
		{name: "maxmemory", value: "x%", err: "argument must be a memory or percent value"},
		{name: "maxmemory", value: "99999999999gb", err: "argument must be between 0 and 9223372036854775807 inclusive"},
		{name: "appenddirname", value: "", err: "appenddirname can't be empty"},
		{name: "appenddirname", value: "a/b", err: "appenddirname can't be a path, just a dirname"},
		{name: "appendfilename", value: "..", err: "appendfilename can't be a path, just a filename"},
		{name: "dbfilename", value: "a/b", err: "dbfilename can't be a path, just a filename"},
		{name: "dbfilename", value: "headgate.lock", err: "dbfilename can't be headgate.lock, which the server uses for itself"},
		{name: "save", value: "900 1", want: "900 1"},
		{name: "save", value: "900 ", want: "900 0"},
		{name: "save", value: "900", err: "Invalid save parameters"},
		{name: "save", value: "0 1", err: "Invalid save parameters"},
		{name: "save", value: "1 -1", err: "Invalid save parameters"},
		{name: "save", value: strings.TrimSpace(strings.Repeat("1 1 ", maxSavePoints+1)), err: "Invalid save parameters"},
		{name: "dir", value: "/missing", err: "No such file or directory"},
		{name: "dir", value: "", err: "No such file or directory"},
		{name: "dir", value: "a/../b/", want: "/srv/b"},
		{
			name: "client-output-buffer-limit", value: "NORMAL 99999999999999999999 0 2147483647 Replica 1 2 3",
			want: "normal 9223372036854775807 0 2147483647 slave 1 2 3 pubsub 33554432 8388608 60",
		},
		{name: "client-output-buffer-limit", value: "normal 1 1 2147483648", err: "Error in hard, soft or soft_seconds setting in buffer limit configuration."},
		{name: "client-output-buffer-limit", value: "normal 1 1 -1", err: "Error in hard, soft or soft_seconds setting in buffer limit configuration."},
		{name: "client-output-buffer-limit", value: "normal 1 1", err: "Wrong number of arguments in buffer limit configuration."},
		{name: "client-output-buffer-limit", value: "master 1 1 1", err: "Invalid client class specified in buffer limit configuration."},
	} {
		t.Run(tt.name+" "+tt.value, func(t *testing.T) {
			c := Default()
			c.Dir = "/srv"
			d := byName[tt.name]
			err := d.apply(c, []string{tt.value}, false, memoryHost(nil))
			if tt.err != "" {
				require.EqualError(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, d.Format(c))
		})
	}
}

// TestSaveAddsUp repeats the directive, as redis.conf does.
func TestSaveAddsUp(t *testing.T) {
	c := Default()
	k := saveKind{}
	require.NoError(t, k.parse(c, []string{"900", "1", "300", "10"}, false))
	first := c.Save
	require.NoError(t, k.parse(c, []string{"60", "100"}, true))
	require.Equal(t, "900 1 300 10 60 100", k.format(c))
	require.Len(t, first, 2, "a published configuration's list must not grow")
	require.NoError(t, k.parse(c, nil, true))
	require.Equal(t, []string{`""`}, k.lines(c))
	require.NoError(t, k.parse(c, []string{"5", "5"}, true))
	require.Equal(t, []string{"5 5"}, k.lines(c))
}

func TestAccess(t *testing.T) {
	require.False(t, AccessNo.Allows(true))
	require.True(t, AccessYes.Allows(false))
	require.True(t, AccessLocal.Allows(true))
	require.False(t, AccessLocal.Allows(false))
}

func TestPath(t *testing.T) {
	c := &Config{Dir: "/data"}
	require.Equal(t, "", c.Path(""))
	require.Equal(t, "/data/x.log", c.Path("x.log"))
	require.Equal(t, "/var/x.log", c.Path("/var/x.log"))
}
