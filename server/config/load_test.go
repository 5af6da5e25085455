package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/internal/quoting"
)

func TestPrecedence(t *testing.T) {
	host := memoryHost(map[string]string{
		"/srv/h.conf":    "hz 20\ntimeout 20\ntcp-keepalive 20\nmaxclients 20\ninclude more.conf\n",
		"/srv/more.conf": "maxclients 21\n",
		"-":              "timeout 30\ntcp-keepalive 30\nshutdown-timeout 30\n",
	})
	env := []string{"HEADGATE_TCP_KEEPALIVE=40", "HEADGATE_SHUTDOWN_TIMEOUT=40", "HEADGATE_CLIENT_OUTPUT_BUFFER_LIMIT=pubsub 4 4 4"}
	live, _, err := Load([]string{"h.conf", "--shutdown-timeout", "50", "--client-output-buffer-limit", "normal", "5", "5", "5", "-"}, env, host)
	require.NoError(t, err)
	require.Equal(t, "/srv/h.conf", live.Path())
	for name, want := range map[string]string{
		"port": "6379", "hz": "20", "maxclients": "21", "timeout": "30", "tcp-keepalive": "40", "shutdown-timeout": "50",
		"client-output-buffer-limit": "normal 5 5 5 slave 268435456 67108864 60 pubsub 4 4 4", "dir": "/srv",
	} {
		require.Equal(t, want, value(t, live, name), name)
	}
}

// TestUsersOfAText: a line end stands between users where they are one text, and is a part of a password where there are words.
func TestUsersOfAText(t *testing.T) {
	at := func(where, name string, rules ...string) User { return User{name, rules, where} }
	alice, bob, split := []string{"on", ">a\tb"}, []string{"nopass", "~x"}, []string{"on", ">pw\nbob", "+@all"}
	for _, tt := range []struct {
		file string
		env  []string
		args []string
		want []User
	}{
		{env: []string{"HEADGATE_USER=alice on >a\tb"}, want: []User{at("HEADGATE_USER", "alice", alice...)}},
		{env: []string{"HEADGATE_USER=\n\talice on >a\tb\r\n\n  bob  nopass ~x "}, want: []User{at("HEADGATE_USER", "alice", alice...), at("HEADGATE_USER", "bob", bob...)}},
		{file: `user alice on ">a\tb"` + "\nuser \"bob nopass ~x\"\n", want: []User{at("/srv/h.conf:1", "alice", alice...), at("/srv/h.conf:2", "bob", bob...)}},
		{file: `user alice on ">pw\nbob" +@all`, want: []User{at("/srv/h.conf:1", "alice", split...)}},
		{args: []string{"--user", "alice", "on", ">pw\nbob", "+@all"}, want: []User{at("--user", "alice", split...)}},
		{file: "user alice\n", env: []string{"HEADGATE_USER="}},
	} {
		live, _, err := Load(append([]string{"h.conf"}, tt.args...), tt.env, memoryHost(map[string]string{"/srv/h.conf": tt.file}))
		require.NoError(t, err)
		require.Equal(t, tt.want, live.Get().Users, "%q", tt)
	}
}

