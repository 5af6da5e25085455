package config

import "os"

// checkConfig is what the directives of the group HTTP check say.
type checkConfig struct {
	// HTTPBind lists the addresses that the HTTP check listens on, in the form of Bind.
	HTTPBind           []string
	HTTPPort           int         // of the HTTP check; 0 = none
	HTTPUnixSocket     string      // socket file of the HTTP check; "" = none
	HTTPUnixSocketPerm os.FileMode // its permission bits; 0 = as the umask leaves them
}

// checkDirectives are those of the group HTTP check, sorted by name.
var checkDirectives = []*Directive{
	{
		Name: "http-bind", Group: HTTPCheck, Since: "0.1.0", Default: "127.0.0.1 -::1",
		Summary: "Addresses that http-port listens on, in the same form as bind. Every client that reaches them can charge limits, as clients of port can.",
		kind:    bind(func(c *Config) *[]string { return &c.HTTPBind }),
	},
	{
		Name: "http-port", Group: HTTPCheck, Since: "0.1.0", Default: "0",
		Summary: "HTTP port that answers whether a request may pass, for gateways that ask before they forward; 0 means none. See docs/http.md.",
		kind:    integer(0, 65535, func(c *Config) *int { return &c.HTTPPort }),
	},
	{
		Name: "http-unixsocket", Group: HTTPCheck, Since: "0.1.0", Default: `""`, Example: `/run/headgate/check.sock`,
		Summary: "Path of a Unix socket that serves the same as http-port.",
		kind:    text(func(c *Config) *string { return &c.HTTPUnixSocket }),
		check:   checkHTTPSocketPath,
	},
	{
		Name: "http-unixsocketperm", Group: HTTPCheck, Since: "0.1.0", Default: "0",
		Summary: "Permission bits of http-unixsocket, in octal; 0 leaves them to the umask.",
		kind:    permission(func(c *Config) *os.FileMode { return &c.HTTPUnixSocketPerm }),
	},
}
