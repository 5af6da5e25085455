package config

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"headgate/persistence"
)

// What directives refuse, or change, beyond what their kinds say.

func checkSocketPath(c *Config, _ *Host) error { return checkSocketLength(c.UnixSocket) }

func checkHTTPSocketPath(c *Config, _ *Host) error { return checkSocketLength(c.HTTPUnixSocket) }

func checkSocketLength(path string) error {
	if len(path) > maxSocketPath {
		return fmt.Errorf("argument must be a path of at most %d bytes", maxSocketPath)
	}
	return nil
}

func stayInForeground(c *Config, _ *Host) error {
	c.Daemonize = false
	return nil
}

// clampTopWindow has the lists look back a second at least.
func clampTopWindow(c *Config, _ *Host) error {
	c.TopWindow = max(c.TopWindow, time.Second)
	return nil
}

func daemonizeNotice(args []string) string {
	if strings.EqualFold(args[0], "yes") {
		return "daemonize is ignored: headgate stays in the foreground; let systemd or the container run it"
	}
	return ""
}

func clampHz(c *Config, _ *Host) error {
	c.Hz = min(max(c.Hz, minHz), maxHz)
	return nil
}

// checkFileName refuses what is not a name within a directory, in Redis's words.
func checkFileName(directive, name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%s can't be empty", directive)
	case persistence.Reserved(name):
		return fmt.Errorf("%s can't be %s, which the server uses for itself", directive, name)
	case name != filepath.Base(name) || name == "." || name == "..":
		return fmt.Errorf("%s can't be a path, just a %s", directive, map[bool]string{true: "dirname", false: "filename"}[directive == "appenddirname"])
	}
	return nil
}

func checkAppendDirName(c *Config, _ *Host) error {
	return checkFileName("appenddirname", c.AppendDirName)
}

func checkAppendFilename(c *Config, _ *Host) error {
	return checkFileName("appendfilename", c.AppendFilename)
}

func checkDBFilename(c *Config, _ *Host) error {
	if strings.ContainsRune(c.DBFilename, '/') {
		return redisText("dbfilename can't be a path, just a filename")
	}
	if persistence.Reserved(c.DBFilename) {
		return fmt.Errorf("dbfilename can't be %s, which the server uses for itself", c.DBFilename)
	}
	return nil
}

func checkDir(c *Config, h *Host) error { return h.CheckDir(c.Dir) }

// portsApart refuses two servers within the process that would listen on one port of one address.
func (c *Config) portsApart() error {
	listeners := []struct {
		directive string
		port      int
		bind      []string
	}{
		{"port", c.Port, c.Bind}, {"tls-port", c.TLSPort, c.Bind}, {"metrics-port", c.MetricsPort, c.MetricsBind},
		{"http-port", c.HTTPPort, c.HTTPBind}, {"rls-port", c.RLSPort, c.RLSBind},
	}
	for i, l := range listeners {
		for _, other := range listeners[:i] {
			if l.port == other.port && l.port != 0 && shareAddress(l.bind, other.bind) {
				return fmt.Errorf("%s and %s are both %d: choose another for one of them", other.directive, l.directive, l.port)
			}
		}
	}
	if c.UnixSocket != "" && c.HTTPUnixSocket != "" && c.Path(c.UnixSocket) == c.Path(c.HTTPUnixSocket) {
		return fmt.Errorf("unixsocket and http-unixsocket are both %s: choose another for one of them", c.UnixSocket)
	}
	return nil
}

// shareAddress reports whether two lists of addresses to listen on have one in common. What names stand for is not looked up.
func shareAddress(a, b []string) bool {
	return slices.ContainsFunc(a, func(one string) bool {
		one = strings.TrimPrefix(one, "-")
		return slices.ContainsFunc(b, func(other string) bool {
			other = strings.TrimPrefix(other, "-")
			return one == other || standsForAll(one, other) || standsForAll(other, one)
		})
	})
}

// standsForAll reports whether an address is the one for all of a family, and the other is of that family.
func standsForAll(all, address string) bool {
	if isV6 := strings.Contains(address, ":"); isV6 {
		return all == "::" || all == "::*"
	}
	return all == "*" || all == "0.0.0.0"
}

// checkBindAddresses refuses what cannot be addresses to listen on, whatever addresses this machine has: no machine has a name of digits and
// points, nor one with a port.
func checkBindAddresses(args []string) error {
	seen := make(map[string]bool, len(args))
	for _, arg := range args {
		text := strings.TrimPrefix(arg, "-")
		ip, err := netip.ParseAddr(text)
		switch {
		case err == nil:
			text = ip.Unmap().String()
		case text == "*" || text == "::*":
		case strings.Count(text, ":") == 1:
			return fmt.Errorf("argument must be addresses without ports, and %s has one", text)
		case !IsHost(text) || strings.Trim(text, "0123456789.") == "" || strings.Contains(text, ":"):
			return fmt.Errorf("argument must be addresses, and %s is none", text)
		}
		if seen[text] {
			return fmt.Errorf("argument names %s twice", text)
		}
		seen[text] = true
	}
	return nil
}