func TestArguments(t *testing.T) {
	for _, tt := range []struct {
		args  []string
		want  map[string]string
		err   string
		stdin string
	}{
		{args: nil, want: map[string]string{"port": "6379"}},
		{args: []string{"--port", "7000", "--save", "", "--appendonly", "no"}, want: map[string]string{"port": "7000", "save": ""}},
		{args: []string{"--save", "--port", "7000"}, want: map[string]string{"port": "7000"}},
		{args: []string{"--port", "7000", "--SAVE"}, want: map[string]string{"port": "7000"}},
		{args: []string{"--port 7000", "--requirepass 'a b'"}, want: map[string]string{"port": "7000", "requirepass": "a b"}},
		{args: []string{"--requirepass", "--abc", "--hz", "5"}, want: map[string]string{"requirepass": "--abc", "hz": "5"}},
		{args: []string{"--bind", "127.0.0.1", "-::1"}, want: map[string]string{"bind": "127.0.0.1 -::1"}},
		{args: []string{"--bind", "127.0.0.1 ::1"}, want: map[string]string{"bind": "127.0.0.1 ::1"}},
		{
			args: []string{"--client-output-buffer-limit", "normal", "64mb", "16mb", "30", "--client-output-buffer-limit", "pubsub 0 0 0"},
			want: map[string]string{"client-output-buffer-limit": "normal 67108864 16777216 30 slave 268435456 67108864 60 pubsub 0 0 0"},
		},
		{args: []string{"-", "--hz", "5"}, stdin: "hz 6\nport 7001\n", want: map[string]string{"hz": "5", "port": "7001"}},
		{args: []string{"--hz", "5", "-"}, stdin: "port 7001\n", want: map[string]string{"hz": "5", "port": "7001"}},
		{args: []string{"--hz", "5", "--hz", "6"}, want: map[string]string{"hz": "6"}},
		{args: []string{"--port", "0", "--unixsocket", "/run/x.sock"}, want: map[string]string{"port": "0"}},

		{args: []string{"--port"}, err: "--port: port: wrong number of arguments"},
		{args: []string{"--replicaof"}, err: "--replicaof: replicaof: wrong number of arguments"},
		{args: []string{"--port", "1", "2"}, err: "--port: port 1 2: wrong number of arguments"},
		{args: []string{"--port", "70000"}, err: "--port: port 70000: argument must be between 0 and 65535 inclusive"},
		{args: []string{"--port=7000"}, err: "--port: the value comes after a space: --port value"},
		{args: []string{"--prot", "1"}, err: `--prot: unknown directive "prot"; did you mean "port"?`},
		{args: []string{"--qqqqqqqqqq", "1"}, err: `--qqqqqqqqqq: unknown directive "qqqqqqqqqq"; headgate --help lists them all`},
		{args: []string{"--max-clients", "1"}, err: `--max-clients: unknown directive "max-clients"; did you mean "maxclients"?`},
		{args: []string{"--"}, err: "-- without a name; a directive is written --name value"},
		{args: []string{"--requirepass 'x"}, err: "--requirepass: unbalanced quotes, or text right behind a closing quote"},
		{args: []string{"-p", "7000"}, err: `"-p" belongs to no directive; a configuration file comes first, a directive starts with --`},
		{args: []string{"--loglevel", "--hz", "10"}, err: "--loglevel: loglevel --hz 10: wrong number of arguments"},
		{args: []string{"--requirepass", "secret", "word"}, err: "--requirepass: requirepass: wrong number of arguments"},
		{args: []string{"--port", "0"}, err: "nothing to listen on: port is 0 or bind is empty; set them, or tls-port or unixsocket"},
		{args: []string{"--bind", ""}, err: "nothing to listen on: port is 0 or bind is empty; set them, or tls-port or unixsocket"},
		{args: []string{"--http-port", "6379"}, err: "port and http-port are both 6379: choose another for one of them"},
		{args: []string{"--http-port", "6379", "--http-bind", "127.0.0.2"}},
		{args: []string{"--tls-port", "6379"}, err: "port and tls-port are both 6379: choose another for one of them"},
		{args: []string{"--metrics-port", "7000", "--rls-port", "7000", "--rls-bind", "*"}, err: "metrics-port and rls-port are both 7000: choose another for one of them"},
		{args: []string{"--metrics-port", "7000", "--metrics-bind", "::1", "--rls-port", "7000", "--rls-bind", "0.0.0.0"}},
		{args: []string{"--bind", "300.1.1.1"}, err: "--bind: bind 300.1.1.1: argument must be addresses, and 300.1.1.1 is none"},
		{args: []string{"--bind", "-10.0.1"}, err: "--bind: bind -10.0.1: argument must be addresses, and 10.0.1 is none"},
		{args: []string{"--bind", "127.0.0.1:6379"}, err: "--bind: bind 127.0.0.1:6379: argument must be addresses without ports, and 127.0.0.1:6379 has one"},
		{args: []string{"--bind", "127.0.0.1 ::ffff:127.0.0.1"}, err: "--bind: bind \"127.0.0.1 ::ffff:127.0.0.1\": argument names 127.0.0.1 twice"},
		{args: []string{"--http-bind", "foo/8"}, err: "--http-bind: http-bind foo/8: argument must be addresses, and foo/8 is none"},
		{args: []string{"--bind", "* -::* -fe80::1%lo my_host"}},
		{args: []string{"--unixsocket", "a.sock", "--http-unixsocket", "./a.sock"}, err: "unixsocket and http-unixsocket are both a.sock: choose another for one of them"},
		{args: []string{"--dir", "/srv", "--unixsocket", "/srv/a.sock", "--http-unixsocket", "/srv/./a.sock"}, err: "unixsocket and http-unixsocket are both /srv/a.sock: choose another for one of them"},
		{args: []string{"--dir", "/srv", "--unixsocket", "/srv/x/../a.sock", "--http-unixsocket", "a.sock"}, err: "unixsocket and http-unixsocket are both /srv/x/../a.sock: choose another for one of them"},
		{args: []string{"--unixsocket", "/x/s", "--http-unixsocket", "/x/y/s"}},
		{args: []string{"--dir", "/missing/x"}, err: "--dir: dir /missing/x: No such file or directory"},
		{args: []string{"--dir", "/missing/..", "--dir", "../missing"}, err: "--dir: dir ../missing: /missing: No such file or directory"},
		{args: []string{"none.conf"}, err: "cannot read the configuration file /srv/none.conf: file does not exist; check its path and permissions"},
		{args: []string{"-"}, stdin: "hz x\n", err: "stdin:1: hz x: argument couldn't be parsed into an integer"},
		{args: []string{"-"}, stdin: strings.Repeat("#", maxFileSize+1), err: "cannot read the configuration from standard input: longer than 1048576 bytes"},
	} {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			live, _, err := Load(tt.args, nil, memoryHost(map[string]string{"-": tt.stdin}))
			if tt.err != "" {
				require.EqualError(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			for name, want := range tt.want {
				require.Equal(t, want, value(t, live, name), name)
			}
		})
	}
}

