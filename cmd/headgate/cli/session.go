package cli

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"headgate/internal/reply"
	"headgate/internal/respcmd"
)

// dialTimeout is how long the server may take to accept, to shake hands and to authenticate.
const dialTimeout = 10 * time.Second

// lastWordsTimeout is how long a server is listened to that takes no command.
const lastWordsTimeout = time.Second

// session is a connection to the server.
type session struct {
	o       *Options
	conn    net.Conn // nil: there is none
	input   *bufio.Reader
	db      int
	queuing bool // a transaction is open, and has so far queued these commands
	queued  [][]string
	heard   bool // the server has answered something since it was connected to
}

// connect connects and authenticates, unless that is done. The error is the connection's, or an error reply as text.
func (s *session) connect() error {
	if s.conn != nil {
		return nil
	}
	s.heard = false
	conn, err := net.DialTimeout(s.o.Network, s.o.Address, dialTimeout)
	if err != nil {
		return fmt.Errorf("could not connect: %w", err)
	}
	_ = conn.SetDeadline(time.Now().Add(dialTimeout))
	if s.o.TLS != nil {
		secured := tls.Client(conn, s.o.TLS)
		if err := secured.Handshake(); err != nil {
			conn.Close()
			return s.noHandshake(err)
		}
		conn = secured
	}
	s.conn, s.input, s.queuing, s.queued = conn, bufio.NewReader(conn), false, nil
	for _, command := range s.greeting() {
		v, err := s.ask(command)
		if err != nil {
			return fmt.Errorf("no answer from %s: %w%s", s.o.Address, err, s.advice(err))
		}
		if v.IsError() {
			s.close()
			return fmt.Errorf("%s is answered with %s", command[0], v.Text)
		}
	}
	if s.conn != nil {
		_ = conn.SetDeadline(time.Time{})
	}
	return nil
}

// noHandshake says what to do about a TLS handshake that has failed.
func (s *session) noHandshake(err error) error {
	var unverified *tls.CertificateVerificationError
	var timeout net.Error
	switch {
	case errors.As(err, &unverified):
		return fmt.Errorf("the certificate of %s cannot be verified: %w; name its authority with --cacert, or go without with --insecure", s.o.Address, unverified.Err)
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("no TLS handshake with %s in time: its port may be one without TLS", s.o.Address)
	}
	return fmt.Errorf("no TLS handshake with %s: %w%s", s.o.Address, err, s.advice(err))
}

// advice ends the error for a connection that is lost; empty: there is nothing to say.
func (s *session) advice(err error) string {
	if s.heard || s.o.Network != "tcp" {
		return ""
	}
	return PortAdvice(err, s.o.TLS != nil)
}

// greeting is what a connection begins with.
func (s *session) greeting() (commands [][]string) {
	credentials := []string{s.o.Pass}
	if s.o.User != "" {
		credentials = []string{s.o.User, s.o.Pass}
	}
	if s.o.Pass != "" {
		commands = append(commands, append([]string{"AUTH"}, credentials...))
	}
	if s.o.RESP3 {
		commands = append(commands, []string{"HELLO", "3"})
	}
	if s.db != 0 {
		commands = append(commands, []string{"SELECT", strconv.Itoa(s.db)})
	}
	return commands
}

func (s *session) close() {
	if s.conn != nil {
		_ = s.conn.Close()
		s.conn = nil
	}
}

// ask sends a command and reads one reply. After an error the session has no connection.
func (s *session) ask(words []string) (reply.Value, error) {
	if _, err := s.conn.Write(respcmd.Append(nil, words...)); err != nil {
		return s.lastWords(err)
	}
	return s.read()
}

// lastWords returns the error with which the server has closed the connection before it was asked, or if there is none, why nothing could be sent.
func (s *session) lastWords(unsent error) (reply.Value, error) {
	defer s.close()
	_ = s.conn.SetReadDeadline(time.Now().Add(lastWordsTimeout))
	if v, err := reply.Read(s.input); err == nil && v.IsError() {
		return v, nil
	}
	return reply.Value{}, unsent
}

// read reads one reply.
func (s *session) read() (reply.Value, error) {
	v, err := reply.Read(s.input)
	if err != nil {
		s.close()
	}
	s.heard = s.heard || err == nil
	return v, err
}

// replies returns how many replies a command has, or -1 for one whose replies have no end.
func (s *session) replies(words []string) int {
	switch {
	case s.queuing:
		return 1
	case streams(words):
		return -1
	case unsubscribes(words):
		return max(1, len(words)-1)
	}
	return 1
}

// follow notes what a command that was answered has changed of the session.
func (s *session) follow(words []string, v *reply.Value) {
	if v.IsError() && !strings.HasPrefix(v.Text, "EXECABORT") {
		return
	}
	switch name := strings.ToUpper(words[0]); {
	case s.queuing && v.Kind == '+' && v.Text == "QUEUED":
		s.queued = append(s.queued, words)
	case name == "SELECT" && len(words) == 2 && v.Text == "OK":
		s.db, _ = strconv.Atoi(words[1])
	case name == "MULTI":
		s.queuing = true
	case name == "EXEC":
		queued := s.queued
		s.queuing, s.queued = false, nil
		for i := range min(len(queued), len(v.Items)) {
			s.follow(queued[i], &v.Items[i])
		}
	case name == "DISCARD":
		s.queuing, s.queued = false, nil
	case name == "RESET":
		s.queuing, s.queued, s.db = false, nil, 0
	}
}

// prompt is what stands before a line that is typed.
func (s *session) prompt() string {
	if s.conn == nil {
		return "not connected> "
	}
	text := s.o.Address
	if s.db != 0 {
		text += "[" + strconv.Itoa(s.db) + "]"
	}
	if s.queuing {
		text += "(TX)"
	}
	return text + "> "
}
