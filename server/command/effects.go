package command

import (
	"bytes"
	"math"
	"slices"

	"headgate/internal/number"
	"headgate/internal/respcmd"
	"headgate/store"
)

// Effects is what commands have changed and no log has taken yet: commands in RESP that, run in their order on what was there
// before, bring about the same state without deciding anything anew. It is empty and costs one look at a field as long as
// nobody wants effects. The executor's lock guards it.
//
// They are made once for all who want them: the append-only file, by Take, and the stream to replicas, see Stream. A few are for the stream
// alone, see Aside.
//
// What one client's command changes is a unit: a log keeps all of it or nothing. A unit of several effects stands between
// MULTI and EXEC. What happens outside of commands, such as the removal of keys past their time, is a unit by itself each time.
type Effects struct {
	On       bool // somebody wants them: the one field that is looked at if nobody does
	Logged   bool // a log does
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

	stream func(p []byte) // is given whole units, each once and in their order; nil: there are no replicas
	fed    int            // how much of Buf it has been given
	asides []span         // the parts of Buf that no log takes
	aside  bool           // what is noted now belongs to the last of them

	set setTail // of the last effect that addSet has made

	gone goneKeys // the last effect, if it is a DEL to which keys may be added
}

// goneKeys is a DEL at the end of Effects.Buf that is for keys which have gone outside of commands.
type goneKeys struct {
	from, end int // where it stands; it is no longer at the end if end is not, and none if that is 0
	keys      int
}

// maxGoneKeys is how many keys one DEL has at most, so that its header is of one length.
const maxGoneKeys = 8

// setTail is how SET key n PXAT at ends, in RESP behind the key.
type setTail struct {
	n, at int64
	text  []byte // empty: none is known
}

// span is a part of Effects.Buf.
type span struct{ from, to int }

// noDB makes the next effect be preceded by a SELECT.
const noDB = -1

// Enable begins to collect effects for a log. The first one will name its database. room is how many bytes of them the log can take.
func (e *Effects) Enable(room int64) {
	e.begin()
	e.On, e.Logged, e.Room = true, true, room
}

// Disable forgets what was collected for the log, and goes on for the stream alone, if there is one.
func (e *Effects) Disable() {
	e.begin()
	if e.On = e.stream != nil; !e.On {
		e.Buf = nil
	}
}

// Mute collects nothing more before the next call of Enable.
func (e *Effects) Mute() {
	e.begin()
	e.On = false
}

// begin empties Buf. What is in it is the stream's: a unit that is not at its end yet is cut in two there.
func (e *Effects) begin() {
	if e.stream != nil {
		if e.Depth > 0 && e.count > 1 {
			e.Buf = append(e.Buf, respExec...)
		}
		e.give(len(e.Buf))
	}
	*e = Effects{Buf: e.Buf[:0], DB: noDB, startDB: noDB, Depth: e.Depth, Room: math.MaxInt64, stream: e.stream, set: e.set} // and no DEL to which keys may be added
}

// Stream has all units from now on be given to a func as soon as they are whole, and Aside note something; nil ends that. The func is called
// with the executor's lock held, and keeps nothing of what it is given.
func (e *Effects) Stream(to func(p []byte)) {
	e.Feed()
	e.stream, e.fed = to, len(e.Whole())
	if e.On = e.Logged || to != nil; e.On && !e.Logged {
		e.Room = math.MaxInt64
	}
	e.NameDatabase()
	e.gone = goneKeys{}
}

// NameDatabase has the next effect name its database, since somebody begins to read there.
func (e *Effects) NameDatabase() { e.DB = noDB }

// Feed gives the stream what is whole. Without a log it is let go of then.
func (e *Effects) Feed() {
	if e.stream == nil {
		return
	}
	whole := len(e.Whole())
	e.give(whole)
	if e.Logged || e.Depth > 0 {
		return
	}
	if e.Buf = e.Buf[:0]; cap(e.Buf) > keptEffects {
		e.Buf = nil
	}
	e.fed, e.asides, e.gone = 0, nil, goneKeys{}
}

// keptEffects bounds the memory for effects that is kept while there is no log.
const keptEffects = 1 << 20

// give gives the stream what it has not been given of the first n bytes.
func (e *Effects) give(n int) {
	if e.fed < n {
		e.stream(e.Buf[e.fed:n])
		e.fed = n
		e.gone = goneKeys{}
	}
}

