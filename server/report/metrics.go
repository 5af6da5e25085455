package report

import (
	"runtime"
	"slices"
	"strconv"
	"strings"

	"headgate/server/command"
	"headgate/server/host"
	"headgate/server/limits"

	"github.com/prometheus/client_golang/prometheus"
)

// Collector reads the server's counters when /metrics is asked for, and only then. Names are those of redis_exporter where it has
// them, so that dashboards made for it work; the others begin with headgate_.
//
// The executor's lock is taken for one slice after the other, none longer than a slice of background work, so that no command waits
// for a scrape. What the slices read is thus not of one instant.
type Collector struct{ *Reports }

// How many of each kind are read in one slice.
const (
	commandsPerScrapeSlice  = 16
	databasesPerScrapeSlice = 256
	policiesPerScrapeSlice  = 256
)

// maxPolicySeries bounds the policies that have series of their own: those whose names were used first. The others are summed up.
const maxPolicySeries = 1000

// unknownCommand is the label of commands that do not exist.
const unknownCommand = "unknown"

// family is what there is to say about the series of one name.
type family struct {
	Name, Help string
	Kind       prometheus.ValueType // Untyped: a histogram
	Labels     []string
	desc       *prometheus.Desc
}

func newFamily(kind prometheus.ValueType, name, help string, labels ...string) *family {
	return &family{name, help, kind, labels, prometheus.NewDesc(name, help, labels, nil)}
}

// send sends the value of one series.
func (f *family) send(out chan<- prometheus.Metric, value float64, labels ...string) {
	out <- prometheus.MustNewConstMetric(f.desc, f.Kind, value, labels...)
}

// sendTimes sends a histogram.
func (f *family) sendTimes(out chan<- prometheus.Metric, times *commandFigures, labels ...string) {
	buckets := make(map[float64]uint64, command.HistogramBuckets)
	for i, n := range times.buckets {
		buckets[asSeconds(command.BucketBound(i))] = n
	}
	out <- prometheus.MustNewConstHistogram(f.desc, times.counted, asSeconds(times.Ns), buckets, labels...)
}

func counter(name, help string) *family { return newFamily(prometheus.CounterValue, name, help) }

func gauge(name, help string) *family { return newFamily(prometheus.GaugeValue, name, help) }

// asSeconds is a time in ns as Prometheus wants it.
func asSeconds(ns int64) float64 { return float64(ns) / 1e9 }

