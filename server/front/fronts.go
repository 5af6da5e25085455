package front

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"headgate/server/command"
	"headgate/server/config"
	"headgate/server/netpoll"
)

// Fronts are what clients come in by: listeners, event loops, and connections that goroutines serve. Create them with [New].
type Fronts struct {
	*command.Core
	handlers  Handlers
	Plain     plainFront     // port and unixsocket
	TLS       tlsFront       // tls-port
	inherited []net.Listener // that stand in place of port and unixsocket
}

// Handlers are the executor, as different fronts serve it.
type Handlers struct {
	First  netpoll.Handler // with background work to do
	Others netpoll.Handler // without it: by the loops after the first
	Each   netpoll.Handler // by fronts of a single connection, of which there may be thousands
}

// New returns fronts that have nothing open yet. inherited and inheritedTLS are listeners that somebody else has opened, in place of those of port
// and unixsocket, and of tls-port.
func New(core *command.Core, handlers Handlers, inherited, inheritedTLS []net.Listener) *Fronts {
	f := &Fronts{Core: core, handlers: handlers, inherited: inherited}
	f.TLS.init(f, inheritedTLS)
	return f
}

// Apply takes over the directives that the fronts obey. It may be called before they listen; once they run, the caller holds the executor's
// lock.
func (f *Fronts) Apply(cfg *config.Config) {
	f.Plain.apply(cfg)
	f.TLS.apply(cfg)
}

// Follow has the fronts obey changes of the configuration.
func (f *Fronts) Follow(live *config.Live) {
	live.OnChange(f.addressChanged, "bind", "port")
	live.OnChange(f.TLS.configChanged, tlsDirectives...)
}

// Listen opens all listeners, or none. also is called when those of this package are open, and before loops are made for them. It may open more; after
// its error those of this package are closed. Nothing is accepted before Run.
func (f *Fronts) Listen(cfg *config.Config, also func() error) error {
	open, err := f.openPlain(cfg)
	if err != nil {
		return err
	}
	if len(open) == 0 && cfg.TLSPort == 0 {
		if cfg.Port != 0 && len(cfg.Bind) > 0 {
			return noneOf(cfg.Bind)
		}
		return errors.New("nothing to listen on: set port, tls-port or unixsocket")
	}
	if err = f.TLS.open(cfg); err == nil {
		err = also()
	}
	if err == nil {
		err = f.Plain.listen(f, open, cfg)
	}
	if err != nil {
		closeAll(open)
		f.TLS.close()
	}
	return err
}

// noneOf is the error for a server that can listen on none of its addresses.
func noneOf(bind []string) error {
	return fmt.Errorf("nothing to listen on: this machine has none of the addresses of bind: %s", strings.Join(bind, " "))
}

// openPlain opens the listeners of port and unixsocket, or takes those that stand in their place.
func (f *Fronts) openPlain(cfg *config.Config) (open []net.Listener, err error) {
	if len(f.inherited) > 0 {
		return f.inherited, nil
	}
	if cfg.Port > 0 {
		if open, err = ListenOn(cfg.Bind, cfg.Port, "--port"); err != nil {
			return nil, err
		}
	}
	if cfg.UnixSocket != "" {
		ln, err := ListenUnix(cfg.UnixSocket, cfg.UnixSocketPerm, "unixsocket")
		if err != nil {
			closeAll(open)
			return nil, err
		}
		open = append(open, ln)
	}
	return open, nil
}

func closeAll(listeners []net.Listener) {
	for _, ln := range listeners {
		ln.Close()
	}
}

// Run serves until the core is stopped, and returns when all connections are gone. Listen comes before it.
func (f *Fronts) Run() {
	f.TLS.start()
	f.Plain.run(f)
	f.TLS.end()
}

// Traffic returns what all fronts have read from clients and written to them. The caller holds the executor's lock.
func (f *Fronts) Traffic() netpoll.Traffic {
	sum := f.Plain.traffic()
	sum.Add(f.TLS.traffic())
	return sum
}

// settingError is why the server could not do what CONFIG SET asked for, in Redis's words. The log has the reason.
type settingError string

