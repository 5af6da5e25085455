package server

import (
	"fmt"
	"strings"
)

// latencyCommand is the LATENCY family.
func (r *Recorder) latencyCommand() *Command {
	return &Command{
		Name: "latency", Group: GroupServer, Since: "2.8.13", Complexity: "depends on the sub-command",
		Summary: "Look at how long commands take.",
		Arity:   -2,
		Sub: []*Command{
			latencyQuery("doctor", latencySince, 2, "Say in words which spikes of latency there were.", ReplyBulk|ReplyVerbatim, r.latencyDoctor),
			latencyQuery("graph", latencySince, 3, "Draw the spikes of an event.", ReplyBulk|ReplyVerbatim, r.latencyGraph, str("event")),
			helpCommand("2.8.13"),
			latencyQuery("histogram", "7.0.0", -2, "Return how many calls of each command, or of those named, took how long.", ReplyMap, latencyHistogram,
				str("command").multi().opt()),
			latencyQuery("history", latencySince, 3, "Return the spikes of an event: when, and how many milliseconds.", ReplyArray, r.latencyHistory, str("event")),
			latencyQuery("latest", latencySince, 2, "Return the last spike and the longest one of each event.", ReplyArray, r.latencyLatest),
			{
				Name: "reset", Since: latencySince, Complexity: "O(n) in the length of the reply",
				Summary: "Forget the spikes of all events, or of those named, and return of how many.",
				Arity:   -2, Flags: Admin | NoScript | Loading | Stale,
				Tips: tipAllNodes,
				Args: []Arg{str("event").multi().opt()}, Reply: ReplyInteger, Handler: r.latencyReset,
			},
		},
	}
}

// latencySince is the version that brought the family.
const latencySince = "2.8.13"

func latencyQuery(name, since string, arity int, summary string, reply Reply, handler Handler, args ...Arg) *Command {
	return &Command{
		Name: name, Since: since, Complexity: "O(n) in the length of the reply",
		Summary: summary,
		Arity:   arity, Flags: Admin | NoScript | Loading | Stale,
		Tips: tipVaries + " request_policy:all_nodes response_policy:special",
		Args: args, Reply: reply, Handler: handler,
	}
}

func latencyHistogram(c *Ctx) {
	var list []*Command
	if len(c.args) == 2 {
		list = c.core.commands.all
	}
	for _, name := range c.args[2:] {
		if cmd := c.core.commands.byFullName(name); cmd != nil {
			list = append(append(list, cmd), cmd.Sub...)
		}
	}
	w := c.reply
	mark, n := w.Start(), 0
	for _, cmd := range list {
		h := c.core.stats.commands[cmd.id].times
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

// eventsSeen lists the events of which there are spikes.
func (r *Recorder) eventsSeen() (list []latencyEvent) {
	for event := range latencyEvents {
		if len(r.latency[event].samples) > 0 {
			list = append(list, event)
		}
	}
	return list
}

// spikesOf returns the spikes of an event by its name; nil if there are none.
func (r *Recorder) spikesOf(name []byte) *spikes {
	event, ok := latencyEventNamed(name)
	if !ok || len(r.latency[event].samples) == 0 {
		return nil
	}
	return &r.latency[event]
}

func (r *Recorder) latencyLatest(c *Ctx) {
	list := r.eventsSeen()
	c.reply.Array(len(list))
	for _, event := range list {
		e := &r.latency[event]
		last := e.samples[len(e.samples)-1]
		c.reply.Array(4)
		c.reply.BulkString(latencyEventTexts[event].name)
		c.reply.Int(last.at)
		c.reply.Int(last.ms)
		c.reply.Int(e.max)
	}
}

func (r *Recorder) latencyHistory(c *Ctx) {
	e := r.spikesOf(c.args[2])
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

func (r *Recorder) latencyReset(c *Ctx) {
	n := len(r.eventsSeen())
	if len(c.args) == 2 {
		r.latency = [latencyEvents]spikes{}
	}
	for _, name := range c.args[2:] {
		if e := r.spikesOf(name); e != nil {
			*e = spikes{}
		}
	}
	c.reply.Int(int64(n - len(r.eventsSeen())))
}

// The form of LATENCY GRAPH.
const (
	graphWidth  = 80 // columns
	graphHeight = 4  // rows
)

// latencyGraph draws a column for each of the last spikes.
func (r *Recorder) latencyGraph(c *Ctx) {
	name := c.args[2]
	e := r.spikesOf(name)
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

func (r *Recorder) latencyDoctor(c *Ctx) {
	var b strings.Builder
	list := r.eventsSeen()
	switch {
	case len(list) > 0:
		for _, event := range list {
			e, texts := &r.latency[event], latencyEventTexts[event]
			fmt.Fprintf(&b, "%s: %d ms on average of the last %d, %d ms the longest ever. %s\n", texts.name, e.average(), len(e.samples), e.max, texts.advice)
		}
	case c.cfg.LatencyMonitorThreshold == 0:
		b.WriteString("Spikes of latency are not watched. CONFIG SET latency-monitor-threshold <milliseconds> begins to.\n")
	default:
		b.WriteString("No spike of latency has been seen.\n")
	}
	c.reply.Verbatim("txt", b.String())
}
