package simulate

import (
	"fmt"
	"hash/maphash"
)

// maxKeys is how many different keys a run tells apart, dead or alive. What comes of further ones is counted, and not asked of any policy.
const maxKeys = 1 << 25

// runner asks all policies for each line.
type runner struct {
	runs []*run
	now  int64 // ns: the latest time so far

	ids   map[string]int32 // of keys that have state
	names []string         // by id; empty: the id is free
	ever  []uint32         // by id: which of all keys it is
	free  []int32
	hand  int // the next id to look at for state that has expired

	seed    maphash.Seed
	known   map[uint64]uint32 // all keys ever seen, by the hash of their names
	calls   []uint32          // of each of these
	busiest top
	series  series

	asked    uint64
	late     uint64 // lines that are older than one before
	lateMost int64  // by how much at most, in ns
	tooMany  uint64
	first    int64
}

// run is one policy's part.
type run struct {
	Policy
	*gate
	probe    *probe // nil: no limit is looked for
	limited  uint64
	refusals []uint32 // of each key ever seen
	most     top
}

func newRunner(policies []Policy, spare bool) (*runner, error) {
	r := &runner{ids: map[string]int32{}, known: map[uint64]uint32{}, seed: maphash.MakeSeed(), series: newSeries(len(policies))}
	for _, p := range policies {
		one := &run{Policy: p}
		one.gate = newGate(&one.Policy.limit)
		if spare && p.limits() {
			var err error
			if one.probe, err = newProbe(&one.Policy); err != nil {
				return nil, err
			}
		}
		r.runs = append(r.runs, one)
	}
	return r, nil
}

// take asks all policies for one request of a key. A time before one that has been is taken for that one: a server's clock does not go back
// either.
func (r *runner) take(key []byte, ns int64) error {
	if ns < r.now {
		r.late++
		r.lateMost = max(r.lateMost, r.now-ns)
		ns = r.now
	}
	if r.asked == 0 {
		r.first = ns
	}
	r.now = ns
	r.sweep()
	id, ok := r.find(key)
	if !ok {
		r.tooMany++
		return nil
	}
	ever := r.ever[id]
	r.asked++
	r.calls[ever]++
	point := r.series.at(ns)
	point.asked++
	for i, one := range r.runs {
		if err := one.ask(id, ns); err != nil {
			return fmt.Errorf("%s: %w", one.Text, err)
		}
		if one.call.Verdict.Limited {
			one.limited++
			one.refusals[ever]++
			point.limited[i]++
		}
		if one.probe != nil {
			if err := one.probe.ask(id, ever, ns); err != nil {
				return fmt.Errorf("%s: %w", one.probe.of.Text, err)
			}
		}
	}
	return nil
}

// find returns the id of a key, which it gets if it has none. It is false if there have been too many keys.
func (r *runner) find(key []byte) (id int32, ok bool) {
	if id, ok = r.ids[string(key)]; ok {
		return id, true
	}
	hash := maphash.Bytes(r.seed, key)
	ever, seen := r.known[hash]
	if !seen {
		if len(r.calls) >= maxKeys {
			return 0, false
		}
		ever = uint32(len(r.calls))
		r.known[hash] = ever
		r.calls = append(r.calls, 0)
		for _, one := range r.runs {
			one.refusals = append(one.refusals, 0)
			if one.probe != nil {
				one.probe.needs = append(one.probe.needs, 0)
			}
		}
	}
	if n := len(r.free); n > 0 {
		id, r.free = r.free[n-1], r.free[:n-1]
	} else {
		id = int32(len(r.names))
		r.names, r.ever = append(r.names, ""), append(r.ever, 0)
		for _, one := range r.runs {
			one.state.room(len(r.names))
			if one.probe != nil {
				one.probe.state.room(len(r.names))
			}
		}
	}
	r.names[id], r.ever[id] = string(key), ever
	r.ids[r.names[id]] = id
	return id, true
}

// sweptAtOnce is how many ids are looked at for each line: more than a line can add.
const sweptAtOnce = 2

// sweep lets go of some keys without state.
func (r *runner) sweep() {
	for range min(sweptAtOnce, len(r.names)) {
		if r.hand++; r.hand >= len(r.names) {
			r.hand = 0
		}
		if id := int32(r.hand); r.names[id] != "" && r.gone(id) {
			r.forget(id)
		}
	}
}

func (r *runner) gone(id int32) bool {
	for _, one := range r.runs {
		if !one.state.gone(id, r.now/nsPerMs) || one.probe != nil && !one.probe.state.gone(id, r.now/nsPerMs) {
			return false
		}
	}
	return true
}

func (r *runner) forget(id int32) {
	r.rank(id)
	delete(r.ids, r.names[id])
	r.names[id] = ""
	r.free = append(r.free, id)
	for _, one := range r.runs {
		one.state.forget(id)
		if one.probe != nil {
			one.probe.state.forget(id)
		}
	}
}

// rank offers a key to the lists of those with most lines and refusals. Each key is offered when nothing is known of it any more, and at the
// end; so it is offered last with all that it has.
func (r *runner) rank(id int32) {
	ever := r.ever[id]
	r.busiest.offer(ever, r.names[id], r.calls[ever])
	for _, one := range r.runs {
		one.most.offer(ever, r.names[id], one.refusals[ever])
	}
}

// end ranks those that are left.
func (r *runner) end() {
	for id, name := range r.names {
		if name != "" {
			r.rank(int32(id))
		}
	}
}
