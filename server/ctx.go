package server

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"headgate/internal/ascii"
	"headgate/internal/number"
	"headgate/server/config"
	"headgate/server/resp"
	"headgate/store"
)

// Ctx is what a handler works with: one command of one client, with the executor's lock held. It is reused from command to
// command; a handler keeps nothing of it, and args point into the connection's input buffer.
type Ctx struct {
	core   *Core
	worker ctxWorker
	turn   *turn
	client *Client
	cmd    *Command
	db     *store.DB
	args   [][]byte // args[0] is the command's name; a sub-command's name is args[1]
	now    int64    // ms since the Unix epoch, for expiry
	nowNs  int64    // the same instant in ns, for limiters
	cfg    *config.Config
	reply  *resp.Writer
	failed bool // an error was sent
	known

	script *callingScript // the script that calls the command, or nil
	quiet  bool           // what changes belongs to a change that is noted already, see blockOn

	scratch []byte // for rendering values; any handler may use it until it returns
}

// ctxWorker is what runs a context's commands: the executor's worker.
type ctxWorker interface {
	// Position returns the offset in its connection's input at which the running command begins.
	Position() int
}

// known is what is found out about a command's arguments before it runs.
type known struct {
	hash   uint64 // of the first key, when that has a fixed place
	hashed bool
	shape  uint64 // not 0: the arguments are those of all commands with this number that this worker has run, but for the first key
}

// turn is what a worker keeps beside the command that it runs. All its contexts share one: a context that is put back as it was, behind a
// script or what somebody who waited was served, leaves it alone.
type turn struct {
	inCommand bool   // a client's command is being run, and with it those that it calls
	later     []byte // messages for the running command's client that follow its reply
	spent     int64  // ns that the commands of the client whose turn it is took, as far as they were timed
	busy      int64  // the same of all clients in this batch
	limits    sized  // the last limits that it has read, see known.shape; nil: none yet
}

// callingScript is what the commands that a script calls have to know of it.
type callingScript struct {
	full  bool // memory was full when it began, and it has not asked to be let off
	wrote bool // it has called a command that writes
}

// lacksRoom reports whether what needs memory is refused to the script: it began without, and has written nothing that would be left half
// done.
func (s *callingScript) lacksRoom() bool { return s.full && !s.wrote }

// key returns args[i] as a key of the current database.
func (c *Ctx) key(i int) store.Key {
	if c.hashed && i == c.cmd.firstKey {
		return store.Key{Name: c.args[i], Hash: c.hash}
	}
	return c.core.keys.Key(c.args[i])
}

// err sends an error with its full text, code included.
func (c *Ctx) err(text string) {
	c.failed = true
	c.core.stats.countError(text)
	c.reply.Error(text)
}

// errf sends an error made from parts. Line ends in it become spaces, since a reply's error is one line.
func (c *Ctx) errf(format string, a ...any) {
	c.err(oneLine(fmt.Sprintf(format, a...)))
}

// errUsage sends the error for arguments that do not go together, with how the command is called.
func (c *Ctx) errUsage() { c.errf(errUsage, c.cmd.Syntax()) }

// fail sends the wire form of an error from the store.
func (c *Ctx) fail(err error) {
	switch {
	case errors.Is(err, store.ErrWrongType):
		c.err(errWrongType)
	case errors.Is(err, store.ErrNotHLL):
		c.err(errNotHLL)
	case errors.Is(err, store.ErrCorruptHLL):
		c.err(errCorruptHLL)
	default:
		c.errf("ERR %s", err)
	}
}

// errArity sends the error for a wrong number of arguments.
func (c *Ctx) errArity() {
	c.err(c.cmd.arityError)
}

// errExpire sends the error for an expiry that is not in the future's range.
func (c *Ctx) errExpire() {
	c.errf("ERR invalid expire time in '%s' command", c.cmd.fullName)
}

// ok sends +OK.
func (c *Ctx) ok() { c.reply.OK() }

// integer parses args[i] as a whole number, or sends the error and returns false.
func (c *Ctx) integer(i int) (int64, bool) {
	n, ok := number.ParseInt(c.args[i])
	if !ok {
		c.err(errNotInteger)
	}
	return n, ok
}

// is reports whether args[i] is the given word, in any case. word is in upper case.
func (c *Ctx) is(i int, word string) bool { return ascii.EqualFold(c.args[i], word) }

var lineEnds = strings.NewReplacer("\r", " ", "\n", " ")

func oneLine(s string) string {
	if strings.ContainsAny(s, "\r\n") {
		return lineEnds.Replace(s)
	}
	return s
}

// lookUp is lookupRead for commands that ask about the key and do not use its value.
func (c *Ctx) lookUp(i int) (store.Entry, bool) {
	e, ok := c.db.Look(c.key(i), c.now)
	c.countRead(i, ok)
	return e, ok
}

// lookupRead finds the key at args[i] for reading, and counts the hit or the miss.
func (c *Ctx) lookupRead(i int) (store.Entry, bool) {
	e, ok := c.db.Find(c.key(i), c.now)
	c.countRead(i, ok)
	return e, ok
}

// database returns the database whose number is args[i], or sends the error and returns nil.
func (c *Ctx) database(i int) *store.DB {
	n, ok := c.integer(i)
	switch {
	case !ok:
	case n < math.MinInt32 || n > math.MaxInt32:
		c.err(errInt32Range)
	case n < 0 || n >= int64(c.core.keys.Databases()):
		c.err(errDBRange)
	default:
		return c.core.keys.DB(int(n))
	}
	return nil
}

// sendNames sends a set of simple strings.
func (c *Ctx) sendNames(names []string) {
	c.reply.Set(len(names))
	for _, name := range names {
		c.reply.Simple(name)
	}
}

// sendText sends one field of a map, with a text for its value.
func sendText(w *resp.Writer, name, value string) {
	w.BulkString(name)
	w.BulkString(value)
}

// sendField sends one field of a map, with a number for its value.
func sendField(w *resp.Writer, name string, n int) {
	w.BulkString(name)
	w.Int(int64(n))
}
