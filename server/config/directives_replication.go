package config

import (
	"math"
	"time"
)

// replicationDirectives are those of the group Replication, sorted by name.
var replicationDirectives = []*Directive{
	{
		Name: "masterauth", Group: Replication, Since: "0.1.0", Default: `""`, Example: `change-me`, Settable: true, Secret: true,
		Summary: "Password that the primary asks for; empty means none. Holds for connections made after it is set.",
		kind:    text(func(c *Config) *string { return &c.MasterAuth }),
	},
	{
		Name: "masteruser", Group: Replication, Since: "0.1.0", Default: `""`, Example: `replica`, Settable: true,
		Summary: "User that masterauth is the password of; empty means the primary's default user.",
		kind:    text(func(c *Config) *string { return &c.MasterUser }),
	},
	{
		Name: "min-replicas-max-lag", Aliases: []string{"min-slaves-max-lag"}, Group: Replication, Since: "0.1.0", Default: "10", Settable: true,
		Summary: "Seconds within which a replica must have acknowledged something to count for min-replicas-to-write; 0 lets writes depend on no replica.",
		kind:    seconds(func(c *Config) *time.Duration { return &c.MinReplicasMaxLag }),
	},
	{
		Name: "min-replicas-to-write", Aliases: []string{"min-slaves-to-write"}, Group: Replication, Since: "0.1.0", Default: "0", Settable: true,
		Summary: "Refuse writes with NOREPLICAS while fewer replicas than this are near enough, as min-replicas-max-lag has it; 0 never does.",
		kind:    integer(0, math.MaxInt32, func(c *Config) *int { return &c.MinReplicasToWrite }),
	},
	{
		Name: "repl-backlog-size", Group: Replication, Since: "0.1.0", Default: "1mb", Settable: true,
		Summary: "How much of the changes to keep for replicas whose connection is cut, so that they resume where they were instead of loading all data.",
		kind:    memoryRaised(16<<10, func(c *Config) *int { return &c.ReplBacklogSize }),
	},
	{
		Name: "repl-backlog-ttl", Group: Replication, Since: "0.1.0", Default: "3600", Settable: true,
		Summary: "Seconds without a replica after which a primary keeps changes no more; 0 means never.",
		kind:    seconds(func(c *Config) *time.Duration { return &c.ReplBacklogTTL }),
	},
	{
		Name: "repl-diskless-sync", Group: Replication, Since: "0.1.0", Default: "yes", Settable: true,
		Summary: "Send a snapshot to replicas as it is made; no writes it to a file in dir first, which suits slow networks, and is done in any case for replicas that need its length.",
		kind:    yesNo(func(c *Config) *bool { return &c.ReplDisklessSync }),
	},
	{
		Name: "repl-diskless-sync-delay", Group: Replication, Since: "0.1.0", Default: "5", Settable: true,
		Summary: "Seconds to wait for further replicas before such a snapshot is begun: who comes later waits for the next.",
		kind:    seconds(func(c *Config) *time.Duration { return &c.ReplDisklessSyncDelay }),
	},
	{
		Name: "repl-diskless-sync-max-replicas", Group: Replication, Since: "0.1.0", Default: "0", Settable: true,
		Summary: "For so many replicas the snapshot is begun without that wait; 0 means that the wait is always made.",
		kind:    integer(0, math.MaxInt32, func(c *Config) *int { return &c.ReplDisklessSyncMaxReplicas }),
	},
	{
		Name: "repl-ping-replica-period", Aliases: []string{"repl-ping-slave-period"}, Group: Replication, Since: "0.1.0", Default: "10", Settable: true,
		Summary: "Seconds between two PINGs to replicas, by which they see that the connection works. Less than repl-timeout.",
		kind:    secondsFrom(1, func(c *Config) *time.Duration { return &c.ReplPingReplicaPeriod }),
	},
	{
		Name: "repl-timeout", Group: Replication, Since: "0.1.0", Default: "60", Settable: true,
		Summary: "Seconds without a byte from the primary, or without an acknowledgement of a replica, after which the connection is closed and made again.",
		kind:    secondsFrom(1, func(c *Config) *time.Duration { return &c.ReplTimeout }),
	},
	{
		Name: "replica-announce-ip", Aliases: []string{"slave-announce-ip"}, Group: Replication, Since: "0.1.0", Default: `""`, Example: `192.0.2.1`, Settable: true,
		Summary: "Address of this server that the primary is told; empty means the one that the connection comes from.",
		kind:    text(func(c *Config) *string { return &c.ReplicaAnnounceIP }),
	},
	{
		Name: "replica-announce-port", Aliases: []string{"slave-announce-port"}, Group: Replication, Since: "0.1.0", Default: "0", Settable: true,
		Summary: "Port of this server that the primary is told; 0 means port, or tls-port with tls-replication.",
		kind:    integer(0, 65535, func(c *Config) *int { return &c.ReplicaAnnouncePort }),
	},
	{
		Name: "replica-priority", Aliases: []string{"slave-priority"}, Group: Replication, Since: "0.1.0", Default: "100", Settable: true,
		Summary: "What INFO tells redis-sentinel, which prefers the replica with the lowest number when it promotes one, and none with 0.",
		kind:    integer(0, math.MaxInt32, func(c *Config) *int { return &c.ReplicaPriority }),
	},
	{
		Name: "replica-read-only", Aliases: []string{"slave-read-only"}, Group: Replication, Since: "0.1.0", Default: "yes", Settable: true,
		Summary: "Refuse clients' writes while a primary is followed. With no they are made, and are lost when the primary sends all of its data.",
		kind:    yesNo(func(c *Config) *bool { return &c.ReplicaReadOnly }),
	},
	{
		Name: "replica-serve-stale-data", Aliases: []string{"slave-serve-stale-data"}, Group: Replication, Since: "0.1.0", Default: "yes", Settable: true,
		Summary: "Answer from the data that are there while the primary's connection is cut, or its data have not all come; no refuses most commands with MASTERDOWN.",
		kind:    yesNo(func(c *Config) *bool { return &c.ReplicaServeStaleData }),
	},
	{
		Name: "replicaof", Aliases: []string{"slaveof"}, Group: Replication, Since: "0.1.0", Default: `""`, Example: `192.0.2.1 6379`,
		Summary: "Host and port of a primary to follow, a headgate or a redis-server 7.0, whose data take the place of this server's. The command REPLICAOF changes it while the server runs.",
		kind:    addressKind{field: func(c *Config) *Address { return &c.ReplicaOf }},
	},
	{
		Name: "tls-replication", Group: Replication, Since: "0.1.0", Default: "no", Settable: true,
		Summary: "Connect to the primary over TLS: it needs a certificate that tls-ca-cert-file or tls-ca-cert-dir vouches for, and is shown tls-cert-file if one is set.",
		kind:    yesNo(func(c *Config) *bool { return &c.TLSReplication }),
	},
}
