package limits

import (
	"bytes"
	"cmp"
	"container/heap"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"headgate/internal/number"
	"headgate/server/command"
	"headgate/server/limiter"
	"headgate/store"
	"headgate/throttle"
)

// Reservations is what is remembered of open reservations beside their keys: when they time out, and how much of what they have charged may
// come back (see throttle.Reserved), for which every change of their limiters' keys is looked at before it happens. All of it can be found
// anew from the keys, which is done after loading, after a promotion, and when databases are exchanged. The executor's lock guards it.
type Reservations struct {
	Counts ReservationCounts

	limits *Limits
	byID   map[reservationID]*reservation
	due    timeouts
	keys   map[followedName]*followedKey
	marks  map[followedName]followedMark // by the name alone
	search []searched                    // of databases whose reservations are to be found
	found  []foundKey                    // in the first of these; what is there in the end is remembered in order
	newest int64                         // ticket

	changed []*reservation // whose own keys somebody has changed, and which are to be looked at

	known   map[int]int // by database: how many are remembered
	strange map[int]int // by database: how many keys have a reservation's name and are none

	words map[string]*limiter.Policy // what policies' words stand for
	text  []byte                     // memory for a value
	added []addedEntry               // what the call that runs has added to logs
}

// ReservationCounts counts reservations by what became of them.
type ReservationCounts struct {
	Reserved, Settled, Cancelled, TimedOut uint64
	Debts                                  uint64 // settlements that charged more than was reserved
}

// reservationID tells reservations apart.
type reservationID struct {
	db int
	id string
}

// reservation is an open one.
type reservation struct {
	reservationID
	book     *Reservations
	name     string // of its own key
	deadline int64  // Unix ms
	ticket   int64
	place    int // in the heap
	pairs    []followedPair
	changed  int // its place in the book's list of these, from 1 on; 0: it is not there
}

// Changing implements store.Marked: its own key is changed, or goes.
func (r *reservation) Changing() {
	if r.changed == 0 {
		r.book.changed = append(r.book.changed, r)
		r.changed = len(r.book.changed)
	}
}

// unlist takes a reservation out of the list of those that are to be looked at, if it is there.
func (b *Reservations) unlist(r *reservation) {
	if r.changed == 0 {
		return
	}
	last := b.changed[len(b.changed)-1]
	b.changed[r.changed-1], last.changed = last, r.changed
	b.changed[len(b.changed)-1] = nil
	b.changed = b.changed[:len(b.changed)-1]
	r.changed = 0
}

// followedPair is a pair of a reservation, and the key whose backlog is followed for it, or nil.
type followedPair struct {
	key      string
	followed *followedKey
}

// followedName tells followed keys apart.
type followedName struct {
	db    int
	name  string
	slice int64 // of a sliding window's, when it begins in Unix ms; else 0
}

// followedKind is what the state of a followed key is.
type followedKind uint8

const (
	followsNothing followedKind = iota
	followsTAT
	followsCount // of a fixed window
	followsSlice // of a sliding one
)

// followedMark are those that follow one key: its slices that were charged, or one that follows a number.
type followedMark []*followedKey

// Changing implements store.Marked.
func (m followedMark) Changing() {
	for _, k := range m {
		k.Changing()
	}
}

// followedKey is a key that open reservations have charged, or a slice of it, if its state is a number or slices. It hears of each of the key's
// changes before it happens.
type followedKey struct {
	book  *Reservations
	db    *store.DB
	key   store.Key
	kind  followedKind
	at    int64 // of a count: when its window ends; of a slice: when that begins; in Unix ms
	users int   // open reservations
	open  throttle.Reserved

	// What there would be at least if nothing but the reservations had been charged that were found anew, in their order: a TAT or a count.
	found int64
}

// Changing is called before each change of the key. What a limiter writes builds upon the backlog; what others write replaces it, so that nothing is left of
// what was charged.
func (k *followedKey) Changing() {
	backlog := int64(0)
	if now := k.book.limits.Clock.Now; k.book.limits.state.changing {
		backlog = k.backlog(now)
	}
	k.open.Found(backlog)
}

