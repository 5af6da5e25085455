package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	guardedLook = 20 * time.Millisecond // between two looks at what sentinels know

	// guardedStagger is how much later each sentinel takes a server for down. What they measure from has just been set at the same time in
	// all of them, by the failover before; if they notice at the same time, too, each votes for itself, and again after two FailoverTimeout.
	guardedStagger = 250 * time.Millisecond
)

// Guarded are servers of which the first is the primary of the others, with configuration files that sentinels have rewritten, and the sentinels
// that watch them. Its methods belong to the test's own goroutine.
type Guarded struct {
	Servers   []*Server
	Sentinels []*Server

	t     testing.TB
	flags []string
}

// Timing is how fast sentinels are.
type Timing struct {
	DownAfter       time.Duration // without an answer a server is down to the first sentinel, and a little later to each other one
	FailoverTimeout time.Duration
}

// StartGuarded starts headgates with these flags, a primary and its replicas, and sentinels, and returns when all know of each other. With
// a quorum of more than half a primary is down when so many sentinels say so. The sentinels look more often than they usually do, so that
// tests are shorter; and so that they reach a new primary well before down-after: they connect no more often than once in a ping-period, a
// second otherwise, and a sentinel that has just tried the old address waits for that long.
func StartGuarded(t testing.TB, servers, sentinels int, timing Timing, flags ...string) *Guarded {
	t.Helper()
	g := &Guarded{t: t, flags: flags}
	for i := range servers {
		dir := t.TempDir()
		text := "save \"\"\n"
		if i > 0 {
			text += fmt.Sprintf("replicaof 127.0.0.1 %d\n", g.Servers[0].Port)
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, "h.conf"), []byte(text), 0o644))
		g.Servers = append(g.Servers, onFreePort(t, func(port int) (*Server, error) { return g.launch(port, dir) }))
	}
	for i := range sentinels {
		watcher := startWatcher(t, g.Servers[0].Port, sentinels/2+1, Timing{timing.DownAfter + time.Duration(i)*guardedStagger, timing.FailoverTimeout})
		g.Sentinels = append(g.Sentinels, watcher)
		c := Dial(t, watcher.Addr)
		require.Equal(t, "+OK\r\n", string(c.Do("SENTINEL", "DEBUG", "publish-period", "200", "info-period", "200", "ask-period", "200", "ping-period", "300")))
		c.Close()
	}
	g.AwaitWhole()
	return g
}

// launch runs a headgate on a port, in a directory with its configuration file.
func (g *Guarded) launch(port int, dir string) (*Server, error) {
	return launchAt(g.t, port, dir, slices.Concat([]string{filepath.Join(dir, "h.conf"), "--port", strconv.Itoa(port), "--bind", "127.0.0.1"}, g.flags))
}

// Again starts a headgate that has ended again, in its directory and on its port, with these flags after the usual ones.
func Again(t testing.TB, s *Server, flags ...string) *Server {
	t.Helper()
	again, err := launchAt(t, s.Port, s.Dir, append(s.usualFlags(), flags...))
	require.NoError(t, err)
	return again
}

func launchAt(t testing.TB, port int, dir string, args []string) (*Server, error) {
	s := newServerAt(t, port, dir)
	return s, s.runAs("headgate", Binary(t), args)
}

// Restart starts a server that was killed again, as it was told to be by its configuration file.
func (g *Guarded) Restart(i int) {
	g.t.Helper()
	s, err := g.launch(g.Servers[i].Port, g.Servers[i].Dir)
	require.NoError(g.t, err)
	g.Servers[i] = s
}

// SentinelAddrs are where the sentinels listen.
func (g *Guarded) SentinelAddrs() []string {
	addrs := make([]string, len(g.Sentinels))
	for i, s := range g.Sentinels {
		addrs[i] = s.Addr
	}
	return addrs
}

// Name is what the sentinels call the primary.
func (g *Guarded) Name() string { return sentinelName }

// Primary is the number of the server that a sentinel takes for the primary.
func (g *Guarded) Primary() int {
	g.t.Helper()
	c := Dial(g.t, g.Sentinels[0].Addr)
	defer c.Close()
	at := c.Ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", sentinelName)
	return slices.IndexFunc(g.Servers, func(s *Server) bool { return len(at.Items) == 2 && strconv.Itoa(s.Port) == at.Items[1].Text })
}

// AwaitWhole returns when all sentinels agree on the primary, know each other and all of its replicas, and the replicas have what it has.
func (g *Guarded) AwaitWhole() {
	g.t.Helper()
	var missing string
	for deadline := time.Now().Add(fleetTimeout); time.Now().Before(deadline); time.Sleep(guardedLook) {
		if missing = g.missing(); missing == "" {
			return
		}
	}
	require.FailNow(g.t, "the sentinels and their servers are not whole", "%s", missing)
}

// missing says what is not as AwaitWhole wants it.
func (g *Guarded) missing() string {
	primary := g.Primary()
	if primary < 0 {
		return "the sentinel names an unknown primary"
	}
	port := strconv.Itoa(g.Servers[primary].Port)
	for i, s := range g.Sentinels {
		c, err := TryDial(g.t, s.Addr)
		if err != nil {
			return err.Error()
		}
		state := c.Ask("SENTINEL", "MASTER", sentinelName).Flat()
		c.Close()
		fields := map[string]string{}
		for at := 0; at+1 < len(state); at += 2 {
			fields[state[at]] = state[at+1]
		}
		if fields["port"] != port || fields["flags"] != "master" || fields["num-slaves"] != strconv.Itoa(len(g.Servers)-1) || fields["num-other-sentinels"] != strconv.Itoa(len(g.Sentinels)-1) {
			return fmt.Sprintf("sentinel %d: %v", i, fields)
		}
	}
	for i, s := range g.Servers {
		c, err := TryDial(g.t, s.Addr)
		if err != nil {
			return err.Error()
		}
		reply, err := asked(c, "INFO", "replication")
		c.Close()
		if err != nil {
			return err.Error() // sentinels have all connections closed when they change what a server is
		}
		info := reply.Text
		switch {
		case i == primary && !strings.Contains(info, "role:master\r\n"):
			return fmt.Sprintf("server %d, which is the primary: %s", i, info)
		case i != primary && (!strings.Contains(info, "master_link_status:up\r\n") || !strings.Contains(info, "master_port:"+port+"\r\n")):
			return fmt.Sprintf("server %d, which is a replica: %s", i, info)
		}
	}
	return ""
}
