package simulate

import (
	"slices"

	"headgate/server/limiter"
	"headgate/throttle"
)

// memory is where the limiters of one policy keep what they know of keys: a limiter.State for the key that id names. The time is the call's.
type memory struct {
	id       int32
	expireAt []int64 // ms, of each key; 0: there is none
	numbers  []int64
	slices   [][]limiter.Slice
	entries  [][]int64 // ms, in the order of time
	blocks   []block   // if the policy has blocks

	kind   limiter.Kind
	block  limiter.Block
	newest int // the place of the newest entry that counts
	timeOf func(rank int64) int64
}

var _ limiter.State = (*memory)(nil)

// block is the last block of a key.
type block struct {
	until  int64 // ms
	length int64 // ms; 0: there was none
}

func newMemory(p *limiter.Policy) *memory {
	m := &memory{kind: p.Algorithm.Kind, block: p.Block}
	m.timeOf = func(rank int64) int64 { return m.entries[m.id][m.newest-int(rank)] }
	return m
}

// room has the memory know of ids below n.
func (m *memory) room(n int) {
	for len(m.expireAt) < n {
		m.expireAt = append(m.expireAt, 0)
		if m.block.Length > 0 {
			m.blocks = append(m.blocks, block{})
		}
		switch m.kind {
		case limiter.Number:
			m.numbers = append(m.numbers, 0)
		case limiter.Slices:
			m.slices = append(m.slices, nil)
		case limiter.Entries:
			m.entries = append(m.entries, nil)
		}
	}
}

// gone reports whether nothing of a key would be found any more.
func (m *memory) gone(id int32, nowMs int64) bool {
	return m.expireAt[id] < nowMs && (m.block.Length == 0 || m.blocks[id].until+m.blocks[id].length <= nowMs)
}

// rest is for how long the key is still blocked, in ms; 0 and below: it is not.
func (m *memory) rest(nowMs int64) int64 {
	if m.block.Length == 0 {
		return 0
	}
	return m.blocks[m.id].until - nowMs
}

// begin begins a block of the key, if the policy has such.
func (m *memory) begin(nowMs int64) {
	if m.block.Length == 0 {
		return
	}
	b := &m.blocks[m.id]
	last := int64(0)
	if nowMs < b.until+b.length { // else it is forgotten
		last = b.length
	}
	b.length = m.block.Next(last)
	b.until = nowMs + b.length
}

// forget lets go what a key has.
func (m *memory) forget(id int32) {
	m.expireAt[id] = 0
	switch m.kind {
	case limiter.Slices:
		m.slices[id] = nil
	case limiter.Entries:
		m.entries[id] = nil
	}
}

// Load implements limiter.State.
func (m *memory) Load(c *limiter.Call) error {
	f := &c.Found
	f.Exists = m.expireAt[m.id] >= c.NowMs
	if m.kind == limiter.Number {
		f.Number, f.ExpireAtMs = m.numbers[m.id], m.expireAt[m.id]
		return nil
	}
	if !f.Exists {
		m.forget(m.id)
	}
	if m.kind == limiter.Slices {
		f.Slices = append(f.Slices[:0], m.slices[m.id]...)
		return nil
	}
	at := m.entries[m.id]
	f.Expired, _ = slices.BinarySearch(at, c.Want.After+1)
	until, _ := slices.BinarySearch(at, c.Want.Until+1)
	f.Used, m.newest, f.At = int64(until-f.Expired), until-1, m.timeOf
	return nil
}

// Keep implements limiter.State. It has room for everything.
func (m *memory) Keep(c *limiter.Call) error {
	ch := &c.Change
	switch ch.Write {
	case throttle.Keep:
		return nil
	case throttle.Delete:
		m.forget(m.id)
		return nil
	}
	switch m.kind {
	case limiter.Number:
		m.numbers[m.id] = ch.Number
	case limiter.Slices:
		m.keepSlices(ch)
	case limiter.Entries:
		m.keepEntries(&c.Found, ch)
	}
	if ch.ExpireAtMs != 0 {
		m.expireAt[m.id] = ch.ExpireAtMs
	}
	return nil
}

func (m *memory) keepSlices(ch *limiter.Change) {
	kept := m.slices[m.id]
	if ch.Replace {
		kept = kept[:0]
	}
	for _, s := range ch.Slices {
		i := slices.IndexFunc(kept, func(k limiter.Slice) bool { return k.Start == s.Start })
		switch {
		case i >= 0 && s.Count > 0:
			kept[i] = s
		case i >= 0:
			kept = slices.Delete(kept, i, i+1)
		case s.Count > 0:
			kept = append(kept, s)
		}
	}
	m.slices[m.id] = kept
}

// keepEntries keeps entries without ids, which are all that there are.
func (m *memory) keepEntries(f *limiter.Found, ch *limiter.Change) {
	at := m.entries[m.id]
	if ch.Trim {
		at = at[f.Expired:]
	}
	for range ch.Add {
		at = append(at, ch.AddAt)
	}
	m.entries[m.id] = at
}
