package rls_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"flag"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"headgate/server"
	"headgate/server/config"
	ours "headgate/server/rls"
)

var silent = flag.Int("rls.silent", 1500, "connections that say nothing")

// pair writes a certificate for 127.0.0.1, that signs itself, and its key.
func pair(t *testing.T, dir, name string) (cert, key string, parsed *x509.Certificate) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	require.NoError(t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	parsed, err = x509.ParseCertificate(der)
	require.NoError(t, err)
	cert, key = filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	require.NoError(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), 0o600))
	return cert, key, parsed
}

// TestTLS: with rls-tls only TLS is spoken, and with tls-auth-clients only those are answered that show a certificate.
func TestTLS(t *testing.T) {
	dir := t.TempDir()
	cert, key, parsed := pair(t, dir, "server")
	clientCert, clientKey, _ := pair(t, dir, "client")
	port := 0
	plain, _, _ := open(t, func(cfg *config.Config) {
		cfg.RLSTLS, cfg.TLSCertFile, cfg.TLSKeyFile, cfg.TLSCACertFile, cfg.TLSAuthClients = true, cert, key, clientCert, config.TLSAuthYes
		port = cfg.RLSPort
	})
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	shown, err := tls.LoadX509KeyPair(clientCert, clientKey)
	require.NoError(t, err)
	secure := func(certificates ...tls.Certificate) error {
		conn, err := grpc.NewClient(net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
			grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: pool, Certificates: certificates})))
		require.NoError(t, err)
		defer conn.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_, err = rls.NewRateLimitServiceClient(conn).ShouldRateLimit(ctx, request("user", "x"))
		return err
	}
	require.NoError(t, secure(shown))
	require.Equal(t, codes.Unavailable, status.Code(secure()), "no certificate")
	_, err = plain.ShouldRateLimit(context.Background(), request("user", "x"))
	require.Equal(t, codes.Unavailable, status.Code(err), "plain text")
	require.NoError(t, secure(shown), "and the others are still answered")
}

// TestSilentConnections: connections that say nothing keep nobody from being answered, and cost no client its connection that has asked before.
func TestSilentConnections(t *testing.T) {
	port := 0
	client, _, _ := open(t, func(cfg *config.Config) { port = cfg.RLSPort })
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	own := dialRaw(t, addr) // so that it would be noticed if it were closed
	own.ask(t)
	for range *silent {
		conn, err := net.Dial("tcp", addr)
		require.NoError(t, err)
		defer conn.Close()
	}
	ask(t, client, request("user", "x"))
	own.ask(t)
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer conn.Close()
	ask(t, rls.NewRateLimitServiceClient(conn), request("user", "x"))
}

// TestHalfRequests: calls whose message does not come are bounded, whatever connections they are on, and room is there again when they have ended.
func TestHalfRequests(t *testing.T) {
	port := 0
	client, _, _ := open(t, func(cfg *config.Config) { port = cfg.RLSPort })
	refused := func() bool {
		_, err := client.ShouldRateLimit(context.Background(), request("user", "x"))
		return status.Code(err) == codes.ResourceExhausted
	}
	ctx, cancel := context.WithCancel(context.Background())
	for range 5 { // connections, each with almost as many calls as it may have
		conn, err := grpc.NewClient(net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), grpc.WithTransportCredentials(insecure.NewCredentials()))
		require.NoError(t, err)
		defer conn.Close()
		for range 900 {
			_, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true}, rls.RateLimitService_ShouldRateLimit_FullMethodName)
			require.NoError(t, err)
		}
	}
	require.Eventually(t, refused, 20*time.Second, time.Millisecond)
	cancel()
	require.Eventually(t, func() bool { return !refused() }, 20*time.Second, time.Millisecond)
}

