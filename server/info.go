package server

import (
	"cmp"
	"fmt"
	"maps"
	"math/bits"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"headgate/store"
)

// infoSection is a part of INFO.
type infoSection struct {
	title     string // as printed; the argument that asks for it is the same in any case
	byDefault bool   // shown when no section is asked for
	write     func(r *Reports, c *Ctx, t *infoText)
}

// infoSections lists the parts in the order in which they are shown. Fields have Redis's names where Redis has them, and stand
// only for what is known: those that would have to be invented are left out.
var infoSections = []infoSection{
	{"Server", true, (*Reports).infoServer},
	{"Clients", true, (*Reports).infoClients},
	{"Memory", true, (*Reports).infoMemory},
	{"Persistence", true, (*Reports).infoPersistence},
	{"Stats", true, (*Reports).infoStats},
	{"Replication", true, (*Reports).infoReplication},
	{"TLS", true, (*Reports).infoTLS},
	{"CPU", true, (*Reports).infoCPU},
	{"Modules", true, func(*Reports, *Ctx, *infoText) {}},
	{"Commandstats", false, (*Reports).infoCommandStats},
	{"Errorstats", true, (*Reports).infoErrorStats},
	{"Latencystats", false, (*Reports).infoLatencyStats},
	{"Limiters", false, (*Reports).infoLimiters},
	{"Cluster", true, (*Reports).infoCluster},
	{"Keyspace", true, (*Reports).infoKeyspace},
}

// infoText is the text being written: lines of name and value.
type infoText struct{ strings.Builder }

func (t *infoText) field(name string, value any) { fmt.Fprintf(t, "%s:%v\r\n", name, value) }

// bytes writes a size, and again in a form for people.
func (t *infoText) bytes(name string, n uint64) {
	t.field(name, n)
	t.field(name+"_human", humanBytes(n))
}

// humanBytes shows a size with two decimals and the unit that suits it.
func humanBytes(n uint64) string {
	const step = 10 // bits between two units
	unit := min((bits.Len64(n)-1)/step, len("KMGTP"))
	if unit < 1 {
		return fmt.Sprintf("%dB", n)
	}
	return fmt.Sprintf("%.2f%c", float64(n)/float64(uint64(1)<<(step*unit)), "KMGTP"[unit-1])
}

func (r *Reports) info(c *Ctx) {
	var all, standard bool
	asked := map[string]bool{}
	for _, arg := range c.args[1:] {
		switch name := strings.ToLower(string(arg)); name {
		case "all", "everything":
			all = true
		case "default":
			standard = true
		default:
			asked[name] = true
		}
	}
	standard = standard || len(c.args) == 1
	var t infoText
	for _, section := range infoSections {
		if !all && !(standard && section.byDefault) && !asked[strings.ToLower(section.title)] {
			continue
		}
		if t.Len() > 0 {
			t.WriteString("\r\n")
		}
		t.WriteString("# " + section.title + "\r\n")
		section.write(r, c, &t)
	}
	c.reply.Verbatim("txt", t.String())
}

func (r *Reports) infoServer(c *Ctx, t *infoText) {
	up := int64(r.uptime() / time.Second)
	executable, err := os.Executable()
	if err != nil {
		executable = ""
	}
	t.field("redis_version", RedisVersion)
	t.field("redis_git_sha1", "00000000")
	t.field("redis_git_dirty", 0)
	t.field("headgate_version", Version)
	t.field("redis_mode", "standalone")
	t.field("os", systemName())
	t.field("arch_bits", bits.UintSize)
	t.field("go_version", runtime.Version())
	t.field("multiplexing_api", multiplexing)
	t.field("process_id", pid())
	t.field("process_supervised", "no")
	t.field("run_id", r.runID)
	t.field("tcp_port", cmp.Or(c.cfg.Port, c.cfg.TLSPort))
	t.field("server_time_usec", c.nowNs/1e3)
	t.field("uptime_in_seconds", up)
	t.field("uptime_in_days", up/(24*60*60))
	t.field("hz", c.cfg.Hz)
	t.field("configured_hz", c.cfg.Hz)
	t.field("lru_clock", c.nowNs/1e9&(1<<24-1))
	t.field("executable", executable)
	t.field("config_file", r.config.Path())
	t.field("io_threads_active", bit(r.fronts.plain.count() > 1))
}

func (r *Reports) infoClients(c *Ctx, t *infoText) {
	t.field("connected_clients", len(c.core.clients.list))
	t.field("cluster_connections", 0)
	t.field("maxclients", r.exec.maxClients)
	t.field("blocked_clients", len(r.exec.pause.held)+r.exec.blocking.clients)
	t.field("tracking_clients", r.hub.tracking.clients)
	t.field("clients_in_timeout_table", len(r.exec.blocking.timeouts))
}