// backlog is what is charged and has not been paid off, in the key's own unit. The keyspace stays as it is.
func (k *followedKey) backlog(nowNs int64) int64 {
	if k.kind == followsSlice {
		return k.slice()
	}
	e, found := k.db.Peek(k.key)
	if !found || e.Kind() != store.KindString {
		return 0
	}
	n, ok := e.Int()
	switch {
	case !ok:
		return 0
	case k.kind == followsTAT:
		return max(n-nowNs, 0)
	case e.ExpireAt() != k.at || k.at < nowNs/nsPerMs:
		return 0
	}
	return max(n, 0)
}

// slice is what a slice counts, whether the key is past its time or not.
func (k *followedKey) slice() int64 {
	h, found, err := k.db.Hash(k.key, 0)
	if err != nil || !found {
		return 0
	}
	var digits command.IntegerText
	count, _ := h.Get(strconv.AppendInt(digits[:0], k.at, 10))
	n, _ := number.ParseInt(count) // 0 for a slice that is not there
	return max(n, 0)
}

// What is remembered takes up, about, beside what a key's name is long.
const (
	reservationBytes = 350
	followedBytes    = 320
)

// Memory is about how many bytes are in use for what is remembered.
func (b *Reservations) Memory() int { return len(b.byID)*reservationBytes + len(b.keys)*followedBytes }

// Open is how many reservations are open, as far as they have been found; those whose keys others have deleted count until the next Slice.
func (b *Reservations) Open() int { return len(b.byID) }

// nextTicket is one above all so far, and about the time.
func (b *Reservations) nextTicket(nowNs int64) int64 {
	b.newest = max(b.newest+1, nowNs)
	return b.newest
}

// addedEntry is an entry that the running call has added to a log.
type addedEntry struct {
	hash   uint64 // of its key
	number int64
}

// noteEntry notes an entry that is being added to the log at the state's key.
func (b *Reservations) noteEntry(member []byte) {
	if i := bytes.LastIndexByte(member, '-'); i >= 0 {
		if n, ok := number.ParseInt(member[i+1:]); ok {
			b.added = append(b.added, addedEntry{b.limits.state.key.Hash, n})
		}
	}
}

// entriesOf returns what has been noted of a key's entries, in order.
func (b *Reservations) entriesOf(k store.Key) (runs []entryRun) {
	var numbers []int64
	for _, entry := range b.added {
		if entry.hash == k.Hash {
			numbers = append(numbers, entry.number)
		}
	}
	slices.Sort(numbers)
	for _, n := range numbers {
		if last := len(runs) - 1; last >= 0 && runs[last].last == n-1 {
			runs[last].last = n
		} else {
			runs = append(runs, entryRun{n, n})
		}
	}
	return runs
}

// origin is how a reservation has become known, and with it what is known of its keys' past.
type origin uint8

const (
	justCharged  origin = iota
	foundInOrder        // after all that were charged before it
	foundAlone          // since somebody has asked for it
)

// add remembers a reservation.
func (b *Reservations) add(db *store.DB, id string, v *reservationValue, nowNs int64, from origin) {
	if before := b.byID[reservationID{db.Index(), id}]; before != nil {
		b.forget(before)
	}
	r := &reservation{book: b, name: string(appendReservationKey(nil, []byte(id))), deadline: v.deadline, ticket: v.ticket}
	r.reservationID = reservationID{db.Index(), r.name[len(ReservationPrefix) : len(r.name)-1]}
	for i := range v.pairs {
		p := &v.pairs[i]
		charged, kind := p.charged()
		pair := followedPair{key: string(p.key)}
		if charged > 0 {
			if pair.followed = b.follow(db, pair.key, kind, p.where); pair.followed != nil {
				pair.followed.enter(v.ticket, p.where, charged, nowNs, from)
			}
		}
		r.pairs = append(r.pairs, pair)
	}
	if b.byID == nil {
		b.byID = make(map[reservationID]*reservation)
	}
	b.byID[r.reservationID] = r
	db.Mark(r.name, r)
	if b.known == nil {
		b.known = make(map[int]int)
	}
	b.known[r.db]++
	b.newest = max(b.newest, v.ticket)
	heap.Push(&b.due, r)
}

