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
	if c.UnixSocket != "" && c.HTTPUnixSocket != "" && filepath.Clean(c.Path(c.UnixSocket)) == filepath.Clean(c.Path(c.HTTPUnixSocket)) {
		return fmt.Errorf("unixsocket and http-unixsocket are both %s: choose another for one of them", c.UnixSocket)
	}
	return nil
}

// shareAddress reports whether two lists of addresses to listen on have one in common. What names stand for is not looked up: it may be any
// address, and is taken for one of IPv4.
func shareAddress(a, b []string) bool {
	return slices.ContainsFunc(a, func(text string) bool {
		one := parseBindAddress(text)
		return slices.ContainsFunc(b, func(text string) bool {
			other := parseBindAddress(text)
			return one == other || one.covers(other) || other.covers(one) || one.isName() && other.isAllIPv4() || one.isAllIPv4() && other.isName()
		})
	})
}

// bindAddress is an address to listen on, as the system has it: many texts stand for one address.
type bindAddress struct {
	ip   netip.Addr // 0.0.0.0 for *, and :: for ::*
	name string     // that stands for an address, if ip is none
}

// parseBindAddress reads an address to listen on. Whether it is optional makes no difference to where it is.
func parseBindAddress(text string) bindAddress {
	text = strings.TrimPrefix(text, "-")
	switch text {
	case "*":
		return bindAddress{ip: netip.IPv4Unspecified()}
	case "::*":
		return bindAddress{ip: netip.IPv6Unspecified()}
	}
	ip, err := netip.ParseAddr(text)
	if err != nil {
		return bindAddress{name: text}
	}
	return bindAddress{ip: ip.Unmap()}
}

func (a bindAddress) String() string {
	if a.isName() {
		return a.name
	}
	return a.ip.String()
}

func (a bindAddress) isName() bool { return !a.ip.IsValid() }

func (a bindAddress) isAllIPv4() bool { return a.ip == netip.IPv4Unspecified() }

// covers reports whether a stands for all addresses of a family, and other is one of that family: the server listens on :: for IPv6 alone, so
// that 0.0.0.0 and :: can stand beside each other.
func (a bindAddress) covers(other bindAddress) bool {
	return a.ip.IsUnspecified() && other.ip.IsValid() && a.ip.Is4() == other.ip.Is4()
}

// checkBindAddresses refuses what cannot be addresses to listen on, whatever addresses this machine has: no machine has a name of digits and
// points, nor one with a port. Nor can the server listen on an address twice, once for itself and once for all addresses.
func checkBindAddresses(args []string) error {
	for i, arg := range args {
		if err := checkBindAddress(strings.TrimPrefix(arg, "-")); err != nil {
			return err
		}
		for _, before := range args[:i] {
			if err := checkBindPair(before, arg); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkBindAddress(text string) error {
	switch {
	case !parseBindAddress(text).isName():
	case strings.Count(text, ":") == 1:
		return fmt.Errorf("argument must be addresses without ports, and %s has one", text)
	case !IsHost(text) || strings.Trim(text, "0123456789.") == "" || strings.Contains(text, ":"):
		return fmt.Errorf("argument must be addresses, and %s is none", text)
	}
	return nil
}

// checkBindPair refuses two addresses of one list of which one is the other, or among those that the other stands for.
func checkBindPair(one, other string) error {
	a, b := parseBindAddress(one), parseBindAddress(other)
	switch {
	case a == b && !a.ip.IsUnspecified():
		return fmt.Errorf("argument names %s twice", a)
	case a.covers(b) && !mayBeAnotherMachines(other, b):
		return coveredError(one, other, a)
	case b.covers(a) && !mayBeAnotherMachines(one, a):
		return coveredError(other, one, b)
	}
	return nil
}

// mayBeAnotherMachines reports whether an address is optional, and not one that every machine has: one file may be for several machines, and
// the server starts on those that do not have it.
func mayBeAnotherMachines(text string, a bindAddress) bool {
	return strings.HasPrefix(text, "-") && !a.ip.IsLoopback() && !a.ip.IsUnspecified()
}

func coveredError(all, covered string, a bindAddress) error {
	all, covered = strings.TrimPrefix(all, "-"), strings.TrimPrefix(covered, "-")
	family := "IPv6"
	if a.isAllIPv4() {
		family = "IPv4"
	}
	if all == covered {
		return fmt.Errorf("argument names %s twice", all)
	}
	return fmt.Errorf("argument names %s beside %s, which stands for all %s addresses: remove one of the two", covered, all, family)
}
