package cluster

import (
	"crypto/sha1"
	"encoding/hex"
	"net"
	"strconv"

	"headgate/server/command"
	"headgate/server/config"
)

// Cluster is this server as a cluster of one primary and its replicas.
type Cluster struct {
	*command.Core

	// Topology returns who follows whom. It is called with the executor's lock held.
	Topology func() Topology
}

// Topology is who follows whom, as far as this server knows.
type Topology struct {
	Offset   int64 // of the changes that have been made here
	Follows  bool
	Primary  config.Address // that is followed
	Linked   bool           // its changes come
	Replicas []Replica      // that follow this server
}

// Replica is a server that follows this one.
type Replica struct {
	Host   string // an address or a name
	Port   int
	Offset int64 // of the changes that it has confirmed
	Online bool  // it has all data
}

// node is a server as clients are told of it.
type node struct {
	id       string
	ip       string // its address, or the name by which it is known
	hostname string // that it announces beside its address; "": none
	endpoint string // where clients are to connect; "": to where they have asked
	port     int
	offset   int64
	tls      bool // at that port
	self     bool
	replica  bool
	online   bool
}

// idOf names a node. Servers that call it by the same address give it the same name.
func idOf(ip string, port int) string {
	sum := sha1.Sum([]byte(address(ip, port)))
	return hex.EncodeToString(sum[:])
}

// address is host:port in the form of CLUSTER NODES and MOVED: without the brackets that IPv6 has elsewhere.
func address(host string, port int) string { return host + ":" + strconv.Itoa(port) }

// nodes returns the nodes as a client is told of them, the primary first.
func (s *Cluster) nodes(c *command.Ctx) []node {
	t := s.Topology()
	self := s.self(c)
	self.offset, self.replica = t.Offset, t.Follows
	if t.Follows {
		primary := other(t.Primary.Host, t.Primary.Port)
		primary.online, primary.offset = t.Linked, t.Offset
		return []node{primary, self}
	}
	list := []node{self}
	for _, r := range t.Replicas {
		n := other(r.Host, r.Port)
		n.replica, n.online, n.offset = true, r.Online, r.Offset
		list = append(list, n)
	}
	return list
}

// other is a node that this server knows by an address.
func other(host string, port int) node {
	return node{id: idOf(host, port), ip: host, endpoint: host, port: port}
}

// self is this server, by what it is to announce, or else by where the client has found it.
func (s *Cluster) self(c *command.Ctx) node {
	cfg := c.Cfg
	n := node{self: true, online: true, hostname: cfg.ClusterAnnounceHostname}
	n.ip, n.port = foundAt(c.Client.Conn.Local, cfg)
	if cfg.ClusterAnnounceIP != "" {
		n.ip = cfg.ClusterAnnounceIP
	}
	n.tls = n.port == cfg.TLSPort && n.port != cfg.Port
	switch {
	case n.tls && cfg.ClusterAnnounceTLSPort != 0:
		n.port = cfg.ClusterAnnounceTLSPort
	case !n.tls && cfg.ClusterAnnouncePort != 0:
		n.port = cfg.ClusterAnnouncePort
	}
	n.id = idOf(n.ip, n.port)
	switch cfg.ClusterEndpoint {
	case config.EndpointIP:
		n.endpoint = n.ip
	case config.EndpointHostname:
		if n.endpoint = n.hostname; n.endpoint == "" {
			n.endpoint = "?"
		}
	}
	return n
}

// foundAt is where a client has connected to, by its connection's local address. One that has come through a Unix socket is told of TCP.
func foundAt(local string, cfg *config.Config) (ip string, port int) {
	if host, digits, err := net.SplitHostPort(local); err == nil {
		if port, err = strconv.Atoi(digits); err == nil && net.ParseIP(host) != nil {
			return host, port
		}
	}
	if port = cfg.Port; port == 0 {
		port = cfg.TLSPort
	}
	return "127.0.0.1", port
}
