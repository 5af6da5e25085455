package report

import (
	"cmp"
	"math/bits"
	"os"
	"runtime"
	"time"

	"headgate/server/command"
	"headgate/server/front"
	"headgate/server/host"
	"headgate/server/pubsub"
	"headgate/server/replication"
)

// sections are the parts of INFO, in the order in which they are shown, with all figures. Fields have Redis's names where Redis has them,
// and stand only for what is known: those that would have to be invented are left out. Series have redis_exporter's names where it has
// them, so that dashboards made for it work; the others begin with headgate_.
var sections = []section{
	{title: "Server", byDefault: true, figures: []figure{
		fixed("redis_version", command.RedisVersion),
		fixed("redis_git_sha1", "00000000"),
		fixed("redis_git_dirty", "0"),
		{field: "headgate_version", page: "version", read: func(*readings) quantity { return text(command.Version) }},
		{field: "redis_mode", read: func(s *readings) quantity { return text(s.cfg.Mode()) }},
		{field: "os", read: func(*readings) quantity { return text(host.SystemName()) }},
		{field: "arch_bits", read: func(*readings) quantity { return count(bits.UintSize) }},
		{field: "go_version", read: func(*readings) quantity { return text(runtime.Version()) }},
		fixed("multiplexing_api", front.Multiplexing),
		{field: "process_id", read: func(*readings) quantity { return count(host.Pid()) }},
		fixed("process_supervised", "no"),
		{field: "run_id", page: "run", read: func(s *readings) quantity { return text(s.RunID) }},
		{field: "tcp_port", read: func(s *readings) quantity { return count(cmp.Or(s.cfg.Port, s.cfg.TLSPort)) }},
		{field: "server_time_usec", read: func(s *readings) quantity { return count(s.nowNs / 1e3) }},
		{page: "now", read: func(s *readings) quantity { return count(s.nowNs / 1e6) }},
		{metric: gauge("redis_up", "Always 1: the server that answers is up."), read: func(*readings) quantity { return count(1) }},
		{metric: gauge("redis_start_time_seconds", "Start time of the server, in seconds since the Unix epoch."),
			read: func(s *readings) quantity { return wholeSeconds(s.Started) }},
		{field: "uptime_in_seconds", page: "uptime", metric: gauge("redis_uptime_in_seconds", "Seconds since the server was started."),
			read: func(s *readings) quantity { return wholeSeconds(int64(s.Uptime())) }},
		{field: "uptime_in_days", read: func(s *readings) quantity { return count(int64(s.Uptime() / (24 * time.Hour))) }},
		{field: "hz", read: func(s *readings) quantity { return count(s.cfg.Hz) }},
		{field: "configured_hz", read: func(s *readings) quantity { return count(s.cfg.Hz) }},
		{field: "lru_clock", read: func(s *readings) quantity { return count(s.nowNs / 1e9 & (1<<24 - 1)) }},
		{field: "executable", read: func(*readings) quantity { return text(executable()) }},
		{field: "config_file", read: func(s *readings) quantity { return text(s.Config.Path()) }},
		{field: "io_threads_active", read: func(s *readings) quantity { return truth(s.Fronts.Plain.Count() > 1) }},
		{metric: gauge("headgate_script_busy", "1 while a script has been running for longer than busy-reply-threshold."),
			read: func(s *readings) quantity { return truth(s.Gate.Has(command.GateBusy)) }},
		{metric: gauge("headgate_ready", "1 if /readyz reports that the server is ready."), read: func(s *readings) quantity { return truth(s.unready() == "") }},
		{page: "ready", read: func(s *readings) quantity { return text(string(s.unready())) }},
	}, families: []*family{instance}, collect: (*Collector).collectInstance},
	{title: "Clients", byDefault: true, figures: []figure{
		{field: "connected_clients", page: "clients", metric: gauge("redis_connected_clients", "Connected clients."),
			read: func(s *readings) quantity { return count(len(s.Clients.List)) }},
		fixed("cluster_connections", "0"),
		{field: "maxclients", metric: gauge("redis_config_maxclients", "Maximum number of connections (maxclients)."),
			read: func(s *readings) quantity { return count(s.Exec.MaxClients) }},
		{field: "blocked_clients", metric: gauge("redis_blocked_clients", "Clients waiting for a key or for the end of a pause."),
			read: func(s *readings) quantity { return count(len(s.Exec.Pause.Held) + s.Exec.Blocking.Clients) }},
		{field: "tracking_clients", metric: gauge("redis_tracking_clients", "Clients that use CLIENT TRACKING."),
			read: func(s *readings) quantity { return count(s.Hub.Tracking.Clients) }},
		{field: "clients_in_timeout_table", read: func(s *readings) quantity { return count(len(s.Exec.Blocking.Timeouts)) }},
	}},
	{title: "Memory", byDefault: true, figures: []figure{
		{field: "used_memory", page: "memory", metric: gauge("redis_memory_used_bytes", "Bytes used by data and connections."),
			read: func(s *readings) quantity { return size(s.memory().used) }},
		{field: "used_memory_rss", metric: gauge("redis_memory_used_rss_bytes", "Resident memory of the process, in bytes."),
			read: func(s *readings) quantity { return size(s.memory().resident) }},
		{field: "used_memory_peak", metric: gauge("redis_memory_used_peak_bytes", "Maximum of redis_memory_used_bytes so far."),
			read: func(s *readings) quantity { return size(s.memory().peak) }},
		{field: "used_memory_peak_perc", read: func(s *readings) quantity { return percent(100 * ratio(s.memory().used, s.memory().peak)) }},
		{field: "used_memory_overhead", read: func(s *readings) quantity { return count(s.memory().overhead) }},
		{field: "used_memory_startup", metric: gauge("redis_memory_used_startup_bytes", "Bytes used at start, before any data were loaded."),
			read: func(s *readings) quantity { return count(s.StartMemory) }},
		{field: "used_memory_dataset", read: func(s *readings) quantity { return count(s.memory().dataset) }},
		{field: "used_memory_dataset_perc", read: func(s *readings) quantity { return percent(s.memory().datasetShare()) }},
		{field: "used_memory_arena", metric: gauge("headgate_memory_arena_bytes", "Bytes of keys and small values, which are stored outside the Go heap."),
			read: func(s *readings) quantity { return count(s.memory().ArenaUsed) }},
		{field: "used_memory_arena_rss", read: func(s *readings) quantity { return count(s.memory().ArenaResident) }},
		{field: "used_memory_heap", metric: gauge("headgate_memory_heap_bytes", "Bytes of objects on the Go heap."),
			read: func(s *readings) quantity { return count(s.memory().heap) }},
		{field: "allocator_allocated", read: func(s *readings) quantity { return count(s.memory().allocated) }},
		{field: "allocator_active", read: func(s *readings) quantity { return count(s.memory().active) }},
		{field: "allocator_resident", read: func(s *readings) quantity { return count(s.memory().mapped) }},
		{field: "total_system_memory", when: func(*readings) bool { return host.SystemMemory() > 0 }, read: func(*readings) quantity { return size(host.SystemMemory()) }},
		{field: "used_memory_lua", read: func(s *readings) quantity { return size(s.scriptMemory().EvalBytes) }},
		{field: "used_memory_vm_eval", read: func(s *readings) quantity { return count(s.scriptMemory().EvalBytes) }},
		{field: "used_memory_scripts_eval", read: func(s *readings) quantity { return count(s.scriptMemory().EvalBytes) }},
		{field: "number_of_cached_scripts", metric: gauge("headgate_scripts_cached", "Scripts cached for EVALSHA."),
			read: func(s *readings) quantity { return count(s.scriptMemory().Scripts) }},
		{field: "number_of_functions", metric: gauge("headgate_functions", "Functions loaded by FUNCTION LOAD."),
			read: func(s *readings) quantity { return count(s.scriptMemory().Functions) }},
		{field: "number_of_libraries", read: func(s *readings) quantity { return count(s.scriptMemory().Libraries) }},
		{field: "used_memory_vm_functions", read: func(s *readings) quantity { return count(s.scriptMemory().FunctionBytes) }},
		{field: "used_memory_vm_total", read: func(s *readings) quantity { return size(s.scriptMemory().EvalBytes + s.scriptMemory().FunctionBytes) }},
		{field: "used_memory_functions", read: func(s *readings) quantity { return count(s.scriptMemory().FunctionBytes) }},
		{field: "used_memory_scripts", read: func(s *readings) quantity { return size(s.scriptMemory().EvalBytes + s.scriptMemory().FunctionBytes) }},
		{field: "maxmemory", page: "memoryLimit.max", metric: gauge("redis_memory_max_bytes", "Effective maxmemory in bytes; 0 means no limit."),
			read: func(s *readings) quantity { return size(s.Exec.Memory.Max) }},
		{field: "maxmemory_policy", page: "memoryLimit.policy", read: func(s *readings) quantity { return text(s.cfg.MaxMemoryPolicy.String()) }},
		{field: "allocator_frag_ratio", read: func(s *readings) quantity { return decimal(ratio(s.memory().active, s.memory().allocated)) }},
		{field: "allocator_frag_bytes", read: func(s *readings) quantity { return count(excess(s.memory().active, s.memory().allocated)) }},
		{field: "allocator_rss_ratio", read: func(s *readings) quantity { return decimal(ratio(s.memory().mapped, s.memory().active)) }},
		{field: "allocator_rss_bytes", read: func(s *readings) quantity { return count(excess(s.memory().mapped, s.memory().active)) }},
		{field: "rss_overhead_ratio", read: func(s *readings) quantity { return decimal(ratio(s.memory().resident, s.memory().mapped)) }},
		{field: "rss_overhead_bytes", read: func(s *readings) quantity { return count(excess(s.memory().resident, s.memory().mapped)) }},
		{field: "mem_fragmentation_ratio", metric: gauge("redis_mem_fragmentation_ratio", "Ratio of resident memory to used memory."),
			read: func(s *readings) quantity { return decimal(s.memory().fragmentation()) }},
		{field: "mem_fragmentation_bytes", read: func(s *readings) quantity { return count(excess(s.memory().resident, s.memory().used)) }},
		{field: "mem_not_counted_for_evict", read: func(s *readings) quantity { return count(s.memory().notEvictedFor) }},
		{field: "mem_replication_backlog", read: func(s *readings) quantity { return count(s.primary().To - s.primary().From) }},
		{field: "mem_total_replication_buffers", metric: gauge("headgate_replication_buffers_bytes", "Bytes of changes kept for replicas that have not all received them."),
			read: func(s *readings) quantity { return count(s.primary().Bytes) }},
		fixed("mem_clients_slaves", "0"),
		{field: "mem_clients_normal", read: func(s *readings) quantity { return count(s.Exec.ClientMemory()) }},
		fixed("mem_cluster_links", "0"),
		{field: "mem_aof_buffer", read: func(s *readings) quantity { return count(cap(s.Effects.Buf) + s.Journal.AOF.Waiting) }},
		{field: "mem_allocator", read: func(*readings) quantity { return text("arena+" + runtime.Version()) }},
		fixed("active_defrag_running", "0"),
		fixed("lazyfree_pending_objects", "0"),
		{field: "lazyfreed_objects", read: func(s *readings) quantity { return count(s.Stats.LazyFreed) }},
	}},
	{title: "Persistence", byDefault: true, figures: []figure{
		{field: "loading", metric: gauge("redis_loading_dump_file", "1 while data are being loaded."),
			read: func(s *readings) quantity { return truth(s.Gate.Has(command.GateLoading)) }},
		fixed("async_loading", "0"),
		{page: "disk.unwritable", read: func(s *readings) quantity { return text(s.Gate.Unwritable()) }},
		{page: "disk.snapshot.points", read: func(s *readings) quantity { return truth(len(s.cfg.Save) > 0) }},
		{field: "rdb_changes_since_last_save", page: "disk.snapshot.changes", metric: gauge("redis_rdb_changes_since_last_save", "Changes since the last snapshot."),
			read: func(s *readings) quantity { return count(s.Journal.Changes()) }},
		{field: "rdb_bgsave_in_progress", page: "disk.snapshot.saving", metric: gauge("redis_rdb_bgsave_in_progress", "1 while a snapshot is being written."),
			read: func(s *readings) quantity { return truth(s.Journal.Saving.Active) }},
		{field: "rdb_last_save_time", metric: gauge("redis_rdb_last_save_timestamp_seconds", "Time of the last saved snapshot, or of the server's start, in seconds since the Unix epoch."),
			read: func(s *readings) quantity { return wholeSeconds(s.Journal.Saving.Last) }},
		{page: "disk.snapshot.at", when: func(s *readings) bool { return s.Journal.Saving.Count > 0 },
			read: func(s *readings) quantity { return millis(s.Journal.Saving.Last) }},
		{field: "rdb_last_bgsave_status", metric: gauge("redis_rdb_last_bgsave_status", "0 if the last snapshot in the background failed, otherwise 1."),
			read: func(s *readings) quantity { return outcome(!s.Journal.Saving.Failed) }},
		{page: "disk.snapshot.failed", read: func(s *readings) quantity { return truth(s.Journal.Saving.Failed) }},
		{field: "rdb_last_bgsave_time_sec", read: func(s *readings) quantity {
			v := &s.Journal.Saving
			return orNever(v.Took, v.Count > 0 || v.Failed)
		}},
		{field: "rdb_current_bgsave_time_sec", read: func(s *readings) quantity {
			if !s.Journal.Saving.Active {
				return orNever(0, false)
			}
			return orNever(time.Since(s.Journal.Snapshot.Started), true)
		}},
		{field: "rdb_saves", metric: counter("headgate_rdb_saves_total", "Snapshots saved."),
			read: func(s *readings) quantity { return count(s.Journal.Saving.Count) }},
		{field: "rdb_last_cow_size", read: func(s *readings) quantity { return count(s.Journal.Saving.LastExtra) }},
		{field: "rdb_last_load_keys_expired", read: func(s *readings) quantity { return count(s.Journal.Saving.LoadExpired) }},
		{field: "rdb_last_load_keys_loaded", read: func(s *readings) quantity { return count(s.Journal.Saving.LoadKeys) }},
		{field: "current_save_keys_processed", when: saves, read: func(s *readings) quantity {
			told, _ := s.Journal.Snapshot.Keys.Progress()
			return count(told)
		}},
		{field: "current_save_keys_total", when: saves, read: func(s *readings) quantity {
			_, total := s.Journal.Snapshot.Keys.Progress()
			return count(total)
		}},
		{field: "aof_enabled", metric: gauge("redis_aof_enabled", "1 if appendonly is yes, so that changes are logged to the append-only file or refused with MISCONF."),
			read: func(s *readings) quantity { return truth(s.cfg.AppendOnly) }}, // as soon as CONFIG SET has answered; that the file is begun follows
		{field: "aof_rewrite_in_progress", metric: gauge("redis_aof_rewrite_in_progress", "1 while the append-only file is being rewritten."), read: rewrites},
		{page: "disk.log.rewriting", when: logs, read: rewrites},
		{field: "aof_rewrite_scheduled", read: func(s *readings) quantity {
			begins := s.Journal.Begins(s.cfg) && !s.Gate.Has(command.GateLoading)
			return truth((s.Journal.AOF.Rewriter.Asked || begins) && !s.Journal.AOF.Rewriter.Rewriting)
		}},
		{field: "aof_last_rewrite_time_sec", read: func(s *readings) quantity {
			w := &s.Journal.AOF.Rewriter
			return orNever(w.Last, w.Rewrites > 0 || w.Err != nil)
		}},
		{field: "aof_current_rewrite_time_sec", read: func(s *readings) quantity {
			w := &s.Journal.AOF.Rewriter
			return orNever(time.Since(w.Begun), w.Rewriting)
		}},
		{field: "aof_last_bgrewrite_status", metric: gauge("redis_aof_last_bgrewrite_status", "0 if the last rewrite failed, otherwise 1."),
			read: func(s *readings) quantity { return outcome(s.Journal.AOF.Rewriter.Err == nil) }},
		{page: "disk.log.rewrite", when: logs, read: func(s *readings) quantity { return text(errorText(s.Journal.AOF.Rewriter.Err)) }},
		{field: "aof_rewrites", metric: counter("headgate_aof_rewrites_total", "Rewrites of the append-only file."),
			read: func(s *readings) quantity { return count(s.Journal.AOF.Rewriter.Rewrites) }},
		{field: "aof_last_write_status", metric: gauge("redis_aof_last_write_status", "0 if the append-only file cannot be written, otherwise 1."),
			read: func(s *readings) quantity { return outcome(s.Journal.AOF.Failed == nil) }},
		{page: "disk.log.failed", when: logs, read: func(s *readings) quantity { return text(errorText(s.Journal.AOF.Failed)) }},
		fixed("aof_last_cow_size", "0"),
		{field: "loading_start_time", when: loads, read: func(s *readings) quantity { return wholeSeconds(s.Journal.Loading.Started) }},
		{field: "loading_total_bytes", when: loads, read: func(s *readings) quantity { return count(s.Journal.Loading.Total) }},
		{field: "loading_loaded_bytes", when: loads, read: func(s *readings) quantity { return count(s.Journal.Loading.Loaded) }},
		{field: "loading_loaded_perc", when: loads, read: func(s *readings) quantity {
			return decimal(100 * float64(s.Journal.Loading.Loaded) / float64(max(s.Journal.Loading.Total, 1)))
		}},
		{page: "disk.log.sync", when: logs, read: func(s *readings) quantity { return text(s.cfg.AppendFsync.String()) }},
		{field: "aof_current_size", page: "disk.log.bytes", when: logs, metric: gauge("redis_aof_current_size_bytes", "Size of the append-only file in bytes."),
			read: func(s *readings) quantity { return count(s.Journal.AOF.Size) }},
		{field: "aof_base_size", when: logs, metric: gauge("redis_aof_base_size_bytes", "Size of the append-only file in bytes after its last rewrite; after a start, of its base alone."),
			read: func(s *readings) quantity { return count(s.Journal.AOF.StartSize) }},
		{field: "aof_pending_rewrite", when: logs, read: func(s *readings) quantity { return truth(s.Journal.AOF.Rewriter.Asked) }},
		{field: "aof_buffer_length", when: logs, metric: gauge("redis_aof_buffer_length", "Bytes of changes not yet written to the append-only file."),
			read: func(s *readings) quantity { return count(len(s.Effects.Buf)) }},
		{field: "aof_pending_bio_fsync", when: logs, metric: gauge("redis_aof_pending_bio_fsync", "1 while the append-only file is being synced in the background."),
			read: func(s *readings) quantity { return count(s.Journal.AOF.Syncer.PendingSync()) }},
		{field: "aof_delayed_fsync", when: logs, metric: gauge("redis_aof_delayed_fsync", "Times that writes had to wait because a sync took longer than a second."),
			read: func(s *readings) quantity { return count(s.Journal.AOF.Syncer.Delays()) }},
		{page: "disk.log.lag", when: logs, metric: gauge("headgate_aof_lag_seconds", "Age of the oldest write that no sync has covered yet."),
			read: func(s *readings) quantity { return millis(int64(s.Journal.AOF.Syncer.Lag())) }},
	}},
	{title: "Stats", byDefault: true, figures: []figure{
		{field: "total_connections_received", metric: counter("redis_connections_received_total", "Connections accepted."),
			read: func(s *readings) quantity { return count(s.Stats.Connections) }},
		{field: "total_commands_processed", page: "commands", metric: counter("redis_commands_processed_total", "Commands executed."),
			read: func(s *readings) quantity { return count(s.Stats.Processed) }},
		{field: "instantaneous_ops_per_sec", read: func(s *readings) quantity { return count(int64(s.Stats.Rate.Average())) }},
		{field: "total_net_input_bytes", metric: counter("redis_net_input_bytes_total", "Bytes received from clients."),
			read: func(s *readings) quantity { return count(s.Fronts.Traffic().BytesIn) }},
		{field: "total_net_output_bytes", metric: counter("redis_net_output_bytes_total", "Bytes sent to clients."),
			read: func(s *readings) quantity { return count(s.Fronts.Traffic().BytesOut) }},
		fixed("total_net_repl_input_bytes", "0"),
		{field: "total_net_repl_output_bytes", metric: counter("redis_net_repl_output_bytes_total", "Bytes sent to replicas."),
			read: func(s *readings) quantity { return count(s.primary().Sent) }},
		{field: "instantaneous_input_kbps", read: func(s *readings) quantity { return decimal(s.Stats.NetIn.Average() / 1024) }},
		{field: "instantaneous_output_kbps", read: func(s *readings) quantity { return decimal(s.Stats.NetOut.Average() / 1024) }},
		fixed("instantaneous_input_repl_kbps", "0.00"),
		fixed("instantaneous_output_repl_kbps", "0.00"),
		{field: "rejected_connections", metric: counter("redis_rejected_connections_total", "Connections refused because of maxclients."),
			read: func(s *readings) quantity { return count(s.Stats.RejectedConnections) }},
		{field: "sync_full", metric: counter("headgate_replica_full_syncs_total", "Full synchronizations of replicas."),
			read: func(s *readings) quantity { return count(s.Replica.Primary.FullSyncs) }},
		{field: "sync_partial_ok", metric: counter("headgate_replica_partial_syncs_total", "Partial synchronizations of replicas."),
			read: func(s *readings) quantity { return count(s.Replica.Primary.PartialSyncs) }},
		{field: "sync_partial_err", metric: counter("headgate_replica_partial_syncs_refused_total", "Partial synchronizations that were refused, so that all data had to be sent."),
			read: func(s *readings) quantity { return count(s.Replica.Primary.PartialRefused) }},
		{field: "expired_keys", metric: counter("redis_expired_keys_total", "Keys removed because they had expired."),
			read: func(s *readings) quantity { return count(s.Keys.Stats().Expired - s.Stats.ExpiredBefore) }},
		{field: "expired_time_cap_reached_count", metric: counter("redis_expired_time_cap_reached_total", "Expiry cycles that reached their time limit."),
			read: func(s *readings) quantity { return count(s.Stats.ExpireCaps) }},
		{field: "expire_cycle_cpu_milliseconds", metric: counter("headgate_expire_cycle_seconds_total", "Time spent removing expired keys."),
			read: func(s *readings) quantity { return millis(s.Stats.ExpireNs) }},
		{field: "evicted_keys", page: "memoryLimit.evicted", metric: counter("redis_evicted_keys_total", "Keys evicted because of maxmemory."),
			read: func(s *readings) quantity { return count(s.Keys.Stats().Evicted - s.Stats.EvictedBefore) }},
		{field: "evicted_clients", metric: counter("headgate_evicted_clients_total", "Clients closed because of maxmemory-clients."),
			read: func(s *readings) quantity { return count(s.Stats.EvictedClients) }},
		{field: "total_eviction_exceeded_time", read: func(s *readings) quantity { return millis(s.Stats.EvictingNs + int64(s.Exec.Memory.Shortage(s.nowNs))) }},
		{field: "current_eviction_exceeded_time", read: func(s *readings) quantity { return millis(int64(s.Exec.Memory.Shortage(s.nowNs))) }},
		{field: "keyspace_hits", metric: counter("redis_keyspace_hits_total", "Lookups of keys that existed."),
			read: func(s *readings) quantity { return count(s.Stats.KeyspaceHits) }},
		{field: "keyspace_misses", metric: counter("redis_keyspace_misses_total", "Lookups of keys that did not exist."),
			read: func(s *readings) quantity { return count(s.Stats.KeyspaceMisses) }},
		{field: "pubsub_channels", metric: gauge("redis_pubsub_channels", "Channels with subscribers."),
			read: func(s *readings) quantity { return count(s.Hub.Live[pubsub.KindChannel]) }},
		{field: "pubsub_patterns", metric: gauge("redis_pubsub_patterns", "Patterns with subscribers."),
			read: func(s *readings) quantity { return count(s.Hub.Live[pubsub.KindPattern]) }},
		{field: "pubsubshard_channels", read: func(s *readings) quantity { return count(s.Hub.Live[pubsub.KindShard]) }},
		{field: "tracking_total_keys", read: func(s *readings) quantity { return count(len(s.Hub.Tracking.Readers)) }},
		{field: "tracking_total_items", read: func(s *readings) quantity { return count(s.Hub.Tracking.Items) }},
		{field: "tracking_total_prefixes", read: func(s *readings) quantity { return count(len(s.Hub.Tracking.Prefixes)) }},
		fixed("latest_fork_usec", "0"),
		fixed("total_forks", "0"),
		fixed("migrate_cached_sockets", "0"),
		{field: "slave_expires_tracked_keys", read: func(s *readings) quantity {
			keys, _ := s.Exec.OwnExpiries()
			return count(keys)
		}},
		fixed("active_defrag_hits", "0"),
		fixed("active_defrag_misses", "0"),
		fixed("active_defrag_key_hits", "0"),
		fixed("active_defrag_key_misses", "0"),
		fixed("total_active_defrag_time", "0"),
		fixed("current_active_defrag_time", "0"),
		fixed("unexpected_error_replies", "0"),
		{field: "total_error_replies", metric: counter("headgate_error_replies_total", "Error replies."),
			read: func(s *readings) quantity { return count(s.Stats.ErrorReplies) }},
		fixed("dump_payload_sanitizations", "0"),
		{field: "total_reads_processed", read: func(s *readings) quantity { return count(s.Fronts.Traffic().Reads) }},
		{field: "total_writes_processed", read: func(s *readings) quantity { return count(s.Fronts.Traffic().Writes) }},
		fixed("io_threaded_reads_processed", "0"),
		fixed("io_threaded_writes_processed", "0"),
		{field: "unknown_commands", read: func(s *readings) quantity { return count(s.Stats.Unknown) }},
		{field: "protocol_errors", metric: counter("headgate_protocol_errors_total", "Connections closed because of invalid RESP."),
			read: func(s *readings) quantity { return count(s.Stats.ProtocolErrors) }},
		{field: "clients_timed_out", metric: counter("headgate_clients_timed_out_total", "Clients closed because they were idle."),
			read: func(s *readings) quantity { return count(s.Stats.TimedOut) }},
		{field: "client_output_buffer_limit_disconnections", metric: counter("headgate_clients_output_limited_total", "Clients closed because they did not read their replies."),
			read: func(s *readings) quantity { return count(s.Stats.OutputLimited) }},
		{metric: gauge("redis_slowlog_length", "Commands in the slow log."), read: func(s *readings) quantity { return count(len(s.Recorder.Slowlog.Entries)) }},
		{metric: gauge("redis_slowlog_last_id", "ID of the latest entry in the slow log."),
			read: func(s *readings) quantity { return count(max(s.Recorder.Slowlog.NextID-1, 0)) }},
		{page: "slowFrom", read: func(s *readings) quantity {
			if s.cfg.SlowlogMaxLen == 0 {
				return count(-1)
			}
			return count(s.cfg.SlowlogLogSlowerThan)
		}},
	}},
	{title: "Replication", byDefault: true, figures: []figure{
		{field: "role", page: "role", read: func(s *readings) quantity {
			if s.replica().Following {
				return text("slave")
			}
			return text("master")
		}},
		{field: "master_host", when: follows, page: "primary.host", read: func(s *readings) quantity { return text(s.replica().Primary.Host) }},
		{field: "master_port", when: follows, page: "primary.port", read: func(s *readings) quantity { return count(s.replica().Primary.Port) }},
		{field: "master_link_status", when: follows, read: func(s *readings) quantity {
			if s.replica().State == replication.StateConnected {
				return text("up")
			}
			return text("down")
		}},
		{page: "primary.up", when: follows, metric: gauge("redis_master_link_up", "1 while the link to the primary is up; 0 if it is down or the server is not a replica."),
			read: func(s *readings) quantity { return truth(s.replica().State == replication.StateConnected) }},
		{field: "master_last_io_seconds_ago", when: follows,
			metric: gauge("redis_master_last_io_seconds_ago", "Seconds since the last data from the primary; -1 without a connection to one."),
			read:   func(s *readings) quantity { return secondsOrNone(s.replica().Silence) }},
		{field: "master_sync_in_progress", when: follows, metric: gauge("redis_master_sync_in_progress", "1 while a full synchronization with the primary is in progress."),
			read: func(s *readings) quantity { return truth(s.replica().State == replication.StateSync) }},
		{field: "slave_read_repl_offset", when: follows, read: func(s *readings) quantity { return count(s.replica().Received) }},
		{field: "slave_repl_offset", when: follows, read: func(s *readings) quantity { return count(s.replica().Offset) }},
		{field: "master_sync_total_bytes", when: synchronises, read: func(s *readings) quantity { return count(s.replica().Total) }},
		{field: "master_sync_read_bytes", when: synchronises, read: func(s *readings) quantity { return count(s.replica().Read) }},
		{field: "master_sync_left_bytes", when: synchronises, read: func(s *readings) quantity { return count(max(s.replica().Total-s.replica().Read, 0)) }},
		{field: "master_sync_perc", when: synchronises, read: func(s *readings) quantity {
			if s.replica().Total == 0 { // a primary that sends as it goes does not know
				return decimal(0)
			}
			return decimal(100 * ratio(uint64(s.replica().Read), uint64(s.replica().Total)))
		}},
		{field: "master_sync_last_io_seconds_ago", when: synchronises, read: func(s *readings) quantity { return secondsOrNone(s.replica().Silence) }},
		{field: "master_link_down_since_seconds", when: isCut, read: func(s *readings) quantity { return secondsOrNone(s.replica().Down) }},
		{field: "master_link_last_error", when: follows, read: func(s *readings) quantity { return text(s.replica().LastError) }},
		{field: "slave_priority", when: follows, metric: gauge("redis_slave_priority", "replica-priority."),
			read: func(s *readings) quantity { return count(s.cfg.ReplicaPriority) }},
		{field: "slave_read_only", when: follows, read: func(s *readings) quantity { return truth(s.cfg.ReplicaReadOnly) }},
		{field: "replica_announced", when: follows, read: func(*readings) quantity { return count(1) }},
		{field: "replica_failed_commands", when: follows, metric: counter("headgate_replication_failed_commands_total", "Commands from a primary that failed here, so that the data may differ from the primary's."),
			read: func(s *readings) quantity { return count(s.replica().FailedHere) }},
		{field: "connected_slaves", page: "replicas.connected", metric: gauge("redis_connected_slaves", "Connected replicas."),
			read: func(s *readings) quantity { return count(len(s.primary().Replicas)) }},
		{field: "min_slaves_good_slaves", when: needsReplicas, read: func(s *readings) quantity { return count(s.primary().Good) }},
		{metric: gauge("headgate_replicas_missing", "Replicas missing for min-replicas-to-write; above 0, writes are refused."),
			read: func(s *readings) quantity {
				if !needsReplicas(s) || follows(s) {
					return count(0)
				}
				return count(max(s.cfg.MinReplicasToWrite-s.primary().Good, 0))
			}},
		{field: "master_failover_state", read: func(s *readings) quantity { return text(s.replica().Failover) }},
		{field: "master_replid", read: func(s *readings) quantity { return text(s.replica().ID) }},
		{field: "master_replid2", read: func(s *readings) quantity { return text(s.replica().ID2) }},
		{field: "master_repl_offset", metric: gauge("redis_master_repl_offset", "Replication offset: bytes of the primary's change stream that are applied here."),
			read: func(s *readings) quantity { return count(s.replica().Offset) }},
		{field: "second_repl_offset", read: func(s *readings) quantity { return count(s.replica().Offset2) }},
		{metric: counter("headgate_replication_full_syncs_total", "Full synchronizations with a primary."),
			read: func(s *readings) quantity { return count(s.replica().FullSyncs) }},
		{metric: counter("headgate_replication_partial_syncs_total", "Partial synchronizations with a primary."),
			read: func(s *readings) quantity { return count(s.replica().PartSyncs) }},
		{field: "repl_backlog_active", metric: gauge("redis_repl_backlog_is_active", "1 while a replication backlog is kept."),
			read: func(s *readings) quantity { return truth(s.primary().Active) }},
		{field: "repl_backlog_size", metric: gauge("redis_replication_backlog_bytes", "repl-backlog-size."),
			read: func(s *readings) quantity { return count(s.cfg.ReplBacklogSize) }},
		{field: "repl_backlog_first_byte_offset", metric: gauge("redis_repl_backlog_first_byte_offset", "Replication offset of the first byte in the backlog; 0 if there is no backlog."),
			read: func(s *readings) quantity {
				if !s.primary().Active {
					return count(0)
				}
				return count(s.primary().From + 1)
			}},
		{field: "repl_backlog_histlen", metric: gauge("redis_repl_backlog_history_bytes", "Bytes in the replication backlog."),
			read: func(s *readings) quantity { return count(s.primary().To - s.primary().From) }},
	}, lines: (*Reports).infoReplicas, families: []*family{replicaBehind, replicaOffset, replicaLag}, collect: (*Collector).collectReplicas},
	{title: "TLS", byDefault: true, figures: []figure{
		{field: "tls_port", read: func(s *readings) quantity { return count(s.cfg.TLSPort) }},
		{field: "tls_connected_clients", when: secure, read: func(s *readings) quantity {
			clients := 0
			for _, cl := range s.Clients.List {
				if cl.Conn.FD < 0 {
					clients++
				}
			}
			return count(clients)
		}},
		{field: "tls_handshakes", when: secure, metric: counter("headgate_tls_handshakes_total", "TLS handshakes completed."),
			read: func(s *readings) quantity { return count(s.Fronts.TLS.Handshakes.Load()) }},
		{field: "tls_handshakes_failed", when: secure, metric: counter("headgate_tls_handshakes_failed_total", "TLS handshakes that failed or timed out."),
			read: func(s *readings) quantity { return count(s.Fronts.TLS.Failures.Load()) }},
		{field: "tls_reloads", when: secure, metric: counter("headgate_tls_reloads_total", "Reloads of changed TLS files."),
			read: func(s *readings) quantity { return count(s.Fronts.TLS.Reloads.Load()) }},
		{field: "tls_reloads_failed", when: secure, metric: counter("headgate_tls_reloads_failed_total", "Failed reloads of changed TLS files."),
			read: func(s *readings) quantity { return count(s.Fronts.TLS.BadReloads.Load()) }},
		{field: "tls_certificate_not_after", when: secure, metric: gauge("headgate_tls_certificate_not_after_seconds", "Expiry of the TLS certificate, in seconds since the Unix epoch; 0 without TLS."),
			read: func(s *readings) quantity { return count(s.Fronts.TLS.NotAfter.Load()) }},
	}},
	{title: "CPU", byDefault: true, figures: []figure{
		{field: "used_cpu_sys", metric: counter("redis_cpu_sys_seconds_total", "CPU time used in the kernel, in seconds."), read: func(*readings) quantity {
			system, _ := host.CPUTimes()
			return cpuTime(system)
		}},
		{field: "used_cpu_user", metric: counter("redis_cpu_user_seconds_total", "CPU time used outside the kernel, in seconds."), read: func(*readings) quantity {
			_, user := host.CPUTimes()
			return cpuTime(user)
		}},
		{field: "used_cpu_sys_children", read: func(*readings) quantity {
			system, _ := host.ChildrenCPUTimes()
			return cpuTime(system)
		}},
		{field: "used_cpu_user_children", read: func(*readings) quantity {
			_, user := host.ChildrenCPUTimes()
			return cpuTime(user)
		}},
	}},
	{title: "Modules", byDefault: true},
	{title: "Commandstats", lines: (*Reports).infoCommandStats,
		families: []*family{commandCalls, commandSeconds, commandFailed, commandRejected, commandLatency}, collect: (*Collector).collectCommands},
	{title: "Errorstats", byDefault: true, lines: (*Reports).infoErrorStats, families: []*family{errorReplies}, collect: (*Collector).collectErrors},
	{title: "Latencystats", lines: (*Reports).infoLatencyStats, families: []*family{batchLatency}, collect: (*Collector).collectBatches},
	{title: "Limiters", figures: []figure{
		{field: "limiter_calls_allowed", read: func(s *readings) quantity { return count(s.Limits.Total().Allowed) }},
		{field: "limiter_calls_near_limit", read: func(s *readings) quantity { return count(s.Limits.Total().Near) }},
		{field: "limiter_calls_limited", read: func(s *readings) quantity { return count(s.Limits.Total().Limited) }},
		{field: "limiter_calls_shadow_limited", read: func(s *readings) quantity { return count(s.Limits.Total().Shadow) }},
		{field: "limiter_blocks_failed", metric: counter("headgate_limiter_blocks_failed_total", "Blocks that could not be stored because the disk or memory was full; the calls were limited without them."),
			read: func(s *readings) quantity { return count(s.Limits.Policies.BlocksFailed) }},
		{field: "limiter_changes_in_memory", metric: counter("headgate_limiter_memory_changes_total", "Changes of limiters' state that were kept in memory only while nothing could be written (limiter-when-unwritable)."),
			read: func(s *readings) quantity { return count(s.Limits.Unlogged.Changes) }},
		{field: "reservations_open", metric: gauge("headgate_reservations_open", "Open reservations: neither settled, cancelled, timed out nor deleted. A replica counts none."),
			read: func(s *readings) quantity { return count(s.Limits.Reservations.Open()) }},
		{field: "reservations_reserved", metric: counter("headgate_reservations_reserved_total", "Reservations made by RL.RESERVE."),
			read: func(s *readings) quantity { return count(s.Limits.Reservations.Counts.Reserved) }},
		{field: "reservations_settled", metric: counter("headgate_reservations_settled_total", "Reservations settled by RL.SETTLE."),
			read: func(s *readings) quantity { return count(s.Limits.Reservations.Counts.Settled) }},
		{field: "reservations_cancelled", metric: counter("headgate_reservations_cancelled_total", "Reservations cancelled by RL.CANCEL."),
			read: func(s *readings) quantity { return count(s.Limits.Reservations.Counts.Cancelled) }},
		{field: "reservations_timed_out", metric: counter("headgate_reservations_timed_out_total", "Reservations cancelled by the server at their TTL."),
			read: func(s *readings) quantity { return count(s.Limits.Reservations.Counts.TimedOut) }},
		{field: "reservations_in_debt", metric: counter("headgate_reservations_debt_total", "Reservations settled for more than was reserved."),
			read: func(s *readings) quantity { return count(s.Limits.Reservations.Counts.Debts) }},
		{field: "limiter_waiting", metric: gauge("headgate_limiter_waiting", "Limiter calls that are waiting (WAIT)."),
			read: func(s *readings) quantity { return count(s.waiting()) }},
		{metric: gauge("headgate_limiter_waiting_max", "Maximum number of waiting calls (wait-max-clients, or those for which a gateway has descriptors); further calls are limited immediately."),
			read: func(s *readings) quantity { return count(s.waitingMax()) }},
		{field: "limiter_waits_passed", read: func(s *readings) quantity { return count(s.Limits.Waits.Total().Passed) }},
		{field: "limiter_waits_limited", read: func(s *readings) quantity { return count(s.Limits.Waits.Total().Limited) }},
		{field: "limiter_waits_given_up", read: func(s *readings) quantity { return count(s.Limits.Waits.Total().GivenUp) }},
	}, lines: (*Reports).infoLimiters,
		families: []*family{limiterCalls, limiterNear, limiterWaits, limiterWaitSeconds, policyCalls, policyNear, policyBlocks, policyBlocked, policyOverridden, topCalls, topKeyCalls, topError, topSeconds}, collect: (*Collector).collectLimiters},
	{title: "HTTPcheck", byDefault: true, there: answersChecks, figures: []figure{
		{field: "http_checks_allowed", read: func(s *readings) quantity { return count(s.Checks.Counts().Allowed.Load()) }},
		{field: "http_checks_limited", read: func(s *readings) quantity { return count(s.Checks.Counts().Limited.Load()) }},
		{field: "http_checks_failed", read: func(s *readings) quantity { return count(s.Checks.Counts().Failed.Load()) }},
	}, families: []*family{httpChecks}, collect: (*Collector).collectChecks},
	{title: "Envoy", byDefault: true, there: answersEnvoy, figures: []figure{
		{field: "rls_requests_ok", read: func(s *readings) quantity { return count(s.Envoy.Counts().OK.Load()) }},
		{field: "rls_requests_over_limit", read: func(s *readings) quantity { return count(s.Envoy.Counts().OverLimit.Load()) }},
		{field: "rls_requests_failed", read: func(s *readings) quantity { return count(s.Envoy.Counts().Failed.Load()) }},
		{field: "rls_limits", metric: gauge("headgate_rls_limits", "Limits in the rules of Envoy's rate limit service."),
			read: func(s *readings) quantity { return count(s.Envoy.Counts().Limits.Load()) }},
		{field: "rls_reloads", metric: counter("headgate_rls_reloads_total", "Reloads of changed rules (rls-config)."),
			read: func(s *readings) quantity { return count(s.Envoy.Counts().Reloads.Load()) }},
		{field: "rls_reloads_failed", metric: counter("headgate_rls_reloads_failed_total", "Failed reloads of changed rules (rls-config); the earlier rules stayed."),
			read: func(s *readings) quantity { return count(s.Envoy.Counts().FailedReloads.Load()) }},
	}, families: []*family{rlsRequests}, collect: (*Collector).collectEnvoy},
	upstreamSection,
	{title: "Cluster", byDefault: true, figures: []figure{{field: "cluster_enabled", read: func(s *readings) quantity { return truth(s.cfg.ClusterEmulated) }}}},
	{title: "Keyspace", byDefault: true, figures: []figure{
		{page: "keys", read: func(s *readings) quantity { return count(s.Keys.Stats().Keys) }},
	}, lines: (*Reports).infoKeyspace, families: []*family{dbKeys, dbExpiring}, collect: (*Collector).collectDatabases},
}

