package store

import (
	"math/bits"
	"math/rand/v2"
)

// A record remembers in 16 bits when its key was last used, or how often it is used: CountUses says which of the two, as eviction needs
// it.
//
//	last use   bit 15 clear: seconds modulo 2^15, which is 9 h; a key that is not used for restAfter goes over to
//	           bit 15 set: units of 512 s modulo 2^15, which is 194 days, as much as the 24 bits of Redis's clock
//	how often  high byte: when the counter last decayed, in units of a minute or more, modulo 2^8; low byte: the counter
//
// Neither clock wraps unnoticed, because AgeSlice passes by every key within an hour or two and brings the last use into the
// second form, or lets the counter decay. Only of a process that is stopped for hours may old keys pass for newer ones.
//
// A use is noted where the record has just been read, and only if that changes it: of a key that is used a thousand times in a
// second, the first use writes.
const (
	resting    = 1 << 15
	accessBits = resting - 1
	restAfter  = 1 << 14 // seconds
	restShift  = 9       // from seconds to units
	maxIdle    = accessBits << restShift

	minuteSeconds = 60
	decayUnits    = 64 // units that the decay of a counter by one may last
	freshCount    = 5  // of a new key, so that it is not the first to go
	maxCount      = 255
)

// UseCounts say how the counters of uses grow and decay. They are redis.conf's lfu-log-factor and lfu-decay-time.
type UseCounts struct {
	LogFactor    int // the chance that a use counts is 1 in this times how far the counter is above that of a new key, plus 1
	DecayMinutes int // after which a counter is one less; 0: never
}

// access is what the records' access fields are compared with.
type access struct {
	stamp    uint16 // of a key that is used now; while uses are counted, of one whose counter is at its end
	fresh    uint16 // of a new key
	counting bool
	ignoring bool // uses are not noted
	counts   UseCounts
	now      int64 // seconds
	random   *rand.Rand

	db     int // where AgeSlice goes on
	prefix uint32
	bucket int
}

// Tick says what time it is (Unix milliseconds), for the uses of keys that follow.
func (ks *Keyspace) Tick(nowMs int64) {
	if a := &ks.access; a.now != nowMs/1000 {
		a.now = nowMs / 1000
		a.restamp()
	}
}

// CountUses has records count how often their keys are used, or with nil remember when. What they hold from before means nothing then,
// until it has been replaced.
func (ks *Keyspace) CountUses(counts *UseCounts) {
	a := &ks.access
	if a.counting = counts != nil; a.counting {
		a.counts = *counts
	}
	a.restamp()
}

// IgnoreUses has uses of keys not noted, until it is called with false.
func (ks *Keyspace) IgnoreUses(ignore bool) { ks.access.ignoring = ignore }

func (a *access) restamp() {
	if a.counting {
		when := uint16(a.unit()) << 8
		a.stamp, a.fresh = when|maxCount, when|freshCount
		return
	}
	a.stamp = uint16(a.now & accessBits)
	a.fresh = a.stamp
}

// touch notes a use of a key whose record is not as stamp says.
func (ks *Keyspace) touch(rec *record) {
	a := &ks.access
	switch {
	case a.ignoring:
	case a.counting:
		count := int(a.decayed(rec.access) & 0xff)
		if count < maxCount && a.random.IntN(max(count-freshCount, 0)*a.counts.LogFactor+1) == 0 {
			count++
		}
		rec.access = a.stamp&0xff00 | uint16(count)
	default:
		rec.access = a.stamp
	}
}

// period is how many units of time the decay of a counter by one takes.
func (a *access) period() int { return max(min(a.counts.DecayMinutes, decayUnits), 1) }

// unit is the present unit of time. It is a minute, unless a counter decays so slowly that it can be longer.
func (a *access) unit() uint8 {
	if minutes := int64(a.counts.DecayMinutes); minutes > decayUnits {
		return uint8(a.now / minuteSeconds * decayUnits / minutes)
	}
	return uint8(a.now / minuteSeconds)
}

// decayed is a counter, with the moment of its last decay, as it is now.
func (a *access) decayed(held uint16) uint16 {
	if a.counts.DecayMinutes == 0 {
		return held
	}
	when := uint8(held >> 8)
	periods := int(a.unit()-when) / a.period()
	count := max(int(held&0xff)-periods, 0)
	return uint16(when+uint8(periods*a.period()))<<8 | uint16(count)
}

// idle is how many seconds a key has not been used, in the coarse form to 512 of them.
func (a *access) idle(held uint16) int64 {
	if held&resting == 0 {
		return (a.now - int64(held)) & accessBits
	}
	return (a.now>>restShift - int64(held)) & accessBits << restShift
}

// idleSince is the form of a last use so many seconds ago.
func (a *access) idleSince(idle int64) uint16 {
	then := a.now - min(idle, maxIdle)
	if idle < restAfter {
		return uint16(then & accessBits)
	}
	return uint16(then>>restShift&accessBits) | resting
}

// Idle is how many seconds ago the key was last used, exact up to four hours and to nine minutes beyond. Not while uses are counted.
func (e *Entry) Idle() int64 { return e.db.ks.access.idle(e.rec.access) }

// SetIdle has the key pass for not used for so many seconds.
func (e *Entry) SetIdle(seconds int64) { e.rec.access = e.db.ks.access.idleSince(seconds) }

// Uses is the logarithmic counter of the key's uses. Only while uses are counted.
func (e *Entry) Uses() int { return int(e.db.ks.access.decayed(e.rec.access) & 0xff) }

// SetUses sets that counter, to 255 at most.
func (e *Entry) SetUses(n int) { e.rec.access = e.db.ks.access.stamp&0xff00 | uint16(n) }

// AgeSlice passes by about maxVisits keys and brings what they remember of their use into the form that lasts. Every key has to be passed
// by once in four hours.
func (ks *Keyspace) AgeSlice(maxVisits int) {
	a := &ks.access
	for visited, empty := 0, 0; visited < maxVisits && empty < len(ks.dbs); {
		db := ks.dbs[a.db]
		if db.keys == 0 {
			empty++
			a.nextDatabase(ks)
			continue
		}
		t := db.dir[a.prefix>>db.dirShift].table
		visited += 1 + db.ageBucket(&t.buckets[a.bucket])
		if a.bucket++; a.bucket < tableBuckets {
			continue
		}
		a.bucket = 0
		if a.prefix = t.prefix + 1<<(dirBits-t.depth); a.prefix == 1<<dirBits {
			a.nextDatabase(ks)
		}
	}
}

func (a *access) nextDatabase(ks *Keyspace) {
	a.db, a.prefix, a.bucket = (a.db+1)%len(ks.dbs), 0, 0
}

// ageBucket does that for a bucket's keys, and returns how many there are.
func (db *DB) ageBucket(b *bucket) (keys int) {
	a := &db.ks.access
	for m := b.occupied(); m != 0; m &= m - 1 {
		rec := db.record(b.refs[bits.TrailingZeros32(m)])
		keys++
		aged := rec.access
		if a.counting {
			aged = a.decayed(aged)
		} else if aged&resting == 0 {
			aged = a.idleSince(a.idle(aged))
		}
		if aged != rec.access {
			rec.access = aged
		}
	}
	return keys
}
