package config

import (
	"errors"
	"strings"
)

// Endpoint is by what clients in cluster mode are told to connect.
type Endpoint uint8

// The endpoints.
const (
	EndpointIP       Endpoint = iota // the address
	EndpointHostname                 // cluster-announce-hostname
	EndpointUnknown                  // whatever they have asked
)

// clusterConfig is what the directives of the group Cluster say.
type clusterConfig struct {
	ClusterEmulated         bool   // clients in cluster mode are answered
	ClusterAnnounceIP       string // "" = where they have connected to
	ClusterAnnounceHostname string
	ClusterAnnouncePort     int // 0 = where they have connected to
	ClusterAnnounceTLSPort  int
	ClusterEndpoint         Endpoint
}

// clusterDirectives are those of the group Cluster, sorted by name.
var clusterDirectives = []*Directive{
	{
		Name: "cluster-announce-hostname", Group: Cluster, Since: "0.1.0", Default: `""`, Example: `headgate.example`, Settable: true,
		Summary: "Host name that clients in cluster mode are told in addition to the address.",
		kind:    text(func(c *Config) *string { return &c.ClusterAnnounceHostname }),
		check:   func(c *Config, _ *Host) error { return checkHostname(c.ClusterAnnounceHostname) },
	},
	{
		Name: "cluster-announce-ip", Group: Cluster, Since: "0.1.0", Default: `""`, Example: `192.0.2.1`, Settable: true,
		Summary: "Address that clients in cluster mode are told; empty means the address that they have connected to, which is right unless addresses are translated on the way.",
		kind:    text(func(c *Config) *string { return &c.ClusterAnnounceIP }),
		check:   func(c *Config, _ *Host) error { return checkAnnouncedIP(c.ClusterAnnounceIP) },
	},
	{
		Name: "cluster-announce-port", Group: Cluster, Since: "0.1.0", Default: "0", Settable: true,
		Summary: "Port that clients in cluster mode are told; 0 means the port that they have connected to.",
		kind:    integer(0, 65535, func(c *Config) *int { return &c.ClusterAnnouncePort }),
	},
	{
		Name: "cluster-announce-tls-port", Group: Cluster, Since: "0.1.0", Default: "0", Settable: true,
		Summary: "The same for clients that have connected to tls-port.",
		kind:    integer(0, 65535, func(c *Config) *int { return &c.ClusterAnnounceTLSPort }),
	},
	{
		Name: "cluster-enabled", Group: Cluster, Since: "0.1.0", Default: "no",
		Summary: "Whether clients in cluster mode may connect: emulated answers them as one primary, with its replicas, that has all slots. Commands may still use keys from several slots, and a replica redirects clients to its primary.",
		kind:    emulation{field: func(c *Config) *bool { return &c.ClusterEmulated }},
	},
	{
		Name: "cluster-preferred-endpoint-type", Group: Cluster, Since: "0.1.0", Default: "ip", Settable: true,
		Summary: "How clients in cluster mode connect: to the address, to cluster-announce-hostname, or to whatever they are connected to.",
		kind:    enum(func(c *Config) *Endpoint { return &c.ClusterEndpoint }, "ip", "hostname", "unknown-endpoint"),
	},
}

// Mode is what the server is to clients, in the words of HELLO and INFO.
func (c *Config) Mode() string {
	if c.ClusterEmulated {
		return "cluster"
	}
	return "standalone"
}

// checkAnnouncedIP refuses what is neither an address nor a name. Redis takes anything.
func checkAnnouncedIP(host string) error {
	if host != "" && !IsHost(host) {
		return errors.New("argument must be an address or a name")
	}
	return nil
}

// checkHostname is Redis's check of a name.
func checkHostname(name string) error {
	const hostnameBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-"
	switch {
	case len(name) >= maxHost+1:
		return redisText("Hostnames must be less than 256 characters")
	case strings.Trim(name, hostnameBytes) != "":
		return redisText("Hostnames may only contain alphanumeric characters, hyphens or dots")
	}
	return nil
}

// emulation is cluster-enabled: no, or emulated.
type emulation struct {
	single
	field func(*Config) *bool
}

func (k emulation) parse(c *Config, args []string, _ bool) error {
	switch strings.ToLower(args[0]) {
	case "no":
		*k.field(c) = false
	case "emulated":
		*k.field(c) = true
	case "yes":
		return errors.New("headgate forms no clusters; with 'emulated' it answers clients in cluster mode as one server that has all slots")
	default:
		return errors.New("argument must be 'no' or 'emulated'")
	}
	return nil
}

func (k emulation) format(c *Config) string {
	if *k.field(c) {
		return "emulated"
	}
	return "no"
}

func (k emulation) lines(c *Config) []string { return []string{k.format(c)} }
func (emulation) syntax() string             { return "no, emulated" }
