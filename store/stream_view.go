package store

import "slices"

// streamView views a stream. When frozen it has the nodes' listpacks, which those leave alone from then on, and copies of the groups.
// Nodes are emitted one by one, groups all at once: what is pending is little beside the entries.
type streamView struct {
	value  *streamValue
	nodes  []streamNode
	length int
	info   StreamInfo
	groups []*StreamGroup
	next   int
	frozen bool
	extra  *int
	kept   int // bytes added to extra
}

func newStreamView(v *streamValue) *streamView {
	return &streamView{value: v, nodes: v.nodes, length: v.length, info: v.info, groups: v.groups}
}

// nodeBytes and pendingBytes are what a frozen view keeps for a node and for a pending entry, about.
const (
	nodeBytes    = 48
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
		v.groups[i] = g.clone()
		v.kept += pendingBytes * g.Pending()
	}
	v.value = nil
	*extra += v.kept
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
	sink.StreamInfo(v.length, v.info.Last.pair(), v.info.First.pair(), v.info.MaxDeleted.pair(), v.info.Added, len(v.groups))
	for _, g := range v.groups {
		work += g.emit(sink)
	}
	sink.End()
	return work, true
}

// pair is the ID as two numbers.
func (id StreamID) pair() [2]uint64 { return [2]uint64{id.MS, id.Seq} }

// emit emits the group and returns the work.
func (g *StreamGroup) emit(sink ValueSink) (work int) {
	sink.StreamGroup(g.name, g.last.pair(), g.reads, g.Pending(), len(g.consumers))
	g.pending.Scan(func(p *Pending) bool {
		sink.StreamPending(p.ID.pair(), p.Delivered, uint64(p.Count))
		return true
	})
	for _, c := range g.consumers {
		sink.StreamConsumer(c.name, c.seen, c.Pending())
		c.pending.Scan(func(p *Pending) bool {
			sink.StreamOwned(p.ID.pair())
			return true
		})
	}
	return elementWork * (1 + len(g.consumers) + 2*g.Pending())
}

func (v *streamView) thaw() {
	*v.extra -= v.kept
	v.nodes, v.groups = nil, nil
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
