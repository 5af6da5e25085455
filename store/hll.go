package store

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"slices"
)

// A HyperLogLog is a string in Redis's own form, so that it can be read, written and moved as one.
//
//	offset  bytes
//	     0      4  "HYLL"
//	     4      1  encoding: hllDense or hllSparse
//	     5      3  unused
//	     8      8  the last estimate, little-endian; its top bit says that it is out of date
//	    16      …  the registers
//
// Dense registers are 6 bits each, one after the other from the lowest bit of the first byte on. Sparse ones are runs:
//
//	00nnnnnn           n+1 registers that are 0
//	01nnnnnn nnnnnnnn  n+1 registers that are 0, high byte first
//	1vvvvvnn           n+1 registers that are v+1
//
// Anybody can SET such a string, so nothing in it is trusted: what cannot be right is ErrCorruptHLL.
type hll []byte

// ErrNotHLL is returned for a string that does not begin as a HyperLogLog, ErrCorruptHLL for one whose registers make no
// sense.
var (
	ErrNotHLL     = errors.New("string is no HyperLogLog")
	ErrCorruptHLL = errors.New("HyperLogLog is corrupt")
)

const (
	hllMagic     = "HYLL"
	hllHeader    = 16
	hllEncoding  = 4 // offset of the encoding
	hllEstimate  = 8 // offset of the last estimate
	hllDense     = 0
	hllSparse    = 1
	hllIndexBits = 14
	hllRegisters = 1 << hllIndexBits
	hllBits      = 6
	hllDenseSize = hllHeader + hllRegisters*hllBits/8
	hllRanks     = 64 - hllIndexBits // bits of a hash that ranks are counted in
	hllStale     = 0x80              // in the estimate's last byte

	hllZeroMax      = 64 // registers of a run of one byte
	hllValueMax     = 32 // largest value of a run
	hllValueRunMax  = 4  // registers of a run with a value
	hllMergeOpcodes = 5  // runs that are looked at for neighbours to join after a change
)

// newHLL is an empty HyperLogLog: one run of zeros, and an estimate of 0.
func newHLL() hll {
	h := make(hll, hllHeader, hllHeader+2)
	copy(h, hllMagic)
	h[hllEncoding] = hllSparse
	return appendZeros(h, hllRegisters)
}

// hll checks that the key holds a HyperLogLog and returns it: memory of the store.
func (e *Entry) hll() (hll, error) {
	if e.Kind() != KindString {
		return nil, ErrWrongType
	}
	h := hll(e.Bytes(nil))
	if e.rec.enc == encInt || len(h) < hllHeader || string(h[:len(hllMagic)]) != hllMagic || h[hllEncoding] > hllSparse ||
		h.isDense() && len(h) != hllDenseSize {
		return nil, ErrNotHLL
	}
	return h, nil
}

// AddToHLL counts the elements in for the HyperLogLog at k and reports whether that changed it; a missing key is
// created, and that is a change. It fails with ErrWrongType, ErrNotHLL and ErrCorruptHLL; before the last of them,
// elements may have been counted in.
func (db *DB) AddToHLL(k Key, now int64, elements [][]byte) (changed bool, err error) {
	h := newHLL()
	e, found := db.Find(k, now)
	if found {
		if h, err = e.hll(); err != nil {
			return false, err
		}
	}
	edit := hllEdit{h: h, sparseMax: db.ks.limits.HLLSparseMaxBytes, owned: !found}
	for _, element := range elements {
		index, rank := hllPlace(element)
		if err = edit.raise(&e, index, rank); err != nil {
			break
		}
	}
	if edit.changed || !found {
		if err == nil {
			edit.markStale(&e)
		}
		edit.store(db, k, &e)
	}
	return edit.changed || !found, err
}

// CountHLL estimates how many different elements the key's HyperLogLog has counted. An estimate that is out of date is made
// anew and kept with the value, which passes the gate. It fails with ErrWrongType, ErrNotHLL and ErrCorruptHLL.
func (e *Entry) CountHLL() (uint64, error) {
	h, err := e.hll()
	if err != nil {
		return 0, err
	}
	if h[hllHeader-1]&hllStale == 0 {
		return binary.LittleEndian.Uint64(h[hllEstimate:]), nil
	}
	var ranks hllHistogram
	if h.isDense() {
		for i := range hllRegisters {
			ranks[h.register(i)]++
		}
	} else if !h.countRuns(&ranks) {
		return 0, ErrCorruptHLL
	}
	n := ranks.estimate()
	binary.LittleEndian.PutUint64(e.WritableBytes()[hllEstimate:], n)
	return n, nil
}

