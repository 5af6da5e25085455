package config

import (
	"net"
	"slices"
	"strings"
)

// IsOwn reports whether an address is surely this server's, without asking anybody: a loopback address, or one that bind names, and a port
// that it listens on.
func (c *Config) IsOwn(a Address) bool {
	ip := net.ParseIP(a.Host)
	switch {
	case strings.EqualFold(a.Host, "localhost"):
		ip = net.IPv4(127, 0, 0, 1)
	case ip == nil:
		return c.isPort(a.Port) && slices.Contains(c.Bind, a.Host)
	}
	return c.ListensOn(ip, a.Port, ip.IsLoopback())
}

// isPort reports whether the server listens on a port.
func (c *Config) isPort(port int) bool { return port != 0 && (port == c.Port || port == c.TLSPort) }

// ListensOn reports whether the configuration has the server listen at an address. ours says that the address is one of this machine, so that a
// server which listens on all of them listens there.
func (c *Config) ListensOn(ip net.IP, port int, ours bool) bool {
	if !c.isPort(port) {
		return false
	}
	for _, bind := range c.Bind {
		bind, optional := strings.CutPrefix(bind, "-")
		if optional && !ours { // it may be another machine's
			continue
		}
		switch bind {
		case "*", "0.0.0.0":
			if ours && ip.To4() != nil {
				return true
			}
		case "::*", "::":
			if ours && ip.To4() == nil {
				return true
			}
		default:
			if ip.Equal(net.ParseIP(bind)) { // a name is not looked up
				return true
			}
		}
	}
	return false
}