// TestGiantHeaders: headers of more than 16 KiB are refused.
func TestGiantHeaders(t *testing.T) {
	client, _, _ := open(t, nil)
	ctx := metadata.AppendToOutgoingContext(context.Background(), "x", strings.Repeat("y", 20<<10))
	_, err := client.ShouldRateLimit(ctx, request("user", "x"))
	require.ErrorContains(t, err, "header list size")
	ask(t, client, request("user", "x"))
}

// raw is a connection that speaks HTTP/2 frame by frame.
type raw struct {
	net.Conn
	*http2.Framer
	next uint32
}

func dialRaw(t *testing.T, addr string) *raw {
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	_, err = conn.Write([]byte(http2.ClientPreface))
	require.NoError(t, err)
	r := &raw{conn, http2.NewFramer(conn, conn), 1}
	require.NoError(t, r.WriteSettings())
	return r
}

// headers are those of a request.
func headers(more ...string) []byte {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	for i, list := 0, append([]string{
		":method", "POST", ":scheme", "http", ":path", rls.RateLimitService_ShouldRateLimit_FullMethodName, ":authority", "x",
		"content-type", "application/grpc", "te", "trailers",
	}, more...); i < len(list); i += 2 {
		_ = e.WriteField(hpack.HeaderField{Name: list[i], Value: list[i+1]}) // to a buffer
	}
	return b.Bytes()
}

// begin sends the headers of a request.
func (r *raw) begin() (stream uint32, err error) {
	stream = r.next
	r.next += 2
	return stream, r.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: headers(), EndHeaders: true})
}

// ask sends an empty request, and waits for its answer, which is an error of gRPC's.
func (r *raw) ask(t *testing.T) {
	t.Helper()
	stream, err := r.begin()
	require.NoError(t, err)
	require.NoError(t, r.WriteData(stream, true, make([]byte, 5)))
	for {
		frame, err := r.ReadFrame()
		require.NoError(t, err)
		if frame.Header().StreamID == stream && frame.Header().Flags.Has(http2.FlagHeadersEndStream) {
			return
		}
	}
}

// TestFloods: what HTTP/2 lets clients do for almost nothing costs others nothing, and its connection ends or is answered.
func TestFloods(t *testing.T) {
	const n = 3000
	port := 0
	client, _, _ := open(t, func(cfg *config.Config) { port = cfg.RLSPort })
	for name, flood := range map[string]func(r *raw, i int) error{
		"rapid reset": func(r *raw, _ int) error {
			stream, err := r.begin()
			if err != nil {
				return err
			}
			return r.WriteRSTStream(stream, http2.ErrCodeCancel)
		},
		"continuation": func(r *raw, i int) error {
			if i == 0 {
				return r.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: headers()})
			}
			return r.WriteContinuation(1, false, bytes.Repeat([]byte{0x00, 0x01, 'x', 0x01, 'y'}, 200))
		},
		"settings": func(r *raw, _ int) error {
			return r.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 16})
		},
		"ping":          func(r *raw, _ int) error { return r.WritePing(false, [8]byte{}) },
		"empty data":    func(r *raw, i int) error { return emptyData(r, i) },
		"window update": func(r *raw, _ int) error { return r.WriteWindowUpdate(0, 1) },
		"priority": func(r *raw, i int) error {
			return r.WritePriority(uint32(2*i+1), http2.PriorityParam{StreamDep: 0})
		},
		"unknown": func(r *raw, _ int) error { return r.WriteRawFrame(0xee, 0, 0, make([]byte, 100)) },
	} {
		t.Run(name, func(t *testing.T) {
			r := dialRaw(t, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
			ended := make(chan struct{})
			go func() { // reads what is answered, as a client would that wants more of it
				defer close(ended)
				for {
					if _, err := r.ReadFrame(); err != nil {
						return
					}
				}
			}()
			for i := range n {
				if flood(r, i) != nil {
					break // the server has had enough
				}
			}
			ask(t, client, request("user", name))
			_ = r.Close()
			<-ended
		})
	}
}

