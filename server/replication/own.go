package replication

import (
	"net"
	"strings"

	"headgate/server/config"
)

// A server that follows itself would wait for ever for data that nobody has. What gives it away at once is its address; by another name, or behind
// a proxy, it learns so in the handshake, in which it names its run ID as one of its capabilities: servers pass over those that they do not know.

const (
	capaRunID     = "run-id:" // and the run ID of the server that asks
	errAsksItself = "ERR the server that asks is this one: a server cannot follow itself"
	errOwnAddress = "ERR this is the server's own address: a server cannot follow itself"
)

// isOwn reports whether an address is surely this server's, without asking anybody: a loopback address, or one that bind names, and a port
// that it listens on.
func isOwn(a Address, cfg *config.Config) bool {
	ip := net.ParseIP(a.Host)
	if strings.EqualFold(a.Host, "localhost") {
		ip = net.IPv4(127, 0, 0, 1)
	}
	return ip != nil && listensOn(ip, a.Port, cfg, ip.IsLoopback())
}

// isSelf reports whether a connection leads to this server: to a port on which it listens, of an address of this machine.
func isSelf(nc net.Conn, cfg *config.Config) bool {
	remote, ok := nc.RemoteAddr().(*net.TCPAddr)
	local, ok2 := nc.LocalAddr().(*net.TCPAddr)
	return ok && ok2 && remote.IP.Equal(local.IP) && (remote.Port == local.Port || listensOn(remote.IP, remote.Port, cfg, true))
}

// listensOn reports whether the configuration has the server listen at an address. ours says that the address is one of this machine, so that a
// server which listens on all of them listens there.
func listensOn(ip net.IP, port int, cfg *config.Config, ours bool) bool {
	if port == 0 || port != cfg.Port && port != cfg.TLSPort {
		return false
	}
	for _, bind := range cfg.Bind {
		switch bind = strings.TrimPrefix(bind, "-"); bind {
		case "*", "0.0.0.0":
			if ours && ip.To4() != nil {
				return true
			}
		case "::*":
			if ours && ip.To4() == nil {
				return true
			}
		case "::":
			if ours {
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
