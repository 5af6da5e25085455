package config

import (
	"time"

	"headgate/server/limiter"
)

// upstreamConfig is what the directives of the group Upstream say.
type upstreamConfig struct {
	// Upstream is the URL of where keys and the state of limiters are kept instead of here; "" = they are kept here.
	Upstream              string
	UpstreamPassword      string // Never write it to a log
	UpstreamTLSCACertFile string // the files are relative to Dir, see Path
	UpstreamTLSCertFile   string
	UpstreamTLSKeyFile    string
	UpstreamTimeout       time.Duration   // from a command's arrival to its answer
	UpstreamRest          time.Duration   // for which a node that has timed out is left alone
	UpstreamFailure       limiter.Failure // of limiters whose policy says nothing of it
	UpstreamLocalShare    float64         // of a limit, that limiter.FailLocal lets pass here

	UpstreamLease          bool          // hot limits are decided here, of leases
	UpstreamLeaseOvershoot float64       // of a limit, that more may pass by leases
	UpstreamLeaseStrict    bool          // nothing more may
	UpstreamLeaseMax       time.Duration // that a lease is long at most

	UpstreamPendingMax PendingLimit
	UpstreamMap        []Translation // addresses that nodes announce -> where they are reached
	UpstreamTake       UpstreamTake
	UpstreamUserMap    []Translation // users here -> users there
}

