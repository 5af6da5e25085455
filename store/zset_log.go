package store

import (
	"sort"
	"unsafe"
)

// zsetLog is a big sorted set whose members are stamps, as the sliding logs of rate limiters are, in a few bytes each; see
// stampLog. Members that are no stamps, or have another score than they say, live beside them in an ordinary zsetTree, so
// that such a member costs what it always costs, and no conversion ever stalls. Ranks run through both.
//
// A member is in one of the two. One that is in the tree stays there as long as it is in the set, even when its score comes to
// be what it says: a scan shows the stamps first, and so misses nobody.
type zsetLog struct {
	stamps stampLog
	rest   *zsetTree // nil while there are only stamps
}

func newZSetLog() *zsetLog { return &zsetLog{stamps: newStampLog()} }

// clone implements cloner.
func (l *zsetLog) clone() any {
	own := &zsetLog{stamps: l.stamps.clone()}
	if l.rest != nil {
		own.rest = l.rest.clone().(*zsetTree)
	}
	return own
}

func (l *zsetLog) len() int { return l.stamps.len() + l.restLen() }

func (l *zsetLog) restLen() int {
	if l.rest == nil {
		return 0
	}
	return l.rest.len()
}

// logMember is where a member of a zsetLog is, or where it belongs.
type logMember struct {
	held   bool
	beside bool // held in the tree
	named  bool // could be a stamp
	score  float64
	stamp  stamp
	place  logPlace // of the stamp
	p      int      // the position in the tree's member table
}

// find looks a member up.
func (l *zsetLog) find(member []byte) (m logMember) {
	if m.stamp, m.named = parseStamp(member); m.named {
		if m.place, m.held = l.stamps.find(m.stamp); m.held {
			m.score = float64(m.stamp.score)
			return m
		}
	}
	if l.rest != nil {
		if m.p, m.held = l.rest.members.find(member); m.held {
			m.beside, m.score = true, l.rest.members.at(m.p).score
		}
	}
	return m
}

// insert adds a member that is not there.
func (l *zsetLog) insert(m logMember, score float64, member []byte) {
	if m.named && m.stamp.tells(score) {
		l.stamps.insert(m.place, m.stamp)
		return
	}
	l.insertBeside(score, member)
}

func (l *zsetLog) insertBeside(score float64, member []byte) {
	if l.rest == nil {
		l.rest = newZSetTree()
	}
	l.rest.insert(score, member)
}

// move gives a member that is there a new score. A stamp is none with another score.
func (l *zsetLog) move(m logMember, score float64, member []byte) {
	if m.beside {
		l.rest.move(m.p, score)
		return
	}
	l.stamps.remove(l.stamps.rank(m.place), 1)
	l.insertBeside(score, member)
}

// remove takes out a member that is there.
func (l *zsetLog) remove(m logMember) {
	if m.beside {
		l.rest.remove(m.p)
		l.dropRest()
		return
	}
	l.stamps.remove(l.stamps.rank(m.place), 1)
}

// dropRest forgets a tree without members.
func (l *zsetLog) dropRest() {
	if l.restLen() == 0 {
		l.rest = nil
	}
}

// rank returns the rank of a member that is there.
func (l *zsetLog) rank(m logMember) int {
	if m.beside {
		item := l.rest.members.at(m.p)
		return l.rest.rank(m.p) + l.stamps.rank(l.stamps.seek(func(s stamp) bool {
			return stampLess(s, item.score, item.name)
		}))
	}
	rank := l.stamps.rank(m.place)
	if l.rest != nil {
		var text [maxStampText]byte
		name := m.stamp.appendText(text[:0])
		rank += l.rest.beforeItem(zsetItem{m.score, unsafe.String(&name[0], len(name))})
	}
	return rank
}

// stampLess says whether a stamp comes before an entry of the tree.
func stampLess(s stamp, score float64, member string) bool {
	if float64(s.score) != score {
		return float64(s.score) < score
	}
	var text [maxStampText]byte
	return string(s.appendText(text[:0])) < member
}

