package report

import (
	"fmt"
	"strings"
	"time"

	"headgate/server/command"
	"headgate/server/gateway"
	"headgate/server/limiter"
	"headgate/server/upstream"

	"github.com/prometheus/client_golang/prometheus"
)

// What a gateway tells of its upstream. INFO, /metrics, the page and RL.UPSTREAM have it from the two tables here: that of the whole, and that
// of each node. A server that keeps keys itself has none of it.

// fieldPrefix begins the fields of INFO upstream; RL.UPSTREAM leaves it out.
const fieldPrefix = "upstream_"

// upstreamSection is the whole.
var upstreamSection = section{title: "Upstream", byDefault: true, there: isGateway, figures: []figure{
	{field: "upstream_state", page: "upstream.state", read: func(s *readings) quantity { return text(s.upstream().State()) }},
	{field: "upstream_kind", page: "upstream.kind", read: func(s *readings) quantity { return text(kindOf(s.upstream())) }},
	{field: "upstream_failure", page: "upstream.failure", read: func(s *readings) quantity { return text(failureName(s.cfg.UpstreamFailure)) }},
	{field: "upstream_problem", page: "upstream.problem", when: func(s *readings) bool { return s.upstream().Problem != "" },
		read: func(s *readings) quantity { return text(oneLine(s.upstream().Problem)) }},
	{metric: gauge("headgate_upstream_up", "1 if a primary of the upstream is reachable and does not refuse its connections."),
		read: func(s *readings) quantity { return truth(s.upstream().Reached) }},
	{field: "upstream_nodes", page: "upstream.count", metric: gauge("headgate_upstream_nodes", "Known nodes of the upstream."),
		read: func(s *readings) quantity { return count(len(s.upstream().Nodes)) }},
	{field: "upstream_nodes_down", page: "upstream.down", metric: gauge("headgate_upstream_nodes_down", "Nodes that have failed and are not contacted for a while, or that refuse all calls."),
		read: func(s *readings) quantity { return count(s.upstream().NodesDown()) }},
	{field: "upstream_calls", metric: counter("headgate_upstream_calls_total", "Commands for the upstream."),
		read: func(s *readings) quantity { return count(s.upstream().Calls) }},
	{field: "upstream_calls_joined", metric: counter("headgate_upstream_calls_joined_total", "Limiter calls that ran together with others in one script command."),
		read: func(s *readings) quantity { return count(s.upstream().Joined) }},
	{field: "upstream_calls_local", metric: counter("headgate_upstream_calls_local_total", "Limiter calls decided by the local count (upstream-failure local)."),
		read: func(s *readings) quantity { return count(s.Gateway.Counts.Fallbacks[limiter.FailLocal].Load()) }},
	{field: "upstream_retries", metric: counter("headgate_upstream_retries_total", "Limiter calls that needed another round trip because the state had changed in between."),
		read: func(s *readings) quantity { return count(s.Gateway.Counts.Retries.Load()) }},
	{field: "upstream_redirects", metric: counter("headgate_upstream_redirects_total", "Redirections to other nodes (MOVED, ASK)."),
		read: func(s *readings) quantity { return count(s.upstream().Redirects) }},
	{field: "upstream_timeouts", metric: counter("headgate_upstream_timeouts_total", "Commands not answered within upstream-timeout-ms."),
		read: func(s *readings) quantity { return count(s.upstream().Timeouts) }},
	{field: "upstream_lost", metric: counter("headgate_upstream_lost_total", "Commands whose connection broke before the reply; they may have run."),
		read: func(s *readings) quantity { return count(s.upstream().Lost) }},
	{field: "upstream_refused", metric: counter("headgate_upstream_refused_total", "Commands that failed without being sent because their node was resting or unreachable."),
		read: func(s *readings) quantity { return count(s.upstream().Refused) }},
	{field: "upstream_connects", metric: counter("headgate_upstream_connects_total", "Connection attempts to nodes."),
		read: func(s *readings) quantity { return count(s.upstream().Connects) }},
	fallbacks(limiter.FailError), fallbacks(limiter.FailOpen), fallbacks(limiter.FailClosed), fallbacks(limiter.FailLocal),
	leaseFigure("calls_local", "Limiter calls decided locally by leases.", func(n *gateway.LeaseCounts) uint64 { return n.Local }),
	leaseFigure("calls_asked", "Limiter calls that could have used a lease but were sent upstream; together with those decided locally, all that could.", func(n *gateway.LeaseCounts) uint64 { return n.Asked }),
	leaseFigure("calls_refused", "Limiter calls limited locally because the upstream had just refused a call of the same or a smaller cost.", func(n *gateway.LeaseCounts) uint64 { return n.Refused }),
	leaseFigure("charges", "Charges sent upstream for leases.", func(n *gateway.LeaseCounts) uint64 { return n.Charges }),
	leaseFigure("units_leased", "Units charged upstream for leases.", func(n *gateway.LeaseCounts) uint64 { return n.Leased }),
	leaseFigure("units_spent", "Units of leases spent by calls.", func(n *gateway.LeaseCounts) uint64 { return n.Spent }),
	leaseFigure("units_returned", "Units of leases given back. For limits with a rate, less comes back because part has drained meanwhile.", func(n *gateway.LeaseCounts) uint64 { return n.Returned }),
	leaseFigure("units_expired", "Units of leases not spent in time, including those of windows that were then given back.", func(n *gateway.LeaseCounts) uint64 { return n.Expired }),
	leaseFigure("returns_lost", "Returns of units without a reply; the units may remain charged.", func(n *gateway.LeaseCounts) uint64 { return n.Lost }),
	{field: "upstream_lease_limits", metric: gauge("headgate_upstream_lease_limits", "Keys called often enough to be tracked for leases."),
		read: func(s *readings) quantity { return count(s.Gateway.LeasedLimits()) }},
	{field: "upstream_lease_units_held", metric: gauge("headgate_upstream_lease_units_held", "Units of leases currently held."),
		read: func(s *readings) quantity { return count(s.Gateway.LeasedUnits()) }},
	{field: "upstream_not_given_back", metric: counter("headgate_upstream_not_given_back_total", "Charges that RL.TAKE could not give back under upstream-take compensate; they remain."),
		read: func(s *readings) quantity { return count(s.Gateway.Counts.NotGivenBack.Load()) }},
	{field: "upstream_disagreements", page: "upstream.disagreements", metric: counter("headgate_upstream_disagreements_total", "Script decisions that this process would have made differently: 0 unless there is a bug."),
		read: func(s *readings) quantity { return count(s.Gateway.Counts.Disagreements.Load()) }},
	{field: "upstream_batch_p50", read: func(s *readings) quantity { return quantile(s.upstream().Batch(), .5) }},
	{field: "upstream_batch_p99", read: func(s *readings) quantity { return quantile(s.upstream().Batch(), .99) }},
	{field: "upstream_round_trip_usec_p50", page: "upstream.p50", read: func(s *readings) quantity { return quantile(s.upstream().RoundTrip(), .5) }},
	{field: "upstream_round_trip_usec_p99", page: "upstream.p99", read: func(s *readings) quantity { return quantile(s.upstream().RoundTrip(), .99) }},
	{field: "upstream_clock_offset_usec", metric: gauge("headgate_upstream_clock_offset_seconds", "How far the clock of the primary that differs most is ahead of this machine's clock."),
		read: func(s *readings) quantity { return micros(s.upstream().ClockOffset()) }},
	{field: "upstream_pending", page: "upstream.pending", metric: gauge("headgate_upstream_pending", "Commands in flight to the upstream."),
		read: func(s *readings) quantity { return count(s.upstream().PendingCalls) }},
	{field: "upstream_pending_max", metric: gauge("headgate_upstream_pending_max", "Number of commands in flight at which clients are no longer read (upstream-pending-max)."),
		read: func(s *readings) quantity { return count(s.cfg.UpstreamPendingMax.Commands) }},
	{field: "upstream_pending_bytes", metric: gauge("headgate_upstream_pending_bytes", "Bytes of commands in flight to the upstream."),
		read: func(s *readings) quantity { return count(s.upstream().PendingBytes) }},
	{field: "upstream_pending_bytes_max", metric: gauge("headgate_upstream_pending_max_bytes", "Bytes of commands in flight at which clients are no longer read (upstream-pending-max)."),
		read: func(s *readings) quantity { return count(int64(s.cfg.UpstreamPendingMax.Bytes)) }},
}, lines: (*Reports).infoNodes,
	families: append([]*family{fallbackCalls, upstreamBatch, upstreamRoundTrip}, nodeFamilies()...), collect: (*Collector).collectUpstream}

