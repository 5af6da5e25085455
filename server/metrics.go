package server

import (
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// collector reads the server's counters when /metrics is asked for, and only then. Names are those of redis_exporter where it has
// them, so that dashboards made for it work; the others begin with headgate_.
//
// The executor's lock is taken for one slice after the other, none longer than a slice of background work, so that no command waits
// for a scrape. What the slices read is thus not of one instant.
type collector struct{ *Reports }

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

// scraped is what a slice has read beside the server itself.
type scraped struct {
	*Reports
	memory memoryFigures
	bytes  struct{ in, out uint64 }
}

// family is what there is to say about the series of one name.
type family struct {
	name, help string
	kind       prometheus.ValueType // Untyped: a histogram
	labels     []string
	desc       *prometheus.Desc
}

func newFamily(kind prometheus.ValueType, name, help string, labels ...string) *family {
	return &family{name, help, kind, labels, prometheus.NewDesc(name, help, labels, nil)}
}

// send sends the value of one series.
func (f *family) send(out chan<- prometheus.Metric, value float64, labels ...string) {
	out <- prometheus.MustNewConstMetric(f.desc, f.kind, value, labels...)
}

// sendTimes sends a histogram.
func (f *family) sendTimes(out chan<- prometheus.Metric, times *commandFigures, labels ...string) {
	buckets := make(map[float64]uint64, histogramBuckets)
	for i, n := range times.buckets {
		buckets[asSeconds(bucketBound(i))] = n
	}
	out <- prometheus.MustNewConstHistogram(f.desc, times.counted, asSeconds(times.ns), buckets, labels...)
}

// figure is one number that stands for itself.
type figure struct {
	*family
	read func(s *scraped) float64
}

func counter(name, help string, read func(s *scraped) float64) figure {
	return figure{newFamily(prometheus.CounterValue, name, help), read}
}

func gauge(name, help string, read func(s *scraped) float64) figure {
	return figure{newFamily(prometheus.GaugeValue, name, help), read}
}

// truth is a condition as a gauge.
func truth(is bool) float64 { return float64(bit(is)) }

// asSeconds is a time in ns as Prometheus wants it.
func asSeconds(ns int64) float64 { return float64(ns) / 1e9 }

// figures are all single numbers, in the order of INFO. They are read in one slice.
var figures = []figure{
	gauge("redis_up", "1, since the server that answers is up.", func(*scraped) float64 { return 1 }),
	gauge("redis_start_time_seconds", "When the server was started, in seconds since the Unix epoch.", func(s *scraped) float64 { return asSeconds(s.started) }),
	gauge("redis_uptime_in_seconds", "Seconds since the server was started.", func(s *scraped) float64 { s.clock.Read(); return s.uptime().Seconds() }),

	gauge("redis_connected_clients", "Connections of clients.", func(s *scraped) float64 { return float64(len(s.clients.list)) }),
	gauge("redis_blocked_clients", "Clients that wait for a key or for the end of a pause.", func(s *scraped) float64 { return float64(len(s.exec.pause.held) + s.exec.blocking.clients) }),
	gauge("redis_tracking_clients", "Clients that are told of changed keys.", func(s *scraped) float64 { return float64(s.hub.tracking.clients) }),
	gauge("redis_config_maxclients", "Connections that are accepted at a time.", func(s *scraped) float64 { return float64(s.exec.maxClients) }),

	gauge("redis_memory_used_bytes", "Bytes that data and connections take.", func(s *scraped) float64 { return float64(s.memory.used) }),
	gauge("redis_memory_used_rss_bytes", "Bytes of physical memory that the process has.", func(s *scraped) float64 { return float64(s.memory.resident) }),
	gauge("redis_memory_used_peak_bytes", "The most that redis_memory_used_bytes has been.", func(s *scraped) float64 { return float64(s.memory.peak) }),
	gauge("redis_memory_used_startup_bytes", "Bytes in use before there were any data.", func(s *scraped) float64 { return float64(s.startMemory) }),
	gauge("redis_memory_max_bytes", "What maxmemory comes to; 0 means that there is no limit.", func(s *scraped) float64 { return float64(s.exec.memory.max) }),
	gauge("redis_mem_fragmentation_ratio", "How many times the memory in use the process has.", func(s *scraped) float64 { return s.memory.fragmentation() }),
	gauge("headgate_memory_arena_bytes", "Bytes of keys and small values, which lie outside the Go heap.", func(s *scraped) float64 { return float64(s.memory.ArenaUsed) }),
	gauge("headgate_memory_heap_bytes", "Bytes of objects on the Go heap.", func(s *scraped) float64 { return float64(s.memory.heap) }),

	gauge("redis_loading_dump_file", "1 while data are loaded.", func(s *scraped) float64 { return truth(s.gate.has(gateLoading)) }),
	gauge("redis_rdb_changes_since_last_save", "Changes that no snapshot has.", func(s *scraped) float64 { return float64(s.journal.changes()) }),
	gauge("redis_rdb_bgsave_in_progress", "1 while a snapshot is written.", func(s *scraped) float64 { return truth(s.journal.saving.active) }),
	gauge("redis_rdb_last_save_timestamp_seconds", "When the last snapshot was saved, or the server was started.", func(s *scraped) float64 { return asSeconds(s.journal.saving.last) }),
	gauge("redis_rdb_last_bgsave_status", "1 unless the last snapshot failed.", func(s *scraped) float64 { return truth(!s.journal.saving.failed) }),
	gauge("redis_aof_enabled", "1 if changes are logged to the append-only file.", func(s *scraped) float64 { return truth(s.effects.on) }),
	gauge("redis_aof_rewrite_in_progress", "1 while the append-only file is rewritten.", func(s *scraped) float64 { return truth(s.journal.aof.rewriter.rewriting) }),
	gauge("redis_aof_last_bgrewrite_status", "1 unless the last rewrite failed.", func(s *scraped) float64 { return truth(s.journal.aof.rewriter.err == nil) }),
	gauge("redis_aof_last_write_status", "1 unless the append-only file cannot be written.", func(s *scraped) float64 { return truth(s.journal.aof.failed == nil) }),
	gauge("redis_aof_current_size_bytes", "Bytes of the append-only file.", func(s *scraped) float64 { return float64(s.journal.aof.size) }),
	gauge("redis_aof_base_size_bytes", "Bytes of the append-only file when it was last rewritten or loaded.", func(s *scraped) float64 { return float64(s.journal.aof.startSize) }),
	gauge("redis_aof_buffer_length", "Bytes of changes that are not written to the append-only file yet.", func(s *scraped) float64 { return float64(len(s.effects.buf)) }),
	gauge("redis_aof_pending_bio_fsync", "1 while the append-only file is synced in the background.", func(s *scraped) float64 { return float64(s.journal.aof.syncer.pendingSync()) }),
	gauge("redis_aof_delayed_fsync", "How often writes have waited for the disk, since a sync took longer than a second.", func(s *scraped) float64 { return float64(s.journal.aof.syncer.delays()) }),
	gauge("headgate_aof_lag_seconds", "Age of the oldest write for which no sync has begun.", func(s *scraped) float64 { return s.journal.aof.syncer.lag().Seconds() }),
	counter("headgate_aof_rewrites_total", "Rewrites of the append-only file.", func(s *scraped) float64 { return float64(s.journal.aof.rewriter.rewrites) }),
	counter("headgate_rdb_saves_total", "Snapshots that were saved.", func(s *scraped) float64 { return float64(s.journal.saving.count) }),

	counter("redis_connections_received_total", "Connections that were accepted.", func(s *scraped) float64 { return float64(s.stats.connections) }),
	counter("redis_rejected_connections_total", "Connections that were turned away, since there were too many.", func(s *scraped) float64 { return float64(s.stats.rejectedConnections) }),
	counter("redis_commands_processed_total", "Commands that were run.", func(s *scraped) float64 { return float64(s.stats.processed) }),
	counter("redis_net_input_bytes_total", "Bytes that clients have sent.", func(s *scraped) float64 { return float64(s.bytes.in) }),
	counter("redis_net_output_bytes_total", "Bytes that were sent to clients.", func(s *scraped) float64 { return float64(s.bytes.out) }),
	counter("redis_expired_keys_total", "Keys that were removed because their time had passed.", func(s *scraped) float64 { return float64(s.memory.Expired - s.stats.expiredBefore) }),
	counter("redis_evicted_keys_total", "Keys that were removed because memory was short.", func(s *scraped) float64 { return float64(s.memory.Evicted - s.stats.evictedBefore) }),
	counter("headgate_evicted_clients_total", "Clients that were closed because of maxmemory-clients.", func(s *scraped) float64 { return float64(s.stats.evictedClients) }),
	counter("redis_expired_time_cap_reached_total", "Rounds of removing such keys that ran into their limit of time.", func(s *scraped) float64 { return float64(s.stats.expireCaps) }),
	counter("headgate_expire_cycle_seconds_total", "Time spent on removing keys whose time had passed.", func(s *scraped) float64 { return asSeconds(s.stats.expireNs) }),
	counter("redis_keyspace_hits_total", "Keys that were read and found.", func(s *scraped) float64 { return float64(s.stats.keyspaceHits) }),
	counter("redis_keyspace_misses_total", "Keys that were read and not found.", func(s *scraped) float64 { return float64(s.stats.keyspaceMisses) }),
	gauge("redis_pubsub_channels", "Channels that have subscribers.", func(s *scraped) float64 { return float64(s.hub.live[kindChannel]) }),
	gauge("redis_pubsub_patterns", "Patterns that have subscribers.", func(s *scraped) float64 { return float64(s.hub.live[kindPattern]) }),
	gauge("redis_slowlog_length", "Commands in the slow log.", func(s *scraped) float64 { return float64(len(s.recorder.slowlog.entries)) }),
	gauge("redis_slowlog_last_id", "Number of the last entry of the slow log.", func(s *scraped) float64 { return float64(max(s.recorder.slowlog.nextID-1, 0)) }),
	counter("headgate_tls_handshakes_total", "TLS handshakes that came to their end.", func(s *scraped) float64 { return float64(s.fronts.tls.handshakes.Load()) }),
	counter("headgate_tls_handshakes_failed_total", "TLS handshakes that failed or took too long.", func(s *scraped) float64 { return float64(s.fronts.tls.failures.Load()) }),
	counter("headgate_tls_reloads_total", "Changes of the TLS files that were taken into use.", func(s *scraped) float64 { return float64(s.fronts.tls.reloads.Load()) }),
	counter("headgate_tls_reloads_failed_total", "Changes of the TLS files that could not be used.", func(s *scraped) float64 { return float64(s.fronts.tls.badReloads.Load()) }),
	gauge("headgate_tls_certificate_not_after_seconds", "When the TLS certificate ends; 0 without TLS.", func(s *scraped) float64 { return float64(s.fronts.tls.notAfter.Load()) }),
	counter("headgate_error_replies_total", "Replies that were errors.", func(s *scraped) float64 { return float64(s.stats.errorReplies) }),
	counter("headgate_protocol_errors_total", "Connections that were closed because what they sent is no RESP.", func(s *scraped) float64 { return float64(s.stats.protocolErrors) }),
	counter("headgate_clients_timed_out_total", "Clients that were closed for being idle.", func(s *scraped) float64 { return float64(s.stats.timedOut) }),
	counter("headgate_clients_output_limited_total", "Clients that were closed for not reading their replies.", func(s *scraped) float64 { return float64(s.stats.outputLimited) }),
	gauge("headgate_scripts_cached", "Scripts that are kept for EVALSHA.", func(s *scraped) float64 { return float64(s.scripts.memory().scripts) }),
	gauge("headgate_functions", "Functions that FUNCTION LOAD has brought.", func(s *scraped) float64 { return float64(s.scripts.memory().functions) }),
	gauge("headgate_script_busy", "1 while a script runs for longer than busy-reply-threshold.", func(s *scraped) float64 { return truth(s.gate.has(gateBusy)) }),
	gauge("headgate_ready", "1 if /readyz says so.", func(s *scraped) float64 { return truth(s.unready() == "") }),

	counter("redis_cpu_sys_seconds_total", "Processor time used in the kernel.", func(*scraped) float64 { system, _ := cpuTimes(syscall.RUSAGE_SELF); return system.Seconds() }),
	counter("redis_cpu_user_seconds_total", "Processor time used outside the kernel.", func(*scraped) float64 { _, user := cpuTimes(syscall.RUSAGE_SELF); return user.Seconds() }),
}

// The families that have labels, and all of them.
var (
	instance = newFamily(prometheus.GaugeValue, "redis_instance_info", "What the server is; always 1.",
		"role", "redis_version", "headgate_version", "go_version", "redis_mode", "os", "tcp_port", "run_id")
	commandCalls   = newFamily(prometheus.CounterValue, "redis_commands_total", "Calls of each command.", "cmd")
	commandSeconds = newFamily(prometheus.CounterValue, "redis_commands_duration_seconds_total",
		"Time that the calls of each command took. Of commands marked fast one call in 64 is timed and stands for all.", "cmd")
	commandFailed   = newFamily(prometheus.CounterValue, "redis_commands_failed_calls_total", "Calls of each command that were answered with an error.", "cmd")
	commandRejected = newFamily(prometheus.CounterValue, "redis_commands_rejected_calls_total",
		"Calls of each command that were not run at all; unknown stands for all commands that do not exist.", "cmd")
	commandLatency = newFamily(prometheus.UntypedValue, "headgate_command_duration_seconds",
		"How long the calls of each command took, without the network. Of commands marked fast one call in 64 is timed and stands for all.", "cmd")
	batchLatency = newFamily(prometheus.UntypedValue, "headgate_batch_duration_seconds",
		"How long batches of commands have kept the executor, and so all other clients waiting. One in 64 is timed and stands for all.")
	errorReplies = newFamily(prometheus.CounterValue, "redis_errors_total", "Replies that were errors, by their code.", "err")
	dbKeys       = newFamily(prometheus.GaugeValue, "redis_db_keys", "Keys of each database.", "db")
	dbExpiring   = newFamily(prometheus.GaugeValue, "redis_db_keys_expiring", "Keys of each database that have a TTL.", "db")
	limiterCalls = newFamily(prometheus.CounterValue, "headgate_limiter_calls_total",
		"Calls of limiters, by algorithm and by what they were answered. Calls that only ask do not count.", "algorithm", "result")
	limiterNear = newFamily(prometheus.CounterValue, "headgate_limiter_near_limit_total",
		"Allowed calls that left no more than a tenth of the limit, by algorithm.", "algorithm")
	policyCalls = newFamily(prometheus.CounterValue, "headgate_policy_calls_total",
		"Calls of each policy, by what they were answered. Of names beyond the first 1000 (other) is the sum.", "policy", "result")
	policyNear = newFamily(prometheus.CounterValue, "headgate_policy_near_limit_total",
		"Allowed calls that left no more than a tenth of the policy's limit.", "policy")

	topCalls = newFamily(prometheus.GaugeValue, "headgate_top_calls",
		"Calls of limiters that RL.TOP looks back at: those that were limited, or all of them (hot).", "list")
	topKeyCalls = newFamily(prometheus.GaugeValue, "headgate_top_key_calls",
		"Calls of the key that stands at this place of RL.TOP, from 1 to 10; RL.TOP tells which key it is.", "list", "rank")
	topError   = newFamily(prometheus.GaugeValue, "headgate_top_error_calls", "How much too high headgate_top_key_calls may be.", "list")
	topSeconds = newFamily(prometheus.GaugeValue, "headgate_top_window_seconds", "How far RL.TOP looks back.")

	labelled = []*family{
		instance, commandCalls, commandSeconds, commandFailed, commandRejected, commandLatency, batchLatency, errorReplies, dbKeys, dbExpiring,
		limiterCalls, limiterNear, policyCalls, policyNear, topCalls, topKeyCalls, topError, topSeconds,
	}
)

// Values of the label result.
const (
	resultAllowed = "allowed"
	resultLimited = "limited"
)

// Describe implements prometheus.Collector.
func (*collector) Describe(descs chan<- *prometheus.Desc) {
	for _, f := range figures {
		descs <- f.desc
	}
	for _, f := range labelled {
		descs <- f.desc
	}
}

// Collect implements prometheus.Collector.
func (m *collector) Collect(out chan<- prometheus.Metric) {
	m.collectFigures(out)
	m.collectCommands(out)
	m.collectDatabases(out)
	m.collectLimiters(out)
	m.collectTop(out)
}

// locked runs one slice.
func (r *Reports) locked(slice func()) {
	r.Lock()
	defer r.Unlock()
	slice()
}

func (m *collector) collectFigures(out chan<- prometheus.Metric) {
	values := make([]float64, len(figures))
	codes := map[string]uint64{}
	var unknown uint64
	var batches commandFigures
	m.locked(func() {
		s := scraped{Reports: m.Reports, memory: m.memoryFigures()}
		traffic := s.fronts.traffic()
		s.bytes.in, s.bytes.out = traffic.BytesIn, traffic.BytesOut
		for i, f := range figures {
			values[i] = f.read(&s)
		}
		for code, n := range m.stats.errorCodes {
			codes[errorLabel(code)] += n
		}
		unknown = m.stats.unknown
		batches.ns, batches.counted = m.stats.batchNs, m.stats.batchTimes.total
		m.stats.batchTimes.buckets(&batches.buckets)
	})
	for i, f := range figures {
		f.send(out, values[i])
	}
	for code, n := range codes {
		errorReplies.send(out, float64(n), code)
	}
	commandRejected.send(out, float64(unknown), unknownCommand)
	batchLatency.sendTimes(out, &batches)
	instance.send(out, 1, "master", RedisVersion, Version, runtime.Version(), "standalone", systemName(),
		strconv.Itoa(m.config.Get().Port), m.runID)
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
	commandStats
	counted uint64
	buckets [histogramBuckets]uint64
}

func (m *collector) collectCommands(out chan<- prometheus.Metric) {
	all := m.commands.all
	var read [commandsPerScrapeSlice]commandFigures
	for begin := 0; begin < len(all); begin += len(read) {
		part := all[begin:min(begin+len(read), len(all))]
		m.locked(func() {
			for i, cmd := range part {
				read[i].commandStats = m.stats.commands[cmd.id]
				if h := read[i].times; h != nil {
					read[i].counted = h.total
					h.buckets(&read[i].buckets)
				}
			}
		})
		for i, cmd := range part {
			sendCommand(out, cmd.fullName, &read[i])
		}
	}
}

// sendCommand sends what there is of a command that has been called.
func sendCommand(out chan<- prometheus.Metric, name string, f *commandFigures) {
	if f.calls == 0 && f.rejected == 0 && f.failed == 0 {
		return
	}
	commandCalls.send(out, float64(f.calls), name)
	commandSeconds.send(out, asSeconds(f.ns), name)
	commandFailed.send(out, float64(f.failed), name)
	commandRejected.send(out, float64(f.rejected), name)
	if f.times == nil {
		return
	}
	commandLatency.sendTimes(out, f, name)
}

func (m *collector) collectDatabases(out chan<- prometheus.Metric) {
	type size struct{ db, keys, expiring int }
	var sizes []size
	for begin, end := 0, 1; begin < end; begin += databasesPerScrapeSlice {
		m.locked(func() {
			end = m.keys.Databases()
			for i := begin; i < min(begin+databasesPerScrapeSlice, end); i++ {
				if db := m.keys.DB(i); i == 0 || db.Len() > 0 {
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

func (m *collector) collectLimiters(out chan<- prometheus.Metric) {
	var counts []decisions
	m.locked(func() { counts = slices.Clone(m.limits.counts) })
	for i, a := range m.limits.algorithms.All() {
		sendDecisions(out, limiterCalls, limiterNear, a.Label, &counts[i])
	}
	var others decisions
	var read []countedPolicy
	for begin, more := 0, true; more; begin += policiesPerScrapeSlice {
		read = read[:0]
		m.locked(func() {
			list := m.limits.policies.counts.list
			end := min(begin+policiesPerScrapeSlice, len(list))
			for _, counted := range list[begin:end] {
				read = append(read, *counted)
			}
			more = end < len(list)
		})
		for i := range read {
			if begin+i < maxPolicySeries && read[i].name != otherPolicies {
				sendDecisions(out, policyCalls, policyNear, read[i].name, &read[i].decisions)
			} else {
				others.sum(&read[i].decisions)
			}
		}
	}
	if others != (decisions{}) {
		sendDecisions(out, policyCalls, policyNear, otherPolicies, &others)
	}
}

func (m *collector) collectTop(out chan<- prometheus.Metric) {
	for _, list := range []string{listLimited, listHot} {
		var counts []uint64
		var sum, bound uint64
		var since int64
		m.locked(func() {
			t := &m.limits.top
			m.clock.Read()
			now := m.clock.Mono()
			t.goOn(now)
			if t.keys > 0 {
				counts, sum, bound, since = t.window(list).Counts(), t.window(list).Sum(), t.window(list).Bound(), now-t.began
			}
		})
		topCalls.send(out, float64(sum), list)
		topError.send(out, float64(bound), list)
		if list == listHot {
			topSeconds.send(out, asSeconds(since))
		}
		for i := range topShown {
			calls := uint64(0)
			if i < len(counts) {
				calls = counts[i]
			}
			topKeyCalls.send(out, float64(calls), list, strconv.Itoa(i+1))
		}
	}
}

func sendDecisions(out chan<- prometheus.Metric, calls, near *family, name string, d *decisions) {
	calls.send(out, float64(d.allowed), name, resultAllowed)
	calls.send(out, float64(d.limited), name, resultLimited)
	near.send(out, float64(d.near), name)
}

// lag is the age of the oldest write for which no sync has begun.
func (y *syncer) lag() time.Duration {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.oldest.IsZero() {
		return 0
	}
	return time.Since(y.oldest)
}
