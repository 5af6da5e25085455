package upstream

import (
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Limits of the transport. What an operator sets is in Config.
const (
	addrsMax     = 64               // addresses that a URL may name
	nodesMax     = 1000             // nodes that a topology may have; Redis recommends no more
	LinksMax     = 64               // connections to one node that calls share: one for each RESP version, database and user
	flightsMax   = 2                // writes of one connection whose replies have not all come
	flightCalls  = 1024             // calls in one write
	flightBytes  = 256 << 10        // bytes in one write, unless it is one call
	writeBytes   = 1 << 20          // bytes that the socket is given at once, so that it is seen whether it takes any
	bufferKept   = 256 << 10        // bytes of a connection's buffers that are kept while it is idle
	readSize     = 16 << 10         // bytes with which a connection's read buffer begins
	lineMax      = 64 << 10         // bytes of a reply's line, but for a status or an error: a number, a length
	depthMax     = 10_000           // arrays within arrays of a reply; what a script of Redis's can answer has some 2,000
	replyDefault = 512 << 20        // bytes of a call's replies, if Config does not say otherwise: Redis's proto-max-bulk-len
	topologyMax  = 8 << 20          // bytes of a reply about the topology; that of 1000 nodes whose slots are all scattered is shorter
	handshakeMax = 64 << 10         // bytes of a handshake's replies
	attemptsMax  = 64               // how often one call is sent, or waits to be sent again
	straightMax  = 4                // redirects of one call that are followed without a pause
	loadsMax     = 2                // how often a script is loaded for one call
	pendingHard  = 2                // times the limit on what is pending, at which calls are refused
	connectMax   = time.Second      // for a connection and its handshake
	idleMax      = 5 * time.Minute  // without a call after which a connection is closed
	owedMax      = 10 * time.Second // that a reply may take to come whole which nobody waits for any more, before its connection is closed
	drainMax     = 10 * time.Second // for the calls under way before a connection is closed whose node, or configuration, is no more
)

// Defaults of Config's fields, for those that are 0.
const (
	TimeoutDefault         = 50 * time.Millisecond
	RestDefault            = time.Second
	PendingBytesDefault    = 16 << 20
	PendingCommandsDefault = 100_000
)

// Kind is how the primaries are found.
type Kind uint8

const (
	// Plain addresses are of Redis servers: of one that stands alone, or of some of a cluster's nodes.
	Plain Kind = iota
	// Sentinel addresses are of the Sentinels that watch a primary.
	Sentinel
)

// Config says where the nodes are and how they are asked.
type Config struct {
	Kind   Kind
	Addrs  []string // host:port; at least one, unless Unix is set
	Unix   string   // the path of a Unix socket instead
	Master string   // the primary's name among the Sentinels

	User, Password string      // "" is no AUTH; a password without a user is the default user's
	TLS            *tls.Config // nil: plain TCP. ServerName is set for each node, if it is empty

	Timeout         time.Duration     // of calls without a deadline of their own, and of probes
	Rest            time.Duration     // how long a node that has failed is left alone; up to a quarter is added by chance
	PendingBytes    int64             // requests that are under way, and large replies; above it, Upstream.Overloaded
	PendingCommands int               // likewise, in calls
	ReplyMax        int64             // bytes of one call's replies
	Map             map[string]string // from addresses as nodes announce them to those by which they are reached, host:port both

	// RunID is the run_id that this process tells of in INFO, by which a gateway notices that it has been pointed at itself.
	RunID string
}

// ParseURL reads the directive `upstream`, one of
//
//	redis://[user@]host:port[,host:port …]               a server, or some nodes of a cluster
//	rediss://…                                           the same over TLS
//	redis+unix://[user@]/path                            a Unix socket
//	redis-sentinel://[user@]host:port[,host:port …]/name the primary of that name; rediss-sentinel over TLS
//
// A port left out is 6379, or 26379 for a Sentinel. Over TLS the result's TLS is not nil: the caller adds authorities and certificates. A
// password in the URL is an error, since a URL is shown where passwords are hidden.
func ParseURL(s string) (Config, error) {
	scheme, rest, found := strings.Cut(s, "://")
	if !found {
		return Config{}, fmt.Errorf("upstream: %q is not a URL such as redis://host:port", s)
	}
	var c Config
	port := "6379"
	switch scheme {
	case "redis":
	case "rediss":
		c.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	case "redis+unix":
		return parseUnix(rest)
	case "redis-sentinel":
		c.Kind, port = Sentinel, "26379"
	case "rediss-sentinel":
		c.Kind, port, c.TLS = Sentinel, "26379", &tls.Config{MinVersion: tls.VersionTLS12}
	default:
		return Config{}, fmt.Errorf("upstream: %s:// is not one of redis, rediss, redis+unix, redis-sentinel, rediss-sentinel", scheme)
	}
	rest, path, _ := strings.Cut(rest, "/")
	rest, err := c.parseUser(rest)
	if err != nil {
		return Config{}, err
	}
	if err := c.parseAddrs(rest, port); err != nil {
		return Config{}, err
	}
	if c.Kind == Sentinel {
		if c.Master, err = url.PathUnescape(path); err != nil || c.Master == "" {
			return Config{}, errors.New("upstream: a Sentinel's URL ends with the name that it has for the primary, such as mymaster: redis-sentinel://host:port/mymaster")
		}
	} else if path != "" && path != "0" {
		return Config{}, errors.New("upstream: a URL names no database: clients choose theirs by SELECT")
	}
	return c, nil
}

func parseUnix(rest string) (c Config, err error) {
	at := strings.IndexByte(rest, '/')
	if at < 0 {
		return Config{}, errors.New("upstream: a Unix socket's URL has an absolute path: redis+unix:///path")
	}
	if before, err := c.parseUser(rest[:at]); err != nil || before != "" {
		return Config{}, errors.New("upstream: a Unix socket's URL has a path only: redis+unix:///path, or redis+unix://user@/path")
	}
	if c.Unix, err = url.PathUnescape(rest[at:]); err != nil || c.Unix == "/" {
		return Config{}, errors.New("upstream: a Unix socket's URL has an absolute path: redis+unix:///path")
	}
	return c, nil
}

// parseUser takes the user from the front of what a URL names.
func (c *Config) parseUser(rest string) (hosts string, err error) {
	at := strings.LastIndexByte(rest, '@')
	if at < 0 {
		return rest, nil
	}
	user := rest[:at]
	if strings.Contains(user, ":") {
		return "", errors.New("upstream: the URL has a password, which belongs in upstream-password or HEADGATE_UPSTREAM_PASSWORD")
	}
	if c.User, err = url.PathUnescape(user); err != nil {
		return "", errors.New("upstream: the user's name has a % without two hexadecimal digits")
	}
	return rest[at+1:], nil
}

func (c *Config) parseAddrs(list, port string) error {
	for addr := range strings.SplitSeq(list, ",") {
		addr, err := withPort(addr, port)
		if err != nil {
			return err
		}
		if !slices.Contains(c.Addrs, addr) {
			c.Addrs = append(c.Addrs, addr)
		}
	}
	if len(c.Addrs) > addrsMax {
		return fmt.Errorf("upstream: more than %d addresses; some of a cluster's nodes are enough", addrsMax)
	}
	return nil
}

// withPort returns host:port for an address that may lack the port.
func withPort(addr, port string) (string, error) {
	host, given, err := net.SplitHostPort(addr)
	if err != nil {
		host = strings.TrimSuffix(strings.TrimPrefix(addr, "["), "]")
		if strings.Contains(addr, ":") && host == addr {
			return "", fmt.Errorf("upstream: %q is not host:port; write an IPv6 address in brackets", addr)
		}
	} else {
		port = given
	}
	if number, err := net.LookupPort("tcp", port); err != nil || number == 0 {
		return "", fmt.Errorf("upstream: %q has no port from 1 to 65535", addr)
	}
	if host == "" || strings.ContainsAny(host, " \t\r\n/@?#") {
		return "", fmt.Errorf("upstream: %q names no host", addr)
	}
	return net.JoinHostPort(host, port), nil
}

// sameNodes reports whether two configurations lead to the same nodes in the same way, so that connections may stay.
func (c *Config) sameNodes(other *Config) bool {
	return c.Kind == other.Kind && slices.Equal(c.Addrs, other.Addrs) && c.Unix == other.Unix && c.Master == other.Master &&
		c.User == other.User && c.Password == other.Password && c.TLS == other.TLS && maps.Equal(c.Map, other.Map)
}

// withDefaults returns the configuration with all limits set.
func (c Config) withDefaults() Config {
	if c.Timeout <= 0 {
		c.Timeout = TimeoutDefault
	}
	if c.Rest <= 0 {
		c.Rest = RestDefault
	}
	if c.PendingBytes <= 0 {
		c.PendingBytes = PendingBytesDefault
	}
	if c.PendingCommands <= 0 {
		c.PendingCommands = PendingCommandsDefault
	}
	if c.ReplyMax <= 0 {
		c.ReplyMax = replyDefault
	}
	return c
}
