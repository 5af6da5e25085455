package main

import (
	"bufio"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"headgate/cmd/headgate/cli"
	"headgate/server/config"
	"headgate/server/front"
)

// pingTimeout is how long the server may take to accept and to answer, whichever of its addresses it has.
const pingTimeout = 2 * time.Second

const pingHelp = `headgate ping [-h HOST] [-p PORT] [--user NAME] [--pass WORD] [--tls] [--cacert FILE] [file.conf] [--directive value ...]

Sends PING to the server that this configuration describes: on unixsocket if it is set, else on port at the addresses of bind, one after
the other until one accepts, or over TLS on tls-port if port is 0. Any answer means that the server is alive, and the exit code is 0: an
error, for example because it asks for a password or is still loading, is printed. If there is no answer within two seconds, the exit
code is 1.

  -h HOST        the same as --bind HOST
  -p PORT        the same as --port PORT
  --user NAME    authenticate as this user, with --pass
  --pass WORD    authenticate with this password instead of requirepass; safer: in the environment variable REDISCLI_AUTH
  --tls          use TLS, on tls-port if it is set, else on port. A server with tls-auth-clients yes, the default, asks for a certificate:
                 name one with --tls-cert-file FILE and --tls-key-file FILE, or the configuration file that names the server's own
  --cacert FILE  use TLS, trust only these authorities, and verify the address in the certificate; without it any certificate is accepted
`

// pingOptions are the words of headgate ping that are no directives.
type pingOptions struct {
	user, pass, caCert string
	tls                bool
}

// pingFlags takes the words that are no directives out of a command line. --user is also a directive, with a name and rules: one word
// behind it is a name.
func pingFlags(args, env []string) (o pingOptions, rest []string, err error) {
	o.pass = lookup(env, "REDISCLI_AUTH")
	for i := 0; i < len(args); i++ {
		var value *string
		switch args[i] {
		case "-h":
			args[i] = "--bind"
		case "-p":
			args[i] = "--port"
		case "--tls":
			o.tls = true
			continue
		case "--user":
			if i+2 >= len(args) || strings.HasPrefix(args[i+2], "--") {
				value = &o.user
			}
		case "--pass":
			value = &o.pass
		case "--cacert":
			value, o.tls = &o.caCert, true
		}
		switch {
		case value == nil:
			rest = append(rest, args[i])
			continue
		case i+1 == len(args):
			return o, nil, fmt.Errorf("%s needs a value; see headgate ping --help", args[i])
		}
		i++
		*value = args[i]
	}
	if o.user != "" && o.pass == "" {
		return o, nil, errors.New("--user needs --pass, or REDISCLI_AUTH in the environment")
	}
	return o, rest, nil
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
		return err
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
	case o.user != "":
		return [][]string{{"AUTH", o.user, o.pass}, ping}
	case cmp.Or(o.pass, cfg.RequirePass) != "":
		return [][]string{{"AUTH", cmp.Or(o.pass, cfg.RequirePass)}, ping}
	}
	return [][]string{ping}
}

// maxAnswer is how many bytes of an answer are read.
const maxAnswer = 4 << 10

// converse sends commands one by one, and returns the first answer that is an error, or else the last one. It is empty if nothing came
// that begins as answers of this protocol do. A server that closes the connection before it is asked, since it has too many, has said so.
func converse(conn net.Conn, commands [][]string) (answer string, err error) {
	replies := bufio.NewReaderSize(conn, maxAnswer)
	for _, command := range commands {
		_, unsent := conn.Write(encode(command))
		line, err := replies.ReadSlice('\n')
		switch {
		case unsent != nil && (err != nil || line[0] != '-'):
			return answer, unsent
		case err != nil:
			return answer, err
		}
		if line[0] != '+' && line[0] != '-' {
			return answer, errors.New("the peer does not speak the Redis protocol")
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
	case o.tls:
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
	if !o.tls && cfg.Port != 0 {
		return nil, nil
	}
	settings := &tls.Config{InsecureSkipVerify: o.caCert == ""}
	if o.caCert != "" {
		pem, err := os.ReadFile(o.caCert)
		if err != nil {
			return nil, err
		}
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s holds no certificate", o.caCert)
		}
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
	settings.ServerName, _, _ = net.SplitHostPort(addr)
	return tls.Client(conn, settings)
}

// encode writes a command as an array of bulk strings.
func encode(args []string) []byte {
	out := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, arg := range args {
		out = fmt.Appendf(out, "$%d\r\n%s\r\n", len(arg), arg)
	}
	return out
}
