package config

import (
	"time"

	"headgate/server/limiter"
)

// upstreamDirectives are those of the group Upstream, sorted by name.
var upstreamDirectives = []*Directive{
	{
		Name: "upstream", Group: Upstream, Since: "0.1.0", Default: `""`, Example: `redis://192.0.2.1:6379,192.0.2.2:6379`, Settable: true, Secret: true,
		Summary: "Redis or Valkey, from 6.2 on, or another headgate that keeps all keys instead of this process, which becomes a gateway to it: redis:// or rediss:// with a user, if there is one, and one or more addresses, a cluster is recognised; redis+unix:// and a path; redis-sentinel://, the sentinels' addresses, a slash and the master's name. Empty means that keys are kept here. That can only be chosen at the start; the URL of a gateway may change while it runs.",
		kind:    text(func(c *Config) *string { return &c.Upstream }),
	},
	{
		Name: "upstream-failure", Group: Upstream, Since: "0.1.0", Default: "error", Settable: true,
		Summary: "What a limiter answers whose node of the upstream does not answer in time: error answers with an error, open lets the call pass, closed limits it, local decides by this process's own count with upstream-local-share of the limit. A policy may say otherwise: FAILURE OPEN.",
		kind:    enum(func(c *Config) *limiter.Failure { return &c.UpstreamFailure }, "error", "open", "closed", "local"),
	},
	{
		Name: "upstream-lease", Group: Upstream, Since: "0.1.0", Default: "no", Settable: true,
		Summary: "Decide about hot keys of CL.THROTTLE, GCRA, RL.GCRA, RL.BUCKET, RL.FIXED and RL.SLIDING here, by units that were charged upstream beforehand: a lease. By how much more may then pass is upstream-lease-overshoot's to say; docs/operations.md has what it costs and what it gives. RL.UPSTREAM LEASES and a key tell why one is not leased.",
		kind:    yesNo(func(c *Config) *bool { return &c.UpstreamLease }),
	},
	{
		Name: "upstream-lease-max-ms", Group: Upstream, Since: "0.1.0", Default: "1000", Settable: true,
		Summary: "Milliseconds that a lease lasts at most, and so the longest time for which what remains may be told too high or too low, or a lowered limit or RL.RESET may not hold everywhere.",
		kind:    milliseconds(1, maxUpstreamMs, func(c *Config) *time.Duration { return &c.UpstreamLeaseMax }),
	},
	{
		Name: "upstream-lease-overshoot", Group: Upstream, Since: "0.1.0", Default: "0.05", Settable: true,
		Summary: "The share of a limit by which more may pass by leases, however many gateways there are: a lease lasts for this share of the time in which the limit comes back, if upstream-lease-max-ms is not shorter. RL.FIXED and RL.SLIDING let no more pass than without leases.",
		kind:    share(func(c *Config) *float64 { return &c.UpstreamLeaseOvershoot }),
	},
	{
		Name: "upstream-lease-strict", Group: Upstream, Since: "0.1.0", Default: "no", Settable: true,
		Summary: "Take what leases might let through beyond a limit off it beforehand, so that nothing more passes if all who call the key do so: with an overshoot of 0.05 at most 95 % of the capacity passes at once, at the whole rate. Replies show the limit as it was called.",
		kind:    yesNo(func(c *Config) *bool { return &c.UpstreamLeaseStrict }),
	},
	{
		Name: "upstream-local-share", Group: Upstream, Since: "0.1.0", Default: "0.25", Settable: true,
		Summary: "The share of a limit's capacity and rate that this process lets pass by itself under upstream-failure local: with as many gateways as 1 / share no more than the limit passes.",
		kind:    share(func(c *Config) *float64 { return &c.UpstreamLocalShare }),
	},
	{
		Name: "upstream-map", Group: Upstream, Since: "0.1.0", Default: `""`, Example: `10.0.0.1:6379 192.0.2.1:6379`, Settable: true,
		Summary: "An address that a node announces, and the one by which it is reached from here, as behind NAT: upstream-map 10.0.0.1:6379 127.0.0.1:7001.",
		kind:    translations("an announced address and the one to use", func(c *Config) *[]Translation { return &c.UpstreamMap }),
	},
	{
		Name: "upstream-password", Group: Upstream, Since: "0.1.0", Default: `""`, Example: `change-me`, Settable: true, Secret: true,
		Summary: "Password for the upstream. Better given by HEADGATE_UPSTREAM_PASSWORD or in the file than as a flag, which other users of the machine can see.",
		kind:    text(func(c *Config) *string { return &c.UpstreamPassword }),
	},
	{
		Name: "upstream-pending-max", Group: Upstream, Since: "0.1.0", Default: "16mb 100000", Settable: true,
		Summary: "Bytes and number of commands that may be under way to the upstream; beyond either, clients are not read until there are fewer.",
		kind:    pendingKind{},
	},
	{
		Name: "upstream-rest-ms", Group: Upstream, Since: "0.1.0", Default: "1000", Settable: true,
		Summary: "Milliseconds for which a node that has not answered in time is left alone, so that calls for it fail at once; then one call tries.",
		kind:    milliseconds(1, maxUpstreamMs, func(c *Config) *time.Duration { return &c.UpstreamRest }),
	},
	{
		Name: "upstream-take", Group: Upstream, Since: "0.1.0", Default: "atomic", Settable: true,
		Summary: "What becomes of RL.TAKE whose keys lie in several slots of a cluster: atomic refuses it with CROSSSLOT, compensate charges the slots one by one and gives back what has passed when one limits, so that never too much passes.",
		kind:    enum(func(c *Config) *UpstreamTake { return &c.UpstreamTake }, "atomic", "compensate"),
	},
	{
		Name: "upstream-timeout-ms", Group: Upstream, Since: "0.1.0", Default: "50", Settable: true,
		Summary: "Milliseconds from a command's arrival to its answer, whatever the upstream does.",
		kind:    milliseconds(1, maxUpstreamMs, func(c *Config) *time.Duration { return &c.UpstreamTimeout }),
	},
	{
		Name: "upstream-tls-ca-cert-file", Group: Upstream, Since: "0.1.0", Default: `""`, Example: `/etc/headgate/upstream-ca.crt`, Settable: true,
		Summary: "File with certificates, in PEM, of authorities that vouch for the upstream under rediss://; empty means those of the system.",
		kind:    text(func(c *Config) *string { return &c.UpstreamTLSCACertFile }),
	},
	{
		Name: "upstream-tls-cert-file", Group: Upstream, Since: "0.1.0", Default: `""`, Example: `/etc/headgate/upstream.crt`, Settable: true,
		Summary: "File with the certificate, in PEM, that the upstream is shown.",
		kind:    text(func(c *Config) *string { return &c.UpstreamTLSCertFile }),
	},
	{
		Name: "upstream-tls-key-file", Group: Upstream, Since: "0.1.0", Default: `""`, Example: `/etc/headgate/upstream.key`, Settable: true,
		Summary: "File with the private key of upstream-tls-cert-file, in PEM.",
		kind:    text(func(c *Config) *string { return &c.UpstreamTLSKeyFile }),
	},
	{
		Name: "upstream-user-map", Group: Upstream, Since: "0.1.0", Default: `""`, Example: `app gateway`, Settable: true,
		Summary: "A user here, and the upstream's user whose connections its commands take, with upstream-password: then scripts run with that user's rights.",
		kind:    translations("a user here and one there", func(c *Config) *[]Translation { return &c.UpstreamUserMap }),
	},
}