func (r *Reports) infoPersistence(c *Ctx, t *infoText) {
	t.field("loading", bit(r.gate.has(gateLoading)))
	t.field("async_loading", 0)
	r.infoSaving(t)
	t.field("aof_enabled", bit(c.cfg.AppendOnly)) // as soon as CONFIG SET has answered; that the file is begun follows
	k := &r.journal.aof.rewriter
	last, current := int64(-1), int64(-1)
	if k.rewrites > 0 || k.err != nil {
		last = int64(k.last / time.Second)
	}
	if k.rewriting {
		current = int64(time.Since(k.begun) / time.Second)
	}
	t.field("aof_rewrite_in_progress", bit(k.rewriting))
	t.field("aof_rewrite_scheduled", bit((k.asked || c.cfg.AppendOnly && !r.journal.aof.open && !r.gate.has(gateLoading)) && !k.rewriting))
	t.field("aof_last_rewrite_time_sec", last)
	t.field("aof_current_rewrite_time_sec", current)
	t.field("aof_last_bgrewrite_status", status(k.err == nil))
	t.field("aof_rewrites", k.rewrites)
	t.field("aof_last_write_status", status(r.journal.aof.failed == nil))
	t.field("aof_last_cow_size", 0)
	if r.gate.has(gateLoading) {
		t.field("loading_start_time", r.journal.loading.started/1e9)
		t.field("loading_total_bytes", r.journal.loading.total)
		t.field("loading_loaded_bytes", r.journal.loading.loaded)
		t.field("loading_loaded_perc", fmt.Sprintf("%.2f", 100*float64(r.journal.loading.loaded)/float64(max(r.journal.loading.total, 1))))
	}
	if r.effects.on {
		t.field("aof_current_size", r.journal.aof.size)
		t.field("aof_base_size", r.journal.aof.startSize)
		t.field("aof_pending_rewrite", bit(k.asked))
		t.field("aof_buffer_length", len(r.effects.buf))
		t.field("aof_pending_bio_fsync", r.journal.aof.syncer.pendingSync())
		t.field("aof_delayed_fsync", r.journal.aof.syncer.delays())
	}
}

// bit is how INFO shows whether something is so.
func bit(is bool) int {
	if is {
		return 1
	}
	return 0
}

// status is how INFO shows whether something went well.
func status(well bool) string {
	if well {
		return "ok"
	}
	return "err"
}

func (r *Reports) infoStats(c *Ctx, t *infoText) {
	s := &c.core.stats
	t.field("total_connections_received", s.connections)
	t.field("total_commands_processed", s.processed)
	t.field("instantaneous_ops_per_sec", int64(s.rate.average()))
	traffic := r.fronts.traffic()
	t.field("total_net_input_bytes", traffic.BytesIn)
	t.field("total_net_output_bytes", traffic.BytesOut)
	t.field("total_net_repl_input_bytes", 0)
	t.field("total_net_repl_output_bytes", 0)
	t.field("instantaneous_input_kbps", fmt.Sprintf("%.2f", s.netIn.average()/1024))
	t.field("instantaneous_output_kbps", fmt.Sprintf("%.2f", s.netOut.average()/1024))
	t.field("instantaneous_input_repl_kbps", "0.00")
	t.field("instantaneous_output_repl_kbps", "0.00")
	t.field("rejected_connections", s.rejectedConnections)
	t.field("sync_full", 0)
	t.field("sync_partial_ok", 0)
	t.field("sync_partial_err", 0)
	t.field("expired_keys", c.core.keys.Stats().Expired-s.expiredBefore)
	t.field("expired_time_cap_reached_count", s.expireCaps)
	t.field("expire_cycle_cpu_milliseconds", s.expireNs/int64(time.Millisecond))
	shortage := r.exec.memory.shortage(c.nowNs)
	t.field("evicted_keys", c.core.keys.Stats().Evicted-s.evictedBefore)
	t.field("evicted_clients", s.evictedClients)
	t.field("total_eviction_exceeded_time", (s.evictingNs+int64(shortage))/int64(time.Millisecond))
	t.field("current_eviction_exceeded_time", int64(shortage/time.Millisecond))
	t.field("keyspace_hits", s.keyspaceHits)
	t.field("keyspace_misses", s.keyspaceMisses)
	t.field("pubsub_channels", r.hub.live[kindChannel])
	t.field("pubsub_patterns", r.hub.live[kindPattern])
	t.field("pubsubshard_channels", r.hub.live[kindShard])
	t.field("tracking_total_keys", len(r.hub.tracking.readers))
	t.field("tracking_total_items", r.hub.tracking.items)
	t.field("tracking_total_prefixes", len(r.hub.tracking.prefixes))
	t.field("latest_fork_usec", 0)
	t.field("total_forks", 0)
	t.field("migrate_cached_sockets", 0)
	t.field("slave_expires_tracked_keys", 0)
	t.field("active_defrag_hits", 0)
	t.field("active_defrag_misses", 0)
	t.field("active_defrag_key_hits", 0)
	t.field("active_defrag_key_misses", 0)
	t.field("total_active_defrag_time", 0)
	t.field("current_active_defrag_time", 0)
	t.field("unexpected_error_replies", 0)
	t.field("total_error_replies", s.errorReplies)
	t.field("dump_payload_sanitizations", 0)
	t.field("total_reads_processed", traffic.Reads)
	t.field("total_writes_processed", traffic.Writes)
	t.field("io_threaded_reads_processed", 0)
	t.field("io_threaded_writes_processed", 0)
	t.field("unknown_commands", s.unknown)
	t.field("protocol_errors", s.protocolErrors)
	t.field("clients_timed_out", s.timedOut)
	t.field("client_output_buffer_limit_disconnections", s.outputLimited)
}

