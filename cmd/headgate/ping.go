package main

import (
	"bufio"
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"headgate/cmd/headgate/cli"
	"headgate/cmd/headgate/peer"
	"headgate/internal/respcmd"
	"headgate/server/config"
	"headgate/server/front"
)

// pingTimeout is how long the server may take to accept and to answer, whichever of its addresses it has.
const pingTimeout = 2 * time.Second

var pingHelp = `headgate ping [options] [file.conf] [--directive value ...]

Sends PING to the server that this configuration describes: on unixsocket if it is set, else on port at the addresses of bind, one after
the other until one accepts, or over TLS on tls-port if port is 0. Any answer means that the server is alive, and the exit code is 0: an
error, for example because it asks for a password or is still loading, is printed. If there is no answer within two seconds, the exit
code is 1.

` + peer.Help() + `
Unlike the other tools, ping gets what is not given from the configuration: -h is --bind, -p is --port, -s is --unixsocket, the password
is requirepass, --tls uses tls-port if it is set, and --cert and --key are tls-cert-file and tls-key-file. Any certificate is accepted
unless --cacert is given, since it is mostly this machine that answers.
`

// pingOptions are the words of headgate ping that are no directives.
type pingOptions struct {
	peer.Flags
	network, address string // of --addr; empty: the configuration says it
}

// pingFlags takes the words that are no directives out of a command line. --user is also a directive, with a name and rules: one word
// behind it is a name.
func pingFlags(args, env []string) (o pingOptions, rest []string, err error) {
	for len(args) > 0 {
		switch {
		case args[0] == "-p": // a port of 0 leaves tls-port
			args[0] = "--port"
			fallthrough
		case args[0] == "--port", args[0] == "--user" && len(args) > 2 && !isFlag(args[2]):
			rest, args = append(rest, args[0]), args[1:]
			continue
		}
		n, err := o.Take(args)
		if err != nil {
			return o, nil, fmt.Errorf("%w; see headgate ping --help", err)
		}
		if n == 0 {
			rest, n = append(rest, args[0]), 1
		}
		args = args[n:]
	}
	if err := o.Finish(env); err != nil {
		return o, nil, err
	}
	if o.Addr != "" {
		if o.network, o.address, err = o.Address(); err != nil {
			return o, nil, err
		}
	}
	directives := []struct {
		name, value string
		file        bool
	}{{"--bind", o.Host, false}, {"--unixsocket", o.Socket, true}, {"--tls-cert-file", o.Cert, true}, {"--tls-key-file", o.Key, true}}
	for _, d := range directives {
		if d.value == "" {
			continue
		}
		if d.file { // relative to where we are, and not to dir
			if d.value, err = filepath.Abs(d.value); err != nil {
				return o, nil, err
			}
		}
		rest = append(rest, d.name, d.value)
	}
	return o, rest, nil
}

// isFlag reports whether a word behind that of --user is no rule.
func isFlag(word string) bool {
	return strings.HasPrefix(word, "--") || slices.Contains(peer.Names(), word)
}

// ping asks the server that the configuration describes for a PONG. Any answer is a sign of life.
func (p program) ping(args []string) error {
	if slices.Contains(args, "--help") || len(args) == 1 && args[0] == "-h" { // else -h is the host, as for headgate cli
		_, err := io.WriteString(p.stdout, pingHelp)
		return err
	}
	o, rest, err := pingFlags(slices.Clone(args), p.env)
	if err != nil {
		return err
	}
	live, _, err := config.Load(rest, p.env, config.OSHost())
	if err != nil {
		return fmt.Errorf("%w; see headgate ping --help", err)
	}
	cfg := live.Get()
	settings, err := o.tlsSettings(cfg)
	if err != nil {
		return err
	}
	deadline := time.Now().Add(pingTimeout)
	conn, addr, err := o.dial(cfg, settings, deadline)
	if err != nil {
		return fmt.Errorf("no server answers: %w", err)
	}
	defer conn.Close()
	conn.SetDeadline(deadline)
	answer, err := converse(conn, o.commands(cfg))
	var distrust *tls.CertificateVerificationError
	if errors.As(err, &distrust) {
		return fmt.Errorf("the certificate of the server at %s is not trusted: %w", addr, err)
	}
	if answer == "" {
		advice := ""
		if _, secured := conn.(*tls.Conn); conn.RemoteAddr().Network() == "tcp" {
			advice = cli.PortAdvice(err, secured)
		}
		return fmt.Errorf("the server at %s does not answer: %w%s", addr, err, advice)
	}
	if answer != "+PONG" {
		fmt.Fprintf(p.stdout, "the server at %s answers %s\n", addr, printable(answer))
	}
	return nil
}

