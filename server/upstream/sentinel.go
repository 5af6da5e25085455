package upstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// askSentinels finds the primary that the Sentinels name, and sees that it is one. The Sentinel that named one last is asked first. One that is cut off from
// the others, and has missed a failover, is not believed: what it names is no primary any more.
func (f *fleet) askSentinels(ctx context.Context) error {
	var failures []error
	tried := map[string]bool{}
	for i := range f.cfg.Addrs {
		if ctx.Err() != nil {
			break
		}
		at := (f.best + i) % len(f.cfg.Addrs)
		addr, err := f.askSentinel(ctx, f.cfg.Addrs[at])
		if err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", f.cfg.Addrs[at], err))
			continue
		}
		if tried[addr] {
			continue
		}
		tried[addr] = true
		if err := f.setPrimary(addr); err != nil {
			failures = append(failures, err)
			continue
		}
		f.best = at
		return nil
	}
	return &lookError{failures}
}

// setPrimary has all calls go to a node, if it is a primary. One that is not stays known until the next look, and no longer.
func (f *fleet) setPrimary(addr string) error {
	n := f.node(addr, primary)
	if n == nil {
		return errTooManyNodes
	}
	kept := map[*node]bool{n: true}
	for _, used := range *f.primaries.Load() {
		kept[used] = true
	}
	f.keepOnly(kept)
	if why := n.restsFor(); why != "" {
		return fmt.Errorf("%s: %s", n.addr, why)
	}
	hello, err := n.ask(askMax, "HELLO")
	if err != nil {
		return nodeError(n, err)
	}
	g, err := n.judge(hello)
	if err != nil {
		return nodeError(n, err)
	}
	n.hello.Store(g)
	if err := f.askAbout(n); err != nil {
		return nodeError(n, err)
	}
	f.setPrimaries([]*node{n})
	f.known.Store(true)
	f.keepOnly(map[*node]bool{n: true})
	return nil
}

// askSentinel asks one Sentinel for the primary's address.
func (f *fleet) askSentinel(ctx context.Context, addr string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askMax)
	defer cancel()
	conn, err := f.dial(ctx, addr)
	if err != nil {
		return "", err
	}
	defer hangUp(conn)
	if err := conn.SetDeadline(time.Now().Add(askMax)); err != nil {
		return "", err
	}
	var request []byte
	replies := 1
	if f.cfg.Password != "" {
		// Sentinels often have no password of their own; then this is an error, and no harm.
		user := f.cfg.User
		if user == "" {
			user = "default"
		}
		request = appendCommand(request, "AUTH", user, f.cfg.Password)
		replies++
	}
	request = appendCommand(request, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", f.cfg.Master)
	if _, err := conn.Write(request); err != nil {
		return "", errors.New(reason(err))
	}
	values, err := readValues(conn, replies, handshakeMax)
	if err != nil {
		return "", errors.New(reason(err))
	}
	found := values[replies-1]
	switch {
	case strings.HasPrefix(found.text, "ERR unknown command"):
		return "", refusedError("it is not a Sentinel: name a Sentinel, whose port is 26379 by default, or set upstream to redis:// and this address")
	case found.isError():
		return "", refusedError(found.text)
	case len(found.list) != 2:
		return "", refusedError(fmt.Sprintf("it knows no primary named %q; SENTINEL MASTERS lists those that it knows", f.cfg.Master))
	}
	return net.JoinHostPort(found.list[0].text, found.list[1].text), nil
}
