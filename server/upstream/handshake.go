package upstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"headgate/internal/respcmd"
)

// greeting is what a server tells of itself in reply to HELLO.
type greeting struct {
	version string
	mode    string // standalone, cluster or sentinel
	role    string // master or replica
}

// refusedError is why a server that answers will not serve a connection. The node is not at fault, and does not rest.
type refusedError string

func (e refusedError) Error() string { return string(e) }

// errReplica is why a node is none that calls can be sent to.
const errReplica = refusedError("it is a replica, which cannot be written to")

// errFull is what a server answers that serves as many clients as it may.
const errFull = refusedError("ERR max number of clients reached")

// passingRefusals are the beginnings of refusals that end by themselves.
var passingRefusals = []string{"LOADING ", "BUSY ", "MASTERDOWN ", "CLUSTERDOWN ", "TRYAGAIN ", "ERR max number of clients"}

// lasting reports whether waiting will not help: the password, the version, or what kind of server it is has to be another one.
func (e refusedError) lasting() bool {
	return !slices.ContainsFunc(passingRefusals, func(beginning string) bool { return strings.HasPrefix(string(e), beginning) })
}

// selectError is a lasting answer to SELECT. The node serves the user, and would go on answering each call for that database so.
type selectError struct{ refusedError }

func (e selectError) Unwrap() error { return e.refusedError }

func refusedSelect(text string) error {
	if e := refusedError(text); !e.lasting() {
		return e
	}
	return selectError{refusedError(text)}
}

// clientName is the name of all connections, as CLIENT LIST shows it.
const clientName = "headgate"

// connect makes a connection by a time, and shakes hands. No command is sent before the server has said that the connection is the right
// user's and in the right database.
func (n *node) connect(key linkKey, by int64) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(n.fleet.ctx, min(connectMax, time.Duration(by-Now())))
	defer cancel()
	n.figures.connects.Add(1)
	n.up.totals.connects.Add(1)
	conn, err := n.fleet.dial(ctx, n.addr)
	if err == errNoTLS && n.hello.Load() != nil {
		err = errSlowTLS
	}
	if err != nil {
		return nil, err
	}
	g, err := n.handshake(ctx, conn, key)
	if err != nil {
		hangUp(conn)
		return nil, err
	}
	n.hello.Store(g)
	return conn, nil
}

// noConnection is what calls fail with whose connection could not be made.
func (n *node) noConnection(err error) *Failure {
	failure := n.failure(Unreachable, err.Error())
	var refusal refusedError
	failure.refused = errors.As(err, &refusal)
	var selecting selectError
	if errors.As(err, &selecting) {
		line, _, _ := strings.Cut(err.Error(), "\r\n")
		failure.reply = []byte("-" + line + "\r\n")
	}
	return failure
}

// Why there is no connection in time.
var (
	errNoConnection = errors.New("no connection in time")
	errNoTLS        = errors.New("no TLS handshake in time: its port may be one without TLS")
	errSlowTLS      = errors.New("no TLS handshake in time") // with a node that has answered over TLS before
	errNoHello      = errors.New("no answer to HELLO in time")
)

// cutError is how a connection to a node that has answered others ended before it was of use.
type cutError string

func (e cutError) Error() string { return string(e) }

// isCut reports whether a connection was cut off by a node that answers over others: somebody may have deleted its user, or killed it.
func (n *node) isCut(err error) bool {
	var cut cutError
	return errors.As(err, &cut) && n.answers()
}

// answers reports whether something has come from the node within the time after which it would be silent.
func (n *node) answers() bool {
	heard := n.heard.Load()
	return heard != 0 && Now()-heard < n.up.silence()
}

// ownError is why this process could not begin a connection: the node knows nothing of it.
type ownError struct{ error }

// isOwn reports whether an error of dialling is one of this process, which has no descriptor or port for one more connection.
func isOwn(err error) bool {
	for _, own := range [...]error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EADDRNOTAVAIL} {
		if errors.Is(err, own) {
			return true
		}
	}
	return false
}

// unreached has the node rest since a connection that was begun at a time could not be made. One that is only slow does not, if it is at work,
// answers others, or has not had as long as calls have; nor does one that is connected while this process cannot have more connections.
func (n *node) unreached(err error, begin int64) {
	if errors.As(err, new(ownError)) && n.connected() {
		return
	}
	now := Now()
	slow := err == errNoConnection || err == errNoTLS || err == errSlowTLS || err == errNoHello
	if slow && (n.busy.Load() > now || now-begin < n.up.silence() || !n.silentSince(begin)) {
		return
	}
	n.rest(err.Error())
}

// dial connects to the node of an address, over TLS if that is configured.
func (f *fleet) dial(ctx context.Context, addr string) (net.Conn, error) {
	network := "tcp"
	if addr == f.cfg.Unix {
		network = "unix"
	} else if mapped, ok := f.cfg.Map[addr]; ok {
		addr = mapped
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, network, addr)
	if err != nil {
		return nil, dialError(err)
	}
	if f.cfg.TLS == nil || network == "unix" {
		return conn, nil
	}
	config := f.cfg.TLS
	if config.ServerName == "" {
		config = config.Clone()
		config.ServerName, _, _ = net.SplitHostPort(addr)
	}
	secured := tls.Client(conn, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		if errors.Is(err, context.DeadlineExceeded) {
			return nil, errNoTLS
		}
		var distrust *tls.CertificateVerificationError
		if errors.As(err, &distrust) {
			why := "TLS: " + reason(err)
			if errors.As(err, new(x509.UnknownAuthorityError)) {
				why += "; upstream-tls-ca-cert-file names the authorities to trust"
			}
			return nil, refusedError(why)
		}
		return nil, fmt.Errorf("TLS: %s", reason(err))
	}
	return secured, nil
}