func TestFileErrors(t *testing.T) {
	for _, tt := range []struct{ text, err string }{
		{"\n# c\nhz abc\n", "/srv/h.conf:3: hz abc: argument couldn't be parsed into an integer"},
		{"hz 10 # no comment here\n", `/srv/h.conf:1: hz 10 "#" no comment here: wrong number of arguments; a comment stands on a line of its own`},
		{"bind 127.0.0.1 # local\n", `/srv/h.conf:1: bind 127.0.0.1 "#" local: argument must be addresses, and # is none; a comment stands on a line of its own`},
		{"requirepass secret # words\n", "/srv/h.conf:1: requirepass: wrong number of arguments; a comment stands on a line of its own"},
		{"hz \"10\n", "/srv/h.conf:1: unbalanced quotes, or text right behind a closing quote"},
		{"requirepass \"secret\n", "/srv/h.conf:1: unbalanced quotes, or text right behind a closing quote"},
		{"port=23010\n", `/srv/h.conf:1: unknown directive "port="; a blank stands before the value: port VALUE`},
		{"requirepass=secret\n", `/srv/h.conf:1: unknown directive "requirepass="; a blank stands before the value: requirepass VALUE`},
		{"requirepas secret\n", `/srv/h.conf:1: unknown directive "requirepas"; did you mean "requirepass"?`},
		{"maxmemory-polic x\n", `/srv/h.conf:1: unknown directive "maxmemory-polic"; did you mean "maxmemory-policy"?`},
		{"enable-module-command yes\n", "/srv/h.conf:1: enable-module-command: headgate loads no modules; remove it, or set it to no"},
		{"tls-protocols TLSv1.1\n", "/srv/h.conf:1: tls-protocols TLSv1.1: argument must name TLSv1.2, TLSv1.3 or both; older versions are not served"},
		{"tls-ciphers HIGH:!HIGH:RC4-SHA\n", "/srv/h.conf:1: tls-ciphers HIGH:!HIGH:RC4-SHA: argument names RC4-SHA, which is none of DEFAULT, ECDHE-ECDSA-AES128-GCM-SHA256, ECDHE-ECDSA-AES128-SHA, ECDHE-ECDSA-AES256-GCM-SHA384, ECDHE-ECDSA-AES256-SHA, ECDHE-ECDSA-CHACHA20-POLY1305, ECDHE-RSA-AES128-GCM-SHA256, ECDHE-RSA-AES128-SHA, ECDHE-RSA-AES256-GCM-SHA384, ECDHE-RSA-AES256-SHA, ECDHE-RSA-CHACHA20-POLY1305"},
		{"tls-ciphers !aNULL\n", "/srv/h.conf:1: tls-ciphers !aNULL: argument leaves no cipher suite"},
		{"port 7000\nreplicaof ::1 7000\n", "replicaof names this server itself, which listens on port 7000: name another one, or remove it"},
		{"port 7000\nreplicaof localhost 7000\n", "replicaof names this server itself, which listens on port 7000: name another one, or remove it"},
		{"port 0\ntls-port 7000\nreplicaof 127.0.0.1 7000\n", "replicaof names this server itself, which listens on port 7000: name another one, or remove it"},
		{"upstream 10.0.0.1:6379\nshutdown-on-sigterm save\n", "shutdown-on-sigterm or shutdown-on-sigint says save, but a gateway to an upstream keeps no data: remove one of the two"},
		{"upstream 10.0.0.1:6379\nreplicaof host 1\n", "replicaof is set, but a gateway to an upstream keeps no data: remove one of the two"},
		{"replicaof host\n", "/srv/h.conf:1: replicaof host: argument must be a host and a port"},
		{"replicaof host 0\n", "/srv/h.conf:1: replicaof host 0: argument must be between 1 and 65535 inclusive"},
		{"rename-command FLUSHALL\n", "/srv/h.conf:1: rename-command FLUSHALL: wrong number of arguments"},
		{"user a >secret\nuser a on\n", "/srv/h.conf:2: user: Duplicate user found. A user can only be defined once in config files"},
		{"loadmodule /x/other.so\n", "/srv/h.conf:1: loadmodule: headgate loads no modules; remove the line"},
		{"include\n", "/srv/h.conf:1: include: wrong number of arguments"},
		{"include h.conf\n", "/srv/h.conf:1: include: more than 16 files deep; check for files that include each other"},
		{"include two*.conf\n", "/srv/two.conf:1: include: more than 256 configuration files"},
		{"include gone.conf\n", "/srv/h.conf:1: cannot read the configuration file /srv/gone.conf: file does not exist; check its path and permissions"},
		{"include [.conf\n", "/srv/h.conf:1: include [.conf: syntax error in pattern"},
		{"include bad.conf\n", "/srv/bad.conf:2: hz -1: argument must be between 0 and 2147483647 inclusive"},
	} {
		t.Run(tt.text, func(t *testing.T) {
			_, _, err := Load([]string{"h.conf"}, nil, memoryHost(map[string]string{
				"/srv/h.conf": tt.text, "/srv/bad.conf": "\nhz -1\n", "/srv/two.conf": "include two*.conf\n", "/srv/two2.conf": "",
			}))
			require.Error(t, err)
			require.NotContains(t, err.Error(), "secret")
			require.NotContains(t, err.Error(), "\n")
			if strings.Contains(tt.text, "two*") {
				require.ErrorContains(t, err, "files")
				return
			}
			require.EqualError(t, err, tt.err)
		})
	}
}