// RoomFor reports whether the log can take n bytes more than there are.
func (e *Effects) RoomFor(n int) bool { return int64(len(e.Buf)+n) <= e.Room }

// Whole returns the effects up to the unit that is not at its end yet.
func (e *Effects) Whole() []byte {
	if e.Depth > 0 {
		return e.Buf[:e.start]
	}
	return e.Buf
}

// Amid reports whether there are effects of a unit that is not at its end yet.
func (e *Effects) Amid() bool { return len(e.Whole()) < len(e.Buf) }

// Take returns the effects that are whole and for a log. Further ones are collected in spare.
func (e *Effects) Take(spare []byte) []byte {
	n := len(e.Whole())
	if n == 0 {
		return nil
	}
	if e.stream != nil {
		e.give(n)
		e.fed -= n
	}
	taken := e.Buf
	e.gone = goneKeys{}
	e.Buf = append(spare[:0], taken[n:]...)
	e.start -= min(n, e.start)
	e.last -= min(n, e.last)
	return e.withoutAsides(taken[:n])
}

// withoutAsides takes out of effects, which are no longer in Buf, what is not for a log.
func (e *Effects) withoutAsides(taken []byte) []byte {
	n, kept := len(taken), e.asides[:0]
	cut := taken[:0]
	from := 0
	for _, s := range e.asides {
		if s.from >= n {
			kept = append(kept, span{s.from - n, s.to - n})
			continue
		}
		cut = append(cut, taken[from:s.from]...)
		from = s.to
	}
	e.asides = kept
	if from == 0 {
		return taken
	}
	return append(cut, taken[from:]...)
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
	if !e.Logged {
		return
	}
	at := len(e.Whole())
	e.gone = goneKeys{}
	if e.stream != nil { // which has no gap, and is to have no such line
		e.give(at)
		e.fed += len(annotationGap)
	}
	e.Buf = slices.Insert(e.Buf, at, []byte(annotationGap)...)
	e.shift(at, len(annotationGap))
	if e.Depth > 0 {
		e.start, e.last = e.start+len(annotationGap), e.last+len(annotationGap)
	}
}

// Annotate has the log have a line, which begins with # and ends a line, behind all effects so far. It is called outside of commands.
func (e *Effects) Annotate(line []byte) {
	if !e.Logged {
		return
	}
	if e.stream != nil {
		e.give(len(e.Buf))
		e.fed += len(line)
	}
	e.Buf = append(e.Buf, line...)
}

// shift tells that n bytes were put into Buf.
func (e *Effects) shift(at, n int) {
	for i := range e.asides {
		if s := &e.asides[i]; s.from >= at {
			s.from, s.to = s.from+n, s.to+n
		}
	}
}

// Skip runs a change that no log is to have.
func (e *Effects) Skip(change func()) {
	if e.stream != nil {
		e.Aside(change)
	} else {
		on := e.On
		e.On = false
		change()
		e.On = on
	}
	e.declared++
}

// Aside runs what notes effects for the stream alone.
func (e *Effects) Aside(note func()) {
	began, db := e.beginAside(), e.DB
	note()
	e.endAside(began, db)
}

// beginAside has what is noted be for the stream alone. It reports false if that is so already.
func (e *Effects) beginAside() bool {
	if !e.Logged || e.aside {
		return false
	}
	e.aside = true
	e.asides = append(e.asides, span{len(e.Buf), len(e.Buf)})
	return true
}

// endAside ends what beginAside has begun, if that is what it said; db is what DB was then.
func (e *Effects) endAside(began bool, db int) {
	if !began {
		return
	}
	e.aside = false
	last := len(e.asides) - 1
	if e.asides[last].to = len(e.Buf); e.asides[last].from == len(e.Buf) {
		e.asides = e.asides[:last]
	}
	if e.DB != db { // the log has not seen the change
		e.DB = noDB
	}
}

const (
	respMulti = "*1\r\n$5\r\nMULTI\r\n"
	respExec  = "*1\r\n$4\r\nEXEC\r\n"
	respDel   = "*2\r\n$3\r\nDEL\r\n" // and a key

	annotationGap = "#GAP\r\n" // see package aof
)

