package command

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
// command; a handler keeps nothing of it, and Args point into the connection's input buffer.
type Ctx struct {
	Core   *Core
	Worker Worker
	Turn   *Turn
	Client *Client
	Cmd    *Command
	DB     *store.DB
	Args   [][]byte // args[0] is the command's name; a sub-command's name is args[1]
	Now    int64    // ms since the Unix epoch, for expiry
	NowNs  int64    // the same instant in ns, for limiters
	Cfg    *config.Config
	Reply  *resp.Writer
	Failed bool // an error was sent
	Known

	Script *CallingScript // the script that calls the command, or nil
	Quiet  bool           // what changes belongs to a change that is noted already, see BlockOn

	Scratch []byte // for rendering values; any handler may use it until it returns
}

// Worker is what runs a context's commands: the executor's worker.
type Worker interface {
	// Position returns the offset in its connection's input at which the running command begins.
	Position() int
}

// Known is what is found out about a command's arguments before it runs.
type Known struct {
	Hash   uint64 // of the first key, when that has a fixed place
	Hashed bool
	Shape  uint64 // not 0: the arguments are those of all commands with this number that this worker has run, but for the first key
}

// CallingScript is what the commands that a script calls have to know of it.
type CallingScript struct {
	Full  bool // memory was full when it began, and it has not asked to be let off
	Wrote bool // it has called a command that writes
}

// LacksRoom reports whether what needs memory is refused to the script: it began without, and has written nothing that would be left half
// done.
func (s *CallingScript) LacksRoom() bool { return s.Full && !s.Wrote }

// Key returns args[i] as a key of the current database.
func (c *Ctx) Key(i int) store.Key {
	if c.Hashed && i == c.Cmd.FirstKey {
		return store.Key{Name: c.Args[i], Hash: c.Hash}
	}
	return c.Core.Keys.Key(c.Args[i])
}

// Repeats reports whether the command has been carried out before, by the server that has logged it or by the primary that sends it: what
// clients may not do does not concern it.
func (c *Ctx) Repeats() bool { return c.Client.ID == 0 || c.Client.Primary }

// Err sends an error with its full text, code included.
func (c *Ctx) Err(text string) {
	c.Failed = true
	c.Core.Stats.CountError(text)
	if c.Client != nil && c.Client.Primary {
		c.Core.Hooks.Refused(c, text)
	}
	c.Reply.Error(text)
}

// Errf sends an error made from parts. Line ends in it become spaces, since a reply's error is one line.
func (c *Ctx) Errf(format string, a ...any) {
	c.Err(OneLine(fmt.Sprintf(format, a...)))
}

// ErrUsage sends the error for arguments that do not go together, with how the command is called.
func (c *Ctx) ErrUsage() { c.Errf(ErrUsage, c.Cmd.Syntax()) }

// Fail sends the wire form of an error from the store.
func (c *Ctx) Fail(err error) {
	switch {
	case errors.Is(err, store.ErrWrongType):
		c.Err(ErrWrongType)
	case errors.Is(err, store.ErrNotHLL):
		c.Err(errNotHLL)
	case errors.Is(err, store.ErrCorruptHLL):
		c.Err(errCorruptHLL)
	default:
		c.Errf("ERR %s", err)
	}
}

// ErrArity sends the error for a wrong number of arguments.
func (c *Ctx) ErrArity() {
	c.Err(c.Cmd.ArityError)
}

// ErrExpire sends the error for an expiry that is not in the future's range.
func (c *Ctx) ErrExpire() {
	c.Errf("ERR invalid expire time in '%s' command", c.Cmd.FullName)
}

// OK sends +OK.
func (c *Ctx) OK() { c.Reply.OK() }

// Integer parses args[i] as a whole number, or sends the error and returns false.
func (c *Ctx) Integer(i int) (int64, bool) {
	n, ok := number.ParseInt(c.Args[i])
	if !ok {
		c.Err(ErrNotInteger)
	}
	return n, ok
}

// KeyCount parses args[i] as the number of the keys that follow it, or sends the error, which is notInteger for what is no number.
func (c *Ctx) KeyCount(i int, notInteger string) (int64, bool) {
	n, ok := number.ParseInt(c.Args[i])
	switch {
	case !ok:
		c.Err(notInteger)
	case n > int64(len(c.Args)-i-1):
		c.Err(errManyKeys)
	case n < 0:
		c.Err(errFewKeys)
	default:
		return n, true
	}
	return 0, false
}

// Is reports whether args[i] is the given word, in any case. word is in upper case.
func (c *Ctx) Is(i int, word string) bool { return ascii.EqualFold(c.Args[i], word) }

var lineEnds = strings.NewReplacer("\r", " ", "\n", " ")

// OneLine returns text with its line ends as spaces: an error on the wire is one line.
func OneLine(s string) string {
	if strings.ContainsAny(s, "\r\n") {
		return lineEnds.Replace(s)
	}
	return s
}

// Look is Find for commands that ask about the key and do not use its value.
func (c *Ctx) Look(i int) (store.Entry, bool) {
	e, ok := c.DB.Look(c.Key(i), c.Now)
	c.CountRead(i, ok)
	return e, ok
}

// Find finds the key at args[i] for reading, and counts the use of the key, and the hit or the miss.
func (c *Ctx) Find(i int) (store.Entry, bool) {
	e, ok := c.DB.Find(c.Key(i), c.Now)
	c.CountRead(i, ok)
	return e, ok
}

// Database returns the database whose number is args[i], or sends the error and returns nil.
func (c *Ctx) Database(i int) *store.DB {
	n, ok := c.Integer(i)
	switch {
	case !ok:
	case n < math.MinInt32 || n > math.MaxInt32:
		c.Err(errInt32Range)
	case n < 0 || n >= int64(c.Core.Keys.Databases()):
		c.Err(ErrDBRange)
	default:
		return c.Core.Keys.DB(int(n))
	}
	return nil
}

// SendNames sends a set of simple strings.
func (c *Ctx) SendNames(names []string) {
	c.Reply.Set(len(names))
	for _, name := range names {
		c.Reply.Simple(name)
	}
}

// SendText sends one field of a map, with a text for its value.
func SendText(w *resp.Writer, name, value string) {
	w.BulkString(name)
	w.BulkString(value)
}

// SendField sends one field of a map, with a number for its value.
func SendField(w *resp.Writer, name string, n int) {
	w.BulkString(name)
	w.Int(int64(n))
}