func TestTooManyFiles(t *testing.T) {
	files := map[string]string{"/srv/h.conf": "include d/*.conf\n"}
	for i := range maxFiles {
		files[fmt.Sprintf("/srv/d/%d.conf", i)] = "hz 10\n"
	}
	_, _, err := Load([]string{"h.conf"}, nil, memoryHost(files))
	require.EqualError(t, err, "/srv/h.conf:1: more than 256 configuration files; check the include directives for a loop")
	delete(files, "/srv/d/0.conf")
	_, _, err = Load([]string{"h.conf"}, nil, memoryHost(files))
	require.NoError(t, err)
}

func TestInclude(t *testing.T) {
	host := memoryHost(map[string]string{
		"/srv/h.conf":        "\ufeffhz 10\r\ninclude conf.d/*.conf\r\ninclude none*.conf\r\ntimeout 9\r\n",
		"/srv/conf.d/a.conf": "hz 11\ntimeout 1\n",
		"/srv/conf.d/b.conf": "hz 12\n",
	})
	live, notices, err := Load([]string{"h.conf"}, nil, host)
	require.NoError(t, err)
	require.Empty(t, notices)
	require.Equal(t, "12", value(t, live, "hz"))
	require.Equal(t, "9", value(t, live, "timeout"))
}

