package bench

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"headgate/cmd/headgate/peer"
)

// target is a server under load.
type target struct {
	*Options
	addr    string
	network string
	tls     *tls.Config
	control *control
	name    string // what it says it is
	load    Load   // what is sent to it
}

// newTarget connects to a server and asks what it is.
func newTarget(o *Options, addr string) (*target, error) {
	t := &target{Options: o}
	var err error
	if t.network, t.addr, err = peer.ParseAddress(addr); err != nil {
		return nil, err
	}
	if o.TLS {
		if t.tls, err = o.TLSConfig(t.addr); err != nil {
			return nil, err
		}
	}
	conn, err := t.dial()
	if err != nil {
		return nil, err
	}
	t.control = newControl(conn)
	info, err := t.control.ask("INFO", "server")
	if err != nil {
		t.close()
		return nil, fmt.Errorf("the server at %s: %w", t.addr, err)
	}
	t.name = "redis " + infoField(info, "redis_version")
	for _, other := range []string{"headgate", "valkey"} {
		if version := infoField(info, other+"_version"); version != "" {
			t.name = other + " " + version
		}
	}
	return t, nil
}

func (t *target) close() { t.control.conn.Close() }

// dial opens a connection on which the user, if there is one, is known.
func (t *target) dial() (net.Conn, error) {
	var conn net.Conn
	var err error
	dialer := &net.Dialer{Timeout: dialTimeout}
	if t.tls != nil {
		conn, err = tls.DialWithDialer(dialer, t.network, t.addr, t.tls)
	} else {
		conn, err = dialer.Dial(t.network, t.addr)
	}
	if err != nil {
		return nil, fmt.Errorf("no server answers: %w", err)
	}
	if t.Pass == "" {
		return conn, nil
	}
	auth := []string{"AUTH", t.Pass}
	if t.User != "" {
		auth = []string{"AUTH", t.User, t.Pass}
	}
	if _, err := newControl(conn).ask(auth...); err != nil {
		conn.Close()
		return nil, fmt.Errorf("the server at %s: %w", t.addr, err)
	}
	return conn, nil
}

// prepare loads what the load needs and runs it once. A server that does not know the command gets what stands for it.
func (t *target) prepare(load Load) error {
	for {
		err := t.try(load)
		if err == nil {
			t.load = load
			return nil
		}
		if load.Without == "" || !strings.Contains(err.Error(), "unknown command") {
			return fmt.Errorf("the server at %s: %w", t.addr, err)
		}
		if load, err = FindLoad(load.Without); err != nil {
			return err
		}
	}
}

// try sends one operation and returns the first error among its replies.
func (t *target) try(load Load) error {
	for _, command := range load.Setup {
		if _, err := t.control.ask(command...); err != nil {
			return err
		}
	}
	for _, script := range load.Scripts {
		if _, err := t.control.ask("SCRIPT", "LOAD", script); err != nil {
			return err
		}
	}
	tpl := newTemplate(load.Commands)
	f := newFiller(t.Seed, 0, t.Keys)
	f.tick()
	f.fill(tpl, tpl.bytes)
	if err := t.control.send(tpl.bytes); err != nil {
		return err
	}
	var first error
	for range tpl.replies {
		_, err := t.control.reply(0)
		var answered serverError
		if err != nil && !errors.As(err, &answered) {
			return err
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// cpu is the processor time that the server says it has used.
func (t *target) cpu() (time.Duration, bool) {
	info, err := t.control.ask("INFO", "cpu")
	if err != nil {
		return 0, false
	}
	sys, err1 := strconv.ParseFloat(infoField(info, "used_cpu_sys"), 64)
	user, err2 := strconv.ParseFloat(infoField(info, "used_cpu_user"), 64)
	return time.Duration((sys + user) * float64(time.Second)), err1 == nil && err2 == nil
}

// infoField returns the value of a line of INFO.
func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// serverError is an error that the server answered with.
type serverError string

func (e serverError) Error() string { return "it answers: " + string(e) }

// control is a connection on which one command is sent at a time.
type control struct {
	conn net.Conn
	in   *bufio.Reader
}

func newControl(conn net.Conn) *control { return &control{conn: conn, in: bufio.NewReader(conn)} }

// ask sends a command and returns the text of its reply.
func (c *control) ask(args ...string) (string, error) {
	if err := c.send(newTemplate([][]string{args}).bytes); err != nil {
		return "", err
	}
	return c.reply(0)
}

func (c *control) send(b []byte) error {
	c.conn.SetDeadline(time.Now().Add(replyTimeout))
	_, err := c.conn.Write(b)
	if err == nil {
		return nil
	}
	var said serverError // before it closed the connection
	if _, last := c.reply(0); errors.As(last, &said) {
		return said
	}
	return err
}

// maxControlReply is the longest string that a control connection takes.
const maxControlReply = 1 << 20

// reply reads one reply. Of an array it returns nothing, but takes the first error in it.
func (c *control) reply(depth int) (string, error) {
	defer c.conn.SetDeadline(time.Time{})
	line, err := c.in.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("no reply: %w", err)
	}
	line = strings.TrimRight(line, "\r\n")
	if line == "" {
		return "", errors.New("an empty line where a reply should begin")
	}
	kind, text := line[0], line[1:]
	switch kind {
	case '+', ':':
		return text, nil
	case '-':
		return "", serverError(text)
	case '$', '*':
	default:
		return "", fmt.Errorf("%q where a reply should begin: is this a server that speaks the Redis protocol?", kind)
	}
	n, err := strconv.Atoi(text)
	switch {
	case err != nil || n > maxControlReply || depth > maxDepth:
		return "", fmt.Errorf("the reply %q is too long or too deep", line)
	case kind == '$' && n >= 0:
		b := make([]byte, n+2)
		_, err := io.ReadFull(c.in, b)
		return string(b[:n]), err
	}
	var first error
	for range n {
		if _, err := c.reply(depth + 1); err != nil {
			var answered serverError
			if !errors.As(err, &answered) {
				return "", err
			}
			first = err
		}
	}
	return "", first
}
