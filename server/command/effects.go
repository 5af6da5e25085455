package command

import (
	"bytes"
	"slices"
	"strconv"

	"headgate/store"
)

// Effects is what commands have changed and no log has taken yet: commands in RESP that, run in their order on what was there
// before, bring about the same state without deciding anything anew. It is empty and costs one look at a field as long as
// nobody wants effects. The executor's lock guards it.
//
// What one client's command changes is a unit: a log keeps all of it or nothing. A unit of several effects stands between
// MULTI and EXEC. What happens outside of commands, such as the removal of keys past their time, is a unit by itself each time.
type Effects struct {
	On       bool // somebody wants them: the one field that is looked at if nobody does
	Buf      []byte
	DB       int    // the database that the next effect would be for if no SELECT came before; noDB: not said yet
	Depth    int    // of commands run by commands; 0 outside of them
	start    int    // where the unit begins in Buf
	startDB  int    // DB at that point
	count    int    // effects in the unit
	last     int    // where the last effect of the unit begins in Buf
	declared uint64 // how often handlers have said what their effect is
	Room     int64  // bytes of them that the log can take for certain
	Crowded  bool   // so many wait for the disk that expired and evicted keys add no more; the log is rewritten as soon as possible
}

// noDB makes the next effect be preceded by a SELECT.
const noDB = -1

// Enable begins to collect effects. The first one will name its database. room is how many bytes of them the log can take.
func (e *Effects) Enable(room int64) {
	*e = Effects{On: true, Buf: e.Buf[:0], DB: noDB, startDB: noDB, Depth: e.Depth, Room: room}
}

// Disable forgets what was collected and stops.
func (e *Effects) Disable() { *e = Effects{Depth: e.Depth} }

// RoomFor reports whether the log can take n bytes more than there are.
func (e *Effects) RoomFor(n int) bool { return int64(len(e.Buf)+n) <= e.Room }

// Whole returns the effects up to the unit that is not at its end yet.
func (e *Effects) Whole() []byte {
	if e.Depth > 0 {
		return e.Buf[:e.start]
	}
	return e.Buf
}

// Take returns the effects that are whole. Further ones are collected in spare.
func (e *Effects) Take(spare []byte) []byte {
	n := len(e.Whole())
	if n == 0 {
		return nil
	}
	taken := e.Buf
	e.Buf = append(spare[:0], taken[n:]...)
	e.start -= min(n, e.start)
	e.last -= min(n, e.last)
	return taken[:n]
}

// EffectMark is how things stood before a command was run.
type EffectMark struct {
	dirty, declared uint64
	db              int
}

// Begin opens a unit, unless one is open already, and returns the mark that EndEffects needs.
func (e *Effects) Begin(keys *store.Keyspace, db *store.DB) EffectMark {
	if e.Depth == 0 {
		e.start, e.startDB, e.count = len(e.Buf), e.DB, 0
	}
	e.Depth++
	return EffectMark{dirty: keys.Dirty(), declared: e.declared, db: db.Index()}
}

// End closes what Begin has opened.
func (e *Effects) End() {
	e.Depth--
	if e.Depth == 0 && e.count > 1 {
		e.Buf = append(e.Buf, respExec...)
	}
}

// Abandon takes back the unit's effects so far and collects no more: the server ends in the middle of a unit.
func (e *Effects) Abandon() {
	e.Buf, e.DB, e.count = e.Whole(), e.startDB, 0
	e.On = false
}

// NoteGap has the log say that from here on it lacks changes, so that commands which follow may not do when they are replayed what they have
// done: see Skip.
func (e *Effects) NoteGap() {
	if e.On {
		e.Buf = append(e.Buf, annotationGap...)
	}
}

// Skip runs a change that is not to be collected.
func (e *Effects) Skip(change func()) {
	on := e.On
	e.On = false
	change()
	e.On = on
	e.declared++
}

const (
	respMulti = "*1\r\n$5\r\nMULTI\r\n"
	respExec  = "*1\r\n$4\r\nEXEC\r\n"

	annotationGap = "#GAP\r\n" // see package aof
)

// next makes room for one more effect on database db: it turns the unit into a transaction if that is its second one, and
// changes the database if need be.
func (e *Effects) next(db int) {
	if e.Depth > 0 {
		if e.count++; e.count == 2 {
			e.Buf = slices.Insert(e.Buf, e.start, []byte(respMulti)...)
		}
	}
	if db != e.DB {
		e.DB = db
		e.Buf = append(e.Buf, "*2\r\n$6\r\nSELECT\r\n"...)
		e.Buf = appendNumber(e.Buf, int64(db))
	}
	e.last = len(e.Buf)
}

// Add appends an effect. See Ctx.Effect.
func (e *Effects) Add(db int, args []any) {
	e.next(db)
	e.Buf = appendHeader(e.Buf, '*', len(args))
	for _, arg := range args {
		switch v := arg.(type) {
		case []byte:
			e.Buf = appendBulk(e.Buf, v)
		case string:
			e.Buf = appendBulk(e.Buf, v)
		case int64:
			e.Buf = appendNumber(e.Buf, v)
		case int:
			e.Buf = appendNumber(e.Buf, int64(v))
		default:
			panic("command: an effect's arguments are of type []byte, string, int64 or int")
		}
	}
}