// HLLUnion counts what several HyperLogLogs have counted together. The zero value has counted nothing. It keeps nothing of
// the store.
type HLLUnion struct {
	registers [hllRegisters]uint8
	dense     bool // one of them was
}

// Add takes the key's HyperLogLog in. It fails with ErrWrongType, ErrNotHLL and ErrCorruptHLL.
func (u *HLLUnion) Add(e *Entry) error {
	h, err := e.hll()
	if err != nil {
		return err
	}
	u.dense = u.dense || h.isDense()
	if !h.mergeInto(&u.registers) {
		return ErrCorruptHLL
	}
	return nil
}

// Count estimates the number of different elements.
func (u *HLLUnion) Count() uint64 {
	var ranks hllHistogram
	for _, rank := range u.registers {
		ranks[rank]++
	}
	return ranks.estimate()
}

// MergeHLL makes the HyperLogLog at k count what the union has counted too; a missing key is created. It becomes dense if one
// of the union's was. It fails with ErrWrongType, ErrNotHLL and ErrCorruptHLL.
func (db *DB) MergeHLL(k Key, now int64, u *HLLUnion) error {
	edit := hllEdit{h: newHLL(), sparseMax: db.ks.limits.HLLSparseMaxBytes, owned: true}
	e, found := db.Find(k, now)
	if found {
		h, err := e.hll()
		if err != nil {
			return err
		}
		edit.h, edit.owned = h, false
	}
	if u.dense && !edit.h.isDense() && !edit.promote() {
		return ErrCorruptHLL
	}
	for i, rank := range u.registers {
		if rank == 0 {
			continue
		}
		if err := edit.raise(&e, i, rank); err != nil {
			return err
		}
	}
	edit.markStale(&e)
	edit.store(db, k, &e)
	return nil
}

// hllEdit is a HyperLogLog while it is being changed. A dense one that is in the store is changed there; all else in a
// copy, which store puts in place.
type hllEdit struct {
	h         hll
	sparseMax int
	owned     bool // h is a copy
	changed   bool // a register was raised
	writable  bool // h is memory of the store that the gate has been passed for

	// from is where the next search may begin if it is for a register above above: a run or two before the one that was
	// found last. It keeps a merge from looking through all runs for each register.
	from  hllSpot
	above int
}

// hllSpot is the place of a run: its offset, and its first register.
type hllSpot struct{ at, first int }

// raise makes a register at least rank.
func (d *hllEdit) raise(e *Entry, index int, rank uint8) error {
	if !d.h.isDense() {
		if !d.raiseSparse(index, rank) {
			return ErrCorruptHLL
		}
		return nil
	}
	if d.h.register(index) >= rank {
		return nil
	}
	d.open(e)
	d.h.setRegister(index, rank)
	d.changed = true
	return nil
}

// open makes h writable.
func (d *hllEdit) open(e *Entry) {
	if !d.owned && !d.writable {
		d.h, d.writable = e.WritableBytes(), true
	}
}

// markStale notes that the kept estimate is out of date.
func (d *hllEdit) markStale(e *Entry) {
	d.open(e)
	d.h[hllHeader-1] |= hllStale
}

// store puts a copy in the key's place.
func (d *hllEdit) store(db *DB, k Key, e *Entry) {
	if !d.owned {
		return
	}
	expireAt := int64(0)
	if e.rec != nil {
		expireAt = e.ExpireAt()
	}
	db.setBytes(k, d.h, expireAt)
}

