package main

import (
	"bufio"
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"headgate/server"
	"headgate/server/config"
)

// pingTimeout is how long the server may take to accept and to answer.
const pingTimeout = 2 * time.Second

// ping asks the server that the configuration describes for a PONG, after authenticating if there is a password: over the Unix
// socket if there is one, else on the first address that is bound, over TLS if that is all there is.
func (p program) ping(args []string) error {
	live, _, err := config.Load(args, p.env, config.OSHost())
	if err != nil {
		return err
	}
	cfg := live.Get()
	network, addr := listenAddress(cfg)
	conn, err := net.DialTimeout(network, addr, pingTimeout)
	if err == nil && network == "tcp" && cfg.Port == 0 {
		conn, err = secure(conn, cfg)
	}
	if err != nil {
		return fmt.Errorf("no server answers: %w", err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(pingTimeout))
	commands := [][]string{{"PING"}}
	if cfg.RequirePass != "" {
		commands = [][]string{{"AUTH", cfg.RequirePass}, {"PING"}}
	}
	replies := bufio.NewReader(conn)
	for _, command := range commands {
		if _, err := conn.Write(encode(command)); err != nil {
			return fmt.Errorf("the server at %s does not answer: %w", addr, err)
		}
		reply, err := replies.ReadString('\n')
		if err != nil {
			return fmt.Errorf("the server at %s does not answer: %w", addr, err)
		}
		if reply != "+PONG\r\n" && reply != "+OK\r\n" {
			return errors.New("the server at " + addr + " answers " + strings.TrimSpace(reply))
		}
	}
	return nil
}

// listenAddress returns where a client on this machine reaches a server so configured.
func listenAddress(cfg *config.Config) (network, addr string) {
	if cfg.UnixSocket != "" {
		return "unix", cfg.Path(cfg.UnixSocket)
	}
	host := strings.TrimPrefix(cfg.Bind[0], "-")
	switch host {
	case "*":
		host = "127.0.0.1"
	case "::*":
		host = "::1"
	}
	return "tcp", net.JoinHostPort(host, strconv.Itoa(cmp.Or(cfg.Port, cfg.TLSPort)))
}

// secure shakes hands over TLS. Who answers is not looked at: it is this machine, whatever name its certificate has. Where the server
// wants to know who asks, its own certificate is shown.
func secure(conn net.Conn, cfg *config.Config) (net.Conn, error) {
	settings := &tls.Config{InsecureSkipVerify: true}
	if cfg.TLSAuthClients != config.TLSAuthNo {
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