func TestNotices(t *testing.T) {
	_, notices, err := Load([]string{"h.conf", "--enable-module-command", "no"}, []string{"HEADGATE_ACTIVEDEFRAG=yes"}, memoryHost(map[string]string{
		"/srv/h.conf": "loadmodule /lib/libredis_cell.so\njemalloc-bg-thread yes\ndaemonize yes\nLazyfree-Lazy-Expire Yes\nrepl-diskless-load swapdb\nloadmodule redis-cell.so\n",
	}))
	require.NoError(t, err)
	var lines []string
	for _, n := range notices {
		lines = append(lines, n.String())
	}
	require.Equal(t, []string{
		"/srv/h.conf:1: CL.THROTTLE is built in",
		"/srv/h.conf:2: jemalloc-bg-thread is ignored: headgate manages its memory in its own way",
		"/srv/h.conf:3: daemonize is ignored: headgate stays in the foreground; let systemd or the container run it",
		"/srv/h.conf:4: lazyfree-lazy-expire is ignored: headgate manages its memory in its own way",
		"/srv/h.conf:5: repl-diskless-load is ignored: a primary's snapshot is always loaded as it comes, beside the old data",
		"/srv/h.conf:6: CL.THROTTLE is built in",
		"HEADGATE_ACTIVEDEFRAG: activedefrag is ignored: headgate manages its memory in its own way",
		"--enable-module-command: enable-module-command is ignored: headgate loads no modules",
	}, lines)
}