func emptyData(r *raw, i int) error {
	if i == 0 {
		if _, err := r.begin(); err != nil {
			return err
		}
	}
	return r.WriteData(1, false, nil)
}

// TestHostileRules: files that say little and mean much are refused, or read in the memory that they have.
func TestHostileRules(t *testing.T) {
	laughs := "domain: &a [x, x, x, x, x, x, x, x, x]\n"
	for i := range byte(20) {
		laughs += fmt.Sprintf("%c: &%c [%s]\n", 'b'+i, 'b'+i, strings.Repeat(fmt.Sprintf("*%c, ", 'a'+i), 9))
	}
	for name, text := range map[string]string{
		"aliases":      laughs,
		"itself":       "domain: a\ndescriptors: &d\n- *d",
		"deep lists":   "domain: " + strings.Repeat("[", 1<<20),
		"deep maps":    "domain: " + strings.Repeat("{a: ", 1<<18),
		"long":         "domain: a\nx: " + strings.Repeat("y", 9<<20),
		"merge":        "domain: a\n<<: {descriptors: []}",
		"binary":       "domain: a\x00b\n",
		"tabs":         "domain: a\n\tdescriptors: []",
		"two":          "domain: [a\n---\ndomain: b",
		"an enormity":  "domain: a\ndescriptors: [{key: a, rate_limit: {unit: day, requests_per_unit: 99999999999999999999}}]",
		"no directive": "%YAML 9.9\n---\ndomain: a",
	} {
		file := filepath.Join(t.TempDir(), "rules.yaml")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := ours.Read(file)
		require.ErrorContains(t, err, "rules.yaml", name)
		require.Less(t, len(err.Error()), 1000, name)
	}
}

// lockNeeded is a log that needs the executor's lock for each line about rules.
type lockNeeded struct {
	slog.Handler
	lock func() sync.Locker
	free chan bool
}

// Handle implements slog.Handler.
func (l *lockNeeded) Handle(_ context.Context, line slog.Record) error {
	if !strings.Contains(line.Message, "rules of the rate limit service") {
		return nil
	}
	took := make(chan struct{})
	go func() {
		lock := l.lock()
		lock.Lock()
		defer lock.Unlock()
		close(took)
	}()
	select {
	case <-took:
		l.free <- true
	case <-time.After(10 * time.Second):
		l.free <- false
	}
	return nil
}

// Enabled implements slog.Handler.
func (l *lockNeeded) Enabled(context.Context, slog.Level) bool { return true }

// TestReloadHoldsNobodyUp: at SIGHUP clients are served while the rules are read.
func TestReloadHoldsNobodyUp(t *testing.T) {
	var srv *server.Server
	log := &lockNeeded{Handler: slog.DiscardHandler, lock: func() sync.Locker { return srv }, free: make(chan bool, 10)}
	srv, _, _, _ = openServer(t, nil, slog.New(log))
	_, err := srv.Reload()
	require.NoError(t, err)
	require.True(t, <-log.free)
}

// TestTakenBack: a connection that takes all of its calls back is closed, and one of which some are answered is not.
func TestTakenBack(t *testing.T) {
	port := 0
	open(t, func(cfg *config.Config) { port = cfg.RLSPort })
	takeBack := func(r *raw) error {
		stream, err := r.begin()
		if err != nil {
			return err
		}
		return r.WriteRSTStream(stream, http2.ErrCodeCancel)
	}
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))

	r := dialRaw(t, addr)
	for i := range 10 * ours.MaxTakenBack {
		if i%(ours.MaxTakenBack/20) == 0 {
			r.ask(t)
		} else {
			require.NoError(t, takeBack(r))
		}
	}

	r = dialRaw(t, addr)
	for takeBack(r) == nil { // until it is closed, which the deadline of the connection bounds
	}
	_, err := r.begin()
	require.Error(t, err)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
}
