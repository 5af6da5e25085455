package store

// Copy makes the key to of the database target a copy of from, value and TTL, and reports whether it did: from must be
// there at now (Unix milliseconds), and to must not be unless replace is set. A key is not copied to itself. What it takes
// grows with the value.
func (db *DB) Copy(from Key, target *DB, to Key, replace bool, now int64) bool {
	if db == target && string(from.Name) == string(to.Name) {
		return false
	}
	source, ok := db.Find(from, now)
	if !ok {
		return false
	}
	old, taken := target.Find(to, now)
	if taken && !replace {
		return false
	}
	target.mutate(to.Name, changeWrite)
	if taken {
		old.mutated = true
		old.Delete()
	}
	rec := target.insertLike(to, source.rec)
	if rec.enc.isObject() {
		rec.word = target.addObject(source.object().clone().(object))
	}
	return true
}

// Move moves the key, value and TTL, to the database target, and reports whether it did: the key must be there at now (Unix
// milliseconds), and target must be another database and without a key of the name. Big values are not copied.
func (db *DB) Move(k Key, target *DB, now int64) bool {
	if db == target {
		return false
	}
	source, ok := db.Find(k, now)
	if !ok {
		return false
	}
	if _, taken := target.Find(k, now); taken {
		return false
	}
	source.mutate()
	target.mutate(k.Name, changeMoveIn)
	rec := target.insertLike(k, source.rec)
	rec.access = source.rec.access
	if rec.enc.isObject() {
		rec.word = target.addObject(source.object())
	}
	source.Delete()
	return true
}

// insertLike adds a key that must not exist, with the encoding, word, payload and TTL of a record of any database. Where
// the word is an index into that database's object slab, it is the caller's to replace. The caller has passed the gate.
func (db *DB) insertLike(k Key, like *record) *record {
	payload := like.payload(like.payloadLen())
	rec, _ := db.insert(k, like.enc, len(payload))
	rec.word = like.word
	copy(rec.payload(len(payload)), payload)
	db.setExpire(rec, k.Hash, like.expireAt)
	return rec
}