// upstreamDirectives are those of the group Upstream, sorted by name.
var upstreamDirectives = []*Directive{
	{
		Name: "upstream", Group: Upstream, Since: "0.1.0", Default: `""`, Example: `redis://192.0.2.1:6379,192.0.2.2:6379`, Settable: true, Secret: true,
		Summary: "Redis or Valkey (6.2 or later) or another headgate that stores all keys; this process becomes a gateway to it. redis:// or rediss:// with an optional user and one or more addresses (a cluster is detected); redis+unix:// and a path; or redis-sentinel://, the addresses of the Sentinels, a slash and the name of the primary. Empty means that keys are stored here. This is decided at start; the URL of a gateway can be changed while it runs.",
		kind:    text(func(c *Config) *string { return &c.Upstream }),
	},
	{
		Name: "upstream-failure", Group: Upstream, Since: "0.1.0", Default: "error", Settable: true,
		Summary: "What a limiter returns when its upstream node does not answer in time: error returns an error, open allows the call, closed limits it, and local decides by a local count with upstream-local-share of the limit. A policy can override this, as in FAILURE OPEN.",
		kind:    enum(func(c *Config) *limiter.Failure { return &c.UpstreamFailure }, "error", "open", "closed", "local"),
	},
	{
		Name: "upstream-lease", Group: Upstream, Since: "0.1.0", Default: "no", Settable: true,
		Summary: "Decide about hot keys of CL.THROTTLE, GCRA, RL.GCRA, RL.BUCKET, RL.FIXED and RL.SLIDING locally, from units that were charged upstream in advance (a lease). upstream-lease-overshoot bounds how much more than the limit may pass; docs/operations.md explains the costs and benefits. RL.UPSTREAM LEASES key shows why a key has no lease.",
		kind:    yesNo(func(c *Config) *bool { return &c.UpstreamLease }),
	},
	{
		Name: "upstream-lease-max-ms", Group: Upstream, Since: "0.1.0", Default: "2000", Settable: true,
		Summary: "Maximum duration of a lease in milliseconds. For at most this long, the reported remaining units may be inaccurate, and a lowered limit or RL.RESET may not yet apply everywhere.",
		kind:    milliseconds(1, maxUpstreamMs, func(c *Config) *time.Duration { return &c.UpstreamLeaseMax }),
	},
	{
		Name: "upstream-lease-overshoot", Group: Upstream, Since: "0.1.0", Default: "0.05", Settable: true,
		Summary: "Share of a limit that leases may allow in addition, regardless of the number of gateways. A lease lasts for this share of the time in which the limit refills, or for upstream-lease-max-ms if that is shorter. RL.FIXED and RL.SLIDING allow no more than without leases.",
		kind:    share(func(c *Config) *float64 { return &c.UpstreamLeaseOvershoot }),
	},
	{
		Name: "upstream-lease-strict", Group: Upstream, Since: "0.1.0", Default: "no", Settable: true,
		Summary: "Subtract in advance what leases might allow beyond a limit, at least one unit, from the capacity of each call with a rate, also if upstream-lease is no: the limit is never exceeded if all callers of the key do so. The rate is unchanged. Replies show the limit as given in the call.",
		kind:    yesNo(func(c *Config) *bool { return &c.UpstreamLeaseStrict }),
	},
	{
		Name: "upstream-local-share", Group: Upstream, Since: "0.1.0", Default: "0.25", Settable: true,
		Summary: "Share of a limit's capacity and rate that this process allows by itself under upstream-failure local. With 1 / share gateways, no more than the limit passes in total.",
		kind:    share(func(c *Config) *float64 { return &c.UpstreamLocalShare }),
	},
	{
		Name: "upstream-map", Group: Upstream, Since: "0.1.0", Default: `""`, Example: `10.0.0.1:6379 192.0.2.1:6379`, Settable: true,
		Summary: "An address that a node announces, and the address at which it can be reached from here, for example behind NAT: upstream-map 10.0.0.1:6379 127.0.0.1:7001.",
		kind:    translations("an announced address and the one to use", func(c *Config) *[]Translation { return &c.UpstreamMap }),
	},
	{
		Name: "upstream-password", Group: Upstream, Since: "0.1.0", Default: `""`, Example: `change-me`, Settable: true, Secret: true,
		Summary: "Password for the upstream. Set it through HEADGATE_UPSTREAM_PASSWORD or the file rather than a flag, which other users of the machine can see.",
		kind:    text(func(c *Config) *string { return &c.UpstreamPassword }),
	},
	{
		Name: "upstream-pending-max", Group: Upstream, Since: "0.1.0", Default: "16mb 100000", Settable: true,
		Summary: "Maximum size and number of commands in flight to the upstream; beyond either, the server stops reading from clients until there are fewer.",
		kind:    pendingKind{},
	},
	{
		Name: "upstream-rest-ms", Group: Upstream, Since: "0.1.0", Default: "1000", Settable: true,
		Summary: "Milliseconds for which a node that did not answer in time is not contacted, so that calls for it fail immediately; then one call tries again.",
		kind:    milliseconds(1, maxUpstreamMs, func(c *Config) *time.Duration { return &c.UpstreamRest }),
	},
	{
		Name: "upstream-take", Group: Upstream, Since: "0.1.0", Default: "atomic", Settable: true,
		Summary: "How RL.TAKE treats keys in several cluster slots: atomic refuses the call with CROSSSLOT; compensate charges the slots separately and gives units back when one of them limits, so that too much never passes.",
		kind:    enum(func(c *Config) *UpstreamTake { return &c.UpstreamTake }, "atomic", "compensate"),
	},
	{
		Name: "upstream-timeout-ms", Group: Upstream, Since: "0.1.0", Default: "50", Settable: true,
		Summary: "Maximum time in milliseconds from the arrival of a command to its reply, whatever the upstream does.",
		kind:    milliseconds(1, maxUpstreamMs, func(c *Config) *time.Duration { return &c.UpstreamTimeout }),
	},
	{
		Name: "upstream-tls-ca-cert-file", Group: Upstream, Since: "0.1.0", Default: `""`, Example: `/etc/headgate/upstream-ca.crt`, Settable: true,
		Summary: "PEM file with the certificates of authorities that sign the upstream's certificate (rediss://); empty means the system's authorities.",
		kind:    text(func(c *Config) *string { return &c.UpstreamTLSCACertFile }),
	},
	{
		Name: "upstream-tls-cert-file", Group: Upstream, Since: "0.1.0", Default: `""`, Example: `/etc/headgate/upstream.crt`, Settable: true,
		Summary: "PEM file with the certificate that is presented to the upstream.",
		kind:    text(func(c *Config) *string { return &c.UpstreamTLSCertFile }),
	},
	{
		Name: "upstream-tls-key-file", Group: Upstream, Since: "0.1.0", Default: `""`, Example: `/etc/headgate/upstream.key`, Settable: true,
		Summary: "PEM file with the private key of upstream-tls-cert-file.",
		kind:    text(func(c *Config) *string { return &c.UpstreamTLSKeyFile }),
	},
	{
		Name: "upstream-user-map", Group: Upstream, Since: "0.1.0", Default: `""`, Example: `app gateway`, Settable: true,
		Summary: "A user of this server and the upstream user whose connections its commands use, with upstream-password. Scripts then run with that user's rights.",
		kind:    translations("a user here and one there", func(c *Config) *[]Translation { return &c.UpstreamUserMap }),
	},
}