// nodeFigure is one thing that there is to tell of a node.
type nodeFigure struct {
	field  string
	metric *family // nil: it has no series
	read   func(n *upstream.NodeStatus) quantity
}

// nodeFigures are those of each node.
var nodeFigures = []nodeFigure{
	{field: "addr", read: func(n *upstream.NodeStatus) quantity { return text(n.Addr) }},
	{field: "role", read: func(n *upstream.NodeStatus) quantity { return text(n.Role) }},
	{field: "state", read: func(n *upstream.NodeStatus) quantity { return text(n.State) }},
	{field: "why", read: func(n *upstream.NodeStatus) quantity { return text(oneWord(n.Why)) }},
	{field: "rest_ms", read: func(n *upstream.NodeStatus) quantity { return count(n.Rest.Milliseconds()) }},
	{field: "version", read: func(n *upstream.NodeStatus) quantity { return text(oneWord(n.Version)) }},
	{field: "connections", read: func(n *upstream.NodeStatus) quantity { return count(n.Connections) }},
	{field: "pending", read: func(n *upstream.NodeStatus) quantity { return count(n.Pending) }},
	{field: "calls", metric: ofNode(prometheus.CounterValue, "calls_total", "Commands written to a node, including retries."),
		read: func(n *upstream.NodeStatus) quantity { return count(n.Calls) }},
	{field: "timeouts", metric: ofNode(prometheus.CounterValue, "timeouts_total", "Commands that a node did not answer in time."),
		read: func(n *upstream.NodeStatus) quantity { return count(n.Timeouts) }},
	{field: "lost", read: func(n *upstream.NodeStatus) quantity { return count(n.Lost) }},
	{field: "redirects", read: func(n *upstream.NodeStatus) quantity { return count(n.Redirects) }},
	{field: "refused", read: func(n *upstream.NodeStatus) quantity { return count(n.Refused) }},
	{field: "connects", read: func(n *upstream.NodeStatus) quantity { return count(n.Connects) }},
	{field: "rests", metric: ofNode(prometheus.CounterValue, "rests_total", "Times that a node failed and was not contacted for a while."),
		read: func(n *upstream.NodeStatus) quantity { return count(n.Rests) }},
	{metric: ofNode(prometheus.GaugeValue, "up", "0 while a node has failed and is not contacted, or refuses all calls; otherwise 1."),
		read: func(n *upstream.NodeStatus) quantity { return truth(!n.Down()) }},
	{field: "batch_p50", read: func(n *upstream.NodeStatus) quantity { return quantile(n.Batch, .5) }},
	{field: "batch_p99", read: func(n *upstream.NodeStatus) quantity { return quantile(n.Batch, .99) }},
	{field: "round_trip_usec_p50", read: func(n *upstream.NodeStatus) quantity { return quantile(n.RoundTrip, .5) }},
	{field: "round_trip_usec_p99", read: func(n *upstream.NodeStatus) quantity { return quantile(n.RoundTrip, .99) }},
	{field: "clock_offset_usec", read: func(n *upstream.NodeStatus) quantity { return micros(n.Offset) }},
}