// raiseSparse is raise for runs; it reports false when they make no sense. The run that covers the register is split
// around it, unless it covers nothing else, and equal neighbours are joined, in just the way that leaves the bytes Redis would.
func (d *hllEdit) raiseSparse(index int, rank uint8) bool {
	if rank > hllValueMax {
		return d.promoteAndRaise(index, rank)
	}
	from := hllSpot{at: hllHeader}
	if d.from.at != 0 && index > d.above {
		from = d.from
	}
	at, before, first, run, ok := d.findRun(index, from)
	if !ok {
		return false
	}
	if run.value >= rank {
		return true
	}
	split := make(hll, 0, 5)
	for _, part := range [...]hllRun{{run.value, index - first, 0}, {rank, 1, 0}, {run.value, first + run.length - 1 - index, 0}} {
		switch {
		case part.length == 0:
		case part.value == 0:
			split = appendZeros(split, part.length)
		default:
			split = append(split, valueRun(part.value, part.length))
		}
	}
	grown := len(split) - run.size
	if grown > 0 && len(d.h)+grown > d.sparseMax {
		return d.promoteAndRaise(index, rank)
	}
	if !d.owned {
		d.h, d.owned = append(make(hll, 0, len(d.h)+max(grown, 0)), d.h...), true
	}
	d.h = slices.Replace(d.h, at, min(at+run.size, len(d.h)), split...).joinRuns(before)
	d.h[hllHeader-1] |= hllStale
	d.changed = true
	return true
}

func (d *hllEdit) promoteAndRaise(index int, rank uint8) bool {
	if !d.promote() {
		return false
	}
	d.h.setRegister(index, max(rank, d.h.register(index)))
	d.changed = true
	return true
}

// promote turns runs into dense registers, and reports false when they make no sense.
func (d *hllEdit) promote() bool {
	var registers [hllRegisters]uint8
	if !d.h.mergeInto(&registers) {
		return false
	}
	dense := make(hll, hllDenseSize)
	copy(dense, d.h[:hllHeader])
	dense[hllEncoding] = hllDense
	for i, rank := range registers {
		if rank != 0 {
			dense.setRegister(i, rank)
		}
	}
	d.h, d.owned = dense, true
	return true
}

func (h hll) isDense() bool { return h[hllEncoding] == hllDense }

// register reads a dense register.
func (h hll) register(i int) uint8 {
	bit := i * hllBits
	at := hllHeader + bit/8
	word := uint16(h[at])
	if at+1 < len(h) {
		word |= uint16(h[at+1]) << 8
	}
	return uint8(word>>(bit%8)) & (1<<hllBits - 1)
}

// setRegister writes a dense register.
func (h hll) setRegister(i int, rank uint8) {
	const mask = 1<<hllBits - 1
	bit := i * hllBits
	at, shift := hllHeader+bit/8, bit%8
	h[at] = h[at]&^(mask<<shift) | rank<<shift
	if shift > 8-hllBits {
		h[at+1] = h[at+1]&^(mask>>(8-shift)) | rank>>(8-shift)
	}
}

// hllRun is a run of equal registers.
type hllRun struct {
	value  uint8
	length int
	size   int // bytes that tell of it
}

// run reads the run at an offset. The second byte of one that the string cuts off counts as 0.
func (h hll) run(at int) hllRun {
	b := h[at]
	switch {
	case b&0x80 != 0:
		return hllRun{b>>2&0x1f + 1, int(b&3) + 1, 1}
	case b&0x40 == 0:
		return hllRun{0, int(b&0x3f) + 1, 1}
	}
	low := 0
	if at+1 < len(h) {
		low = int(h[at+1])
	}
	return hllRun{0, int(b&0x3f)<<8 + low + 1, 2}
}

// findRun returns the offset of the run that covers a register, that of the run before it (or else its own), and the
// run with the number of its first register. The search begins at from, which lies before it or is it.
func (d *hllEdit) findRun(index int, from hllSpot) (at, before, first int, run hllRun, ok bool) {
	early, late := from, from // the places of the two runs before
	for at, first = from.at, from.first; at < len(d.h); {
		run = d.h.run(at)
		if index < first+run.length {
			if at == from.at && at != hllHeader {
				return d.findRun(index, hllSpot{at: hllHeader}) // the run before it is not known here
			}
			d.from, d.above = early, index
			return at, late.at, first, run, true
		}
		early, late = late, hllSpot{at, first}
		at += run.size
		first += run.length
	}
	return 0, 0, 0, hllRun{}, false
}