// follow begins to follow a key for one more reservation. It returns nil for a key that has been charged by a limiter of another kind, and for one of
// a reservation, which is no limiter's and has its own mark.
func (b *Reservations) follow(db *store.DB, name string, kind followedKind, at int64) *followedKey {
	if isReservationKey([]byte(name)) {
		return nil
	}
	id := followedName{db: db.Index(), name: name}
	if kind == followsSlice {
		id.slice = at
	}
	k := b.keys[id]
	if k == nil {
		k = &followedKey{book: b, db: db, key: b.limits.Keys.Key([]byte(name)), kind: kind, at: at}
		if b.keys == nil {
			b.keys, b.marks = make(map[followedName]*followedKey), make(map[followedName]followedMark)
		}
		b.keys[id] = k
		b.mark(k, true)
	}
	if k.kind != kind {
		return nil
	}
	if k.at != at && kind == followsCount {
		if at < k.at {
			return nil // of a window that is over
		}
		k.open.Found(0)
		k.at = at
	}
	k.users++
	return k
}

// mark has a followed key hear of the key's changes, or no longer.
func (b *Reservations) mark(k *followedKey, on bool) {
	name := string(k.key.Name)
	id := followedName{db: k.db.Index(), name: name}
	others := slices.DeleteFunc(slices.Clone(b.marks[id]), func(o *followedKey) bool { return o == k })
	if on {
		others = append(others, k)
	}
	if len(others) == 0 {
		delete(b.marks, id)
		k.db.Unmark(name)
		return
	}
	b.marks[id] = others
	k.db.Mark(name, others)
}

// enter enters a reservation that has charged so much, to a rate at a time in ns. Of one that was found anew it is certain what it has left
// of its own charge by time alone, and of those of the others that are open: no other charge, and no return of what was charged beside these,
// makes that less.
func (k *followedKey) enter(ticket, at, charged, nowNs int64, from origin) {
	backlog := k.backlog(nowNs)
	if from == justCharged {
		k.open.Charge(ticket, backlog)
		return
	}
	before := int64(0)
	if from == foundInOrder {
		before = k.found
	}
	if k.kind == followsTAT {
		before = max(before, at)
	}
	left := before + charged
	if from == foundInOrder {
		k.found = left
	}
	if k.kind == followsTAT {
		left -= nowNs
	}
	k.open.Restore(ticket, min(left, backlog))
}

// giveBack closes the reservation at a key, and returns how much of what was not used is to be taken from the backlog.
func (k *followedKey) giveBack(ticket, unused, nowNs int64) int64 {
	k.open.Found(k.backlog(nowNs))
	back := k.open.Return(ticket, unused)
	k.found -= back
	if k.users--; k.users == 0 {
		k.book.mark(k, false)
		id := followedName{db: k.db.Index(), name: string(k.key.Name)}
		if k.kind == followsSlice {
			id.slice = k.at
		}
		delete(k.book.keys, id)
	}
	return back
}

// forget forgets a reservation.
func (b *Reservations) forget(r *reservation) {
	for i := range r.pairs {
		if k := r.pairs[i].followed; k != nil {
			k.giveBack(r.ticket, 0, b.limits.Clock.Now)
			r.pairs[i].followed = nil
		}
	}
	heap.Remove(&b.due, r.place)
	b.unlist(r)
	delete(b.byID, r.reservationID)
	b.limits.Keys.DB(r.db).Unmark(r.name)
	b.known[r.db]--
}