func (r *Reports) infoReplication(c *Ctx, t *infoText) {
	t.field("role", "master")
	t.field("connected_slaves", 0)
	t.field("master_failover_state", "no-failover")
	t.field("master_replid", c.core.runID)
	t.field("master_replid2", strings.Repeat("0", len(c.core.runID)))
	t.field("master_repl_offset", 0)
	t.field("second_repl_offset", -1)
	t.field("repl_backlog_active", 0)
	t.field("repl_backlog_size", 0)
	t.field("repl_backlog_first_byte_offset", 0)
	t.field("repl_backlog_histlen", 0)
}

func (r *Reports) infoCPU(_ *Ctx, t *infoText) {
	seconds := func(name string, d time.Duration) { t.field(name, fmt.Sprintf("%.6f", d.Seconds())) }
	system, user := cpuTimes(syscall.RUSAGE_SELF)
	seconds("used_cpu_sys", system)
	seconds("used_cpu_user", user)
	system, user = cpuTimes(syscall.RUSAGE_CHILDREN)
	seconds("used_cpu_sys_children", system)
	seconds("used_cpu_user_children", user)
}

func (r *Reports) infoCommandStats(c *Ctx, t *infoText) {
	for _, cmd := range c.core.commands.all {
		n := &c.core.stats.commands[cmd.id]
		if n.calls == 0 && n.rejected == 0 && n.failed == 0 {
			continue
		}
		perCall := 0.0
		if n.calls > 0 {
			perCall = float64(n.ns) / 1e3 / float64(n.calls)
		}
		t.field("cmdstat_"+cmd.fullName, fmt.Sprintf("calls=%d,usec=%d,usec_per_call=%.2f,rejected_calls=%d,failed_calls=%d",
			n.calls, n.ns/1e3, perCall, n.rejected, n.failed))
	}
}

func (r *Reports) infoErrorStats(c *Ctx, t *infoText) {
	for _, code := range slices.Sorted(maps.Keys(c.core.stats.errorCodes)) {
		t.field("errorstat_"+code, fmt.Sprintf("count=%d", c.core.stats.errorCodes[code]))
	}
}

// infoLatencyStats shows the times, in µs, that so many percent of a command's calls did not exceed.
func (r *Reports) infoLatencyStats(c *Ctx, t *infoText) {
	if !c.cfg.LatencyTracking {
		return
	}
	for _, cmd := range c.core.commands.all {
		h := c.core.stats.commands[cmd.id].times
		if h == nil || h.total == 0 {
			continue
		}
		var shown []string
		for _, p := range c.cfg.LatencyPercentiles {
			shown = append(shown, fmt.Sprintf("p%s=%.3f", strconv.FormatFloat(p, 'g', 10, 64), float64(h.percentile(p))/1e3))
		}
		t.field("latency_percentiles_usec_"+cmd.fullName, strings.Join(shown, ","))
	}
}

func (r *Reports) infoCluster(_ *Ctx, t *infoText) { t.field("cluster_enabled", 0) }

