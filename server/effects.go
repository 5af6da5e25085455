package server

import (
	"bytes"
	"slices"
	"strconv"

	"headgate/store"
)

// effects is what commands have changed and no log has taken yet: commands in RESP that, run in their order on what was there
// before, bring about the same state without deciding anything anew. It is empty and costs one look at a field as long as
// nobody wants effects. The executor's lock guards it.
//
// What one client's command changes is a unit: a log keeps all of it or nothing. A unit of several effects stands between
// MULTI and EXEC. What happens outside of commands, such as the removal of keys past their time, is a unit by itself each time.
type effects struct {
	on       bool // somebody wants them: the one field that is looked at if nobody does
	buf      []byte
	db       int    // the database that the next effect would be for if no SELECT came before; noDB = not said yet
	depth    int    // of commands run by commands; 0 outside of them
	start    int    // where the unit begins in buf
	startDB  int    // db at that point
	count    int    // effects in the unit
	last     int    // where the last effect of the unit begins in buf
	declared uint64 // how often handlers have said what their effect is
	room     int64  // bytes of them that the log can take for certain
}

// noDB makes the next effect be preceded by a SELECT.
const noDB = -1

// enable begins to collect effects. The first one will name its database. room is how many bytes of them the log can take.
func (e *effects) enable(room int64) {
	*e = effects{on: true, buf: e.buf[:0], db: noDB, startDB: noDB, depth: e.depth, room: room}
}

// disable forgets what was collected and stops.
func (e *effects) disable() { *e = effects{depth: e.depth} }

// roomFor reports whether the log can take n bytes more than there are.
func (e *effects) roomFor(n int) bool { return int64(len(e.buf)+n) <= e.room }

// whole returns the effects up to the unit that is not at its end yet.
func (e *effects) whole() []byte {
	if e.depth > 0 {
		return e.buf[:e.start]
	}
	return e.buf
}

// take returns the effects that are whole, and goes on in spare.
func (e *effects) take(spare []byte) []byte {
	n := len(e.whole())
	if n == 0 {
		return nil
	}
	taken := e.buf
	e.buf = append(spare[:0], taken[n:]...)
	e.start -= min(n, e.start)
	return taken[:n]
}

// effectMark is how things stood before a command was run.
type effectMark struct {
	dirty, declared uint64
	db              int
}

// begin opens a unit, unless one is open already, and returns the mark that end needs.
func (e *effects) begin(keys *store.Keyspace, db *store.DB) effectMark {
	if e.depth == 0 {
		e.start, e.startDB, e.count = len(e.buf), e.db, 0
	}
	e.depth++
	return effectMark{dirty: keys.Dirty(), declared: e.declared, db: db.Index()}
}

// end closes what begin has opened.
func (e *effects) end() {
	e.depth--
	if e.depth == 0 && e.count > 1 {
		e.buf = append(e.buf, respExec...)
	}
}

// abandon takes back the unit's effects so far and collects no more: the server ends in the middle of a unit.
func (e *effects) abandon() {
	e.buf, e.db, e.count = e.whole(), e.startDB, 0
	e.on = false
}

// skip runs a change that is not to be collected.
func (e *effects) skip(change func()) {
	on := e.on
	e.on = false
	change()
	e.on = on
	e.declared++
}

const (
	respMulti = "*1\r\n$5\r\nMULTI\r\n"
	respExec  = "*1\r\n$4\r\nEXEC\r\n"
)

// next makes room for one more effect on database db: it turns the unit into a transaction if that is its second one, and
// changes the database if need be.
func (e *effects) next(db int) {
	if e.depth > 0 {
		if e.count++; e.count == 2 {
			e.buf = slices.Insert(e.buf, e.start, []byte(respMulti)...)
		}
	}
	if db != e.db {
		e.db = db
		e.buf = append(e.buf, "*2\r\n$6\r\nSELECT\r\n"...)
		e.buf = appendNumber(e.buf, int64(db))
	}
	e.last = len(e.buf)
}

// add appends an effect. See Ctx.effect.
func (e *effects) add(db int, args []any) {
	e.next(db)
	e.buf = appendHeader(e.buf, '*', len(args))
	for _, arg := range args {
		switch v := arg.(type) {
		case []byte:
			e.buf = appendBulk(e.buf, v)
		case string:
			e.buf = appendBulk(e.buf, v)
		case int64:
			e.buf = appendNumber(e.buf, v)
		case int:
			e.buf = appendNumber(e.buf, int64(v))
		default:
			panic("server: an effect's arguments are of type []byte, string, int64 or int")
		}
	}
}

// addSet is add for SET key n PXAT at, which nearly all limiters come to.
func (e *effects) addSet(db int, key []byte, n, at int64) {
	if db == e.db {
		e.forgetDeletion(key)
	}
	e.next(db)
	e.buf = append(e.buf, "*5\r\n$3\r\nSET\r\n"...)
	e.buf = appendBulk(e.buf, key)
	e.buf = appendNumber(e.buf, n)
	e.buf = append(e.buf, "$4\r\nPXAT\r\n"...)
	e.buf = appendNumber(e.buf, at)
}