// joinRuns joins equal neighbours among the few runs from an offset on, and returns what is left.
func (h hll) joinRuns(at int) hll {
	for range hllMergeOpcodes {
		if at >= len(h) {
			break
		}
		run := h.run(at)
		if run.value != 0 && at+1 < len(h) {
			if next := h.run(at + 1); next.value == run.value && run.length+next.length <= hllValueRunMax {
				h[at+1] = valueRun(run.value, run.length+next.length)
				h = append(h[:at], h[at+1:]...)
				continue
			}
		}
		at += run.size
	}
	return h
}

// appendZeros appends a run of n registers that are 0.
func appendZeros(h hll, n int) hll {
	if n <= hllZeroMax {
		return append(h, byte(n-1))
	}
	return append(h, 0x40|byte((n-1)>>8), byte(n-1))
}

// valueRun is a run of n registers.
func valueRun(value uint8, n int) byte { return 0x80 | (value-1)<<2 | byte(n-1) }

// mergeInto raises all to the registers of h, and reports false when its runs do not cover just the registers there are.
func (h hll) mergeInto(all *[hllRegisters]uint8) bool {
	if h.isDense() {
		for i := range all {
			all[i] = max(all[i], h.register(i))
		}
		return true
	}
	i := 0
	for at := hllHeader; at < len(h); {
		run := h.run(at)
		at += run.size
		if i+run.length > hllRegisters {
			return false
		}
		if run.value != 0 {
			for j := i; j < i+run.length; j++ {
				all[j] = max(all[j], run.value)
			}
		}
		i += run.length
	}
	return i == hllRegisters
}

// countRuns counts how many registers have each rank, and reports false when there are not just as many as there must be.
func (h hll) countRuns(ranks *hllHistogram) bool {
	i := 0
	for at := hllHeader; at < len(h); {
		run := h.run(at)
		at += run.size
		ranks[run.value] += run.length
		i += run.length
	}
	return i == hllRegisters
}

// hllPlace returns the register that an element belongs to, by the low bits of its hash, and its rank there: the place of
// the lowest bit that is set among the others.
func hllPlace(element []byte) (index int, rank uint8) {
	const seed = 0xadc83b19
	hash := murmur64A(element, seed)
	others := hash>>hllIndexBits | 1<<hllRanks
	return int(hash % hllRegisters), uint8(bits.TrailingZeros64(others)) + 1
}

// murmur64A is Austin Appleby's MurmurHash2 for 64 bits.
func murmur64A(data []byte, seed uint64) uint64 {
	const (
		m = 0xc6a4a7935bd1e995
		r = 47
	)
	h := seed ^ uint64(len(data))*m
	for ; len(data) >= 8; data = data[8:] {
		k := binary.LittleEndian.Uint64(data) * m
		k = (k ^ k>>r) * m
		h = (h ^ k) * m
	}
	if len(data) > 0 {
		var last [8]byte
		copy(last[:], data)
		h = (h ^ binary.LittleEndian.Uint64(last[:])) * m
	}
	h = (h ^ h>>r) * m
	return h ^ h>>r
}

// hllHistogram counts the registers of each rank.
type hllHistogram [1 << hllBits]int

// estimate is how many different elements make such registers: the estimator of Otmar Ertl, "New cardinality estimation
// algorithms for HyperLogLog sketches", arXiv:1702.01284, section 4. Each product is rounded by itself, on every processor.
func (n *hllHistogram) estimate() uint64 {
	const (
		m     = float64(hllRegisters)
		alpha = 0.721347520444481703680 // 1/(2 ln 2)
	)
	z := m * hllTau((m-float64(n[hllRanks+1]))/m)
	for rank := hllRanks; rank >= 1; rank-- {
		z += float64(n[rank])
		z *= 0.5
	}
	z += float64(m * hllSigma(float64(n[0])/m))
	return uint64(math.Round(alpha * m * m / z))
}

// hllTau corrects for registers that are as high as they can be.
func hllTau(x float64) float64 {
	if x == 0 || x == 1 {
		return 0
	}
	y, z := 1.0, 1-x
	for {
		before := z
		x = math.Sqrt(x)
		y *= 0.5
		z -= float64((1 - x) * (1 - x) * y)
		if z == before {
			return z / 3
		}
	}
}

// hllSigma corrects for registers that are 0.
func hllSigma(x float64) float64 {
	if x == 1 {
		return math.Inf(1)
	}
	y, z := 1.0, x
	for {
		x *= x
		before := z
		z += float64(x * y)
		y += y
		if z == before {
			return z
		}
	}
}