func (r *Reports) infoKeyspace(c *Ctx, t *infoText) {
	for i := range c.core.keys.Databases() {
		if db := c.core.keys.DB(i); db.Len() > 0 {
			t.field(fmt.Sprintf("db%d", i), fmt.Sprintf("keys=%d,expires=%d,avg_ttl=%d", db.Len(), db.Expires(), averageTTL(db, c.now)))
		}
	}
}

// ttlSample is how many keys averageTTL looks at.
const ttlSample = 64

// averageTTL estimates the mean of the TTLs, in ms, from the first keys in the order of their hashes, which is a fair sample.
func averageTTL(db *store.DB, now int64) int64 {
	if db.Expires() == 0 {
		return 0
	}
	sum, n := int64(0), int64(0)
	db.Scan(0, now, ttlSample, func(e *store.Entry) {
		if at := e.ExpireAt(); at != 0 {
			sum += max(at-now, 0)
			n++
		}
	})
	if n == 0 {
		return 0
	}
	return sum / n
}

// infoSaving writes what INFO says of snapshots.
func (r *Reports) infoSaving(t *infoText) {
	v := &r.journal.saving
	inProgress, current, last, status := 0, int64(-1), int64(-1), "ok"
	if v.active {
		inProgress, current = 1, int64(time.Since(r.journal.snapshot.started)/time.Second)
	}
	if v.failed {
		status = "err"
	}
	if v.count > 0 || v.failed {
		last = int64(v.took / time.Second)
	}
	t.field("rdb_changes_since_last_save", r.journal.changes())
	t.field("rdb_bgsave_in_progress", inProgress)
	t.field("rdb_last_save_time", v.last/1e9)
	t.field("rdb_last_bgsave_status", status)
	t.field("rdb_last_bgsave_time_sec", last)
	t.field("rdb_current_bgsave_time_sec", current)
	t.field("rdb_saves", v.count)
	t.field("rdb_last_cow_size", v.lastExtra)
	t.field("rdb_last_load_keys_expired", r.journal.saving.loadExpired)
	t.field("rdb_last_load_keys_loaded", r.journal.saving.loadKeys)
	if v.active {
		told, total := r.journal.snapshot.keys.Progress()
		t.field("current_save_keys_processed", told)
		t.field("current_save_keys_total", total)
	}
}

// infoTLS writes what INFO says of TLS.
func (r *Reports) infoTLS(c *Ctx, t *infoText) {
	f := &r.fronts.tls
	t.field("tls_port", c.cfg.TLSPort)
	if c.cfg.TLSPort == 0 {
		return
	}
	clients := 0
	for _, cl := range c.core.clients.list {
		if cl.conn.FD < 0 {
			clients++
		}
	}
	t.field("tls_connected_clients", clients)
	t.field("tls_handshakes", f.handshakes.Load())
	t.field("tls_handshakes_failed", f.failures.Load())
	t.field("tls_reloads", f.reloads.Load())
	t.field("tls_reloads_failed", f.badReloads.Load())
	t.field("tls_certificate_not_after", f.notAfter.Load())
}

// infoLimiters shows the decisions by algorithm and by policy, and the keys with the most.
func (r *Reports) infoLimiters(c *Ctx, t *infoText) {
	show := func(name string, d *decisions) {
		if *d != (decisions{}) {
			t.field(name, fmt.Sprintf("allowed=%d,near_limit=%d,limited=%d", d.allowed, d.near, d.limited))
		}
	}
	limits := r.limits
	all := limits.total()
	t.field("limiter_calls_allowed", all.allowed)
	t.field("limiter_calls_near_limit", all.near)
	t.field("limiter_calls_limited", all.limited)
	for i, a := range limits.algorithms.All() {
		show("algorithm_"+a.Label, &limits.counts[i])
	}
	for _, counted := range limits.policies.counts.list {
		show("policy_"+counted.name, &counted.decisions)
	}
	r.infoTop(c, t)
}

// infoTop shows the first keys of both lists. A key is quoted, so that it cannot pass for another field.
func (r *Reports) infoTop(c *Ctx, t *infoText) {
	keys := &r.limits.top
	if keys.keys == 0 {
		return
	}
	keys.goOn(c.core.clock.Mono())
	t.field("top_seconds", (c.core.clock.Mono()-keys.began)/int64(time.Second))
	for _, list := range []string{listLimited, listHot} {
		w := keys.window(list)
		t.field("top_"+list+"_error", w.Bound())
		for i, k := range c.topOf(w, topShown) {
			t.field(fmt.Sprintf("top_%s_%d", list, i+1),
				fmt.Sprintf("db=%d,calls=%d,error=%d,key=%s", k.DB, k.Count, k.Error, strconv.QuoteToASCII(string(k.Name))))
		}
	}
}
