package replication

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"headgate/internal/respcmd"
)

const (
	maxLine    = 1024      // bytes of one line that a primary answers with
	readBuffer = 64 << 10  // bytes read from a primary at a time
	maxNewline = 1_000_000 // empty lines that a primary may send before it answers PSYNC or sends a snapshot: one a second, over days
	shownReply = 100       // bytes of an answer that are quoted
	maxOffset  = 1 << 62   // that a history may have come to: what follows is counted from there
)

// errTooLong is what is wrong with a line that no primary sends.
var errTooLong = errors.New("it answers with a line that is too long: it does not speak Redis's protocol")

// Conn is a connection to a primary that notes when something came, and is given up when nothing has come or could be sent for a while. One
// goroutine reads; writes may come from others.
type Conn struct {
	net.Conn
	timeout atomic.Int64 // how long, in ns
	heard   atomic.Int64 // when something last came, by mono
	bytes   atomic.Int64 // that have come
}

// epoch is what mono counts from. It has a reading of the monotonic clock, as what is derived from it has.
var epoch = time.Now()

// mono is how long after epoch it is, in ns, whatever becomes of the wall clock meanwhile.
func mono() int64 { return int64(time.Since(epoch)) }

// NewConn returns a connection over nc that is given up when nothing has come for so long.
func NewConn(nc net.Conn, timeout time.Duration) *Conn {
	c := &Conn{Conn: nc}
	c.timeout.Store(int64(timeout))
	c.heard.Store(mono())
	return c
}

// SetTimeout has the connection be given up after another time without anything, counted from when something last came. Safe for concurrent use.
func (c *Conn) SetTimeout(timeout time.Duration) {
	c.timeout.Store(int64(timeout))
	_ = c.SetReadDeadline(epoch.Add(time.Duration(c.heard.Load()) + timeout)) // if it cannot be set, reading will fail too
}

// deadline is when it is given up if nothing comes or can be sent from now on.
func (c *Conn) deadline() time.Time { return time.Now().Add(time.Duration(c.timeout.Load())) }

// silence is how long nothing has come. heard may change at this moment, and is read first, so that this is never below 0, which would tell
// that there is no link.
func (c *Conn) silence() time.Duration {
	heard := c.heard.Load()
	return time.Duration(mono() - heard)
}

// Read implements io.Reader.
func (c *Conn) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(c.deadline()); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.heard.Store(mono())
		c.bytes.Add(int64(n))
	}
	return n, err
}

// Write implements io.Writer.
func (c *Conn) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(c.deadline()); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// dialogue is a connection while both sides take turns.
type dialogue struct {
	conn *Conn
	in   *bufio.Reader
}

func newDialogue(conn *Conn) *dialogue {
	return &dialogue{conn: conn, in: bufio.NewReaderSize(conn, readBuffer)}
}

// line reads one line, without its end.
func (d *dialogue) line() (string, error) {
	var text []byte
	for {
		b, err := d.in.ReadByte()
		switch {
		case err != nil:
			return "", lost(err)
		case b == '\n':
			return strings.TrimSuffix(string(text), "\r"), nil
		case len(text) == maxLine:
			return "", errTooLong
		}
		text = append(text, b)
	}
}

// lineAfterPings is line, but for empty ones, by which a primary shows that it is there.
func (d *dialogue) lineAfterPings() (string, error) {
	for range maxNewline {
		if text, err := d.line(); err != nil || text != "" {
			return text, err
		}
	}
	return "", errTooLong
}

// ask sends a command and reads the line that answers it.
func (d *dialogue) ask(words ...string) (string, error) {
	if _, err := d.conn.Write(respcmd.Append(nil, words...)); err != nil {
		return "", lost(err)
	}
	return d.line()
}

// lost is an error of the connection in words that tell what to look at.
func lost(err error) error {
	var timeout net.Error
	switch {
	case errors.As(err, new(*lostError)):
		return err
	case errors.Is(err, io.EOF):
		return &lostError{"the primary has closed the connection", nil}
	case errors.As(err, &timeout) && timeout.Timeout():
		return &lostError{whatSilent, nil}
	}
	return &lostError{"the connection is lost", err}
}

// whatSilent is what a lostError says of a connection over which nothing comes.
const whatSilent = "nothing has come from the primary for repl-timeout"

// lostError is the end of a connection that has worked.
type lostError struct {
	what  string
	cause error // nil: there is no more to say
}

// Error implements error.
func (e *lostError) Error() string {
	if e.cause == nil {
		return e.what
	}
	return e.what + ": " + e.cause.Error()
}

// Unwrap is for package errors.
func (e *lostError) Unwrap() error { return e.cause }

// Introduction is what a replica tells its primary of itself.
type Introduction struct {
	User, Password string // Password "": none is asked for. Never log it
	Port           int    // where this server listens
	IP             string // "": the one that the connection comes from
	RunID          string // by which a server knows that it asks itself
}

