package config

import (
	"fmt"
	"slices"
	"strings"
)

// Ignored is a directive of redis.conf that means nothing here. A file or command line made for Redis may hold it; it is accepted
// with a [Notice] and has no effect. CONFIG GET and CONFIG SET do not know it.
type Ignored struct {
	Name   string
	Reason string
	// Only lists the values that ask for nothing we lack. Any other is refused, because whoever wrote it relies on it. nil lets
	// every value pass.
	Only []string
	// Never has the directive refused whatever its value.
	Never bool
}

// The reasons, in the words of the notice.
const (
	noCluster      = "headgate does not form clusters"
	ownCiphers     = "Go's TLS chooses among the suites that both sides know by itself"
	ownSessions    = "clients keep the tickets of their sessions, so there is no cache on this side"
	oneCertificate = "connections to a primary show tls-cert-file"
	ownEviction    = "keys of a replica go when its primary says so, whatever maxmemory is"
	noCompression  = "elements of lists are never compressed"
	ownMemory      = "headgate manages its memory in its own way"
	ownProcess     = "the process's title, priority and processors are left to the system"
	ownLog         = "headgate logs to logfile or standard error only"
	ownThreads     = "each event loop reads, parses and writes"
)

// ignored is the table, sorted by name.
var ignored = []Ignored{
	{Name: "active-defrag-cycle-max", Reason: ownMemory},
	{Name: "active-defrag-cycle-min", Reason: ownMemory},
	{Name: "active-defrag-ignore-bytes", Reason: ownMemory},
	{Name: "active-defrag-max-scan-fields", Reason: ownMemory},
	{Name: "active-defrag-threshold-lower", Reason: ownMemory},
	{Name: "active-defrag-threshold-upper", Reason: ownMemory},
	{Name: "active-expire-effort", Reason: "the expiry cycle adapts itself to what has expired"},
	{Name: "activedefrag", Reason: ownMemory},
	{Name: "activerehashing", Reason: ownMemory},
	{Name: "always-show-logo", Reason: "there is no logo"},
	{Name: "aof-rewrite-incremental-fsync", Reason: "files are always synced in parts"},
	{Name: "aof-use-rdb-preamble", Reason: "a rewritten append-only file always begins with a snapshot"},
	{Name: "aof_rewrite_cpulist", Reason: ownProcess},
	{Name: "bgsave_cpulist", Reason: ownProcess},
	{Name: "bind-source-addr", Reason: "the system chooses the address from which a primary is connected to"},
	{Name: "bio_cpulist", Reason: ownProcess},
	{Name: "cluster-allow-pubsubshard-when-down", Reason: noCluster},
	{Name: "cluster-allow-reads-when-down", Reason: noCluster},
	{Name: "cluster-allow-replica-migration", Reason: noCluster},
	{Name: "cluster-announce-bus-port", Reason: noCluster},
	{Name: "cluster-config-file", Reason: noCluster},
	{Name: "cluster-link-sendbuf-limit", Reason: noCluster},
	{Name: "cluster-migration-barrier", Reason: noCluster},
	{Name: "cluster-node-timeout", Reason: noCluster},
	{Name: "cluster-port", Reason: noCluster},
	{Name: "cluster-replica-no-failover", Reason: noCluster},
	{Name: "cluster-replica-validity-factor", Reason: noCluster},
	{Name: "cluster-require-full-coverage", Reason: noCluster},
	{Name: "crash-log-enabled", Reason: "the Go runtime prints its own report"},
	{Name: "crash-memcheck-enabled", Reason: "the Go runtime prints its own report"},
	{Name: "disable-thp", Reason: ownMemory},
	{Name: "dynamic-hz", Reason: "background work adapts to the load"},
	{Name: "enable-module-command", Reason: "headgate loads no modules", Only: []string{"no", "local"}},
	{Name: "ignore-warnings", Reason: "headgate looks for none of these"},
	{Name: "io-threads-do-reads", Reason: ownThreads},
	{Name: "jemalloc-bg-thread", Reason: ownMemory},
	{Name: "lazyfree-lazy-eviction", Reason: ownMemory},
	{Name: "lazyfree-lazy-expire", Reason: ownMemory},
	{Name: "lazyfree-lazy-server-del", Reason: ownMemory},
	{Name: "lazyfree-lazy-user-del", Reason: ownMemory},
	{Name: "lazyfree-lazy-user-flush", Reason: ownMemory},
	{Name: "list-compress-depth", Reason: noCompression},
	{Name: "oom-score-adj", Reason: ownProcess},
	{Name: "oom-score-adj-values", Reason: ownProcess},
	{Name: "proc-title-template", Reason: ownProcess},
	{Name: "propagation-error-behavior", Reason: "a primary's command that fails is logged and counted"},
	{Name: "rdb-del-sync-files", Reason: "the file of a snapshot for replicas is always deleted"},
	{Name: "rdb-save-incremental-fsync", Reason: "snapshots always reach the disk as they grow"},
	{Name: "repl-disable-tcp-nodelay", Reason: "what is sent is never held back"},
	{Name: "repl-diskless-load", Reason: "a primary's snapshot is always loaded as it comes, beside the old data"},
	{Name: "replica-announced", Reason: "a replica is always announced"},
	{Name: "replica-ignore-disk-write-errors", Reason: "what a primary sends waits while the append-only file cannot be written"},
	{Name: "replica-ignore-maxmemory", Reason: ownEviction, Only: []string{"yes"}},
	{Name: "replica-lazy-flush", Reason: ownMemory},
	{Name: "sanitize-dump-payload", Reason: "what a file or RESTORE holds is always checked"},
	{Name: "server_cpulist", Reason: ownProcess},
	{Name: "set-proc-title", Reason: ownProcess},
	{Name: "slave-ignore-maxmemory", Reason: ownEviction, Only: []string{"yes"}},
	{Name: "slave-lazy-flush", Reason: ownMemory},
	{Name: "socket-mark-id", Reason: "sockets carry no mark"},
	{Name: "supervised", Reason: "headgate stays in the foreground and tells systemd that it is ready if that asks; use Type=notify"},
	{Name: "syslog-enabled", Reason: ownLog},
	{Name: "syslog-facility", Reason: ownLog},
	{Name: "syslog-ident", Reason: ownLog},
	{Name: "tls-ciphersuites", Reason: ownCiphers},
	{Name: "tls-client-cert-file", Reason: oneCertificate},
	{Name: "tls-client-key-file", Reason: oneCertificate},
	{Name: "tls-client-key-file-pass", Reason: oneCertificate},
	{Name: "tls-cluster", Reason: noCluster, Only: []string{"no"}},
	{Name: "tls-dh-params-file", Reason: "keys are exchanged over elliptic curves only"},
	{Name: "tls-prefer-server-ciphers", Reason: ownCiphers},
	{Name: "tls-session-cache-size", Reason: ownSessions},
	{Name: "tls-session-cache-timeout", Reason: ownSessions},
}