// before counts the entries up to a bound.
func (l *zsetLog) before(bound *zsetBound) int {
	n := l.stamps.before(bound)
	if l.rest != nil {
		n += l.rest.before(bound)
	}
	return n
}

// split counts the stamps and the members of the tree among the entries of a rank below rank.
func (l *zsetLog) split(rank int) (stamps, rest int) {
	if l.rest == nil {
		return rank, 0
	}
	// The fewer stamps there are among them, the sooner the next stamp comes before the tree's last.
	low := max(0, rank-l.stamps.len())
	rest = low + sort.Search(min(rank, l.rest.len())-low, func(i int) bool {
		j := low + i
		item := l.rest.at(j)
		return stampLess(l.stamps.at(l.stamps.place(rank-j-1)), item.score, item.member)
	})
	return rank - rest, rest
}

// at returns the entry of a rank in [0, len).
func (l *zsetLog) at(rank int, texts *stampTexts) (member []byte, score float64) {
	l.walk(rank, 1, false, texts, func(m []byte, s float64) bool {
		member, score = m, s
		return false
	})
	return member, score
}

// walk hands n entries from rank on, upward or downward, to fn until fn says false.
func (l *zsetLog) walk(rank, n int, reverse bool, texts *stampTexts, fn func(member []byte, score float64) bool) {
	if n <= 0 {
		return
	}
	if reverse {
		l.walkBack(rank, n, texts, fn)
		return
	}
	i, j := l.split(rank)
	at := l.stamps.place(i)
	for more := true; more && n > 0; n-- {
		if j < l.restLen() {
			item := l.rest.at(j)
			if i == l.stamps.len() || !stampLess(l.stamps.at(at), item.score, item.member) {
				more = fn(nameBytes(item.member), item.score)
				j++
				continue
			}
		}
		s := l.stamps.at(at)
		more = fn(texts.text(s), float64(s.score))
		at = l.stamps.next(at)
		i++
	}
}

func (l *zsetLog) walkBack(rank, n int, texts *stampTexts, fn func(member []byte, score float64) bool) {
	i, j := l.split(rank + 1)
	at := l.stamps.place(i)
	for more := true; more && n > 0; n-- {
		if j > 0 {
			item := l.rest.at(j - 1)
			if i == 0 || stampLess(l.stamps.at(l.stamps.prev(at)), item.score, item.member) {
				more = fn(nameBytes(item.member), item.score)
				j--
				continue
			}
		}
		at = l.stamps.prev(at)
		i--
		s := l.stamps.at(at)
		more = fn(texts.text(s), float64(s.score))
	}
}

// removeRanks takes out n entries from rank on.
func (l *zsetLog) removeRanks(rank, n int) {
	i, j := l.split(rank)
	endStamps, endRest := l.split(rank + n)
	if endStamps > i {
		l.stamps.remove(i, endStamps-i)
	}
	if endRest > j {
		l.rest.removeRanks(j, endRest-j)
		l.dropRest()
	}
}

// scan hands about count entries to fn and returns the cursor to go on with, 0 when all have been shown: first the stamps in
// order, then the members of the tree.
func (l *zsetLog) scan(cursor uint64, count int, texts *stampTexts, fn func(member []byte, score float64)) uint64 {
	if cursor < cursorsStamps {
		at := l.stamps.settle(l.stamps.seek(func(s stamp) bool { return s.cursor() < cursor }))
		for last := cursor; l.stamps.has(at); at = l.stamps.next(at) {
			s := l.stamps.at(at)
			here := s.cursor()
			if count <= 0 && here != last {
				return here
			}
			fn(texts.text(s), float64(s.score))
			last = here
			count--
		}
		cursor = cursorsStamps
		if count <= 0 && l.rest != nil {
			return cursor
		}
	}
	if l.rest == nil {
		return 0
	}
	next := l.rest.members.scan((cursor-cursorsStamps)/restCursor, count, func(m *member) {
		fn(nameBytes(m.name), m.score)
	})
	if next == 0 {
		return 0
	}
	return cursorsStamps + next*restCursor
}