// Families whose series are as many as have been used. Each is declared by the section of INFO that tells of the same.
var (
	instance = newFamily(prometheus.GaugeValue, "redis_instance_info", "Version, role and address of the server, as labels; always 1.",
		"role", "redis_version", "headgate_version", "go_version", "redis_mode", "os", "tcp_port", "run_id")
	commandCalls   = newFamily(prometheus.CounterValue, "redis_commands_total", "Calls by command.", "cmd")
	commandSeconds = newFamily(prometheus.CounterValue, "redis_commands_duration_seconds_total",
		"Time spent in calls, by command. For commands flagged fast, one call in 64 is timed and stands for all.", "cmd")
	commandFailed   = newFamily(prometheus.CounterValue, "redis_commands_failed_calls_total", "Calls answered with an error, by command.", "cmd")
	commandRejected = newFamily(prometheus.CounterValue, "redis_commands_rejected_calls_total",
		"Calls rejected before execution, by command; unknown stands for all commands that do not exist.", "cmd")
	commandLatency = newFamily(prometheus.UntypedValue, "headgate_command_duration_seconds",
		"Duration of calls without the network, by command. For commands flagged fast, one call in 64 is timed and stands for all.", "cmd")
	batchLatency = newFamily(prometheus.UntypedValue, "headgate_batch_duration_seconds",
		"How long batches of commands have held the executor, and so kept all other clients waiting. One batch in 64 is timed and stands for all.")
	errorReplies = newFamily(prometheus.CounterValue, "redis_errors_total", "Error replies by error code.", "err")
	dbKeys       = newFamily(prometheus.GaugeValue, "redis_db_keys", "Keys by database.", "db")
	dbExpiring   = newFamily(prometheus.GaugeValue, "redis_db_keys_expiring", "Keys with a TTL by database.", "db")
	limiterCalls = newFamily(prometheus.CounterValue, "headgate_limiter_calls_total",
		"Limiter calls by algorithm and result. Calls that only peek are not counted.", "algorithm", "result")
	limiterNear = newFamily(prometheus.CounterValue, "headgate_limiter_near_limit_total",
		"Allowed calls that left at most a tenth of the limit, by algorithm.", "algorithm")
	limiterWaits = newFamily(prometheus.CounterValue, "headgate_limiter_waits_total",
		"Calls that waited (WAIT), by the algorithm of the limit that they waited for last and by outcome: passed, limited because they could not pass in time, or given_up.", "algorithm", "result")
	limiterWaitSeconds = newFamily(prometheus.UntypedValue, "headgate_limiter_wait_seconds", "How long calls waited before they passed, by algorithm.", "algorithm")
	policyCalls        = newFamily(prometheus.CounterValue, "headgate_policy_calls_total",
		"Calls by policy and result. Policies beyond the first 1000 are summed up as (other).", "policy", "result")
	policyNear = newFamily(prometheus.CounterValue, "headgate_policy_near_limit_total",
		"Allowed calls that left at most a tenth of the policy's limit.", "policy")
	policyBlocks = newFamily(prometheus.CounterValue, "headgate_policy_blocks_total",
		"Blocks started by limited calls of a policy, and bans by RL.BLOCK.", "policy")
	policyBlocked = newFamily(prometheus.GaugeValue, "headgate_policy_blocked_keys",
		"Keys that are blocked by a policy, or whose last block is remembered because DOUBLE makes the next one longer.", "policy")
	policyOverridden = newFamily(prometheus.GaugeValue, "headgate_policy_overridden_keys",
		"Keys with an override of a policy (RL.POLICY OVERRIDE).", "policy")

	topCalls = newFamily(prometheus.GaugeValue, "headgate_top_calls",
		"Limiter calls in RL.TOP's window: those that were limited, or all of them (hot).", "list")
	topKeyCalls = newFamily(prometheus.GaugeValue, "headgate_top_key_calls",
		"Calls of the key at this rank of RL.TOP, from 1 to 10; RL.TOP shows which key it is.", "list", "rank")
	topError   = newFamily(prometheus.GaugeValue, "headgate_top_error_calls", "By how much headgate_top_key_calls may be too high at most.", "list")
	topSeconds = newFamily(prometheus.GaugeValue, "headgate_top_window_seconds", "Seconds that RL.TOP looks back.")
)

// Values of the label result.
const (
	resultAllowed = "allowed"
	resultLimited = "limited"
	resultPassed  = "passed"
	resultGivenUp = "given_up"
	resultShadow  = "shadow_limited"
)

// Describe implements prometheus.Collector.
func (*Collector) Describe(descs chan<- *prometheus.Desc) {
	for _, f := range families {
		descs <- f.desc
	}
}

// Collect implements prometheus.Collector.
func (m *Collector) Collect(out chan<- prometheus.Metric) {
	m.collectFigures(out)
	for _, s := range sections {
		if s.collect != nil && m.has(s.there) {
			s.collect(m, out)
		}
	}
}

// locked runs one slice.
func (r *Reports) locked(slice func()) {
	r.Lock()
	defer r.Unlock()
	slice()
}

func (m *Collector) collectFigures(out chan<- prometheus.Metric) {
	values := make([]float64, len(figures))
	m.locked(func() {
		now := m.read(m.Clock.Read())
		for i, f := range figures {
			if f.metric != nil && m.has(f.there) {
				values[i] = f.read(now).number
			}
		}
	})
	for i, f := range figures {
		if f.metric != nil && m.has(f.there) {
			f.metric.send(out, values[i])
		}
	}
}