// Conditions of figures.
func saves(s *readings) bool { return s.Journal.Saving.Active }

// secondsOrNone is a time in whole seconds, and -1 for one below 0.
func secondsOrNone(d time.Duration) quantity {
	if d < 0 {
		return count(-1)
	}
	return count(int64(d / time.Second))
}

func follows(s *readings) bool      { return s.replica().Following }
func synchronises(s *readings) bool { return s.replica().State == replication.StateSync }
func isCut(s *readings) bool        { return follows(s) && s.replica().State != replication.StateConnected }

// needsReplicas is whether writes depend on replicas.
func needsReplicas(s *readings) bool {
	return s.cfg.MinReplicasToWrite > 0 && s.cfg.MinReplicasMaxLag > 0
}

func loads(s *readings) bool  { return s.Gate.Has(command.GateLoading) }
func logs(s *readings) bool   { return s.Effects.Logged }
func secure(s *readings) bool { return s.cfg.TLSPort != 0 }

// rewrites is whether the append-only file is being rewritten.
func rewrites(s *readings) quantity { return truth(s.Journal.AOF.Rewriter.Rewriting) }

// orNever is how long something took, in whole seconds, or -1 if there is nothing that took any time.
func orNever(took time.Duration, any bool) quantity {
	if !any {
		return count(-1)
	}
	return wholeSeconds(int64(took))
}

// executable is the path of the program, or nothing if the system does not tell.
func executable() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	return path
}