// findIgnored returns the entry of a name in lower case.
func findIgnored(name string) (Ignored, bool) {
	i, found := slices.BinarySearchFunc(ignored, name, func(entry Ignored, name string) int {
		return strings.Compare(entry.Name, name)
	})
	if !found {
		return Ignored{}, false
	}
	return ignored[i], true
}

// judge returns an error if the values ask for something that we lack. The error does not show them: they may be secret.
func (e Ignored) judge(args []string) error {
	value := strings.ToLower(strings.Join(args, " "))
	switch {
	case e.Never:
		return fmt.Errorf("%s: %s", e.Name, e.Reason)
	case e.Only != nil && !slices.Contains(e.Only, value):
		return fmt.Errorf("%s: %s; remove it, or set it to %s", e.Name, e.Reason, quoteIfNeeded(e.Only[0]))
	}
	return nil
}

// builtInModule is how the file of the module whose commands are built in is recognised.
const builtInModule = "redis_cell"

// judgeModule decides about a loadmodule: the one module whose work headgate does itself is met with a notice.
func judgeModule(args []string) (notice string, err error) {
	if len(args) > 0 && strings.Contains(strings.ReplaceAll(args[0], "-", "_"), builtInModule) {
		return "CL.THROTTLE is built in", nil
	}
	return "", fmt.Errorf("loadmodule: headgate loads no modules; remove the line")
}