// dialError says in a few words why there is no connection.
func dialError(err error) error {
	var timeout net.Error
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout() {
		return errNoConnection
	}
	var name *net.DNSError
	if errors.As(err, &name) {
		return errors.New("the host's address is not known: " + name.Err)
	}
	told := errors.New(strings.TrimPrefix(reason(err), "connect: "))
	if isOwn(err) {
		return ownError{told}
	}
	return told
}

// handshake introduces a connection: its RESP version, user, name and database, in one write.
func (n *node) handshake(ctx context.Context, conn net.Conn, key linkKey) (*greeting, error) {
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return nil, err
	}
	request := respcmd.Append(nil, append(append([]string{"HELLO", strconv.Itoa(key.proto)}, n.credentials(key)...), "SETNAME", clientName)...)
	replies := 1
	if key.db != 0 {
		request = respcmd.Append(request, "SELECT", strconv.Itoa(key.db))
		replies++
	}
	_, failed := conn.Write(request)
	values, err := readValues(conn, replies, handshakeMax) // also when nothing could be written: what TLS did not like comes this way
	var g *greeting
	if len(values) > 0 { // else nothing says why it has hung up
		var refusal error
		if g, refusal = n.judge(values[0]); refusal != nil {
			return nil, refusal
		}
	}
	if err != nil {
		return nil, n.handshakeError(conn, err, failed)
	}
	if key.db != 0 && values[1].isError() {
		return nil, refusedSelect(values[1].text)
	}
	return g, conn.SetDeadline(time.Time{})
}

// handshakeError says why HELLO had no reply, and what may be wrong if it never had one.
func (n *node) handshakeError(conn net.Conn, reading, writing error) error {
	var timeout net.Error
	switch _, secured := conn.(*tls.Conn); {
	case errors.Is(reading, errMalformed), errors.Is(reading, errTooLong):
		return reading
	case errors.As(reading, &timeout) && timeout.Timeout():
		return errNoHello
	case n.hello.Load() != nil:
		return cutError(reason(reading) + " before HELLO was answered")
	case secured:
		if writing == nil || !strings.Contains(reason(reading), "reset") {
			writing = reading
		}
		return fmt.Errorf("TLS: %s: it may want a certificate", reason(writing))
	}
	return fmt.Errorf("%s before HELLO was answered: its port may be one for TLS (rediss://)", reason(reading))
}

// credentials are HELLO's words for the user of a connection.
func (n *node) credentials(key linkKey) []string {
	user := key.user
	if user == (UserConn{}) {
		user = UserConn{Name: n.fleet.cfg.User, Password: n.fleet.cfg.Password}
	}
	if user == (UserConn{}) {
		return nil
	}
	if user.Name == "" {
		user.Name = "default"
	}
	return []string{"AUTH", user.Name, user.Password}
}

// judge reads the reply to HELLO, and says what makes a server unfit.
func (n *node) judge(hello value) (*greeting, error) {
	switch {
	case !hello.isError():
	case strings.HasPrefix(hello.text, "NOAUTH"):
		return nil, refusedError("it wants a password (NOAUTH), and upstream-password is not set")
	case strings.HasPrefix(hello.text, "WRONGPASS") && n.fleet.cfg.Password == "":
		return nil, refusedError("wrong user name or password (WRONGPASS): upstream-password is not set")
	case strings.HasPrefix(hello.text, "WRONGPASS"):
		return nil, refusedError("wrong user name or password (WRONGPASS)")
	case strings.HasPrefix(hello.text, "ERR unknown command"):
		return nil, refusedError("it does not know HELLO: Redis 6.2 or later is needed")
	default:
		return nil, refusedError(hello.text)
	}
	g := &greeting{version: hello.field("version").text, mode: hello.field("mode").text, role: hello.field("role").text}
	return g, n.fit(g)
}

// fit says what makes a server unfit to be asked.
func (n *node) fit(g *greeting) error {
	switch {
	case g.mode == "sentinel":
		return refusedError(fmt.Sprintf("it is a Sentinel: set upstream to redis-sentinel://%s/ and the name that it has for the primary, such as mymaster", n.addr))
	case !atLeast(g.version, 6, 2):
		return refusedError(fmt.Sprintf("it runs version %s: Redis 6.2 or later is needed", g.version))
	case g.mode != "cluster" && g.role != "master" && g.role != "primary":
		n.fleet.lookSoon()
		return errReplica
	}
	return nil
}

// atLeast compares a version such as 7.0.15. One that is no such text counts as new.
func atLeast(version string, major, minor int) bool {
	words := strings.SplitN(version, ".", 3)
	if len(words) < 2 {
		return true
	}
	first, err1 := strconv.Atoi(words[0])
	second, err2 := strconv.Atoi(words[1])
	return err1 != nil || err2 != nil || first > major || first == major && second >= minor
}