// addSet is Add for SET key n PXAT at, which nearly all limiters come to.
func (e *Effects) addSet(db int, key []byte, n, at int64) {
	if db == e.DB {
		e.forgetDeletion(key)
	}
	e.next(db)
	e.Buf = append(e.Buf, "*5\r\n$3\r\nSET\r\n"...)
	e.Buf = appendBulk(e.Buf, key)
	e.Buf = appendNumber(e.Buf, n)
	e.Buf = append(e.Buf, "$4\r\nPXAT\r\n"...)
	e.Buf = appendNumber(e.Buf, at)
}

// forgetDeletion takes the unit's only effect back if that is the deletion of a key which is now set: limiters find most keys past their
// time, and two effects would have to be a transaction.
func (e *Effects) forgetDeletion(key []byte) {
	const del = "*2\r\n$3\r\nDEL\r\n"
	if e.Depth == 0 || e.count != 1 {
		return
	}
	tail, ok := bytes.CutPrefix(e.Buf[e.last:], []byte(del))
	if !ok || !bytes.HasSuffix(tail, []byte("\r\n")) {
		return
	}
	if _, name, ok := bytes.Cut(tail[:len(tail)-2], []byte("\r\n")); ok && bytes.Equal(name, key) {
		e.Buf, e.count = e.Buf[:e.last], 0
	}
}

// addWords appends an effect that is a command as it was called.
func (e *Effects) addWords(db int, words [][]byte) {
	e.next(db)
	e.Buf = appendHeader(e.Buf, '*', len(words))
	for _, word := range words {
		e.Buf = appendBulk(e.Buf, word)
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

// appendNumber appends a bulk string with a number's digits.
func appendNumber(dst []byte, n int64) []byte {
	from := len(dst)
	dst = strconv.AppendInt(append(dst, "$00\r\n"...), n, 10)
	length := len(dst) - from - len("$00\r\n")
	if length < 10 {
		var digits IntegerText
		return appendBulk(dst[:from], append(digits[:0], dst[len(dst)-length:]...))
	}
	dst[from+1], dst[from+2] = byte('0'+length/10), byte('0'+length%10)
	return append(dst, '\r', '\n')
}

// Effect declares what the command has changed, as a command that Redis has too and that does the same whenever it is
// replayed: absolute times instead of relative ones, what was drawn or decided instead of how. It stands in for the command
// as it was called, and may be used several times for several effects. Arguments are []byte, string, int64 or int; they are
// copied at once, and nothing is allocated for them. On a path where every nanosecond counts, ask Logs first.
//
// A command that changes the keyspace and declares nothing is logged as it was called, and so needs no effect if its
// outcome depends on nothing but its arguments and the keys' values. Call Effect after the change, once it is certain.
func (c *Ctx) Effect(args ...any) {
	if c.Core.Effects.On {
		c.Core.Effects.declared++
		c.Core.Effects.Add(c.DB.Index(), args)
	}
}

// EffectSet is Effect for SET key n PXAT at.
func (c *Ctx) EffectSet(key []byte, n, at int64) {
	if c.Core.Effects.On {
		c.Core.Effects.declared++
		c.Core.Effects.addSet(c.DB.Index(), key, n, at)
	}
}

// EffectVerbatim declares the command as it was called to be its effect. Only what changes something that the store does not
// know of, such as functions, has to say so, and what changes a value though it is marked ReadOnly.
func (c *Ctx) EffectVerbatim() {
	if c.Core.Effects.On {
		c.Core.Effects.declared++
		c.Core.Effects.addWords(c.DB.Index(), c.Cmd.ownLine(c.Args))
	}
}

// ownLine returns a command line with the command's name in the table, whatever clients call it by.
func (c *Command) ownLine(args [][]byte) [][]byte {
	if c.Parent != nil {
		c = c.Parent
	}
	if !c.renamed {
		return args
	}
	return append([][]byte{[]byte(c.Name)}, args[1:]...)
}

// Logs reports whether anybody wants effects.
func (c *Ctx) Logs() bool { return c.Core.Effects.On }

// Propagate is Effect for changes outside of commands, such as background work. The caller holds the executor's lock.
func (s *Core) Propagate(db *store.DB, args ...any) {
	if s.Effects.On {
		s.Effects.Add(db.Index(), args)
	}
}

// EndEffects closes the unit that a command has opened, after adding the command itself if it has changed the keyspace and not
// said otherwise.
func (c *Ctx) EndEffects(cmd *Command, before EffectMark) {
	e := &c.Core.Effects
	if e.On && cmd.Flags&Write != 0 && e.declared == before.declared && c.Core.Keys.Dirty() != before.dirty {
		e.addWords(before.db, cmd.ownLine(c.Args))
	}
	e.End()
}

// keyExpired is called by the store just before it removes a key that has expired.
func (s *Core) keyExpired(db *store.DB, name []byte) { s.PropagateGone(db, name) }

// PropagateGone is Propagate for a key that has expired or is evicted. The caller holds the executor's lock.
func (s *Core) PropagateGone(db *store.DB, name []byte) {
	if !s.Effects.Crowded {
		s.Propagate(db, "DEL", name)
	}
}
