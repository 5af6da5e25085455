package gateway_test

import (
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"headgate/internal/reference"
	"headgate/server"
	"headgate/server/config"
	"headgate/server/gateway"
	"headgate/server/limits"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// TestBeforeAHeadgate: commands go as they are, and policies are the upstream's.
func TestBeforeAHeadgate(t *testing.T) {
	home, addr := startServer(t, func(cfg *config.Config) { require.NoError(t, addPolicy(cfg, "fixed", "FIXED 2 1h FAILURE LOCAL")) })
	r := startRelay(t, addr)
	srv, gate := startGateway(t, r.url(), func(cfg *config.Config) {
		cfg.UpstreamTimeout, cfg.UpstreamRest, cfg.UpstreamFailure = 300*time.Millisecond, time.Hour, 1 // open
		cfg.UpstreamLocalShare = 0.5
	})
	require.True(t, srv.Gateway.Up.Headgate())
	direct := dial(t, addr)
	gate.converse(`
		CL.THROTTLE k 2 1 36000          | [0 3 2 -1 36000]
		RL.POLICY SET p GCRA 2 1 10h     | OK
		RL.POLICY SET fixed GCRA 2 1 10h | ERR policy 'fixed' is fixed by the configuration file
		RL.POLICY LIST                   | [fixed FIXED 2 1h FAILURE LOCAL p GCRA 2 1 10h]
		RL.TAKE 1 p a                    | [0 -1 [[0 2 1 -1 36000000]]]
		RL.ACQUIRE l 1 1h MEMBER me      | [0 1 0 -1 3600000 me]
		RL.RELEASE l me                  | 1
		INCREX i BYINT 5                 | [5 5]
		RL.RESERVE 1 p r TTL 10h ID work | [0 -1 work [[0 2 1 -1 36000000]]]
		RL.SETTLE work ACTUAL 0          | [1 [[0 2 2 -1 0]]]
		RL.CANCEL work                   | 0
		RL.RESERVATIONS                  | []
		SET s v                          | OK
		MULTI                            | OK
		CL.THROTTLE k2 2 1 36000         | QUEUED
		GET s                            | QUEUED
		EXEC                             | [[0 3 2 -1 36000] v]
		CL.THROTTLE k x 1 1              | Cell error: Store error: Couldn't parse as integer: x
		RL.POLICY SET once FIXED 1 1h BLOCK 2h | OK
		RL.TAKE 1 once b COST 2          | [1 0 [[1 1 1 -1 0]]]
		RL.UNBLOCK once b                | 0
		RL.BLOCK once b 3h               | OK
		RL.UNBLOCK once b                | 1
		RL.POLICY OVERRIDE SET once b 9 1h | OK
		RL.POLICY OVERRIDE GET once b    | FIXED 9 1h
		RL.TAKE 1 once b COST 2          | [0 -1 [[0 9 7 -1 3600000]]]
		RL.POLICY OVERRIDE DEL once b    | 1
	`)
	gate.ask("RL.TAKE 1 once c")
	gate.ask("RL.TAKE 1 once c")
	gate.converse(`
		RL.UNBLOCK once c                | 1
		RL.POLICY DEL once               | 1
	`)
	require.Equal(t, "v", direct.ask("GET s"))
	home.Lock()
	require.NotZero(t, home.Keys.DB(0).Len())
	home.Unlock()

	require.Eventually(t, func() bool { // its policies are known here, too
		srv.Lock()
		defer srv.Unlock()
		h, _, err := srv.Keys.DB(0).Hash(srv.Keys.Key([]byte(limits.PoliciesKey)), time.Now().UnixMilli())
		return err == nil && h.Len() == 2
	}, answerTime, 10*time.Millisecond)
	r.stall(true)
	require.True(t, strings.HasPrefix(gate.ask("GET s"), "UPSTREAM "))
	gate.converse(`
		CL.THROTTLE k 2 1 36000    | [0 3 3 -1 0]
		CL.THROTTLE k x 1 1        | Cell error: Store error: Couldn't parse as integer: x
		RL.GCRA k 2 1 10h          | [0 2 2 -1 0]
		RL.TAKE 1 p a              | [0 -1 [[0 2 2 -1 0]]]
		RL.TAKE 1 fixed a          | [0 -1 [[0 1 0 -1 3600000]]]
		RL.TAKE 1 nosuch a         | ERR no such policy 'nosuch'
		RL.RELEASE l x             | 1
	`)
	require.True(t, strings.HasPrefix(gate.ask("RL.POLICY SET p GCRA 2 1 10h"), "UPSTREAM "))
	require.True(t, strings.HasPrefix(gate.ask("RL.RESET k"), "UPSTREAM "))
	for _, line := range []string{"RL.RESERVE 1 p r TTL 1s", "RL.SETTLE work ACTUAL 0", "RL.CANCEL work", "RL.RESERVATIONS"} {
		require.True(t, strings.HasPrefix(gate.ask(line), "UPSTREAM "), line)
	}
}

// listenError starts a gateway, and returns why it does not serve.
func listenError(t *testing.T, edit func(cfg *config.Config)) error {
	t.Helper()
	cfg := servertest.Unsaved()
	cfg.Bind, cfg.Port = []string{"127.0.0.1"}, freePort(t)
	patient(cfg)
	edit(cfg)
	s := server.New(config.NewLive(cfg), server.Options{})
	t.Cleanup(s.Keys.Close)
	return s.Listen()
}

// TestWrongUpstreams are told of at the start, in one line.
func TestWrongUpstreams(t *testing.T) {
	locked := reference.Start(t, "--requirepass", "secret")
	_, headgate := startServer(t)
	primaryPort := strconv.Itoa(freePort(t))
	reference.Start(t, "--port", primaryPort)
	replica := reference.Start(t, "--replicaof", "127.0.0.1 "+primaryPort)
	for _, c := range []struct {
		name string
		edit func(cfg *config.Config)
		want string
	}{
		{"no URL", func(cfg *config.Config) { cfg.Upstream = "nonsense" }, `"nonsense" is not a URL`},
		{"another scheme", func(cfg *config.Config) { cfg.Upstream = "http://x" }, "http:// is not one of"},
		{"a password in it", func(cfg *config.Config) { cfg.Upstream = "redis://u:p@h" }, "upstream-password"},
		{"itself", func(cfg *config.Config) { cfg.Upstream = "redis://127.0.0.1:" + strconv.Itoa(cfg.Port) }, "is this gateway itself"},
		{"itself by name", func(cfg *config.Config) { cfg.Upstream = "redis://localhost:" + strconv.Itoa(cfg.Port) }, "is this gateway itself"},
		{"files without TLS", func(cfg *config.Config) {
			cfg.Upstream, cfg.UpstreamTLSCACertFile = "redis://h", "ca.pem"
		}, "rediss://"},
		{"no such file", func(cfg *config.Config) {
			cfg.Upstream, cfg.UpstreamTLSCACertFile = "rediss://h", "/nonexistent/ca.pem"
		}, "upstream-tls-ca-cert-file cannot be read"},
		{"half a pair", func(cfg *config.Config) {
			cfg.Upstream, cfg.UpstreamTLSCertFile = "rediss://h", "cert.pem"
		}, "go together"},
		{"an address without a port", func(cfg *config.Config) {
			cfg.Upstream, cfg.UpstreamMap = "redis://h", []config.Translation{{From: "10.0.0.1:6379", To: "127.0.0.1"}}
		}, `upstream-map: "127.0.0.1" is not host:port`},
		{"no password", func(cfg *config.Config) { cfg.Upstream = "redis+unix://" + socketOf(locked) }, "NOAUTH"},
		{"a wrong password", func(cfg *config.Config) {
			cfg.Upstream, cfg.UpstreamPassword = "redis+unix://"+socketOf(locked), "guess"
		}, "WRONGPASS"},
		{"a replica", func(cfg *config.Config) { cfg.Upstream = "redis+unix://" + socketOf(replica) }, "replica"},
		{"policies before a headgate", func(cfg *config.Config) {
			cfg.Upstream = "redis://" + headgate
			require.NoError(t, addPolicy(cfg, "p", "FIXED 1 1h"))
		}, "policy p: before a headgate"},
	} {
		err := listenError(t, c.edit)
		require.ErrorContains(t, err, c.want, c.name)
		require.NotContains(t, err.Error(), "\n", c.name)
		require.NotContains(t, err.Error(), "secret", c.name)
	}
	cfg := servertest.Unsaved()
	require.NoError(t, gateway.Check(cfg))
	cfg.Upstream = "redis://127.0.0.1:1"
	require.NoError(t, gateway.Check(cfg), "what does not answer yet may do so later")
}

// TestPoliciesBeforeAHeadgate are refused at the start, or logged as such if the upstream comes later.
func TestPoliciesBeforeAHeadgate(t *testing.T) {
	port := freePort(t)
	start := func(log *lines) error {
		cfg := servertest.Unsaved()
		cfg.Bind, cfg.Port, cfg.Upstream = []string{"127.0.0.1"}, freePort(t), "redis://127.0.0.1:"+strconv.Itoa(port)
		patient(cfg)
		cfg.UpstreamRest = 10 * time.Millisecond
		require.NoError(t, addPolicy(cfg, "p", "FIXED 1 1h"))
		s := server.New(config.NewLive(cfg), server.Options{Log: slog.New(slog.NewTextHandler(log, nil))})
		t.Cleanup(s.Keys.Close)
		err := s.Listen()
		if err == nil {
			t.Cleanup(s.Gateway.Close)
		}
		return err
	}
	const line = "would have refused this configuration"
	var early, late lines
	require.NoError(t, start(&early))
	startServer(t, func(cfg *config.Config) { cfg.Port = port })
	require.Eventually(t, func() bool { return strings.Contains(early.String(), line) }, answerTime, 20*time.Millisecond)
	require.ErrorContains(t, start(&late), "policy p: before a headgate")
	require.NotContains(t, late.String(), line)
}

// lines is a log that can be read while it is written.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// TestAnUpstreamThatComesUpLater is no error at the start.
func TestAnUpstreamThatComesUpLater(t *testing.T) {
	port := strconv.Itoa(freePort(t))
	_, gate := startGateway(t, "redis://127.0.0.1:"+port, func(cfg *config.Config) { cfg.UpstreamRest = 10 * time.Millisecond })
	require.True(t, strings.HasPrefix(gate.ask("GET k"), "UPSTREAM "))
	require.True(t, strings.HasPrefix(gate.ask("RL.POLICY LIST"), "UPSTREAM "))
	reference.Start(t, "--port", port)
	require.Eventually(t, func() bool { return gate.ask("SET k v") == "OK" }, answerTime, 20*time.Millisecond)
	require.Eventually(t, func() bool { return gate.ask("RL.POLICY LIST") == "[]" }, answerTime, 20*time.Millisecond)
}

// TestChangesOfTheUpstream: the nodes and the password may change while the gateway runs, and what a process is may not.
func TestChangesOfTheUpstream(t *testing.T) {
	first, second := reference.Start(t), reference.Start(t, "--requirepass", "secret")
	_, gate := startGateway(t, "redis+unix://"+socketOf(first))
	require.Equal(t, "OK", gate.ask("SET where first"))
	require.Contains(t, gate.ask(`CONFIG SET upstream ""`), "CONFIG SET failed")
	require.Contains(t, gate.ask("CONFIG SET upstream nonsense"), "is not a URL")
	for argument, value := range map[string]string{"appendonly": "yes", "save": "60 1"} { // with which it could not start again
		_, err := gate.Write(servertest.EncodeCommand("CONFIG", "SET", argument, value))
		require.NoError(t, err)
		require.Equal(t, "ERR CONFIG SET failed (possibly related to argument '"+argument+"') - this process is a gateway, which keeps no data", gate.read())
	}
	require.Equal(t, "first", gate.ask("GET where"))
	require.Equal(t, "OK", gate.ask("CONFIG SET upstream-password secret upstream redis+unix://"+socketOf(second)))
	require.Eventually(t, func() bool { return gate.ask("GET where") == "nil" }, answerTime, 20*time.Millisecond)
	require.Equal(t, "OK", gate.ask("SET where second"))

	_, addr := startServer(t)
	require.Contains(t, dial(t, addr).ask("CONFIG SET upstream redis://127.0.0.1:1"), "cannot be a gateway until it is restarted")
}