func TestEnvironment(t *testing.T) {
	for _, tt := range []struct {
		env, notice, err string
		port             string
	}{
		{env: "HEADGATE_PORT=7000", port: "7000"},
		{env: "HEADGATE_PORT=tcp://10.0.0.1:6379", port: "6379", notice: "HEADGATE_PORT: ignored: it describes a Kubernetes service, and sets no directive"},
		{env: "HEADGATE_PORT_6379_TCP=tcp://10.0.0.1:6379", port: "6379"},
		{env: "HEADGATE_PORT_6379_TCP_ADDR=10.0.0.1", port: "6379"},
		{env: "HEADGATE_SERVICE_HOST=10.0.0.1", port: "6379"},
		{env: "HEADGATE_SERVICE_PORT_REDIS=6379", port: "6379"},
		{env: "HEADGATE_SHARED_PORT=tcp://10.0.0.1:6379", port: "6379"},
		{env: "OTHER_PORT=1", port: "6379"},
		{env: "HEADGATE_PORT=x", err: "HEADGATE_PORT: port x: argument couldn't be parsed into an integer"},
		{env: "HEADGATE_PROT=1", err: "HEADGATE_PROT: no directive has that name; did you mean HEADGATE_PORT?"},
		{env: "HEADGATE_QQQQQQQQQQ=1", err: "HEADGATE_QQQQQQQQQQ: no directive has that name; headgate --help lists the directives"},
		{env: "HEADGATE_ENABLE_MODULE_COMMAND=yes", err: "HEADGATE_ENABLE_MODULE_COMMAND: enable-module-command: headgate loads no modules; remove it, or set it to no"},
	} {
		t.Run(tt.env, func(t *testing.T) {
			live, notices, err := Load(nil, []string{tt.env}, memoryHost(nil))
			if tt.err != "" {
				require.EqualError(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.port, value(t, live, "port"))
			if tt.notice == "" {
				require.Empty(t, notices)
				return
			}
			require.Len(t, notices, 1)
			require.Equal(t, tt.notice, notices[0].String())
		})
	}
}

// TestOSHost goes to the real file system.
func TestOSHost(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	host := OSHost()
	write := func(name, text string) { require.NoError(t, os.WriteFile(name, []byte(text), 0o600)) }
	write("h.conf", "include more-*.conf\ndir "+quoting.Quote(dir)+"\n")
	write("more-1.conf", "hz 33\n")
	live, _, err := Load([]string{"h.conf"}, nil, host)
	require.NoError(t, err)
	require.Equal(t, "33", value(t, live, "hz"))

	write("big.conf", strings.Repeat("#", maxFileSize+1))
	_, _, err = Load([]string{"big.conf"}, nil, host)
	require.ErrorContains(t, err, "big.conf: longer than 1048576 bytes; check its path and permissions")
	_, _, err = Load([]string{dir}, nil, host)
	require.ErrorContains(t, err, "is a directory")

	require.NoError(t, host.CheckDir(dir))
	require.EqualError(t, host.CheckDir(filepath.Join(dir, "gone")), "No such file or directory")
	require.EqualError(t, host.CheckDir(filepath.Join(dir, "h.conf")), "Not a directory")
	if os.Getuid() != 0 {
		require.NoError(t, os.Mkdir("closed", 0))
		require.EqualError(t, host.CheckDir(filepath.Join(dir, "closed")), "Permission denied")
	}
}

// TestNoticesOfDirectivesAtOdds: what is set and does nothing, or does not go with something else, is said.
func TestNoticesOfDirectivesAtOdds(t *testing.T) {
	for args, want := range map[string][]Notice{
		"--rls-config rules":                {{"rls-config", "it does nothing without rls-port, and its files are not read"}},
		"--rls-config rules --rls-port 1":   nil,
		"--port 7000":                       nil,
		"--rls-port 1":                      nil,
		"--rls-config rules --http-port 80": {{"rls-config", "it does nothing without rls-port, and its files are not read"}},
		"--rls-bind ::1 --rls-response-headers yes": {
			{"rls-bind", "it does nothing without rls-port"}, {"rls-response-headers", "it does nothing without rls-port"},
		},
		"--rls-user edge --rls-port 1":                  {{"rls-user", "it does nothing without rls-password: limits are checked as the default user"}},
		"--rls-user edge --rls-password x --rls-port 1": nil,
		"--http-bind ::1":                               {{"http-bind", "it does nothing without http-port"}},
		"--http-bind ::1 --http-port 80":                nil,
		"--metrics-password x --metrics-page-password y": {
			{"metrics-password", "it does nothing without metrics-port"}, {"metrics-page-password", "it does nothing without metrics-port"},
		},
		"--metrics-bind ::1":                             {{"metrics-bind", "it does nothing without metrics-port"}},
		"--metrics-password x --metrics-port 9121":       nil,
		"--masteruser replica":                           {{"masteruser", "it does nothing without masterauth"}},
		"--masteruser replica --masterauth x":            nil,
		"--requirepass x":                                nil,
		"--requirepass x --user default on >y":           {{"requirepass", "it does nothing with a line for the user default, which says what passwords that one has"}},
		"--requirepass x --aclfile users.acl":            {{"requirepass", "it does nothing with aclfile: passwords are those of the file's users"}},
		"--upstream-lease yes":                           {{"upstream-lease", "it does nothing without upstream"}},
		"--upstream-lease yes --upstream 127.0.0.1:7000": nil,
		"--upstream-password x --upstream-timeout-ms 7 --upstream-failure open": {
			{"upstream-failure", "it does nothing without upstream"}, {"upstream-password", "it does nothing without upstream"},
			{"upstream-timeout-ms", "it does nothing without upstream"},
		},
		"--repl-timeout 10":             {{"repl-timeout", TooSeldom}},
		"--repl-ping-replica-period 60": {{"repl-timeout", TooSeldom}},
		"--repl-timeout 11":             nil,
		// A file for two machines, of which one has the address.
		"--bind 127.0.0.1 -10.9.9.1 --replicaof 10.9.9.1 6379":         nil,
		"--bind 127.0.0.1 -primary.test --replicaof primary.test 6379": nil,
	} {
		_, notices, err := Load(strings.Fields(args), nil, memoryHost(nil))
		require.NoError(t, err)
		require.Equal(t, want, notices, args)
	}
}

// TestAddressesToListenOnTwice: a start would have failed since the port is in use, by the server itself.
func TestAddressesToListenOnTwice(t *testing.T) {
	for _, tt := range []struct{ bind, err string }{
		{bind: "127.0.0.1 -::1"},                                 // the default
		{bind: "* -::*"}, {bind: "0.0.0.0 ::"}, {bind: "-::* *"}, // :: is IPv6's alone
		{bind: "* ::1"}, {bind: ":: 127.0.0.1"}, {bind: ":: ::ffff:127.0.0.1"}, {bind: "127.0.0.1 127.0.0.2 10.0.0.1 ::1 fe80::1%lo fe80::1%eth0"},
		{bind: "* localhost"}, {bind: "localhost 127.0.0.1"}, // a name is not looked up
		{bind: "* -10.9.9.1"}, {bind: "-2001:db8::1 ::"}, // another machine's, to which the file is given as well
		{bind: "* 127.0.0.1", err: "127.0.0.1 beside *, which stands for all IPv4 addresses: remove one of the two"},
		{bind: "127.0.0.1 *", err: "127.0.0.1 beside *, which stands for all IPv4 addresses: remove one of the two"},
		{bind: "0.0.0.0 127.0.0.1", err: "127.0.0.1 beside 0.0.0.0, which stands for all IPv4 addresses: remove one of the two"},
		{bind: "::1 10.9.9.1 -*", err: "10.9.9.1 beside *, which stands for all IPv4 addresses: remove one of the two"},
		{bind: "* -127.0.0.1", err: "127.0.0.1 beside *, which stands for all IPv4 addresses: remove one of the two"},
		{bind: "* ::ffff:10.0.0.1", err: "::ffff:10.0.0.1 beside *, which stands for all IPv4 addresses: remove one of the two"},
		{bind: "::ffff:0.0.0.0 10.0.0.1", err: "10.0.0.1 beside ::ffff:0.0.0.0, which stands for all IPv4 addresses: remove one of the two"},
		{bind: ":: ::1", err: "::1 beside ::, which stands for all IPv6 addresses: remove one of the two"},
		{bind: "-::* * fe80::1%lo", err: "fe80::1%lo beside ::*, which stands for all IPv6 addresses: remove one of the two"},
		{bind: "* 0.0.0.0", err: "0.0.0.0 beside *, which stands for all IPv4 addresses: remove one of the two"},
		{bind: "::* -0:0:0:0:0:0:0:0", err: "0:0:0:0:0:0:0:0 beside ::*, which stands for all IPv6 addresses: remove one of the two"},
		{bind: "* -*", err: "* twice"}, {bind: ":: ::", err: ":: twice"}, {bind: "my_host -my_host", err: "my_host twice"},
		{bind: "::1 0:0:0:0:0:0:0:1", err: "::1 twice"}, {bind: "127.0.0.1 -127.0.0.1", err: "127.0.0.1 twice"},
	} {
		_, _, err := Load([]string{"--bind", tt.bind}, nil, memoryHost(nil))
		if tt.err == "" {
			require.NoError(t, err, tt.bind)
			continue
		}
		require.EqualError(t, err, "--bind: bind \""+tt.bind+"\": argument names "+tt.err)
		require.Error(t, load(t, "").Set([]Pair{{"bind", tt.bind}}, true), "CONFIG SET has no other rule")
	}
}

// TestPortsApart: ports are one if they are the same number on the same address, in whatever words that is written.
func TestPortsApart(t *testing.T) {
	for _, tt := range []struct {
		bind, http string
		same       bool
	}{
		{"127.0.0.1 -::1", "127.0.0.2", false},
		{"127.0.0.1", "::1", false},
		{"*", "::1", false},
		{"0.0.0.0", "::", false},
		{"::", "::ffff:127.0.0.1", false},
		{"::1", "::2", false},
		{"fe80::1%lo", "fe80::1%eth0", false},
		{"a.test", "b.test", false},
		{"127.0.0.1", "a.test", false},
		{"127.0.0.1", "127.0.0.1", true},
		{"127.0.0.1", "::ffff:127.0.0.1", true},
		{"::ffff:7f00:1", "127.0.0.1", true},
		{"::1", "0:0:0:0:0:0:0:1", true},
		{"127.0.0.1 -::1", "-0000::0001", true},
		{"*", "::ffff:10.0.0.1", true},
		{"0:0:0:0:0:0:0:0", "::1", true},
		{"::1", "::*", true},
		{"::", "::*", true},
		{"::ffff:0.0.0.0", "*", true},
		{"0.0.0.0", "10.0.0.1", true},
		{"a.test", "-a.test", true},
		{"*", "a.test", true},
	} {
		for _, lists := range [][2]string{{tt.bind, tt.http}, {tt.http, tt.bind}} {
			_, _, err := Load([]string{"--port", "7000", "--bind", lists[0], "--http-port", "7000", "--http-bind", lists[1]}, nil, memoryHost(nil))
			if tt.same {
				require.EqualError(t, err, "port and http-port are both 7000: choose another for one of them", "%v", lists)
			} else {
				require.NoError(t, err, "%v", lists)
			}
			_, _, err = Load([]string{"--port", "7000", "--bind", lists[0], "--http-port", "7001", "--http-bind", lists[1]}, nil, memoryHost(nil))
			require.NoError(t, err, "%v on two ports", lists)
		}
	}
}

// TestAllMistakesAreTold: a file with several mistakes took as many attempts as it has mistakes.
func TestAllMistakesAreTold(t *testing.T) {
	host := memoryHost(map[string]string{
		"/srv/h.conf":    "port x\nhz \"10\ninclude more.conf\ninclude none.conf\nmaxclients 20\nprot 1\n",
		"/srv/more.conf": "\ntimeout y\nrequirepass secret words\n",
	})
	_, _, err := Load([]string{"h.conf", "--maxmemory", "lots"}, []string{"HEADGATE_HZ=z"}, host)
	var all Mistakes
	require.ErrorAs(t, err, &all)
	var lines []string
	for _, one := range all {
		lines = append(lines, one.Error())
	}
	require.Equal(t, []string{
		"/srv/h.conf:1: port x: argument couldn't be parsed into an integer",
		"/srv/h.conf:2: unbalanced quotes, or text right behind a closing quote",
		"/srv/more.conf:2: timeout y: argument couldn't be parsed into an integer",
		"/srv/more.conf:3: requirepass: wrong number of arguments",
		"/srv/h.conf:4: cannot read the configuration file /srv/none.conf: file does not exist; check its path and permissions",
		`/srv/h.conf:6: unknown directive "prot"; did you mean "port"?`,
		"HEADGATE_HZ: hz z: argument couldn't be parsed into an integer",
		"--maxmemory: maxmemory lots: argument must be a memory or percent value",
	}, lines)
	require.Equal(t, strings.Join(lines, "; "), err.Error())
	require.ErrorIs(t, err, os.ErrNotExist)

	_, _, err = Load([]string{"-"}, nil, memoryHost(map[string]string{"-": strings.Repeat("hz x\n", 10*maxMistakes)}))
	require.ErrorAs(t, err, &all)
	require.Len(t, all, maxMistakes+1)
	require.EqualError(t, all[maxMistakes], "there are more than 20 mistakes: correct these first")
}
