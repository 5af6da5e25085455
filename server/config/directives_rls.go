package config

// rlsConfig is what the directives of the group Envoy say.
type rlsConfig struct {
	// RLSBind lists the addresses that the rate limit service listens on, in the form of Bind.
	RLSBind            []string
	RLSPort            int    // of Envoy's rate limit service; 0 = none
	RLSConfig          string // file or directory of its rules; relative to Dir, see Path
	RLSUser            string // as whom it asks limits, if RLSPassword is not empty
	RLSPassword        string // "" = none. Never write it to a log
	RLSTLS             bool
	RLSResponseHeaders bool
}

// rlsDirectives are those of the group Envoy, sorted by name.
var rlsDirectives = []*Directive{
	{
		Name: "rls-bind", Group: Envoy, Since: "0.1.0", Default: "127.0.0.1 -::1",
		Summary: "Addresses that rls-port listens on, in the same form as bind. Every client that reaches them can charge limits, as clients of port can.",
		kind:    bind(func(c *Config) *[]string { return &c.RLSBind }),
	},
	{
		Name: "rls-config", Group: Envoy, Since: "0.1.0", Default: `""`, Example: `/etc/headgate/ratelimit`,
		Summary: "Rules of the rate limit service: a file in the format of envoyproxy/ratelimit, or a directory of such files. They are reloaded when they change; if they contain a mistake, the earlier rules stay.",
		kind:    text(func(c *Config) *string { return &c.RLSConfig }),
	},
	{
		Name: "rls-password", Group: Envoy, Since: "0.1.0", Default: `""`, Example: `change-me`, Secret: true,
		Summary: "Password of rls-user; empty means that the rate limit service checks limits as the default user, without a password.",
		kind:    text(func(c *Config) *string { return &c.RLSPassword }),
	},
	{
		Name: "rls-port", Group: Envoy, Since: "0.1.0", Default: "0",
		Summary: "Port of Envoy's rate limit service, version 3, over gRPC; 0 means none. See docs/envoy.md.",
		kind:    integer(0, 65535, func(c *Config) *int { return &c.RLSPort }),
	},
	{
		Name: "rls-response-headers", Group: Envoy, Since: "0.1.0", Default: "no",
		Summary: "Whether replies include RateLimit-Limit, RateLimit-Remaining and RateLimit-Reset for the response.",
		kind:    yesNo(func(c *Config) *bool { return &c.RLSResponseHeaders }),
	},
	{
		Name: "rls-tls", Group: Envoy, Since: "0.1.0", Default: "no",
		Summary: "Whether rls-port uses TLS, with the certificates that the tls- directives name.",
		kind:    yesNo(func(c *Config) *bool { return &c.RLSTLS }),
	},
	{
		Name: "rls-user", Group: Envoy, Since: "0.1.0", Default: "default",
		Summary: "User whose rights apply to the rate limit service, if rls-password is set.",
		kind:    text(func(c *Config) *string { return &c.RLSUser }),
	},
}
