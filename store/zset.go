package store

import "math"

// ZSet is a view of a sorted set, or of the place where one may come to be. A small
// set is packed into the arena; past the Limits it becomes a zsetLog if all members
// tell their own score, otherwise a zsetTree, which it stays.
//
// A view is for one operation: it is valid until the keyspace changes other than
// through it. Members that it hands out are the store's own memory, must not be
// changed, and hold until the set next changes; arguments are copied and must not be
// such memory of the same packed set, unless for Remove. A set that becomes empty
// deletes its key.
//
// Ranks count from 0 in order of score, then of the member's bytes. Scores may be
// infinite and never NaN. 0 and -0 are equal; as in Redis, only a large one keeps the sign.
type ZSet struct {
	db     *DB
	key    Key
	entry  Entry
	tree   *zsetTree // nil unless that is the encoding
	log    *zsetLog  // nil unless that is the encoding
	exists bool
	big    bool // the first Add makes a big set at once: see Expect
}

// ZSet opens the sorted set at k. When there is no such key, found is false and the
// view is that of an empty set, which the first Add creates. A key of another kind is
// ErrWrongType.
func (db *DB) ZSet(k Key, now int64) (z ZSet, found bool, err error) {
	z = ZSet{db: db, key: k}
	z.entry, z.exists = db.Find(k, now)
	if !z.exists {
		return z, false, nil
	}
	switch z.entry.rec.enc {
	case encPackedZSet:
	case encZSet:
		z.tree = z.entry.object().(*zsetTree)
	case encZSetLog:
		z.log = z.entry.object().(*zsetLog)
	default:
		return ZSet{}, false, ErrWrongType
	}
	return z, true, nil
}

// ZSetCreate is ZSet for a writer that does not mind whether the key is there.
func (db *DB) ZSetCreate(k Key, now int64) (ZSet, error) {
	z, _, err := db.ZSet(k, now)
	return z, err
}

// Name is the key's name. It is the caller's memory that the view was opened with.
func (z *ZSet) Name() []byte { return z.key.Name }

// Entry is the key that holds the set. It may be used only while Len is above 0.
func (z *ZSet) Entry() *Entry { return &z.entry }

// Len is the number of members.
func (z *ZSet) Len() int {
	switch {
	case !z.exists:
		return 0
	case z.tree != nil:
		return z.tree.len()
	case z.log != nil:
		return z.log.len()
	}
	return z.entry.count()
}

// Score returns a member's score.
func (z *ZSet) Score(member []byte) (float64, bool) {
	if z.tree != nil {
		p, ok := z.tree.members.find(member)
		if !ok {
			return 0, false
		}
		return z.tree.members.at(p).score, true
	}
	if z.log != nil {
		m := z.log.find(member)
		return m.score, m.held
	}
	m, _, ok := z.packed().find(member)
	return m.score, ok
}

// Add gives a member a score, unconditionally, and creates the key when it is not
// there. added says that the member is new, changed that it was there with another
// score. NaN is a broken invariant and panics: the caller refuses it.
func (z *ZSet) Add(score float64, member []byte) (added, changed bool) {
	if math.IsNaN(score) {
		panic("store: NaN as the score of a sorted set's member")
	}
	z.create()
	if z.tree == nil && z.log == nil {
		if !z.big {
			if added, changed, ok := z.addPacked(score, member); ok {
				return added, changed
			}
		}
		z.convert(score, member)
	}
	if z.log != nil {
		return z.addLog(score, member)
	}
	p, held := z.tree.members.find(member)
	if !held {
		z.entry.mutate()
		z.tree.insert(score, member)
		return true, false
	}
	if z.tree.members.at(p).score == score {
		return false, false
	}
	z.entry.mutate()
	z.tree.move(p, score)
	return false, true
}

// Expect tells a set without members what is about to be added to it: how many members, and the length of the longest
// one in bytes. A set that will pass the limits of the packed form is then big from the first Add, which must follow. That
// saves the conversion, and shows in the sign of zeros, which the packed form drops.
func (z *ZSet) Expect(members, longest int) {
	limits := &z.db.ks.limits
	z.big = !z.exists && (members > limits.ZSetMaxListpackEntries || longest > limits.ZSetMaxListpackValue)
}

// create makes the key if it is not there. The caller adds a member.
func (z *ZSet) create() {
	if !z.exists {
		z.entry = z.db.create(z.key, encPackedZSet)
		z.exists = true
	}
}

