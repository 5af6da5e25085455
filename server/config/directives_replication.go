package config

import (
	"math"
	"time"
)

// replicationConfig is what the directives of the group Replication say.
type replicationConfig struct {
	ReplicaOf             Address // the primary that is followed; the zero Address: none
	MasterUser            string
	MasterAuth            string // "" = no password. Never write it to a log
	ReplicaReadOnly       bool
	ReplicaServeStaleData bool
	ReplicaPriority       int
	ReplicaAnnounceIP     string // "" = the one that the connection comes from
	ReplicaAnnouncePort   int    // 0 = port, or tls-port with TLSReplication

	ReplBacklogSize             int           // bytes of changes that are kept for replicas which come back
	ReplBacklogTTL              time.Duration // how long they are kept while there are no replicas; 0 = for ever
	ReplPingReplicaPeriod       time.Duration
	ReplDisklessSync            bool
	ReplDisklessSyncDelay       time.Duration
	ReplDisklessSyncMaxReplicas int           // for so many the delay is not waited for; 0 = it always is
	MinReplicasToWrite          int           // 0 = none are needed
	MinReplicasMaxLag           time.Duration // 0 = none are needed
}

// replicationDirectives are those of the group Replication, sorted by name.
var replicationDirectives = []*Directive{
	{
		Name: "masterauth", Group: Replication, Since: "0.1.0", Default: `""`, Example: `change-me`, Settable: true, Secret: true,
		Summary: "Password for the primary; empty means none. Applies to new connections.",
		kind:    text(func(c *Config) *string { return &c.MasterAuth }),
	},
	{
		Name: "masteruser", Group: Replication, Since: "0.1.0", Default: `""`, Example: `replica`, Settable: true,
		Summary: "User name for masterauth; empty means the primary's default user.",
		kind:    text(func(c *Config) *string { return &c.MasterUser }),
	},
	{
		Name: "min-replicas-max-lag", Aliases: []string{"min-slaves-max-lag"}, Group: Replication, Since: "0.1.0", Default: "10", Settable: true,
		Summary: "Seconds within which a replica must have acknowledged changes to count for min-replicas-to-write; 0 disables that check.",
		kind:    seconds(func(c *Config) *time.Duration { return &c.MinReplicasMaxLag }),
	},
	{
		Name: "min-replicas-to-write", Aliases: []string{"min-slaves-to-write"}, Group: Replication, Since: "0.1.0", Default: "0", Settable: true,
		Summary: "Refuse writes with NOREPLICAS while fewer replicas than this are within min-replicas-max-lag; 0 means never.",
		kind:    integer(0, math.MaxInt32, func(c *Config) *int { return &c.MinReplicasToWrite }),
	},
	{
		Name: "repl-backlog-size", Group: Replication, Since: "0.1.0", Default: "1mb", Settable: true,
		Summary: "Size of the backlog of changes that is kept for disconnected replicas, so that they can resume instead of loading all data.",
		kind:    memoryRaised(16<<10, func(c *Config) *int { return &c.ReplBacklogSize }),
	},
	{
		Name: "repl-backlog-ttl", Group: Replication, Since: "0.1.0", Default: "3600", Settable: true,
		Summary: "Seconds without any replica after which the backlog is freed; 0 means never.",
		kind:    seconds(func(c *Config) *time.Duration { return &c.ReplBacklogTTL }),
	},
	{
		Name: "repl-diskless-sync", Group: Replication, Since: "0.1.0", Default: "yes", Settable: true,
		Summary: "Send a snapshot to replicas while it is created. no writes it to a file in dir first, which suits slow networks; this is always done for replicas that need its length.",
		kind:    yesNo(func(c *Config) *bool { return &c.ReplDisklessSync }),
	},
	{
		Name: "repl-diskless-sync-delay", Group: Replication, Since: "0.1.0", Default: "5", Settable: true,
		Summary: "Seconds to wait for further replicas before such a snapshot starts; replicas that arrive later wait for the next one.",
		kind:    seconds(func(c *Config) *time.Duration { return &c.ReplDisklessSyncDelay }),
	},
	{
		Name: "repl-diskless-sync-max-replicas", Group: Replication, Since: "0.1.0", Default: "0", Settable: true,
		Summary: "Start such a snapshot without delay once this many replicas are waiting; 0 means that the delay always applies.",
		kind:    integer(0, math.MaxInt32, func(c *Config) *int { return &c.ReplDisklessSyncMaxReplicas }),
	},
	{
		Name: "repl-ping-replica-period", Aliases: []string{"repl-ping-slave-period"}, Group: Replication, Since: "0.1.0", Default: "10", Settable: true,
		Summary: "Seconds between PINGs to replicas, which show them that the connection works. Must be less than repl-timeout, or replicas reconnect again and again while nothing changes.",
		kind:    secondsFrom(1, func(c *Config) *time.Duration { return &c.ReplPingReplicaPeriod }),
	},
	{
		Name: "repl-timeout", Group: Replication, Since: "0.1.0", Default: "60", Settable: true,
		Summary: "Seconds without data from the primary, or without an acknowledgement from a replica, after which the connection is closed; a replica then reconnects.",
		kind:    secondsFrom(1, func(c *Config) *time.Duration { return &c.ReplTimeout }),
	},
	{
		Name: "replica-announce-ip", Aliases: []string{"slave-announce-ip"}, Group: Replication, Since: "0.1.0", Default: `""`, Example: `192.0.2.1`, Settable: true,
		Summary: "Address that this server announces to its primary; empty means the address that the connection comes from.",
		kind:    text(func(c *Config) *string { return &c.ReplicaAnnounceIP }),
	},
	{
		Name: "replica-announce-port", Aliases: []string{"slave-announce-port"}, Group: Replication, Since: "0.1.0", Default: "0", Settable: true,
		Summary: "Port that this server announces to its primary; 0 means port, or tls-port with tls-replication.",
		kind:    integer(0, 65535, func(c *Config) *int { return &c.ReplicaAnnouncePort }),
	},
	{
		Name: "replica-priority", Aliases: []string{"slave-priority"}, Group: Replication, Since: "0.1.0", Default: "100", Settable: true,
		Summary: "Priority that INFO shows to redis-sentinel, which promotes the replica with the lowest number, and never one with 0.",
		kind:    integer(0, math.MaxInt32, func(c *Config) *int { return &c.ReplicaPriority }),
	},
	{
		Name: "replica-read-only", Aliases: []string{"slave-read-only"}, Group: Replication, Since: "0.1.0", Default: "yes", Settable: true,
		Summary: "Refuse writes from clients while this server is a replica. With no, writes are accepted, and lost when the primary sends all of its data again.",
		kind:    yesNo(func(c *Config) *bool { return &c.ReplicaReadOnly }),
	},
	{
		Name: "replica-serve-stale-data", Aliases: []string{"slave-serve-stale-data"}, Group: Replication, Since: "0.1.0", Default: "yes", Settable: true,
		Summary: "Serve the existing data while the link to the primary is down or its data have not all arrived; no refuses most commands with MASTERDOWN.",
		kind:    yesNo(func(c *Config) *bool { return &c.ReplicaServeStaleData }),
	},
	{
		Name: "replicaof", Aliases: []string{"slaveof"}, Group: Replication, Since: "0.1.0", Default: `""`, Example: `192.0.2.1 6379`,
		Summary: "Host and port of a primary to replicate, a headgate or a redis-server 7.0; its data replace those of this server. The REPLICAOF command changes this while the server runs.",
		kind:    addressKind{field: func(c *Config) *Address { return &c.ReplicaOf }},
	},
	{
		Name: "tls-replication", Group: Replication, Since: "0.1.0", Default: "no", Settable: true,
		Summary: "Connect to the primary over TLS. The primary's certificate must be signed by an authority in tls-ca-cert-file or tls-ca-cert-dir; tls-cert-file, if set, is presented to it.",
		kind:    yesNo(func(c *Config) *bool { return &c.TLSReplication }),
	},
}

// TooSeldom is what is wrong if PingsTooSeldom says so.
const TooSeldom = "it is not above repl-ping-replica-period: a replica that hears nothing for so long reconnects again and again while nothing changes"

// PingsTooSeldom reports whether replicas with the same configuration give up the link between two PINGs.
func (c *Config) PingsTooSeldom() bool { return c.ReplTimeout <= c.ReplPingReplicaPeriod }