// forgetAll forgets all reservations of a database, and all followed keys, which is much less work than one after the other.
func (b *Reservations) forgetAll(db *store.DB) {
	of := db.Index()
	if b.known[of] == 0 { // there may be thousands of such databases, and each look at all reservations takes milliseconds
		return
	}
	gone := func(r *reservation) bool { return r.db == of }
	b.due = slices.DeleteFunc(b.due, gone)
	for i, r := range b.due {
		r.place = i
	}
	heap.Init(&b.due)
	b.changed = slices.DeleteFunc(b.changed, gone)
	for i, r := range b.changed {
		r.changed = i + 1
	}
	if len(b.due) == 0 {
		b.byID, b.keys, b.marks = nil, nil, nil
	} else {
		maps.DeleteFunc(b.byID, func(id reservationID, _ *reservation) bool { return id.db == of })
		maps.DeleteFunc(b.keys, func(name followedName, _ *followedKey) bool { return name.db == of })
		maps.DeleteFunc(b.marks, func(name followedName, _ followedMark) bool { return name.db == of })
	}
	delete(b.known, of)
	db.UnmarkAll()
}

// lookAtChanged looks at one of the reservations whose keys were changed: what is no longer there is forgotten, whatever its time-out, so that it does
// not count as open and in the place of one that is to be found. The keyspace stays as it is, since this may be while nothing is to change it. now is
// in ns.
func (b *Reservations) lookAtChanged(now int64) {
	r := b.changed[len(b.changed)-1]
	b.unlist(r)
	keys := b.limits.Keys
	db := keys.DB(r.db)
	kept := keys.KeepExpired(true)
	open := b.limits.readReservation(db, []byte(r.id), now/nsPerMs)
	keys.KeepExpired(kept)
	switch {
	case open == nil:
		b.forget(r)
	case open.ticket != r.ticket:
		b.add(db, r.id, &open.reservationValue, now, foundAlone)
	case open.deadline != r.deadline:
		r.deadline = open.deadline
		heap.Fix(&b.due, r.place)
	}
}

// inOrder returns the reservations that are wanted, those first that time out first.
func (b *Reservations) inOrder(wanted func(r *reservation) bool) (list []*reservation) {
	for _, r := range b.due {
		if wanted(r) {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(r, o *reservation) int {
		return cmp.Or(cmp.Compare(r.deadline, o.deadline), cmp.Compare(r.ticket, o.ticket))
	})
	return list
}

// timeouts is a heap of reservations by their time-outs.
type timeouts []*reservation

func (t timeouts) Len() int           { return len(t) }
func (t timeouts) Less(i, j int) bool { return t[i].deadline < t[j].deadline }

func (t timeouts) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].place, t[j].place = i, j
}

// Push implements heap.Interface.
func (t *timeouts) Push(r any) {
	r.(*reservation).place = len(*t)
	*t = append(*t, r.(*reservation))
}

// Pop implements heap.Interface.
func (t *timeouts) Pop() any {
	last := len(*t) - 1
	r := (*t)[last]
	(*t)[last] = nil
	*t = (*t)[:last]
	return r
}

// searched is how far the search for the reservations of a database has come.
type searched struct {
	db     *store.DB
	cursor uint64
	done   bool // all keys have been looked at
}

const (
	searchStep  = 256                    // keys that are looked at between two looks at the clock
	searchPause = time.Millisecond       // between two slices of the search
	haltPause   = 100 * time.Millisecond // while nothing may be cancelled
	cancelBytes = 1 << 16                // room in the log without which nothing is cancelled
)

// Replaced is called when a database has other keys than before: what was remembered of its reservations holds no longer.
func (b *Reservations) Replaced(db *store.DB) {
	b.forgetAll(db)
	delete(b.strange, db.Index()) // or as many reservations would be taken for what a search has left of the other keys
	if len(b.search) > 0 && b.search[0].db == db {
		b.found = nil
	}
	b.search = slices.DeleteFunc(b.search, func(s searched) bool { return s.db == db })
}

// lookForMore begins a search in each database that has more reservations than are known, whatever has brought them: loading, a primary, or
// a client that has restored a key.
func (b *Reservations) lookForMore() {
	for i := range b.limits.Keys.Databases() {
		db := b.limits.Keys.DB(i)
		if more := b.unknown(db); more > b.strange[i] {
			b.search = append(b.search, searched{db: db})
		} else if more < b.strange[i] {
			b.setStrange(i, more)
		}
	}
}