// Remove takes a member out and says whether it was there.
func (z *ZSet) Remove(member []byte) bool {
	if z.tree != nil {
		p, ok := z.tree.members.find(member)
		if !ok {
			return false
		}
		if z.tree.len() == 1 {
			z.vanish()
			return true
		}
		z.entry.mutate()
		z.tree.remove(p)
		return true
	}
	if z.log != nil {
		return z.removeLog(member)
	}
	m, _, ok := z.packed().find(member)
	if ok {
		z.cut(m.at, m.end, 1)
	}
	return ok
}

// Rank returns a member's rank.
func (z *ZSet) Rank(member []byte) (int, bool) {
	if z.tree != nil {
		p, ok := z.tree.members.find(member)
		if !ok {
			return 0, false
		}
		return z.tree.rank(p), true
	}
	if z.log != nil {
		m := z.log.find(member)
		if !m.held {
			return 0, false
		}
		return z.log.rank(m), true
	}
	_, rank, ok := z.packed().find(member)
	return rank, ok
}

// AtRank returns the entry of a rank in [0, Len).
func (z *ZSet) AtRank(i int) (member []byte, score float64) {
	if z.tree != nil {
		item := z.tree.at(i)
		return nameBytes(item.member), item.score
	}
	if z.log != nil {
		return z.log.at(i, &z.db.ks.stamps)
	}
	p := z.packed()
	m := p.entry(p.skip(0, i))
	return p.member(m), m.score
}

// Scan hands about count entries to fn and returns the cursor to go on with, 0 when
// all have been shown; a cursor of 0 starts. A member that is there from start to end
// is shown at least once, whatever else comes and goes between the calls, with its
// score of that moment. A packed set is shown whole. A tree is walked by position
// in its member table from the end downward, which no score can disturb; see
// memberTable for why that keeps the guarantee, and zsetLog for why a log does. A
// tree that has been a log is shown from its start, whatever the log has shown.
func (z *ZSet) Scan(cursor uint64, count int, fn func(member []byte, score float64)) (next uint64) {
	if z.tree != nil {
		return z.tree.scan(cursor, count, fn)
	}
	if z.log != nil {
		return z.log.scan(cursor, count, &z.db.ks.stamps, fn)
	}
	z.packed().walk(0, z.Len(), func(member []byte, score float64) bool {
		fn(member, score)
		return true
	})
	return 0
}

// packed is the payload of a packed set, nil when there is no key.
func (z *ZSet) packed() packedZSet {
	if !z.exists {
		return nil
	}
	return z.entry.packed()
}

// addPacked does Add within the packed form, or changes nothing and says !ok when the
// outcome would pass the limits of that form.
func (z *ZSet) addPacked(score float64, member []byte) (added, changed, ok bool) {
	p := z.packed()
	m, held, at := p.locate(score, member)
	if held {
		if m.score == score {
			return false, false, true
		}
		z.entry.mutate()
		p.move(m, score, member)
		return false, true, true
	}
	limits := &z.db.ks.limits
	n := z.entry.count() + 1
	size := scoreSize + elementSize(len(member))
	if n > limits.ZSetMaxListpackEntries || len(member) > limits.ZSetMaxListpackValue ||
		len(p)+size > z.entry.maxPacked() {
		return false, false, false
	}
	z.entry.mutate()
	p = z.entry.splice(at, 0, size)
	p.write(at, score, member)
	z.entry.setCount(n)
	return true, false, true
}

// cut takes n entries out of a packed set, those at [at, end) of its payload.
func (z *ZSet) cut(at, end, n int) {
	left := z.entry.count() - n
	if left == 0 {
		z.vanish()
		return
	}
	z.entry.mutate()
	z.entry.splice(at, end-at, 0)
	z.entry.setCount(left)
}

// convert makes a packed set, to which this entry is about to be added, into a zsetLog
// if all members are stamps, else into a zsetTree.
func (z *ZSet) convert(score float64, member []byte) {
	z.entry.mutate()
	packed, n := z.packed(), z.entry.count()
	log := isStamp(score, member)
	packed.walk(0, n, func(member []byte, score float64) bool {
		log = log && isStamp(score, member)
		return log
	})
	if log {
		z.log = newZSetLog()
		packed.walk(0, n, func(member []byte, score float64) bool {
			z.log.insert(z.log.find(member), score, member)
			return true
		})
		z.entry.toObject(encZSetLog, z.log)
		return
	}
	z.tree = newZSetTree()
	packed.walk(0, n, func(member []byte, score float64) bool {
		z.tree.insert(score, member)
		return true
	})
	z.entry.toObject(encZSet, z.tree)
}

// vanish deletes the key. The view goes on as that of an empty set.
func (z *ZSet) vanish() {
	z.entry.Delete()
	*z = ZSet{db: z.db, key: z.key}
}