// Families of the upstream with labels, and histograms.
var (
	fallbackCalls = newFamily(prometheus.CounterValue, "headgate_upstream_fallbacks_total",
		"Limiter calls whose node did not answer in time, by how they were answered: error, open, closed or local.", "failure")
	upstreamBatch     = newFamily(prometheus.UntypedValue, "headgate_upstream_batch_calls", "Commands per write to a node.")
	upstreamRoundTrip = newFamily(prometheus.UntypedValue, "headgate_upstream_round_trip_seconds", "Time from the write of a command to a node until its reply.")
)

func ofNode(kind prometheus.ValueType, name, help string) *family {
	return newFamily(kind, "headgate_upstream_node_"+name, help, "node")
}

func nodeFamilies() (list []*family) {
	for _, f := range nodeFigures {
		if f.metric != nil {
			list = append(list, f.metric)
		}
	}
	return list
}

func isGateway(r *Reports) bool { return r.Gateway != nil }

// waiting is how many calls of limiters wait, here or at the upstream.
func (s *readings) waiting() int {
	if s.Gateway != nil {
		return s.Gateway.Waiting()
	}
	return s.Limits.Waits.Now
}

// waitingMax is how many may.
func (s *readings) waitingMax() int {
	if s.Gateway != nil {
		return s.Gateway.WaitingMax()
	}
	return s.cfg.WaitMaxClients
}