const (
	errNoPort      settingError = "Unable to listen on this port. Check server logs."
	errNoAddresses settingError = "Failed to bind to specified addresses."
	errTLSFiles    settingError = "Unable to update TLS configuration. Check server logs."
)

// Error implements error.
func (e settingError) Error() string { return string(e) }

// addressChanged listens on another port or on other addresses, and no longer on the old ones. Connections that are open go on. The
// caller holds the executor's lock.
func (f *Fronts) addressChanged(old, cfg *config.Config) error {
	plain := &f.Plain
	if !plain.listening() {
		return nil
	}
	if len(f.inherited) > 0 {
		return errors.New("the sockets were opened by the service manager")
	}
	var before, others []net.Listener
	for _, ln := range plain.Listeners {
		if _, tcp := ln.(*net.TCPListener); tcp {
			before = append(before, ln)
		} else {
			others = append(others, ln)
		}
	}
	samePort := old.Port == cfg.Port
	if samePort {
		plain.Drop(before) // they may have the addresses that are wanted
		before = nil
	}
	open, err := plain.add(cfg)
	if err == nil {
		plain.Drop(before)
		plain.Listeners = append(open, others...)
		f.Logger.Info("the addresses to listen on have changed", "bind", cfg.Bind, "port", cfg.Port)
		return nil
	}
	f.Logger.Error("the addresses to listen on stay as they were", "err", err)
	if !samePort {
		return errNoPort
	}
	if open, err = plain.add(old); err != nil {
		f.Logger.Error("nothing listens on port any more", "err", err)
	}
	plain.Listeners = append(open, others...)
	return errNoAddresses
}

// add listens on the configuration's port, if it has one, on all of its addresses or on none.
func (f *plainFront) add(cfg *config.Config) ([]net.Listener, error) {
	if cfg.Port == 0 {
		return nil, nil
	}
	open, err := ListenOn(cfg.Bind, cfg.Port, "--port")
	for i, ln := range open {
		if err = f.accept(ln, cfg.TCPBacklog); err != nil {
			f.Drop(open[:i])
			closeAll(open[i:])
			return nil, err
		}
	}
	return open, err
}

// OpenAddresses returns where the server listens, in the form that its start-up line shows. The caller holds the executor's lock.
func (f *Fronts) OpenAddresses() []string {
	var list []string
	for _, ln := range f.Plain.Listeners {
		list = append(list, shownAddress(ln.Addr()))
	}
	for _, ln := range f.TLS.listening() {
		list = append(list, "tls://"+ln.Addr().String())
	}
	return list
}

// shownAddress is where a listener is found from any directory: a socket file by its whole path. A name in the abstract namespace, which begins
// with @, is none.
func shownAddress(addr net.Addr) string {
	name := addr.String()
	if _, socket := addr.(*net.UnixAddr); !socket || name == "" || name[0] == '@' {
		return name
	}
	if path, err := filepath.Abs(name); err == nil {
		return path
	}
	return name
}

// ListenOn listens on one port of all addresses, or of none. flag is what sets it.
func ListenOn(addresses []string, port int, flag string) ([]net.Listener, error) {
	var open []net.Listener
	for _, bind := range addresses {
		ln, err := listenTCP(bind, port, flag)
		if err != nil {
			closeAll(open)
			return nil, err
		}
		if ln != nil {
			open = append(open, ln)
		}
	}
	return open, nil
}

// bindOf is the flag with the addresses of a port: most ports have one of their own.
func bindOf(flag string) string {
	switch flag {
	case "--port", "--tls-port":
		return "--bind"
	}
	return strings.TrimSuffix(flag, "port") + "bind"
}

