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
	"strconv"
	"strings"
	"time"

	"headgate/server"
	"headgate/server/config"
)

// pingTimeout is how long the server may take to accept and to answer.
const pingTimeout = 2 * time.Second

const pingHelp = `headgate ping [--user NAME] [--pass WORD] [--tls] [--cacert FILE] [file.conf] [--directive value ...]

Asks the server that the configuration describes for a PONG: on unixsocket if that is set, else on the first address of bind, on port, or
over TLS on tls-port if port is 0. The exit code is 0 if it answers, whatever it says: a server that wants a password, refuses PING or is
still loading is alive, and what it says then is printed. Without an answer within two seconds the exit code is 1.

  --user NAME    authenticate as this user, with --pass
  --pass WORD    authenticate with this password instead of requirepass; the environment variable REDISCLI_AUTH is seen by fewer people
  --tls          speak TLS, on tls-port if that is set and else on port
  --cacert FILE  trust only these authorities, and want the address in the certificate; without it any certificate will do
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
			return o, nil, fmt.Errorf("%s needs a value; headgate ping --help says more", args[i])
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
	if asksForHelp(args) {
		_, err := io.WriteString(p.stdout, pingHelp)
		return err
	}
	o, rest, err := pingFlags(args, p.env)
	if err != nil {
		return err
	}
	live, _, err := config.Load(rest, p.env, config.OSHost())
	if err != nil {
		return err
	}
	cfg := live.Get()
	conn, addr, err := o.dial(cfg)
	if err != nil {
		return fmt.Errorf("no server answers: %w", err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(pingTimeout))
	answer, err := converse(conn, o.commands(cfg))
	if answer == "" {
		return fmt.Errorf("the server at %s does not answer: %w", addr, err)
	}
	if answer != "+PONG" {
		fmt.Fprintf(p.stdout, "the server at %s answers %s\n", addr, answer)
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
// that begins as answers of this protocol do.
func converse(conn net.Conn, commands [][]string) (answer string, err error) {
	replies := bufio.NewReaderSize(conn, maxAnswer)
	for _, command := range commands {
		if _, err := conn.Write(encode(command)); err != nil {
			return answer, err
		}
		line, err := replies.ReadSlice('\n')
		if err != nil {
			return answer, err
		}
		if line[0] != '+' && line[0] != '-' {
			return answer, errors.New("what answers does not speak the Redis protocol")
		}
		answer = strings.TrimSpace(string(line))
		if line[0] == '-' {
			break
		}
	}
	return answer, nil
}

// dial connects to the server, over TLS if that is asked for or all there is.
func (o *pingOptions) dial(cfg *config.Config) (conn net.Conn, addr string, err error) {
	network, addr := listenAddress(cfg)
	if o.tls {
		network, addr = "tcp", tcpAddress(cfg, cmp.Or(cfg.TLSPort, cfg.Port))
	}
	conn, err = net.DialTimeout(network, addr, pingTimeout)
	if err == nil && network == "tcp" && (o.tls || cfg.Port == 0) {
		conn, err = o.secure(conn, addr, cfg)
	}
	return conn, addr, err
}

// listenAddress returns where a client on this machine reaches a server so configured.
func listenAddress(cfg *config.Config) (network, addr string) {
	if cfg.UnixSocket != "" {
		return "unix", cfg.Path(cfg.UnixSocket)
	}
	return "tcp", tcpAddress(cfg, cmp.Or(cfg.Port, cfg.TLSPort))
}

// tcpAddress returns the first address that is bound, with a port.
func tcpAddress(cfg *config.Config, port int) string {
	host := ""
	if len(cfg.Bind) > 0 {
		host = strings.TrimPrefix(cfg.Bind[0], "-")
	}
	switch host {
	case "*", "":
		host = "127.0.0.1"
	case "::*":
		host = "::1"
	}
	return net.JoinHostPort(host, strconv.Itoa(port))
}

// secure shakes hands over TLS. Unless authorities are named, who answers is not looked at: it is this machine, whatever name its
// certificate has. Where the server wants to know who asks, its own certificate is shown, if the configuration names it.
func (o *pingOptions) secure(conn net.Conn, addr string, cfg *config.Config) (net.Conn, error) {
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
		settings.ServerName, _, _ = net.SplitHostPort(addr)
	}
	if cfg.TLSAuthClients != config.TLSAuthNo && cfg.TLSCertFile != "" {
		pair, err := server.LoadKeyPair(cfg)
		if err != nil {
			return nil, err
		}
		settings.Certificates = []tls.Certificate{pair}
	}
	_ = conn.SetDeadline(time.Now().Add(pingTimeout))
	return tls.Client(conn, settings), nil
}

// encode writes a command as an array of bulk strings.
func encode(args []string) []byte {
	out := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, arg := range args {
		out = fmt.Appendf(out, "$%d\r\n%s\r\n", len(arg), arg)
	}
	return out
}
