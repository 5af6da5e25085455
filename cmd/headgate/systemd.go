package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
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

// inheritedListeners returns the sockets that the service manager has opened for this process (systemd's socket activation), or none.
func inheritedListeners(env []string) ([]net.Listener, error) {
	if lookup(env, "LISTEN_PID") != strconv.Itoa(os.Getpid()) {
		return nil, nil
	}
	n, err := strconv.Atoi(lookup(env, "LISTEN_FDS"))
	if err != nil || n < 0 || n > maxInherited {
		return nil, fmt.Errorf("LISTEN_FDS is %q, and at most %d sockets are taken over", lookup(env, "LISTEN_FDS"), maxInherited)
	}
	var listeners []net.Listener
	for fd := firstInherited; fd < firstInherited+n; fd++ {
		syscall.CloseOnExec(fd)
		file := os.NewFile(uintptr(fd), "inherited socket "+strconv.Itoa(fd))
		ln, err := net.FileListener(file)
		err = errors.Join(err, file.Close())
		if err != nil {
			return nil, fmt.Errorf("descriptor %d is no socket that listens: %w; correct the socket unit", fd, err)
		}
		listeners = append(listeners, ln)
	}
	return listeners, nil
}

// manager is who started this process and wants to know how it is: systemd, for units of type notify. The zero value is nobody.
type manager struct {
	addr string
	log  *slog.Logger
}

func newManager(env []string, log *slog.Logger) manager {
	return manager{addr: lookup(env, "NOTIFY_SOCKET"), log: log}
}

// tellTimeout is how long the service manager may take to accept a message.
const tellTimeout = time.Second

// tell sends a state such as READY=1. A manager that does not listen is worth a warning and nothing more.
func (m manager) tell(state string) {
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