// kindOf is what an upstream is, in a word.
func kindOf(s *upstream.Status) string {
	switch {
	case s.Headgate:
		return "headgate"
	case s.Cluster:
		return "cluster"
	case s.Kind == upstream.Sentinel:
		return "sentinel"
	}
	return "redis"
}

// failureName is a failure mode as upstream-failure has it.
func failureName(f limiter.Failure) string { return strings.ToLower(f.String()) }

// fallbacks is how many calls have come to one failure mode. The series has a label for that.
func fallbacks(f limiter.Failure) figure {
	return figure{field: "upstream_fallbacks_" + failureName(f), read: func(s *readings) quantity { return count(s.Gateway.Counts.Fallbacks[f].Load()) }}
}

// leaseFigure is a count of leases.
func leaseFigure(name, help string, read func(n *gateway.LeaseCounts) uint64) figure {
	return figure{field: "upstream_lease_" + name, metric: counter("headgate_upstream_lease_"+name+"_total", help),
		read: func(s *readings) quantity { return count(read(s.Gateway.LeaseCounts())) }}
}

func quantile(h upstream.Histogram, q float64) quantity { return count(h.Quantile(q)) }

// micros are shown as whole µs.
func micros(d time.Duration) quantity {
	return quantity{shown: fmt.Sprint(d.Microseconds()), number: d.Seconds(), plain: d.Microseconds()}
}

// oneWord makes a text fit into a value of INFO that has several parts.
func oneWord(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ',' || r == '=':
			return ';'
		case r <= ' ':
			return ' '
		}
		return r
	}, s)
}

// infoNodes shows a line for each node.
func (r *Reports) infoNodes(_ *command.Ctx, t *infoText) {
	status := r.Gateway.Status()
	for i := range status.Nodes {
		var parts []string
		for _, f := range nodeFigures {
			if f.field != "" {
				parts = append(parts, f.field+"="+f.read(&status.Nodes[i]).shown)
			}
		}
		t.field(fmt.Sprintf("upstream_node_%d", i), strings.Join(parts, ","))
	}
}

// collectUpstream needs no lock of the executor's.
func (m *Collector) collectUpstream(out chan<- prometheus.Metric) {
	for f := range limiter.Failures {
		fallbackCalls.send(out, float64(m.Gateway.Counts.Fallbacks[f].Load()), failureName(limiter.Failure(f)))
	}
	status := m.Gateway.Status()
	batch, roundTrip := status.Batch(), status.RoundTrip()
	upstreamBatch.sendHistogram(out, &batch, func(bound uint64) float64 { return float64(bound - 1) }, 1)
	upstreamRoundTrip.sendHistogram(out, &roundTrip, func(bound uint64) float64 { return float64(bound) / 1e6 }, 1e-6)
	for i := range status.Nodes {
		n := &status.Nodes[i]
		for _, f := range nodeFigures {
			if f.metric != nil {
				f.metric.send(out, f.read(n).number, n.Addr)
			}
		}
	}
}