// restCursor is the distance between two cursors in the tree, so that a float64 holds each exactly.
const restCursor = 8

// addLog does Add in a log.
func (z *ZSet) addLog(score float64, member []byte) (added, changed bool) {
	m := z.log.find(member)
	switch {
	case !m.held:
		z.entry.mutate()
		z.log.insert(m, score, member)
	case m.score == score:
		return false, false
	default:
		z.entry.mutate()
		z.log.move(m, score, member)
	}
	z.settleLog()
	return !m.held, m.held
}

// removeLog does Remove in a log.
func (z *ZSet) removeLog(member []byte) bool {
	m := z.log.find(member)
	switch {
	case !m.held:
		return false
	case z.log.len() == 1:
		z.vanish()
		return true
	}
	z.entry.mutate()
	z.log.remove(m)
	z.settleLog()
	return true
}

// logFewStamps is the number of stamps up to which they join the other members of their set, once those are more. It bounds what
// one operation then does.
const logFewStamps = 128

// settleLog makes a log into a tree once its stamps are few, and fewer than its other members.
func (z *ZSet) settleLog() {
	stamps := z.log.stamps.len()
	if stamps > logFewStamps || stamps >= z.log.restLen() {
		return
	}
	tree := z.log.rest
	var text [maxStampText]byte
	at := z.log.stamps.place(0)
	for range stamps {
		s := z.log.stamps.at(at)
		tree.insert(float64(s.score), s.appendText(text[:0]))
		at = z.log.stamps.next(at)
	}
	z.entry.toObject(encZSet, tree)
	z.tree, z.log = tree, nil
}

// makeLog turns a set that n entries of score ms are about to make a big one into a log, if all its members are stamps.
func (z *ZSet) makeLog(ms int64, n int) {
	if z.tree != nil || z.log != nil || z.Len()+n <= z.db.ks.limits.ZSetMaxListpackEntries {
		return
	}
	z.create()
	var text [maxStampText]byte
	z.convert(float64(ms), stamp{score: ms, suffix: 1}.appendText(text[:0]))
}

// appendRun does AppendStamps in a log that has nothing of this score or above, and only stamps, or changes nothing and says !ok.
func (z *ZSet) appendRun(ms int64, n int, added func(member []byte)) (ok bool) {
	if z.log == nil || z.log.rest != nil || ms > stampMaxSuffixed || n > stampMaxSuffix+1 ||
		z.log.len() > 0 && z.log.stamps.last().score >= ms {
		return false
	}
	z.entry.mutate()
	for i, left := 0, n; left > 0; left-- {
		s := stamp{score: ms, suffix: uint32(i) + 1}
		z.log.stamps.push(s)
		if added != nil {
			added(s.appendText(z.db.ks.stampName[:0]))
		}
		i = nextAsText(i, n)
	}
	return true
}

// nextAsText is the number that follows i when those below n are in order as text: 0, 1, 10, 11, 12, 2, 3 and so on for 13. After
// the last it is any.
func nextAsText(i, n int) int {
	if i > 0 && i*10 < n {
		return i * 10
	}
	if i+1 >= n {
		i /= 10
	}
	for i++; i%10 == 0; {
		i /= 10
	}
	return i
}

// stampTexts makes the members of stamps. It writes them side by side into blocks of memory and never over each other, so that a
// member holds as long as anyone has it, for an allocation in some hundred.
type stampTexts struct{ room []byte }

// stampTextsBlock is the size of a block of members.
const stampTextsBlock = 4 << 10

// text is the member that a stamp stands for.
func (t *stampTexts) text(s stamp) []byte {
	if cap(t.room)-len(t.room) < maxStampText {
		t.room = make([]byte, 0, stampTextsBlock)
	}
	start := len(t.room)
	t.room = s.appendText(t.room)
	return t.room[start:len(t.room):len(t.room)]
}