func (m *Collector) collectInstance(out chan<- prometheus.Metric) {
	role := "master"
	if m.Gate.Has(command.GateFollows) {
		role = "slave"
	}
	instance.send(out, 1, role, command.RedisVersion, command.Version, runtime.Version(), m.Config.Get().Mode(), host.SystemName(),
		strconv.Itoa(m.Config.Get().Port), m.RunID)
}

func (m *Collector) collectErrors(out chan<- prometheus.Metric) {
	codes := map[string]uint64{}
	m.locked(func() {
		for code, n := range m.Stats.ErrorCodes {
			codes[errorLabel(code)] += n
		}
	})
	for code, n := range codes {
		errorReplies.send(out, float64(n), code)
	}
}

func (m *Collector) collectBatches(out chan<- prometheus.Metric) {
	var batches commandFigures
	m.locked(func() {
		batches.Ns, batches.counted = m.Stats.BatchNs, m.Stats.BatchTimes.Total
		m.Stats.BatchTimes.Buckets(&batches.buckets)
	})
	batchLatency.sendTimes(out, &batches)
}

// errorLabel is the label for a code of errors: itself, unless a script has made up one that is no word.
func errorLabel(code string) string {
	const longest = 32
	word := func(r rune) bool {
		return r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' || r == '-'
	}
	if code == "" || len(code) > longest || strings.ContainsFunc(code, func(r rune) bool { return !word(r) }) {
		return "(other)"
	}
	return code
}

// commandFigures is what a slice has read of one command.
type commandFigures struct {
	command.Counters
	counted uint64
	buckets [command.HistogramBuckets]uint64
}

func (m *Collector) collectCommands(out chan<- prometheus.Metric) {
	var unknown uint64
	m.locked(func() { unknown = m.Stats.Unknown })
	commandRejected.send(out, float64(unknown), unknownCommand)
	all := m.Commands.All
	var read [commandsPerScrapeSlice]commandFigures
	for begin := 0; begin < len(all); begin += len(read) {
		part := all[begin:min(begin+len(read), len(all))]
		m.locked(func() {
			for i, cmd := range part {
				read[i].Counters = m.Stats.Commands[cmd.ID]
				if h := read[i].Times; h != nil {
					read[i].counted = h.Total
					h.Buckets(&read[i].buckets)
				}
			}
		})
		for i, cmd := range part {
			sendCommand(out, cmd.FullName, &read[i])
		}
	}
}

// sendCommand sends what there is of a command that has been called.
func sendCommand(out chan<- prometheus.Metric, name string, f *commandFigures) {
	if f.Calls == 0 && f.Rejected == 0 && f.Failed == 0 {
		return
	}
	commandCalls.send(out, float64(f.Calls), name)
	commandSeconds.send(out, asSeconds(f.Ns), name)
	commandFailed.send(out, float64(f.Failed), name)
	commandRejected.send(out, float64(f.Rejected), name)
	if f.Times == nil {
		return
	}
	commandLatency.sendTimes(out, f, name)
}

func (m *Collector) collectDatabases(out chan<- prometheus.Metric) {
	type size struct{ db, keys, expiring int }
	var sizes []size
	for begin, end := 0, 1; begin < end; begin += databasesPerScrapeSlice {
		m.locked(func() {
			end = m.Keys.Databases()
			for i := begin; i < min(begin+databasesPerScrapeSlice, end); i++ {
				if db := m.Keys.DB(i); i == 0 || db.Len() > 0 {
					sizes = append(sizes, size{i, db.Len(), db.Expires()})
				}
			}
		})
	}
	for _, db := range sizes {
		name := "db" + strconv.Itoa(db.db)
		dbKeys.send(out, float64(db.keys), name)
		dbExpiring.send(out, float64(db.expiring), name)
	}
}