// sendHistogram sends what an upstream has counted. Values below a power of two count up to the bound that le makes of it.
func (f *family) sendHistogram(out chan<- prometheus.Metric, h *upstream.Histogram, le func(uint64) float64, unit float64) {
	counts := map[float64]uint64{}
	for bound, n := range h.Below() {
		counts[le(bound)] = n
	}
	out <- prometheus.MustNewConstHistogram(f.desc, h.Count(), float64(h.Sum)*unit, counts)
}

// notReadyUpstream is why a gateway is not ready whose limiters answer with errors without the upstream. Anybody may ask, so nodes are not named.
const notReadyUpstream command.NotReady = "upstream: no primary serves this gateway, and upstream-failure is error; upstream_problem in INFO says why"

// NotReady returns why /readyz is answered with 503, or "" if it is not.
func (r *Reports) NotReady() string { return string(r.unready()) }

// unready returns why the server cannot do all of its work now, or nothing. It takes no lock of the executor's.
func (r *Reports) unready() command.NotReady {
	why := r.Unready()
	if why == "" && r.Gateway != nil && r.Config.Get().UpstreamFailure == limiter.FailError {
		if status := r.Gateway.Status(); !status.Reached {
			return notReadyUpstream
		}
	}
	return why
}

// readiness is what /readyz says of a server that is ready.
func (r *Reports) readiness() string {
	if r.Gateway != nil {
		if status := r.Gateway.Status(); status.State() != upstream.StateUp {
			return "ready; upstream " + status.State() + ": upstream_problem in INFO says why"
		}
	}
	return "ready"
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// errNoUpstream is what RL.UPSTREAM is answered with by a server that keeps keys itself.
const errNoUpstream = "ERR upstream is not set: this server keeps its keys itself"

func (r *Reports) upstreamCommand() *command.Command {
	const flags = command.Admin | command.NoScript | command.Loading | command.Stale
	return &command.Command{
		Name: "rl.upstream", Group: command.GroupThrottle, Since: "headgate 0.1.0", Complexity: "depends on the sub-command",
		Summary: "Tell how a gateway's upstream is.",
		Arity:   -2,
		Sub: []*command.Command{
			command.HelpCommand("headgate 0.1.0"),
			{
				Name: "leases", Since: "headgate 0.1.0", Complexity: "O(n log n) in the number of limits that may have leases",
				Summary: "Return the limits of hot keys, or of one key, that are decided locally by leases: units held, demand per second, and why a limit has no lease.",
				Arity:   -2, Flags: flags, Args: []command.Arg{command.Str("key").Opt().Means("only the limits of this key")}, Errors: []string{errNoUpstream, command.ErrUsage},
				Reply: command.ReplyArray, Returns: []string{"for each limit a map: key, db, limiter, limit, capacity, leased (yes or no), why, units (held here), demand (units a second) and length_ms (how long a lease is)",
					"for a key that has no such limit one map: key, db, leased (no) and why. `cold` means that in the last seconds no limiter that can have leases was called twice within a second for it"}, Handler: r.sendLeases,
			},
			{
				Name: "nodes", Since: "headgate 0.1.0", Complexity: "O(n) in the number of nodes",
				Summary: "Return the state of each node of the upstream: address, role and state, why and for how long it is resting, and its counters.",
				Arity:   2, Flags: flags, Errors: []string{errNoUpstream},
				Reply: command.ReplyArray, Returns: []string{"for each node a map: addr, role, state (up, idle: nothing is connected, resting: it has failed, refusing: it refuses all calls), why (it rests or refuses), rest_ms (for how much longer), version, and counters of connections, calls, failures and round trips"}, Handler: r.sendNodes,
			},
			{
				Name: "return", Since: "headgate 0.1.0", Complexity: "O(n) in the number of limits that may have leases",
				Summary: "Give the units of leases back to the upstream, for all keys or for one, and return how many there were.",
				Arity:   -2, Flags: flags, Args: []command.Arg{command.Str("key").Opt().Means("only the limits of this key")}, Errors: []string{errNoUpstream, command.ErrUsage},
				Reply: command.ReplyInteger, Returns: []string{"how many units were given back"}, Handler: r.returnLeases,
			},
			{
				Name: "status", Since: "headgate 0.1.0", Complexity: "O(n) in the number of nodes",
				Summary: "Return the fields of INFO upstream: state, nodes, calls, failures, latency and commands in flight.",
				Arity:   2, Flags: flags, Errors: []string{errNoUpstream},
				Reply: command.ReplyMap, Returns: []string{"each field of INFO upstream, without its prefix, and its value"}, Handler: r.sendUpstream,
			},
		},
	}
}

// sendUpstream implements RL.UPSTREAM STATUS.
func (r *Reports) sendUpstream(c *command.Ctx) {
	if r.Gateway == nil {
		c.Err(errNoUpstream)
		return
	}
	now, fields, mark := r.read(c.NowNs), 0, c.Reply.Start()
	for i := range upstreamSection.figures {
		f := &upstreamSection.figures[i]
		if f.field == "" || !now.shows(f) {
			continue
		}
		c.Reply.BulkString(strings.TrimPrefix(f.field, fieldPrefix))
		sendQuantity(c, f.read(now))
		fields++
	}
	c.Reply.EndMap(mark, fields)
}

// sendLeases implements RL.UPSTREAM LEASES [key].
func (r *Reports) sendLeases(c *command.Ctx) {
	switch {
	case r.Gateway == nil:
		c.Err(errNoUpstream)
	case len(c.Args) > 3:
		c.ErrUsage()
	default:
		r.Gateway.ShowLeases(c)
	}
}

// returnLeases implements RL.UPSTREAM RETURN [key].
func (r *Reports) returnLeases(c *command.Ctx) {
	switch {
	case r.Gateway == nil:
		c.Err(errNoUpstream)
	case len(c.Args) > 3:
		c.ErrUsage()
	default:
		r.Gateway.ReturnLeases(c)
	}
}

// sendNodes implements RL.UPSTREAM NODES.
func (r *Reports) sendNodes(c *command.Ctx) {
	if r.Gateway == nil {
		c.Err(errNoUpstream)
		return
	}
	status := r.Gateway.Status()
	c.Reply.Array(len(status.Nodes))
	for i := range status.Nodes {
		fields, mark := 0, c.Reply.Start()
		for _, f := range nodeFigures {
			if f.field != "" {
				c.Reply.BulkString(f.field)
				sendQuantity(c, f.read(&status.Nodes[i]))
				fields++
			}
		}
		c.Reply.EndMap(mark, fields)
	}
}

// sendQuantity sends a number as one, and all else as text.
func sendQuantity(c *command.Ctx, q quantity) {
	switch n := q.plain.(type) {
	case int:
		c.Reply.Int(int64(n))
	case int64:
		c.Reply.Int(n)
	case uint64:
		c.Reply.Int(int64(n))
	default:
		c.Reply.BulkString(q.shown)
	}
}

// pageNode is a node as the page shows it.
type pageNode struct {
	Addr  string `json:"addr"`
	Role  string `json:"role"`
	State string `json:"state"`
	Why   string `json:"why,omitempty"`
	Calls uint64 `json:"calls"`
	P99   uint64 `json:"p99"` // µs of a round trip
}

// nodesForPage are the upstream's nodes.
func (r *Reports) nodesForPage() []pageNode {
	status := r.Gateway.Status()
	list := make([]pageNode, 0, len(status.Nodes))
	for i := range status.Nodes {
		n := &status.Nodes[i]
		list = append(list, pageNode{Addr: n.Addr, Role: n.Role, State: n.State, Why: n.Why, Calls: n.Calls, P99: n.RoundTrip.Quantile(.99)})
	}
	return list
}
