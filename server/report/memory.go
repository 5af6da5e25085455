package report

import (
	"fmt"
	rtdebug "runtime/debug"
	"strings"

	"headgate/internal/number"
	"headgate/server/command"
	"headgate/server/host"
)

// memoryCommand is the MEMORY family.
func (r *Reports) memoryCommand() *command.Command {
	return &command.Command{
		Name: "memory", Group: command.GroupServer, Since: "4.0.0", Complexity: "depends on the sub-command",
		Summary: "Look at what takes up memory.",
		Arity:   -2,
		Sub: []*command.Command{
			{
				Name: "doctor", Since: "4.0.0", Complexity: "O(1)",
				Summary: "Say in words whether the server's use of memory looks healthy.",
				Arity:   2, Reply: command.ReplyBulk | command.ReplyVerbatim, Handler: r.memoryDoctor,
				Tips: "nondeterministic_output request_policy:all_shards response_policy:special",
			},
			command.HelpCommand("4.0.0"),
			{
				Name: "malloc-stats", Since: "4.0.0", Complexity: "O(n) in the blocks of the arena's books",
				Summary: "Return figures of the arena and of the Go heap, for people.",
				Arity:   2, Reply: command.ReplyBulk | command.ReplyVerbatim, Handler: memoryMallocStats,
				Tips: "nondeterministic_output request_policy:all_shards response_policy:special",
			},
			{
				Name: "purge", Since: "4.0.0", Complexity: "O(n) in the size of the Go heap, in the background",
				Summary: "Return unused memory to the operating system.",
				Arity:   2, Reply: command.ReplySimple, Handler: memoryPurge,
				Tips: command.TipAllShards,
			},
			{
				Name: "stats", Since: "4.0.0", Complexity: "O(n) in the number of connections",
				Summary: "Return figures on the server's use of memory.",
				Arity:   2, Reply: command.ReplyMap, Handler: r.memoryStats,
				Tips: "nondeterministic_output request_policy:all_shards response_policy:special",
			},
			{
				Name: "usage", Since: "4.0.0", Complexity: "O(n) in the number of samples",
				Summary: "Estimate the bytes that a key and its value take up.",
				Arity:   -3, Flags: command.ReadOnly, Keys: command.Keys("RO", 2, 2, 1),
				Args:  []command.Arg{command.Key("key"), command.Integer("count").After("SAMPLES").Opt()},
				Reply: command.ReplyInteger | command.ReplyNull, Handler: memoryUsage,
			},
		},
	}
}

// memoryUsage takes SAMPLES and needs none: what a value takes up is known.
func memoryUsage(c *command.Ctx) {
	for i := 3; i < len(c.Args); i += 2 {
		if i+1 == len(c.Args) || !c.Is(i, "SAMPLES") {
			c.Err(command.ErrSyntax)
			return
		}
		n, ok := c.Integer(i + 1)
		if !ok {
			return
		}
		if n < 0 {
			c.Err(command.ErrSyntax)
			return
		}
	}
	e, ok := c.DB.Look(c.Key(2), c.Now)
	if !ok {
		c.Reply.Null()
		return
	}
	c.Reply.Int(int64(e.MemoryUsage()))
}

// memoryPurge returns at once: the memory goes back while commands are run.
func memoryPurge(c *command.Ctx) {
	go rtdebug.FreeOSMemory()
	c.OK()
}