// listenTCP listens on one address of the bind directive: an IP address or host name, * for all of IPv4, ::* for all of IPv6. A
// leading - makes an address optional: nil is returned when this machine has no such address.
func listenTCP(bind string, port int, flag string) (net.Listener, error) {
	bind, optional := strings.CutPrefix(bind, "-")
	network, host := addressFamily(bind)
	ln, err := net.Listen(network, net.JoinHostPort(host, strconv.Itoa(port)))
	switch {
	case err == nil:
		return ln, nil
	case optional && isAbsent(err):
		return nil, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("port %d on %s is in use: stop what listens there, or choose another with %s", port, shownHost(host), flag)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("port %d on %s is not permitted for this user: choose one from 1024 up with %s", port, shownHost(host), flag)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("this machine has no address %s: correct %s, or write -%s to make it optional", host, bindOf(flag), host)
	}
	where := shownHost(host)
	if port > 0 {
		where += fmt.Sprintf(" port %d", port)
	}
	return nil, fmt.Errorf("cannot listen on %s: %w; correct %s or %s", where, err, bindOf(flag), flag)
}

// isAbsent reports whether an address cannot be listened on because this machine has none such: no such address, host name or family of addresses.
func isAbsent(err error) bool {
	for _, absent := range []error{syscall.EADDRNOTAVAIL, syscall.EAFNOSUPPORT, syscall.EPROTONOSUPPORT, syscall.EPFNOSUPPORT, syscall.ENOPROTOOPT} {
		if errors.Is(err, absent) {
			return true
		}
	}
	var unknown *net.DNSError
	return errors.As(err, &unknown) && unknown.IsNotFound
}

// addressFamily returns the network that an address is one of, and its host for net.Listen. Of all addresses, 0.0.0.0 and :: are those of one
// family, as in redis-server: else the one would let in whom the other is to keep out, and the two could not stand beside each other.
func addressFamily(bind string) (network, host string) {
	switch bind {
	case "*":
		return "tcp4", ""
	case "::*":
		return "tcp6", ""
	}
	switch ip, err := netip.ParseAddr(bind); {
	case err != nil: // a name
		return "tcp", bind
	case ip.Is4() || ip.Is4In6():
		return "tcp4", ip.Unmap().String()
	}
	return "tcp6", bind
}

func shownHost(host string) string {
	if host == "" {
		return "all addresses"
	}
	return host
}

// ListenUnix listens on a socket file, replacing one that nobody listens on any more. directive is what names it.
func ListenUnix(path string, perm os.FileMode, directive string) (net.Listener, error) {
	switch info, err := os.Lstat(path); {
	case err != nil:
	case info.Mode()&fs.ModeSocket == 0:
		return nil, noSocket(path, directive)
	default:
		if err := removeUnused(path, directive); err != nil {
			return nil, err
		}
	}
	ln, err := net.Listen("unix", path)
	if err != nil {
		return nil, unusableSocket(err, directive)
	}
	if perm != 0 {
		if err := os.Chmod(path, perm); err != nil {
			ln.Close()
			return nil, fmt.Errorf("cannot set %sperm: %w", directive, err)
		}
	}
	return ln, nil
}

// noSocket is the error for a path at which something else stands.
func noSocket(path, directive string) error {
	return fmt.Errorf("%s exists and is not a socket: remove it, or choose another path with --%s", path, directive)
}

// unusableSocket is the error for a path at which no socket can be made.
func unusableSocket(err error, directive string) error {
	return fmt.Errorf("cannot listen on unix socket: %w; correct --%s, or the directory's permissions", err, directive)
}

// removeUnused removes a socket file that nobody listens on, which only a connection that is refused shows: where one is not permitted, or
// finds the queue of connections full, a server is alive.
func removeUnused(path, directive string) error {
	conn, err := net.DialTimeout("unix", path, unixPatience)
	var slow net.Error
	switch {
	case err == nil:
		conn.Close()
		fallthrough
	case errors.Is(err, syscall.EAGAIN), errors.As(err, &slow) && slow.Timeout():
		return fmt.Errorf("unix socket %s is in use: stop what listens there, or choose another with --%s", path, directive)
	case errors.Is(err, fs.ErrNotExist): // since it was looked at
		return nil
	case !errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("cannot tell whether unix socket %s is in use: %w; remove it if its server has ended, or choose another with --%s", path, err, directive)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot replace unix socket %s, whose server has ended: %w; remove it, or choose another with --%s", path, err, directive)
	}
	return nil
}

// unixPatience is how long a socket file's owner has to take a connection.
const unixPatience = time.Second
