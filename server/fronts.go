package server

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"

	"headgate/server/config"
)

// Listen takes the data directory and opens the listeners that the configuration names; inherited ones stand in place of port and
// unixsocket. A failure leaves none open; its error says what to do.
func (s *Server) Listen() error {
	cfg := s.config.Get()
	if err := s.openAccess(cfg); err != nil {
		return err
	}
	if err := s.openData(cfg); err != nil {
		return err
	}
	err := s.listen(cfg)
	if err != nil {
		s.dirs.release()
		return err
	}
	s.dirs.tell(holderText(s.Addresses()))
	return nil
}

// listen opens all listeners, or none.
func (s *Server) listen(cfg *config.Config) error {
	open := s.inherited
	own := len(open) == 0
	closeAll := func() {
		for _, ln := range open {
			ln.Close()
		}
	}
	if own && cfg.Port > 0 {
		var err error
		if open, err = listenOn(cfg.Bind, cfg.Port, "--port"); err != nil {
			return err
		}
	}
	if own && cfg.UnixSocket != "" {
		ln, err := listenUnix(cfg.UnixSocket, cfg.UnixSocketPerm)
		if err != nil {
			closeAll()
			return err
		}
		open = append(open, ln)
	}
	if len(open) == 0 && cfg.TLSPort == 0 {
		return errors.New("nothing to listen on: set port, tls-port or unixsocket")
	}
	err := s.tls.open(cfg)
	if err == nil {
		err = s.http.open(s, cfg)
	}
	if err == nil {
		err = s.fronts.listen(s, open, cfg)
	}
	if err != nil {
		closeAll()
		s.tls.close()
		s.http.close()
	}
	return err
}

// settingError is why the server could not do what CONFIG SET asked for, in Redis's words. The log has the reason.
type settingError string

const (
	errNoPort      settingError = "Unable to listen on this port. Check server logs."
	errNoAddresses settingError = "Failed to bind to specified addresses."
	errTLSFiles    settingError = "Unable to update TLS configuration. Check server logs."
)

func (e settingError) Error() string { return string(e) }

// addressChanged listens on another port or on other addresses, and no longer on the old ones. Connections that are open go on. The
// caller holds the executor's lock.
func (s *Server) addressChanged(old, cfg *config.Config) error {
	f := &s.fronts
	if !f.listening() {
		return nil
	}
	if len(s.inherited) > 0 {
		return errors.New("the sockets were opened by the service manager")
	}
	var before, others []net.Listener
	for _, ln := range f.listeners {
		if _, tcp := ln.(*net.TCPListener); tcp {
			before = append(before, ln)
		} else {
			others = append(others, ln)
		}
	}
	samePort := old.Port == cfg.Port
	if samePort {
		f.drop(before) // they may have the addresses that are wanted
		before = nil
	}
	open, err := f.add(cfg)
	if err == nil {
		f.drop(before)
		f.listeners = append(open, others...)
		s.log.Info("the addresses to listen on have changed", "bind", cfg.Bind, "port", cfg.Port)
		return nil
	}
	s.log.Error("the addresses to listen on stay as they were", "err", err)
	if !samePort {
		return errNoPort
	}
	if open, err = f.add(old); err != nil {
		s.log.Error("nothing listens on port any more", "err", err)
	}
	f.listeners = append(open, others...)
	return errNoAddresses
}

// add listens on the configuration's port, if it has one, on all of its addresses or on none.
func (f *fronts) add(cfg *config.Config) ([]net.Listener, error) {
	if cfg.Port == 0 {
		return nil, nil
	}
	open, err := listenOn(cfg.Bind, cfg.Port, "--port")
	for i, ln := range open {
		if err = f.accept(ln, cfg.TCPBacklog); err != nil {
			f.drop(open[:i])
			for _, ln := range open[i:] {
				ln.Close()
			}
			return nil, err
		}
	}
	return open, err
}

// Addresses returns where the server listens, in the form that its start-up line shows.
func (s *Server) Addresses() []string {
	s.Lock()
	defer s.Unlock()
	return s.addresses()
}

// addresses is Addresses for a caller who holds the executor's lock.
func (s *Server) addresses() []string {
	var list []string
	for _, ln := range s.fronts.listeners {
		list = append(list, ln.Addr().String())
	}
	for _, ln := range s.tls.listening() {
		list = append(list, "tls://"+ln.Addr().String())
	}
	return list
}

// listenOn listens on one port of all addresses, or of none. flag is what sets it.
func listenOn(addresses []string, port int, flag string) ([]net.Listener, error) {
	var open []net.Listener
	for _, bind := range addresses {
		ln, err := listenTCP(bind, port, flag)
		if err != nil {
			for _, ln := range open {
				ln.Close()
			}
			return nil, err
		}
		if ln != nil {
			open = append(open, ln)
		}
	}
	return open, nil
}

// listenTCP listens on one address of the bind directive: an IP address or host name, * for all of IPv4, ::* for all of IPv6. A
// leading - makes an address optional: nil is returned when this machine has no such address.
func listenTCP(bind string, port int, flag string) (net.Listener, error) {
	host, optional := strings.CutPrefix(bind, "-")
	network := "tcp"
	switch host {
	case "*":
		host, network = "", "tcp4"
	case "::*":
		host, network = "", "tcp6"
	}
	ln, err := net.Listen(network, net.JoinHostPort(host, strconv.Itoa(port)))
	switch {
	case err == nil:
		return ln, nil
	case optional && !errors.Is(err, syscall.EADDRINUSE):
		return nil, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("port %d on %s is in use: stop what listens there, or choose another with %s", port, shownHost(host), flag)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("port %d on %s is not permitted for this user: choose one from 1024 up with %s", port, shownHost(host), flag)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("this machine has no address %s: correct --bind, or write -%s to make it optional", host, host)
	}
	return nil, fmt.Errorf("cannot listen on %s port %d: %w; correct --bind or %s", shownHost(host), port, err, flag)
}

func shownHost(host string) string {
	if host == "" {
		return "all addresses"
	}
	return host
}

// listenUnix listens on a socket file, replacing one that nobody listens on any more.
func listenUnix(path string, perm os.FileMode) (net.Listener, error) {
	if conn, err := net.Dial("unix", path); err == nil {
		conn.Close()
		return nil, fmt.Errorf("unix socket %s is in use: stop what listens there, or choose another with --unixsocket", path)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSocket != 0 {
		os.Remove(path)
	}
	ln, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on unix socket: %w; correct --unixsocket, or the directory's permissions", err)
	}
	if perm != 0 {
		if err := os.Chmod(path, perm); err != nil {
			ln.Close()
			return nil, fmt.Errorf("cannot set unixsocketperm: %w", err)
		}
	}
	return ln, nil
}

// reservedDescriptors are kept for listeners, files and the runtime.
const reservedDescriptors = 64

// maxDescriptors raises the limit on open files to the hard one and returns it.
func maxDescriptors() int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 1024
	}
	if limit.Cur < limit.Max {
		raised := limit
		raised.Cur = raised.Max
		if syscall.Setrlimit(syscall.RLIMIT_NOFILE, &raised) == nil {
			limit = raised
		}
	}
	return int(min(limit.Cur, 1<<30))
}

// logReady writes the start-up line.
func (s *Server) logReady() {
	s.log.Info("headgate is ready", "version", Version, "addr", strings.Join(s.Addresses(), " "), "pid", pid(), "loops", s.fronts.count())
}