func (m *Collector) collectLimiters(out chan<- prometheus.Metric) {
	var counts []limits.Decisions
	m.locked(func() { counts = slices.Clone(m.Limits.Counts) })
	for i, a := range m.Limits.Algorithms.All() {
		sendDecisions(out, limiterCalls, limiterNear, a.Label, &counts[i])
	}
	m.collectWaits(out)
	var others limits.Decisions
	var read []limits.CountedPolicy
	for begin, more := 0, true; more; begin += policiesPerScrapeSlice {
		read = read[:0]
		m.locked(func() {
			list := m.Limits.Policies.Counts.List
			end := min(begin+policiesPerScrapeSlice, len(list))
			for _, counted := range list[begin:end] {
				read = append(read, *counted)
			}
			more = end < len(list)
		})
		for i := range read {
			if begin+i < maxPolicySeries && read[i].Name != limits.OtherPolicies {
				sendDecisions(out, policyCalls, policyNear, read[i].Name, &read[i].Decisions)
				policyBlocks.send(out, float64(read[i].Blocks), read[i].Name)
			} else {
				others.Sum(&read[i].Decisions)
			}
		}
	}
	if others != (limits.Decisions{}) {
		sendDecisions(out, policyCalls, policyNear, limits.OtherPolicies, &others)
		policyBlocks.send(out, float64(others.Blocks), limits.OtherPolicies)
	}
	m.collectExceptions(out)
	m.collectTop(out)
}

// collectWaits sends what there is of calls that have waited.
func (m *Collector) collectWaits(out chan<- prometheus.Metric) {
	var counts []limits.WaitCounts
	m.locked(func() { counts = slices.Clone(m.Limits.Waits.Counts) })
	for i, a := range m.Limits.Algorithms.All() {
		n := &counts[i]
		limiterWaits.send(out, float64(n.Passed), a.Label, resultPassed)
		limiterWaits.send(out, float64(n.Limited), a.Label, resultLimited)
		limiterWaits.send(out, float64(n.GivenUp), a.Label, resultGivenUp)
		if n.Passed == 0 {
			continue
		}
		buckets, below := make(map[float64]uint64, len(limits.WaitBuckets)), uint64(0)
		for i, bound := range limits.WaitBuckets {
			below += n.Times[i]
			buckets[bound.Seconds()] = below
		}
		out <- prometheus.MustNewConstHistogram(limiterWaitSeconds.desc, n.Passed, asSeconds(n.Ns), buckets, a.Label)
	}
}

func (m *Collector) collectTop(out chan<- prometheus.Metric) {
	for _, list := range []string{limits.ListLimited, limits.ListHot} {
		var counts []uint64
		var sum, bound uint64
		var since int64
		m.locked(func() {
			t := &m.Limits.Top
			m.Clock.Read()
			now := m.Clock.Mono()
			t.GoOn(now)
			if t.Keys > 0 {
				counts, sum, bound, since = t.Window(list).Counts(), t.Window(list).Sum(), t.Window(list).Bound(), now-t.Began
			}
		})
		topCalls.send(out, float64(sum), list)
		topError.send(out, float64(bound), list)
		if list == limits.ListHot {
			topSeconds.send(out, asSeconds(since))
		}
		for i := range limits.TopShown {
			calls := uint64(0)
			if i < len(counts) {
				calls = counts[i]
			}
			topKeyCalls.send(out, float64(calls), list, strconv.Itoa(i+1))
		}
	}
}

func sendDecisions(out chan<- prometheus.Metric, calls, near *family, name string, d *limits.Decisions) {
	calls.send(out, float64(d.Allowed), name, resultAllowed)
	calls.send(out, float64(d.Limited), name, resultLimited)
	calls.send(out, float64(d.Shadow), name, resultShadow)
	near.send(out, float64(d.Near), name)
}
