package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"headgate/server"
)

// firstInherited is the first descriptor that a service manager hands over, and maxInherited how many are taken.
const (
	firstInherited = 3
	maxInherited   = 64
)

// lookup returns the value of an environment variable.
func lookup(env []string, name string) string {
	value := ""
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, name+"="); ok {
			value = v
		}
	}
	return value
}

// inherited are sockets that the service manager has opened for this process.
type inherited struct {
	plain, secure []net.Listener
}

// tlsSocketName is the name (FileDescriptorName=) of sockets for TLS.
const tlsSocketName = "tls"

// inheritedListeners returns the sockets that the service manager has opened for this process (systemd's socket activation), or none.
func inheritedListeners(env []string) (listeners inherited, err error) {
	if lookup(env, "LISTEN_PID") != strconv.Itoa(os.Getpid()) {
		return listeners, nil
	}
	names := strings.Split(lookup(env, "LISTEN_FDNAMES"), ":")
	n, err := strconv.Atoi(lookup(env, "LISTEN_FDS"))
	if err != nil || n < 0 || n > maxInherited {
		return listeners, fmt.Errorf("LISTEN_FDS is %q, and at most %d sockets are taken over", lookup(env, "LISTEN_FDS"), maxInherited)
	}
	for fd := firstInherited; fd < firstInherited+n; fd++ {
		closeOnExec(fd)
		file := os.NewFile(uintptr(fd), "inherited socket "+strconv.Itoa(fd))
		ln, err := net.FileListener(file)
		err = errors.Join(err, file.Close())
		if err != nil {
			return listeners, fmt.Errorf("descriptor %d is not a listening socket: %w; correct the socket unit", fd, err)
		}
		if i := fd - firstInherited; i < len(names) && names[i] == tlsSocketName {
			listeners.secure = append(listeners.secure, ln)
		} else {
			listeners.plain = append(listeners.plain, ln)
		}
	}
	return listeners, nil
}

// manager is who started this process and wants to know how it is: systemd, for units of type notify. The zero value is nobody.
type manager struct {
	addr  string
	log   *slog.Logger
	ready atomic.Bool // the data are loaded
}

func newManager(env []string, log *slog.Logger) *manager {
	return &manager{addr: lookup(env, "NOTIFY_SOCKET"), log: log}
}

// tellTimeout is how long the service manager may take to accept a message.
const tellTimeout = time.Second

// tell sends a state such as READY=1. A manager that does not listen is worth a warning and nothing more.
func (m *manager) tell(state string) {
	if m.addr == "" {
		return
	}
	conn, err := net.DialTimeout("unixgram", m.addr, tellTimeout)
	if err == nil {
		conn.SetWriteDeadline(time.Now().Add(tellTimeout))
		_, err = conn.Write([]byte(state))
		err = errors.Join(err, conn.Close())
	}
	if err != nil {
		m.log.Warn("the service manager does not listen", "state", state, "err", err)
	}
}

// tellReady says that the data are loaded.
func (m *manager) tellReady() {
	m.ready.Store(true)
	m.tell(readyState)
}

// tellChange says how a server is that may be ready: before it is, a manager that waits for that learns nothing else.
func (m *manager) tellChange(state string) {
	if m.ready.Load() {
		m.tell(state)
	}
}

// readyState is the state of a server that serves.
const readyState = "READY=1"

// reloading is the state while the configuration is read anew. The time tells it from earlier ones.
func reloading() string {
	now, ok := monotonic()
	if !ok {
		return "RELOADING=1"
	}
	return fmt.Sprintf("RELOADING=1\nMONOTONIC_USEC=%d", now.Microseconds())
}

// watchdogPeriod returns how often the service manager wants to hear that this process is alive, or 0 if it does not.
func watchdogPeriod(env []string) time.Duration {
	micros, err := strconv.ParseInt(lookup(env, "WATCHDOG_USEC"), 10, 64)
	pid := lookup(env, "WATCHDOG_PID")
	if err != nil || micros <= 0 || pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return 0
	}
	return time.Duration(micros) * time.Microsecond
}

// watch tells until the server ends that it is alive, twice as often as is asked for. A server whose executor is held for ever is not.
func (m *manager) watch(srv *server.Server, period time.Duration) {
	if m.addr == "" || period == 0 {
		return
	}
	tick := time.NewTicker(period / 2)
	defer tick.Stop()
	var rounds uint64
	for {
		select {
		case <-srv.Stopping():
			return
		case <-tick.C:
			var alive bool
			if rounds, alive = srv.Responds(rounds); alive {
				m.tell("WATCHDOG=1")
			}
		}
	}
}
