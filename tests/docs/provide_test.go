package docs

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

var (
	upstreamURL = regexp.MustCompile(`\b(rediss?|redis-sentinel)://(\w+)@([^/\s]+)(?:/(\w+))?`)
	passwordSet = regexp.MustCompile(`\bupstream-password (\S+)`)
	versusFlag  = regexp.MustCompile(`--vs (\S+:\d+)`)
	logArg      = regexp.MustCompile(`/\S+/access\.log\S*`)
	rulesFlag   = regexp.MustCompile(`--rls-config (\S+)`)
	yamlBlock   = regexp.MustCompile("(?ms)^```yaml\n(domain:.*?)^```$")
)

// provide has there be what a line takes for granted: a Redis that it names, and files of the reader's own.
func (r *reader) provide(line string) {
	r.t.Helper()
	if strings.Contains(line, "--check-config") {
		return
	}
	if found := upstreamURL.FindStringSubmatch(line); found != nil {
		r.provideUpstream(found[1], found[2], r.password(line), strings.Split(found[3], ","), found[4])
	}
	if found := versusFlag.FindStringSubmatch(line); found != nil {
		r.provideServer(found[1])
	}
	for _, path := range logArg.FindAllString(line, -1) {
		r.write(path, `192.0.2.7 - - [02/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 612 "-" "curl/8.0"`+"\n")
	}
	if found := rulesFlag.FindStringSubmatch(line); found != nil {
		text, err := os.ReadFile(filepath.Join(*clone, r.document))
		require.NoError(r.t, err)
		rules := yamlBlock.FindSubmatch(text)
		require.NotNil(r.t, rules, "%s shows no rules", r.document)
		r.write(filepath.Join(found[1], "shown.yaml"), string(rules[1]))
	}
}

func (r *reader) write(path, text string) {
	r.t.Helper()
	require.NoError(r.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(r.t, os.WriteFile(path, []byte(text), 0o644))
}

// password is the one that a gateway has of its upstream: set by the line, or exported before it. It may be empty.
func (r *reader) password(line string) string {
	r.t.Helper()
	if found := passwordSet.FindStringSubmatch(line); found != nil {
		return found[1]
	}
	out, err := r.shell(`printf %s "$HEADGATE_UPSTREAM_PASSWORD"`, "").Output()
	require.NoError(r.t, err)
	return string(out)
}

// provideUpstream starts the servers of an upstream: one, a cluster of several, or sentinels with their primary. On those that run already it
// only sets the user.
func (r *reader) provideUpstream(scheme, user, password string, addresses []string, name string) {
	r.t.Helper()
	for i, addr := range addresses {
		host, port, err := net.SplitHostPort(addr)
		require.NoError(r.t, err)
		ips, err := net.LookupHost(host)
		require.NoError(r.t, err, "a document names this machine")
		addresses[i] = net.JoinHostPort(ips[0], port)
		if host == "headgate" {
			r.launch("bin/headgate", addresses[i])
		}
	}
	secret := ">" + password
	if password == "" {
		secret = "nopass"
	}
	setUser := func(s *served) {
		r.ask(s, "ACL", "SETUSER", user, "reset", "on", secret, "~*", "&*", "+@all")
	}
	switch {
	case scheme == "redis-sentinel":
		primary := r.provideServer(net.JoinHostPort("127.0.0.1", strconv.Itoa(harness.FreePort(r.t))))
		setUser(primary)
		for _, addr := range addresses {
			r.provideSentinel(addr, name, primary.addresses[0], user, password)
		}
	case scheme == "rediss":
		cert, key := harness.Certificate(r.t, "redis.example")
		text, err := os.ReadFile(cert)
		require.NoError(r.t, err)
		r.write(filepath.Join(*clone, "ca.crt"), string(text))
		_, port, err := net.SplitHostPort(addresses[0])
		require.NoError(r.t, err)
		setUser(r.provideServer(addresses[0], "--port", "0", "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key,
			"--tls-ca-cert-file", cert, "--tls-auth-clients", "no"))
	case len(addresses) > 1:
		for _, s := range r.provideCluster(addresses) {
			setUser(s)
		}
	default:
		setUser(r.provideServer(addresses[0]))
	}
}

// provideServer has a redis-server at an address, or what was started there for another line before.
func (r *reader) provideServer(addr string, flags ...string) *served {
	r.t.Helper()
	if s := r.at(addr); s != nil && s.control != "" {
		return s
	}
	return r.launch("redis-server", addr, flags...)
}

// launch starts a server that no line has started, and returns when it answers.
func (r *reader) launch(program, addr string, flags ...string) *served {
	r.t.Helper()
	host, port, err := net.SplitHostPort(addr)
	require.NoError(r.t, err)
	dir := r.t.TempDir()
	control := filepath.Join(dir, "control")
	words := append([]string{"--bind", host, "--port", port, "--dir", dir, "--unixsocket", control, "--save", "''"}, flags...)
	cmd := r.shell(program+" "+strings.Join(words, " "), "")
	s := r.start(program+" at "+addr, cmd, []string{addr})
	s.control = control
	r.await(s, func() error {
		conn, err := net.Dial("unix", control)
		if err == nil {
			err = conn.Close()
		}
		return err
	})
	require.Contains(r.t, r.ask(s, "PING"), "PONG")
	return s
}

// ask sends a command to a server that was launched, which must not answer with an error.
func (r *reader) ask(s *served, args ...string) string {
	r.t.Helper()
	client := harness.Dial(r.t, s.control)
	defer client.Close()
	reply := string(client.Do(args...))
	require.NotRegexp(r.t, "^-", reply, "%s: %v", s.line, args)
	return reply
}

// provideCluster has a cluster of primaries, which share the slots.
func (r *reader) provideCluster(addresses []string) (nodes []*served) {
	r.t.Helper()
	const slots = 16384
	for i, addr := range addresses {
		host, port, err := net.SplitHostPort(addr)
		require.NoError(r.t, err)
		node := r.launch("redis-server", addr, "--cluster-enabled", "yes", "--cluster-announce-ip", host)
		r.ask(node, "CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(i*slots/len(addresses)), strconv.Itoa((i+1)*slots/len(addresses)-1))
		nodes = append(nodes, node)
		r.ask(nodes[0], "CLUSTER", "MEET", host, port)
	}
	for _, node := range nodes {
		require.Eventually(r.t, func() bool { return strings.Contains(r.ask(node, "CLUSTER", "INFO"), "cluster_state:ok") },
			6*harness.ReplyTimeout, harness.ReplyTimeout/100, "the cluster's slots")
	}
	return nodes
}

// provideSentinel has a sentinel that monitors a primary under a name.
func (r *reader) provideSentinel(addr, name, primary, user, password string) {
	r.t.Helper()
	host, port, err := net.SplitHostPort(addr)
	require.NoError(r.t, err)
	ofHost, ofPort, err := net.SplitHostPort(primary)
	require.NoError(r.t, err)
	path := filepath.Join(r.t.TempDir(), "sentinel.conf")
	r.write(path, "bind "+host+"\nport "+port+"\nsentinel monitor "+name+" "+ofHost+" "+ofPort+" 2\nsentinel auth-user "+name+" "+user+"\nsentinel auth-pass "+name+" "+password+"\n")
	s := r.start("a sentinel at "+addr, exec.Command("redis-server", path, "--sentinel"), []string{addr})
	s.control = addr
	r.await(s, func() error {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			err = conn.Close()
		}
		return err
	})
	require.Contains(r.t, r.ask(s, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", name), ofPort)
}