// unknown is how many keys of a database have a reservation's name and are not remembered.
func (b *Reservations) unknown(db *store.DB) int {
	if db.ReservedVersion() == 0 {
		return 0
	}
	return max(db.Reserved([]byte(ReservationPrefix))-b.known[db.Index()], 0)
}

// setStrange notes how many of those a search has left.
func (b *Reservations) setStrange(db, n int) {
	if b.strange == nil {
		b.strange = make(map[int]int)
	}
	b.strange[db] = n
}

// Slice cancels what has timed out, and goes on with the search for reservations: a job for between batches. It does nothing while
// a primary is followed, which cancels by itself, or while nothing may be changed. now is in ns.
func (b *Reservations) Slice(now int64) (next int64) {
	l := b.limits
	if l.Gate.Has(command.GateFollows) {
		b.drop()
		return 0
	}
	start := time.Now()
	late := func() bool { return time.Since(start) > command.SliceTime*3/4 }
	for len(b.changed) > 0 {
		if b.lookAtChanged(now); late() {
			return now
		}
	}
	if l.Gate.Has(command.GateHalts|command.GateUnwritable) || l.Effects.On && !l.Effects.RoomFor(cancelBytes) {
		return now + int64(haltPause)
	}
	if len(b.search) == 0 {
		b.lookForMore()
	}
	for len(b.due) > 0 && b.due[0].deadline <= now/nsPerMs {
		if l.timeOut(b.due[0], now); late() {
			return now
		}
	}
	for len(b.search) > 0 {
		if b.searchOn(now); late() {
			return now + int64(searchPause)
		}
	}
	if len(b.due) == 0 {
		return 0
	}
	return min(b.due[0].deadline, math.MaxInt64/nsPerMs) * nsPerMs
}

// drop forgets everything, for a server that follows a primary.
func (b *Reservations) drop() {
	b.search, b.found, b.strange = nil, nil, nil
	for db := range b.known {
		b.limits.Keys.DB(db).UnmarkAll()
	}
	b.due, b.changed, b.byID, b.keys, b.marks, b.known = nil, nil, nil, nil, nil, nil
}

// foundKey is a key that a search has found.
type foundKey struct {
	id     []byte
	ticket int64
}

// searchOn goes on with the search for reservations.
func (b *Reservations) searchOn(now int64) {
	s := &b.search[0]
	if s.done {
		b.enterNext(s.db, now)
		return
	}
	var ids [][]byte
	s.cursor = s.db.Scan(s.cursor, now/nsPerMs, searchStep, func(e *store.Entry) {
		if isReservationKey(e.Name()) {
			ids = append(ids, idOfReservation(e.Name()))
		}
	})
	for _, id := range ids {
		if r := b.limits.readReservation(s.db, id, now/nsPerMs); r != nil {
			b.found = append(b.found, foundKey{id, r.ticket})
		}
	}
	if s.done = s.cursor == 0; s.done { // the newest first, since they are taken from the end
		slices.SortFunc(b.found, func(r, o foundKey) int { return cmp.Compare(o.ticket, r.ticket) })
	}
}

// enterNext remembers the oldest of the reservations that were found, or ends the search.
func (b *Reservations) enterNext(db *store.DB, now int64) {
	last := len(b.found) - 1
	if last < 0 {
		b.search, b.found = b.search[1:], nil
		b.setStrange(db.Index(), b.unknown(db))
		return
	}
	id := b.found[last].id
	b.found = b.found[:last]
	b.enter(db, id, now, foundInOrder)
}

// enter remembers the reservation of an id, if there is one and it is not known yet.
func (b *Reservations) enter(db *store.DB, id []byte, now int64, from origin) {
	if b.byID[reservationID{db.Index(), string(id)}] != nil {
		return
	}
	if r := b.limits.readReservation(db, id, now/nsPerMs); r != nil {
		b.add(db, string(id), &r.reservationValue, now, from)
	}
}

// idOfReservation returns a copy of the id in the name of a reservation's key.
func idOfReservation(name []byte) []byte {
	return append([]byte(nil), name[len(ReservationPrefix):len(name)-1]...)
}