func (r *Reports) memoryStats(c *command.Ctx) {
	m, scripts := r.memoryFigures(), r.Scripts.Memory()
	w := c.Reply
	mark, n := w.Start(), 0
	count := func(name string, value int64) {
		command.SendField(w, name, int(value))
		n++
	}
	share := func(name string, value float64) {
		w.BulkString(name)
		w.Double(value)
		n++
	}
	count("peak.allocated", int64(m.peak))
	count("total.allocated", int64(m.used))
	count("startup.allocated", int64(m.startup))
	count("replication.backlog", r.Replica.Primary.Status().Bytes)
	count("clients.slaves", 0)
	count("clients.normal", int64(r.Exec.ClientMemory()))
	count("cluster.links", 0)
	count("aof.buffer", int64(cap(r.Effects.Buf)))
	count("lua.caches", int64(scripts.EvalBytes))
	count("functions.caches", int64(scripts.FunctionBytes))
	for i := range r.Keys.Databases() {
		if db := r.Keys.DB(i); db.Len() > 0 {
			w.BulkString(fmt.Sprintf("db.%d", i))
			w.Map(3)
			command.SendField(w, "overhead.hashtable.main", db.IndexBytes())
			command.SendField(w, "overhead.hashtable.expires", 0)
			command.SendField(w, "overhead.hashtable.slot-to-keys", 0)
			n++
		}
	}
	count("overhead.total", int64(m.overhead))
	count("keys.count", int64(m.Keys))
	count("keys.bytes-per-key", int64((m.used-min(m.startup, m.used))/uint64(max(m.Keys, 1)))*int64(min(m.Keys, 1)))
	count("dataset.bytes", int64(m.dataset))
	share("dataset.percentage", m.datasetShare())
	share("peak.percentage", 100*ratio(m.used, m.peak))
	count("allocator.allocated", int64(m.allocated))
	count("allocator.active", int64(m.active))
	count("allocator.resident", int64(m.mapped))
	share("allocator-fragmentation.ratio", ratio(m.active, m.allocated))
	count("allocator-fragmentation.bytes", excess(m.active, m.allocated))
	share("allocator-rss.ratio", ratio(m.mapped, m.active))
	count("allocator-rss.bytes", excess(m.mapped, m.active))
	share("rss-overhead.ratio", ratio(m.resident, m.mapped))
	count("rss-overhead.bytes", excess(m.resident, m.mapped))
	share("fragmentation", m.fragmentation())
	count("fragmentation.bytes", excess(m.resident, m.used))
	w.EndMap(mark, n)
}

// memoryMallocStats has a line for each size of blocks in the arena, and what the Go runtime tells of its heap.
func memoryMallocStats(c *command.Ctx) {
	var t strings.Builder
	fmt.Fprintf(&t, "arena: bytes of a block, blocks in use, blocks with room\n")
	for _, class := range c.Core.Keys.BlockStats() {
		fmt.Fprintf(&t, "%6d %10d %10d\n", class.Size, class.Used, class.Room)
	}
	fmt.Fprintf(&t, "go heap:\n")
	for _, name := range host.HeapMetrics {
		fmt.Fprintf(&t, "%-45s %12d\n", name, host.RuntimeMetric(name))
	}
	c.Reply.Verbatim("txt", t.String())
}

// From which on MEMORY DOCTOR speaks up. Below doctorMinimum every figure is mostly the program itself.
const (
	doctorMinimum       = 64 << 20 // bytes in use
	doctorFragmentation = 1.5      // times the memory in use that the process has
	doctorPeak          = 1.5      // times the memory in use that was in use once
)

func (r *Reports) memoryDoctor(c *command.Ctx) {
	m := r.memoryFigures()
	text := ""
	switch {
	case m.used < doctorMinimum:
		text = "Too little memory is in use for its figures to mean anything.\n"
	case m.fragmentation() > doctorFragmentation:
		text = fmt.Sprintf("The process has %.1f times the memory in use. After many deletions it gives the rest back bit by bit; "+
			"if it does not, a lower gc-percent collects the Go heap earlier.\n", m.fragmentation())
	case float64(m.peak) > doctorPeak*float64(m.used):
		text = fmt.Sprintf("Once %s were in use, %.1f times what is now: expect such peaks again.\n",
			number.FormatMemoryHuman(m.peak), float64(m.peak)/float64(m.used))
	default:
		text = "The use of memory looks healthy.\n"
	}
	c.Reply.Verbatim("txt", text)
}
