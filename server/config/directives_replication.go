package config

import (
	"math"
	"time"
)

// replicationDirectives are those of the group Replication, sorted by name.
var replicationDirectives = []*Directive{
	{
		Name: "masterauth", Group: Replication, Since: "0.1.0", Default: `""`, Settable: true, Secret: true,
		Summary: "Password that the primary asks for; empty means none. Holds for connections made after it is set.",
		kind:    text(func(c *Config) *string { return &c.MasterAuth }),
	},
	{
		Name: "masteruser", Group: Replication, Since: "0.1.0", Default: `""`, Settable: true,
		Summary: "User that masterauth is the password of; empty means the primary's default user.",
		kind:    text(func(c *Config) *string { return &c.MasterUser }),
	},
	{
		Name: "repl-timeout", Group: Replication, Since: "0.1.0", Default: "60", Settable: true,
		Summary: "Seconds without a byte from the primary after which its connection is closed and made again.",
		kind:    secondsFrom(1, func(c *Config) *time.Duration { return &c.ReplTimeout }),
	},
	{
		Name: "replica-announce-ip", Aliases: []string{"slave-announce-ip"}, Group: Replication, Since: "0.1.0", Default: `""`, Settable: true,
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
		Name: "replicaof", Aliases: []string{"slaveof"}, Group: Replication, Since: "0.1.0", Default: `""`,
		Summary: "Host and port of a primary to follow, a redis-server 7.0, whose data take the place of this server's. The command REPLICAOF changes it while the server runs.",
		kind:    addressKind{field: func(c *Config) *Address { return &c.ReplicaOf }},
	},
	{
		Name: "tls-replication", Group: Replication, Since: "0.1.0", Default: "no", Settable: true,
		Summary: "Connect to the primary over TLS: it needs a certificate that tls-ca-cert-file or tls-ca-cert-dir vouches for, and is shown tls-cert-file if one is set.",
		kind:    yesNo(func(c *Config) *bool { return &c.TLSReplication }),
	},
}
