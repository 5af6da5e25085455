package observe

import (
	"fmt"
	"strings"

	"headgate/server/command"
)

// latencyCommand is the LATENCY family.
func (r *Recorder) latencyCommand() *command.Command {
	return &command.Command{
		Name: "latency", Group: command.GroupServer, Since: "2.8.13", Complexity: "depends on the sub-command",
		Summary: "Look at how long commands take.",
		Arity:   -2,
		Sub: []*command.Command{
			latencyQuery("doctor", latencySince, 2, "Say in words which spikes of latency there were.", command.ReplyBulk|command.ReplyVerbatim, r.latencyDoctor),
			latencyQuery("graph", latencySince, 3, "Draw the spikes of an event.", command.ReplyBulk|command.ReplyVerbatim, r.latencyGraph, command.Str("event")),
			command.HelpCommand("2.8.13"),
			latencyQuery("histogram", "7.0.0", -2, "Return how many calls of each command, or of those named, took how long.", command.ReplyMap, latencyHistogram,
				command.Str("command").Multi().Opt()),
			latencyQuery("history", latencySince, 3, "Return the spikes of an event: when, and how many milliseconds.", command.ReplyArray, r.latencyHistory, command.Str("event")),
			latencyQuery("latest", latencySince, 2, "Return the last spike and the longest one of each event.", command.ReplyArray, r.latencyLatest),
			{
				Name: "reset", Since: latencySince, Complexity: "O(n) in the length of the reply",
				Summary: "Reset the latency data of all events, or of those named, and return how many were reset.",
				Arity:   -2, Flags: command.Admin | command.NoScript | command.Loading | command.Stale,
				Tips: command.TipAllNodes,
				Args: []command.Arg{command.Str("event").Multi().Opt()}, Reply: command.ReplyInteger, Handler: r.latencyReset,
			},
		},
	}
}

// latencySince is the version that brought the family.
const latencySince = "2.8.13"

func latencyQuery(name, since string, arity int, summary string, reply command.Reply, handler command.Handler, args ...command.Arg) *command.Command {
	return &command.Command{
		Name: name, Since: since, Complexity: "O(n) in the length of the reply",
		Summary: summary,
		Arity:   arity, Flags: command.Admin | command.NoScript | command.Loading | command.Stale,
		Tips: command.TipVaries + " request_policy:all_nodes response_policy:special",
		Args: args, Reply: reply, Handler: handler,
	}
}

func latencyHistogram(c *command.Ctx) {
	var list []*command.Command
	if len(c.Args) == 2 {
		list = c.Core.Commands.All
	}
	for _, name := range c.Args[2:] {
		if cmd := c.Core.Commands.ByFullName(name); cmd != nil {
			list = append(append(list, cmd), cmd.Sub...)
		}
	}
	w := c.Reply
	mark, n := w.Start(), 0
	for _, cmd := range list {
		h := c.Core.Stats.Commands[cmd.ID].Times
		if h == nil || h.Total == 0 {
			continue
		}
		n++
		w.BulkString(cmd.FullName)
		w.Map(2)
		w.BulkString("calls")
		w.Int(int64(h.Total))
		w.BulkString("histogram_usec")
		bounds, count := w.Start(), 0
		h.EachBound(func(usec int64, times uint64) {
			w.Int(usec)
			w.Int(int64(times))
			count++
		})
		w.EndMap(bounds, count)
	}
	w.EndMap(mark, n)
}

// EventsSeen lists the events of which there are spikes.
func (r *Recorder) EventsSeen() (list []LatencyEvent) {
	for event := range latencyEvents {
		if len(r.Latency[event].samples) > 0 {
			list = append(list, event)
		}
	}
	return list
}

// spikesOf returns the spikes of an event by its name; nil if there are none.
func (r *Recorder) spikesOf(name []byte) *spikes {
	event, ok := latencyEventNamed(name)
	if !ok || len(r.Latency[event].samples) == 0 {
		return nil
	}
	return &r.Latency[event]
}

func (r *Recorder) latencyLatest(c *command.Ctx) {
	list := r.EventsSeen()
	c.Reply.Array(len(list))
	for _, event := range list {
		e := &r.Latency[event]
		last := e.samples[len(e.samples)-1]
		c.Reply.Array(4)
		c.Reply.BulkString(LatencyEventTexts[event].Name)
		c.Reply.Int(last.at)
		c.Reply.Int(last.ms)
		c.Reply.Int(e.Max)
	}
}

func (r *Recorder) latencyHistory(c *command.Ctx) {
	e := r.spikesOf(c.Args[2])
	if e == nil {
		c.Reply.EmptyArray()
		return
	}
	c.Reply.Array(len(e.samples))
	for _, s := range e.samples {
		c.Reply.Array(2)
		c.Reply.Int(s.at)
		c.Reply.Int(s.ms)
	}
}

func (r *Recorder) latencyReset(c *command.Ctx) {
	n := len(r.EventsSeen())
	if len(c.Args) == 2 {
		r.Latency = [latencyEvents]spikes{}
	}
	for _, name := range c.Args[2:] {
		if e := r.spikesOf(name); e != nil {
			*e = spikes{}
		}
	}
	c.Reply.Int(int64(n - len(r.EventsSeen())))
}

// The form of LATENCY GRAPH.
const (
	graphWidth  = 80 // columns
	graphHeight = 4  // rows
)

// latencyGraph draws a column for each of the last spikes.
func (r *Recorder) latencyGraph(c *command.Ctx) {
	name := c.Args[2]
	e := r.spikesOf(name)
	if e == nil {
		c.Errf("ERR No samples available for event '%s'", name)
		return
	}
	samples := e.samples[max(len(e.samples)-graphWidth, 0):]
	low, high := samples[0].ms, samples[0].ms
	for _, s := range samples {
		low, high = min(low, s.ms), max(high, s.ms)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s - high %d ms, low %d ms (all time high %d ms)\n%s\n", name, high, low, e.Max, strings.Repeat("-", graphWidth))
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
	c.Reply.Verbatim("txt", b.String())
}

func (r *Recorder) latencyDoctor(c *command.Ctx) {
	var b strings.Builder
	list := r.EventsSeen()
	switch {
	case len(list) > 0:
		for _, event := range list {
			e, texts := &r.Latency[event], LatencyEventTexts[event]
			fmt.Fprintf(&b, "%s: %d ms on average of the last %d, %d ms the longest ever. %s\n", texts.Name, e.average(), len(e.samples), e.Max, texts.Advice)
		}
	case c.Cfg.LatencyMonitorThreshold == 0:
		b.WriteString("Spikes of latency are not watched. CONFIG SET latency-monitor-threshold <milliseconds> begins to.\n")
	default:
		b.WriteString("No spike of latency has been seen.\n")
	}
	c.Reply.Verbatim("txt", b.String())
}