// next makes room for one more effect on database db: it turns the unit into a transaction if that is its second one, and
// changes the database if need be.
func (e *Effects) next(db int) {
	if e.Depth > 0 {
		if e.count++; e.count == 2 {
			e.Buf = slices.Insert(e.Buf, e.start, []byte(respMulti)...)
			e.shift(e.start, len(respMulti))
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
	e.Buf = respcmd.AppendHeader(e.Buf, '*', int64(len(args)))
	for _, arg := range args {
		switch v := arg.(type) {
		case []byte:
			e.Buf = respcmd.AppendBulk(e.Buf, v)
		case string:
			e.Buf = respcmd.AppendBulk(e.Buf, v)
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
	buf := append(e.Buf, "*5\r\n$3\r\nSET\r\n"...)
	buf = respcmd.AppendBulk(buf, key)
	e.Buf = append(buf, e.set.of(n, at)...)
}

// of returns the text for two numbers. They are often those of the effect before: keys on which nothing counts any more come to the same numbers
// when they are called at the same time under the same limit.
func (t *setTail) of(n, at int64) []byte {
	if n != t.n || at != t.at || len(t.text) == 0 {
		text := appendNumber(t.text[:0], n)
		text = append(text, "$4\r\nPXAT\r\n"...)
		*t = setTail{n, at, appendNumber(text, at)}
	}
	return t.text
}

// addDel is Add for DEL key: nearly all keys of limiters expire.
func (e *Effects) addDel(db int, key []byte) {
	e.next(db)
	e.Buf = respcmd.AppendBulk(append(e.Buf, respDel...), key)
}

// addGone is addDel for a key that has gone by itself. Outside of commands, keys that go one after the other share a DEL, which is shorter than one
// for each.
func (e *Effects) addGone(db int, key []byte) {
	g := &e.gone
	if e.Depth > 0 || e.aside {
		e.addDel(db, key)
		return
	}
	if db == e.DB && g.end == len(e.Buf) && g.end > 0 && g.keys < maxGoneKeys {
		g.keys++
		e.Buf[g.from+len("*")]++
		e.Buf = respcmd.AppendBulk(e.Buf, key)
	} else {
		e.addDel(db, key)
		g.from, g.keys = e.last, 1
	}
	g.end = len(e.Buf)
}

// forgetDeletion takes the unit's only effect back if that is the deletion of a key which is now set: limiters find most keys past their
// time, and two effects would have to be a transaction.
func (e *Effects) forgetDeletion(key []byte) {
	if e.Depth == 0 || e.count != 1 || e.aside || len(e.asides) > 0 && e.asides[len(e.asides)-1].to > e.last {
		return
	}
	var room [32]byte
	head := respcmd.AppendHeader(append(room[:0], respDel...), '$', int64(len(key)))
	tail, ok := bytes.CutPrefix(e.Buf[e.last:], head)
	if ok && len(tail) == len(key)+len("\r\n") && bytes.Equal(tail[:len(key)], key) {
		e.Buf, e.count = e.Buf[:e.last], 0
	}
}

// addWords appends an effect that is a command as it was called.
func (e *Effects) addWords(db int, words [][]byte) {
	e.next(db)
	e.Buf = respcmd.AppendHeader(e.Buf, '*', int64(len(words)))
	for _, word := range words {
		e.Buf = respcmd.AppendBulk(e.Buf, word)
	}
}

// appendNumber appends a bulk string with a number's digits.
func appendNumber(dst []byte, n int64) []byte {
	from := len(dst)
	dst = number.AppendInt(append(dst, "$00\r\n"...), n)
	length := len(dst) - from - len("$00\r\n")
	if length < 10 {
		var digits IntegerText
		return respcmd.AppendBulk(dst[:from], append(digits[:0], dst[len(dst)-length:]...))
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

// EffectAside is Effect for what only replicas are to do, such as to pass a message on.
func (c *Ctx) EffectAside(args ...any) {
	e := &c.Core.Effects
	if e.stream == nil {
		return
	}
	began, db := e.beginAside(), e.DB
	c.Effect(args...)
	e.endAside(began, db)
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
	e := &s.Effects
	switch {
	case !e.On:
	case !e.Crowded:
		e.addGone(db.Index(), name)
	case e.stream != nil:
		e.Aside(func() { e.addDel(db.Index(), name) })
	}
}