// introduce takes the steps before PSYNC. ignored are the primary's errors that are no hindrance, lineage is what it says of itself.
func (d *dialogue) introduce(who Introduction) (ignored, lineage []string, err error) {
	reply, err := d.ask("PING")
	switch {
	case err != nil:
		return nil, nil, err
	case strings.HasPrefix(reply, "-LOADING"):
		return nil, nil, refusal("PING", reply)
	case !strings.HasPrefix(reply, "+") && !strings.HasPrefix(reply, "-NOAUTH") && !strings.HasPrefix(reply, "-NOPERM") &&
		!strings.HasPrefix(reply, "-ERR operation not permitted"):
		return nil, nil, refusal("PING", reply)
	}
	if who.Password != "" {
		words := []string{"AUTH", who.User, who.Password}
		if who.User == "" {
			words = []string{"AUTH", who.Password}
		}
		if reply, err = d.ask(words...); err != nil {
			return nil, nil, err
		}
		if !strings.HasPrefix(reply, "+") {
			return nil, nil, fmt.Errorf("%w: correct masterauth and masteruser", refusal("AUTH", reply))
		}
	}
	steps := [][]string{{"REPLCONF", "listening-port", strconv.Itoa(who.Port)}}
	if who.IP != "" {
		steps = append(steps, []string{"REPLCONF", "ip-address", who.IP})
	}
	steps = append(steps, []string{"REPLCONF", "capa", "eof", "capa", "psync2", "capa", capaRunID + who.RunID})
	for _, step := range steps {
		if reply, err = d.ask(step...); err != nil {
			return nil, nil, err
		}
		switch {
		case strings.HasPrefix(reply, "-NOAUTH"), strings.HasPrefix(reply, "-NOPERM"):
			return nil, nil, fmt.Errorf("%w: %s", refusal(step[0], reply), needsUser)
		case reply == "-"+errAsksItself:
			return nil, nil, errSelf
		case strings.HasPrefix(reply, "-"):
			ignored = append(ignored, step[1]+": "+shown(reply[1:]))
		case !strings.HasPrefix(reply, "+"):
			return nil, nil, refusal(step[0], reply)
		}
		lineage = readLineage(reply) // of the last step
	}
	return ignored, lineage, nil
}

// needsUser is what to do where the primary allows a replica too little.
const needsUser = "set masterauth, and masteruser to a user who may run PSYNC, REPLCONF and PING"

// errNotNow is a primary's refusal that is over after a while.
var errNotNow = errors.New("the primary cannot be followed now")

// answer is what a primary answers to PSYNC.
type answer struct {
	full   bool   // a snapshot comes
	id     string // the history's name; "" as it was
	offset int64  // of the snapshot
}

// psync asks for the stream behind an offset of a history, or with an empty id for everything. takeOver has the other side, which is a replica of this
// server, go on as the primary, if it has all changes or force is true; the error is errRejected if it does not, or lacks some: it may have been started
// again with older data since it said that it had all.
func (d *dialogue) psync(id string, offset int64, takeOver, force bool) (a answer, err error) {
	words := []string{"PSYNC", "?", "-1"}
	if id != "" {
		words = []string{"PSYNC", id, strconv.FormatInt(offset+1, 10)}
		if takeOver {
			words = append(words, "FAILOVER")
			if force {
				words = append(words, wordForce) // servers that do not know it pass over it
			}
		}
	}
	if _, err := d.conn.Write(respcmd.Append(nil, words...)); err != nil {
		return a, lost(err)
	}
	reply, err := d.lineAfterPings()
	if err != nil {
		return a, err
	}
	fields := strings.Fields(reply)
	switch {
	case len(fields) == 3 && fields[0] == "+FULLRESYNC" && isID(fields[1]):
		a = answer{full: true, id: fields[1]}
		switch a.offset, err = strconv.ParseInt(fields[2], 10, 64); {
		case err != nil || a.offset < 0 || a.offset > maxOffset:
		case takeOver && !force:
			return a, fmt.Errorf("%w: it does not have all changes", errRejected)
		default:
			return a, nil
		}
	case len(fields) == 1 && fields[0] == "+CONTINUE" && id != "":
		return answer{}, nil
	case len(fields) == 2 && fields[0] == "+CONTINUE" && id != "" && isID(fields[1]):
		return answer{id: fields[1]}, nil
	case takeOver && reply == "-"+errFailoverHere: // it has gone on as the primary already, or is another server that listens there now
		if a, err = d.psync(id, offset, false, false); err == nil && a.full {
			err = fmt.Errorf("%w: it is a primary, and its data are others", errRejected)
		}
		return a, err
	case takeOver:
		return a, fmt.Errorf("%w: %w", errRejected, refusal("PSYNC", reply))
	case reply == "-"+errFollowsYou:
		return a, errLoop
	case strings.HasPrefix(reply, "-NOPERM"):
		return a, fmt.Errorf("%w: %s", refusal("PSYNC", reply), needsUser)
	case strings.HasPrefix(reply, "-NOMASTERLINK"):
		return a, fmt.Errorf("%w: it is a replica itself and has no link to its own primary; if they all say so, none of them is a primary (it answers %q to PSYNC)", errNotNow, shown(reply[1:]))
	case strings.HasPrefix(reply, "-LOADING"):
		return a, fmt.Errorf("%w: it answers %q to PSYNC", errNotNow, shown(reply[1:]))
	}
	return a, refusal("PSYNC", reply)
}

// idLength is the length of a history's name.
const idLength = 40

// isID reports whether a primary has given a history a name as Redis does.
func isID(text string) bool {
	return len(text) == idLength && strings.Trim(text, "0123456789abcdef") == ""
}

// refusal is the error for an answer that is not the one that was hoped for.
func refusal(command, reply string) error {
	if strings.HasPrefix(reply, "-") {
		return fmt.Errorf("the primary answers %q to %s", shown(reply[1:]), command)
	}
	return fmt.Errorf("it answers %q to %s, as no Redis does", shown(reply), command)
}

// shown is as much of an answer as is quoted.
func shown(reply string) string { return reply[:min(len(reply), shownReply)] }
