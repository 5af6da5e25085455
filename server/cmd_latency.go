package server

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// latencyCommand is the LATENCY family.
var latencyCommand = &Command{
	Name: "latency", Group: GroupServer, Since: "2.8.13", Complexity: "depends on the sub-command",
	Summary: "Look at how long commands take.",
	Arity:   -2,
	Sub: []*Command{
		latencyQuery("doctor", 2, "Say in words which spikes of latency there were.", ReplyBulk|ReplyVerbatim, latencyDoctor),
		latencyQuery("graph", 3, "Draw the spikes of an event.", ReplyBulk|ReplyVerbatim, latencyGraph, str("event")),
		helpCommand("2.8.13"),
		latencyQuery("histogram", -2, "Return how many calls of each command, or of those named, took how long.", ReplyMap, latencyHistogram,
			str("command").multi().opt()),
		latencyQuery("history", 3, "Return the spikes of an event: when, and how many milliseconds.", ReplyArray, latencyHistory, str("event")),
		latencyQuery("latest", 2, "Return the last spike and the longest one of each event.", ReplyArray, latencyLatest),
		latencyQuery("reset", -2, "Forget the spikes of all events, or of those named, and return of how many.", ReplyInteger, latencyReset,
			str("event").multi().opt()),
	},
}

func latencyQuery(name string, arity int, summary string, reply Reply, handler Handler, args ...Arg) *Command {
	since := "2.8.13"
	if name == "histogram" {
		since = "7.0.0"
	}
	return &Command{
		Name: name, Since: since, Complexity: "O(n) in the length of the reply",
		Summary: summary,
		Arity:   arity, Flags: Admin | NoScript | Loading | Stale,
		Args: args, Reply: reply, Handler: handler,
	}
}

func latencyHistogram(c *Ctx) {
	var list []*Command
	if len(c.args) == 2 {
		list = c.srv.commands.all
	}
	for _, name := range c.args[2:] {
		if cmd := c.srv.commands.byFullName(name); cmd != nil {
			list = append(append(list, cmd), cmd.Sub...)
		}
	}
	w := c.reply
	mark, n := w.Start(), 0
	for _, cmd := range list {
		h := c.srv.stats.commands[cmd.id].times
		if h == nil || h.total == 0 {
			continue
		}
		n++
		w.BulkString(cmd.fullName)
		w.Map(2)
		w.BulkString("calls")
		w.Int(int64(h.total))
		w.BulkString("histogram_usec")
		bounds, count := w.Start(), 0
		h.eachBound(func(usec int64, times uint64) {
			w.Int(usec)
			w.Int(int64(times))
			count++
		})
		w.EndMap(bounds, count)
	}
	w.EndMap(mark, n)
}

func latencyLatest(c *Ctx) {
	names := slices.Sorted(maps.Keys(c.srv.latency))
	c.reply.Array(len(names))
	for _, name := range names {
		e := c.srv.latency[name]
		last := e.samples[len(e.samples)-1]
		c.reply.Array(4)
		c.reply.BulkString(name)
		c.reply.Int(last.at)
		c.reply.Int(last.ms)
		c.reply.Int(e.max)
	}
}

func latencyHistory(c *Ctx) {
	e := c.srv.latency[string(c.args[2])]
	if e == nil {
		c.reply.EmptyArray()
		return
	}
	c.reply.Array(len(e.samples))
	for _, s := range e.samples {
		c.reply.Array(2)
		c.reply.Int(s.at)
		c.reply.Int(s.ms)
	}
}

func latencyReset(c *Ctx) {
	n := len(c.srv.latency)
	if len(c.args) == 2 {
		c.srv.latency = nil
	}
	for _, name := range c.args[2:] {
		delete(c.srv.latency, string(name))
	}
	c.reply.Int(int64(n - len(c.srv.latency)))
}

// The form of LATENCY GRAPH.
const (
	graphWidth  = 80 // columns
	graphHeight = 4  // rows
)

// latencyGraph draws a column for each of the last spikes.
func latencyGraph(c *Ctx) {
	name := string(c.args[2])
	e := c.srv.latency[name]
	if e == nil {
		c.errf("ERR No samples available for event '%s'", name)
		return
	}
	samples := e.samples[max(len(e.samples)-graphWidth, 0):]
	low, high := samples[0].ms, samples[0].ms
	for _, s := range samples {
		low, high = min(low, s.ms), max(high, s.ms)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s - high %d ms, low %d ms (all time high %d ms)\n%s\n", name, high, low, e.max, strings.Repeat("-", graphWidth))
	for row := graphHeight; row > 0; row-- {
		for _, s := range samples {
			filled := int64(graphHeight)
			if high > low {
				filled = 1 + (s.ms-low)*(graphHeight-1)/(high-low)
			}
			if filled >= int64(row) {
				b.WriteByte('#')
			} else {
				b.WriteByte(' ')
			}
		}
		b.WriteByte('\n')
	}
	c.reply.Verbatim("txt", b.String())
}

func latencyDoctor(c *Ctx) {
	var b strings.Builder
	switch {
	case len(c.srv.latency) > 0:
		for _, name := range slices.Sorted(maps.Keys(c.srv.latency)) {
			e := c.srv.latency[name]
			sum := int64(0)
			for _, s := range e.samples {
				sum += s.ms
			}
			fmt.Fprintf(&b, "%s: %d spikes, %d ms on average, the longest ever %d ms.\n", name, len(e.samples), sum/int64(len(e.samples)), e.max)
		}
		b.WriteString("SLOWLOG GET shows which commands took long.\n")
	case c.cfg.LatencyMonitorThreshold == 0:
		b.WriteString("Spikes of latency are not watched. CONFIG SET latency-monitor-threshold <milliseconds> begins to.\n")
	default:
		b.WriteString("No spike of latency has been seen.\n")
	}
	c.reply.Verbatim("txt", b.String())
}