// forgetDeletion takes the unit's only effect back if that is the deletion of a key which is now set: limiters find most keys past their
// time, and two effects would have to be a transaction.
func (e *effects) forgetDeletion(key []byte) {
	const del = "*2\r\n$3\r\nDEL\r\n"
	if e.depth == 0 || e.count != 1 {
		return
	}
	tail, ok := bytes.CutPrefix(e.buf[e.last:], []byte(del))
	if !ok || !bytes.HasSuffix(tail, []byte("\r\n")) {
		return
	}
	if _, name, ok := bytes.Cut(tail[:len(tail)-2], []byte("\r\n")); ok && bytes.Equal(name, key) {
		e.buf, e.count = e.buf[:e.last], 0
	}
}

// addWords appends an effect that is a command as it was called.
func (e *effects) addWords(db int, words [][]byte) {
	e.next(db)
	e.buf = appendHeader(e.buf, '*', len(words))
	for _, word := range words {
		e.buf = appendBulk(e.buf, word)
	}
}

// appendHeader appends a line with a type and a number.
func appendHeader(dst []byte, kind byte, n int) []byte {
	dst = strconv.AppendInt(append(dst, kind), int64(n), 10)
	return append(dst, '\r', '\n')
}

// appendBulk appends a bulk string.
func appendBulk[T []byte | string](dst []byte, text T) []byte {
	dst = appendHeader(dst, '$', len(text))
	dst = append(dst, text...)
	return append(dst, '\r', '\n')
}

// integerText is room for the digits of a string that is kept as an integer.
type integerText [20]byte

// appendNumber appends a bulk string with a number's digits.
func appendNumber(dst []byte, n int64) []byte {
	from := len(dst)
	dst = strconv.AppendInt(append(dst, "$00\r\n"...), n, 10)
	length := len(dst) - from - len("$00\r\n")
	if length < 10 {
		var digits integerText
		return appendBulk(dst[:from], append(digits[:0], dst[len(dst)-length:]...))
	}
	dst[from+1], dst[from+2] = byte('0'+length/10), byte('0'+length%10)
	return append(dst, '\r', '\n')
}

// effect declares what the command has changed, as a command that Redis has too and that does the same whenever it is
// replayed: absolute times instead of relative ones, what was drawn or decided instead of how. It stands in for the command
// as it was called, and may be used several times for several effects. Arguments are []byte, string, int64 or int; they are
// copied at once, and nothing is allocated for them. On a path where every nanosecond counts, ask logs first.
//
// A command that changes the keyspace and declares nothing is logged as it was called, and so needs no effect if its
// outcome depends on nothing but its arguments and the keys' values. Call effect after the change, once it is certain.
func (c *Ctx) effect(args ...any) {
	if c.core.effects.on {
		c.core.effects.declared++
		c.core.effects.add(c.db.Index(), args)
	}
}

// effectSet is effect for SET key n PXAT at.
func (c *Ctx) effectSet(key []byte, n, at int64) {
	if c.core.effects.on {
		c.core.effects.declared++
		c.core.effects.addSet(c.db.Index(), key, n, at)
	}
}

// effectVerbatim declares the command as it was called to be its effect. Only what changes something that the store does not
// know of, such as functions, has to say so, and what changes a value though it is marked ReadOnly.
func (c *Ctx) effectVerbatim() {
	if c.core.effects.on {
		c.core.effects.declared++
		c.core.effects.addWords(c.db.Index(), c.cmd.ownLine(c.args))
	}
}

// ownLine returns a command line with the command's name in the table, whatever clients call it by.
func (c *Command) ownLine(args [][]byte) [][]byte {
	if c.parent != nil {
		c = c.parent
	}
	if !c.renamed {
		return args
	}
	return append([][]byte{[]byte(c.Name)}, args[1:]...)
}

// logs reports whether anybody wants effects.
func (c *Ctx) logs() bool { return c.core.effects.on }

// propagate is effect for changes outside of commands, such as background work. The caller holds the executor's lock.
func (s *Core) propagate(db *store.DB, args ...any) {
	if s.effects.on {
		s.effects.add(db.Index(), args)
	}
}

// endEffects closes the unit that a command has opened, after adding the command itself if it has changed the keyspace and not
// said otherwise.
func (c *Ctx) endEffects(cmd *Command, before effectMark) {
	e := &c.core.effects
	if e.on && cmd.Flags&Write != 0 && e.declared == before.declared && c.core.keys.Dirty() != before.dirty {
		e.addWords(before.db, cmd.ownLine(c.args))
	}
	e.end()
}

// keyExpired is told by the store of every key that is removed because its time has passed, just before it goes.
func (s *Core) keyExpired(db *store.DB, name []byte) {
	s.propagate(db, "DEL", name)
}