// commands are those that end with PING.
func (o *pingOptions) commands(cfg *config.Config) [][]string {
	ping := []string{"PING"}
	switch {
	case o.User != "":
		return [][]string{{"AUTH", o.User, o.Pass}, ping}
	case cmp.Or(o.Pass, cfg.RequirePass) != "":
		return [][]string{{"AUTH", cmp.Or(o.Pass, cfg.RequirePass)}, ping}
	}
	return [][]string{ping}
}

// maxAnswer is how many bytes of an answer are read.
const maxAnswer = 4 << 10

// converse sends commands one by one, and returns the first answer that is an error, or else the last one. It is empty if any of them
// is none of this protocol, or has not come. A server that closes the connection before it is asked, since it has too many, has said so.
func converse(conn net.Conn, commands [][]string) (answer string, err error) {
	replies := bufio.NewReaderSize(conn, maxAnswer)
	for _, command := range commands {
		_, unsent := conn.Write(respcmd.Append(nil, command...))
		line, err := replies.ReadSlice('\n')
		switch {
		case unsent != nil && (err != nil || line[0] != '-'):
			return "", unsent
		case err != nil:
			return "", err
		}
		if line[0] != '+' && line[0] != '-' {
			return "", errors.New("the peer does not speak the Redis protocol")
		}
		answer = strings.TrimSpace(string(line))
		if line[0] == '-' {
			break
		}
	}
	return answer, nil
}

// printable is a text without what could disturb a terminal.
func printable(text string) string {
	quoted := strconv.Quote(text)
	quoted = strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
	return strings.ReplaceAll(quoted, `\\`, `\`)
}

// dial connects to the server, over TLS if that is asked for or all there is: to the first of its addresses that accepts, since a server
// goes on without those that are optional. Each has its part of the time that is left.
func (o *pingOptions) dial(cfg *config.Config, settings *tls.Config, deadline time.Time) (conn net.Conn, addr string, err error) {
	network, addrs := o.addresses(cfg)
	var failed []error
	for i, addr := range addrs {
		conn, err := net.DialTimeout(network, addr, max(time.Until(deadline)/time.Duration(len(addrs)-i), time.Nanosecond))
		switch {
		case err != nil:
			failed = append(failed, err)
		case settings != nil && network == "tcp":
			return secure(conn, addr, settings), addr, nil
		default:
			return conn, addr, nil
		}
	}
	return nil, "", joinLines(failed)
}

// joinLines is one error of several, on one line.
func joinLines(list []error) error {
	err := list[0]
	for _, next := range list[1:] {
		err = fmt.Errorf("%w; %w", err, next)
	}
	return err
}

// addresses returns where a client on this machine may reach a server so configured, at least one address.
func (o *pingOptions) addresses(cfg *config.Config) (network string, addrs []string) {
	port := cmp.Or(cfg.Port, cfg.TLSPort)
	switch {
	case o.address != "":
		return o.network, []string{o.address}
	case o.TLS:
		port = cmp.Or(cfg.TLSPort, cfg.Port)
	case cfg.UnixSocket != "":
		return "unix", []string{cfg.Path(cfg.UnixSocket)}
	}
	for _, host := range cfg.Bind {
		addrs = append(addrs, tcpAddress(strings.TrimPrefix(host, "-"), port))
	}
	if len(addrs) == 0 {
		addrs = []string{tcpAddress("", port)}
	}
	return "tcp", addrs
}

// tcpAddress returns an address that is bound, with a port, as a client names it.
func tcpAddress(host string, port int) string {
	switch host {
	case "*", "":
		host = "127.0.0.1"
	case "::*":
		host = "::1"
	}
	return net.JoinHostPort(host, strconv.Itoa(port))
}

// tlsSettings returns how to speak TLS, or nil if plain TCP is spoken. Unless authorities are named, who answers is not looked at: it is this machine, whatever name its
// certificate has. Where the server wants to know who asks, its own certificate is shown, if the configuration names it.
func (o *pingOptions) tlsSettings(cfg *config.Config) (*tls.Config, error) {
	if !o.TLS && (cfg.Port != 0 || o.address != "") {
		return nil, nil
	}
	only := peer.Flags{CACert: o.CACert, SNI: o.SNI, Insecure: o.Insecure || o.CACert == ""}
	settings, err := only.TLSConfig("")
	if err != nil {
		return nil, err
	}
	if cfg.TLSAuthClients != config.TLSAuthNo && cfg.TLSCertFile != "" {
		pair, err := front.LoadKeyPair(cfg)
		if err != nil {
			return nil, err
		}
		settings.Certificates = []tls.Certificate{pair}
	}
	return settings, nil
}

// secure has a connection shake hands over TLS when it is first used.
func secure(conn net.Conn, addr string, settings *tls.Config) net.Conn {
	settings = settings.Clone()
	if settings.ServerName == "" {
		settings.ServerName, _, _ = net.SplitHostPort(addr)
	}
	return tls.Client(conn, settings)
}
