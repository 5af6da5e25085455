package server

import (
	"fmt"
	rtdebug "runtime/debug"

	"headgate/store"
)

// memoryCommand is the MEMORY family.
var memoryCommand = &Command{
	Name: "memory", Group: GroupServer, Since: "4.0.0", Complexity: "depends on the sub-command",
	Summary: "Look at what takes up memory.",
	Arity:   -2,
	Sub: []*Command{
		{
			Name: "doctor", Since: "4.0.0", Complexity: "O(1)",
			Summary: "Say in words whether the server's use of memory looks healthy.",
			Arity:   2, Reply: ReplyBulk | ReplyVerbatim, Handler: memoryDoctor,
		},
		helpCommand("4.0.0"),
		{
			Name: "purge", Since: "4.0.0", Complexity: "O(n) in the size of the Go heap, in the background",
			Summary: "Give memory that nothing uses back to the operating system.",
			Arity:   2, Reply: ReplySimple, Handler: memoryPurge,
		},
		{
			Name: "stats", Since: "4.0.0", Complexity: "O(n) in the number of connections",
			Summary: "Return figures on the server's use of memory.",
			Arity:   2, Reply: ReplyMap, Handler: memoryStats,
		},
		{
			Name: "usage", Since: "4.0.0", Complexity: "O(n) in the number of samples",
			Summary: "Estimate the bytes that a key and its value take up.",
			Arity:   -3, Flags: ReadOnly, Keys: keys("RO", 2, 2, 1),
			Args:  []Arg{key("key"), integer("count").after("SAMPLES").opt()},
			Reply: ReplyInteger | ReplyNull, Handler: memoryUsage,
		},
	},
}

// memoryUsage takes SAMPLES and needs none: what a value takes up is known.
func memoryUsage(c *Ctx) {
	for i := 3; i < len(c.args); i += 2 {
		if i+1 == len(c.args) || !c.is(i, "SAMPLES") {
			c.err(errSyntax)
			return
		}
		n, ok := c.integer(i + 1)
		if !ok {
			return
		}
		if n < 0 {
			c.err(errSyntax)
			return
		}
	}
	e, ok := c.db.Look(c.key(2), c.now)
	if !ok {
		c.reply.Null()
		return
	}
	c.reply.Int(int64(e.MemoryUsage()))
}

// memoryFigures are what MEMORY and INFO say about memory, in bytes.
type memoryFigures struct {
	store.Stats
	heap, used, peak, resident uint64
}

func (s *Server) memoryFigures() memoryFigures {
	m := memoryFigures{Stats: s.keys.Stats(), heap: runtimeMetric(metricHeapObjects), resident: s.residentMemory()}
	m.used = s.usedMemory()
	s.stats.peakMemory = max(s.stats.peakMemory, m.used)
	m.peak = s.stats.peakMemory
	return m
}

// fragmentation returns how many times the memory in use the process has.
func (m memoryFigures) fragmentation() float64 { return float64(m.resident) / float64(m.used) }

// clientMemory returns the bytes that all clients' transactions and replies take up.
func (s *Server) clientMemory() int {
	n := 0
	for _, cl := range s.clients.list {
		n += cl.memory()
	}
	return n
}

// memoryPurge returns at once: the memory goes back while commands are run.
func memoryPurge(c *Ctx) {
	go rtdebug.FreeOSMemory()
	c.ok()
}

func memoryStats(c *Ctx) {
	m := c.srv.memoryFigures()
	clients := c.srv.clientMemory()
	perKey := uint64(0)
	if m.Keys > 0 {
		perKey = m.ArenaUsed / uint64(m.Keys)
	}
	w := c.reply
	mark, n := w.Start(), 0
	count := func(name string, value uint64) {
		sendField(w, name, int(value))
		n++
	}
	share := func(name string, value float64) {
		w.BulkString(name)
		w.Double(value)
		n++
	}
	count("peak.allocated", m.peak)
	count("total.allocated", m.used)
	count("replication.backlog", 0)
	count("clients.slaves", 0)
	count("clients.normal", uint64(clients))
	count("cluster.links", 0)
	count("aof.buffer", 0)
	count("keys.count", uint64(m.Keys))
	count("keys.bytes-per-key", perKey)
	count("dataset.bytes", m.ArenaUsed)
	share("dataset.percentage", 100*float64(m.ArenaUsed)/float64(m.used))
	share("peak.percentage", 100*float64(m.used)/float64(m.peak))
	count("allocator.allocated", m.used)
	count("allocator.resident", m.resident)
	share("fragmentation", m.fragmentation())
	sendField(w, "fragmentation.bytes", int(m.resident)-int(m.used))
	w.EndMap(mark, n+1)
}

// From which on MEMORY DOCTOR speaks up. Below doctorMinimum every figure is mostly the program itself.
const (
	doctorMinimum       = 64 << 20 // bytes in use
	doctorFragmentation = 1.5      // times the memory in use that the process has
	doctorPeak          = 1.5      // times the memory in use that was in use once
)

func memoryDoctor(c *Ctx) {
	m := c.srv.memoryFigures()
	text := ""
	switch {
	case m.used < doctorMinimum:
		text = "Too little memory is in use for its figures to mean anything.\n"
	case m.fragmentation() > doctorFragmentation:
		text = fmt.Sprintf("The process has %.1f times the memory in use. After many deletions it gives the rest back bit by bit; "+
			"if it does not, a lower gc-percent collects the Go heap earlier.\n", m.fragmentation())
	case float64(m.peak) > doctorPeak*float64(m.used):
		text = fmt.Sprintf("Once %s were in use, %.1f times what is now: expect such peaks again.\n",
			humanBytes(m.peak), float64(m.peak)/float64(m.used))
	default:
		text = "The use of memory looks healthy.\n"
	}
	c.reply.Verbatim("txt", text)
}
