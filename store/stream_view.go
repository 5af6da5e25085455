package store

import "slices"

// streamView views a stream. When frozen it has the nodes' listpacks, which those leave alone from then on, and copies of the groups, whose
// trees share what does not change; pending entries in them are not changed, but have others put in their place. Freezing takes a moment for
// each node, group and consumer, but none for what is pending.
type streamView struct {
	value  *streamValue
	nodes  []streamNode
	length int
	info   StreamInfo
	groups []*StreamGroup
	next   int  // node
	told   bool // what the stream knows of itself
	group  int  // the one that is being told
	list   int  // of its pending entries: its own, and then each consumer's
	begun  bool // the list's head has been told
	from   Pending
	frozen bool
	extra  *int
	kept   int // bytes added to extra
}

func newStreamView(v *streamValue) *streamView {
	return &streamView{value: v, nodes: v.nodes, length: v.length, info: v.info, groups: v.groups}
}

// What a frozen view keeps for a node, for a group or consumer, and for a pending entry that has been changed or taken away, about.
const (
	nodeBytes    = 48
	groupBytes   = 192
	pendingBytes = 160
)

func (v *streamView) freeze(extra *int) {
	v.frozen, v.extra = true, extra
	for i := range v.nodes {
		v.nodes[i].shared = true
	}
	v.nodes = slices.Clone(v.nodes)
	v.kept = nodeBytes * len(v.nodes)
	v.groups = make([]*StreamGroup, len(v.groups))
	for i, g := range v.value.groups {
		v.groups[i] = g.share()
		v.kept += groupBytes * (1 + len(g.consumers))
	}
	v.value.frozen = v
	v.value.freezes++
	*extra += v.kept
}

// shares reports whether a view has still to see a pending entry, so that it is not to be changed.
func (v *streamValue) shares(p *Pending) bool { return v.frozen != nil && p.born != v.freezes }

// keep notes that pending entries are kept for a view alone, if there is one.
func (v *streamValue) keep(pending int) {
	if f := v.frozen; f != nil {
		f.kept += pendingBytes * pending
		*f.extra += pendingBytes * pending
	}
}

func (v *streamView) begin(sink ValueSink) { sink.Stream(len(v.nodes)) }

func (v *streamView) emit(sink ValueSink, budget int) (work int, done bool) {
	for ; v.next < len(v.nodes); v.next++ {
		if work >= budget {
			return work, false
		}
		n := &v.nodes[v.next]
		sink.StreamNode(n.id.pair(), n.lp)
		work += elementWork + len(n.lp)
		if v.frozen {
			*n = streamNode{}
		}
	}
	if !v.told {
		v.told = true
		sink.StreamInfo(v.length, v.info.Last.pair(), v.info.First.pair(), v.info.MaxDeleted.pair(), v.info.Added, len(v.groups))
	}
	for v.group < len(v.groups) {
		if work >= budget {
			return work, false
		}
		work += v.emitList(sink, budget-work)
	}
	sink.End()
	return work, true
}

// emitList emits what comes next of a group: a list of pending entries or a part of it, with its head. It returns the work.
func (v *streamView) emitList(sink ValueSink, budget int) (work int) {
	g := v.groups[v.group]
	pending, tell := g.pending, func(p *Pending) { sink.StreamPending(p.ID.pair(), p.Delivered, uint64(p.Count)) }
	if v.list > 0 {
		pending, tell = g.consumers[v.list-1].pending, func(p *Pending) { sink.StreamOwned(p.ID.pair()) }
	}
	if !v.begun {
		v.begun = true
		work += elementWork
		if v.list == 0 {
			sink.StreamGroup(g.name, g.last.pair(), g.reads, g.Pending(), len(g.consumers))
		} else {
			c := g.consumers[v.list-1]
			sink.StreamConsumer(c.name, c.seen, c.Pending())
		}
	}
	whole := true
	pending.Ascend(&v.from, func(p *Pending) bool {
		if whole = work < budget; !whole {
			v.from.ID = p.ID
			return false
		}
		tell(p)
		work += elementWork
		return true
	})
	if !whole {
		return work
	}
	v.begun, v.from.ID = false, StreamID{}
	if v.list++; v.list > len(g.consumers) {
		v.group, v.list = v.group+1, 0
	}
	return work
}

// pair is the ID as two numbers.
func (id StreamID) pair() [2]uint64 { return [2]uint64{id.MS, id.Seq} }

func (v *streamView) thaw() {
	*v.extra -= v.kept
	if v.value.frozen == v {
		v.value.frozen = nil
	}
	v.value, v.nodes, v.groups = nil, nil, nil
}

// AddNode appends a node with a listpack as Redis has it, which must be right, hold live entries that are not deleted, and lie behind
// the nodes that are there. The listpack is copied. It is for loading: SetLoaded has to follow.
func (s *Stream) AddNode(id StreamID, lp []byte, live int) {
	s.Create()
	s.entry.mutate()
	s.value.nodes = append(s.value.nodes, streamNode{id: id, lp: slices.Clone(lp)})
	s.value.length += live
}

// SetLoaded tells a stream that has been loaded what it knows of itself, its first entry's ID included.
func (s *Stream) SetLoaded(info StreamInfo) {
	s.Create()
	s.entry.mutate()
	s.value.info = info
}
