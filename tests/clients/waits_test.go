package clients

import (
	"bufio"
	"flag"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

var (
	waitClients = flag.Int("waits.clients", 200, "how many clients wait at once; make waits has 10,000")
	waitWork    = flag.Duration("waits.time", 200*time.Millisecond, "for how long workers share leases; make waits has 10s")
	waitPings   = flag.Int("waits.pings", 200, "how many PINGs are timed while clients wait; make waits has 5,000")
)

const waitersPerKey = 10

// timePings has a client of its own send PINGs one after the other, and tells how long they took, and those meanwhile of which only that is known.
func timePings(t *testing.T, addr, while string, n int) {
	t.Helper()
	c := harness.Dial(t, addr)
	defer c.Close()
	took := make([]time.Duration, n)
	for i := range took {
		begin := time.Now()
		require.Equal(t, "+PONG\r\n", string(c.Do("PING")))
		took[i] = time.Since(begin)
	}
	slices.Sort(took)
	t.Logf("PING while %s: %v in the median, p99 %v, at most %v", while, took[n/2], took[n*99/100], took[n-1])
}

// infoNumber is a number of INFO.
func infoNumber(t *testing.T, c *harness.Client, section, field string) int {
	t.Helper()
	n, err := strconv.Atoi(c.Info(section)[field])
	require.NoError(t, err, field)
	return n
}

// TestCrowdsThatWait: clients that wait for limits take up little memory, keep nobody else, and are gone when they hang up, with nothing charged for them.
func TestCrowdsThatWait(t *testing.T) {
	clients := *waitClients
	keys := clients / waitersPerKey
	s := harness.Start(t, "--maxclients", strconv.Itoa(clients+100), "--wait-max-clients", strconv.Itoa(clients))
	c := harness.Dial(t, s.Addr)
	for i := range keys {
		require.Equal(t, "0", c.Ask("RL.FIXED", fmt.Sprint("user:", i), "1", "30m").Items[0].Text)
	}
	waiting := make([]net.Conn, clients)
	for i := range waiting {
		conn, err := net.Dial("tcp", s.Addr)
		require.NoError(t, err)
		defer conn.Close()
		waiting[i] = conn
		if i%200 == 199 { // no more at once than the system keeps for the server to accept
			c.Ask("PING")
		}
	}
	ask := func(words ...string) {
		for i, conn := range waiting {
			line := slices.Clone(words)
			line[1] = fmt.Sprint("user:", i%keys)
			_, err := conn.Write(harness.Command(line...))
			require.NoError(t, err)
		}
	}
	require.Eventually(t, func() bool { return infoNumber(t, c, "clients", "connected_clients") == clients+1 }, harness.ReplyTimeout, 10*time.Millisecond)
	ask("TYPE", "")
	for _, conn := range waiting { // so that each connection has all that it needs
		line, err := bufio.NewReader(conn).ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "+string\r\n", line)
	}
	timePings(t, s.Addr, "all are silent", *waitPings)
	rss, counted := s.RSS(), infoNumber(t, c, "memory", "mem_clients_normal")
	ask("RL.FIXED", "", "1", "30m", "WAIT", "1h")
	await := func(n int) {
		t.Helper()
		require.Eventually(t, func() bool { return infoNumber(t, c, "limiters", "limiter_waiting") == n }, harness.ReplyTimeout, 10*time.Millisecond)
	}
	await(clients)
	t.Logf("%d clients wait for %d keys: %d bytes of resident memory each, counted as %d", clients, keys, (s.RSS()-rss)/int64(clients),
		(infoNumber(t, c, "memory", "mem_clients_normal")-counted)/clients)
	timePings(t, s.Addr, "all of them wait", *waitPings)

	var others sync.WaitGroup
	others.Go(func() { timePings(t, s.Addr, "one of each key is served", *waitPings) })
	for i := range keys {
		require.Equal(t, "1", c.Ask("RL.RESET", fmt.Sprint("user:", i)).Text)
	}
	others.Wait()
	await(clients - keys)
	for i, conn := range waiting[:keys] { // who came first
		line, err := bufio.NewReader(conn).ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "*5\r\n", line, "client %d", i)
	}
	others.Go(func() { timePings(t, s.Addr, "all hang up", *waitPings) })
	for _, conn := range waiting {
		require.NoError(t, conn.Close())
	}
	await(0)
	others.Wait()
	require.Equal(t, keys, infoNumber(t, c, "limiters", "limiter_waits_passed"))
	require.Equal(t, clients-keys, infoNumber(t, c, "limiters", "limiter_waits_given_up"))
	require.Eventually(t, func() bool { return infoNumber(t, c, "clients", "connected_clients") <= 2 }, harness.ReplyTimeout, 10*time.Millisecond)
	for i := range keys {
		require.Equal(t, "1", c.Ask("GET", fmt.Sprint("user:", i)).Text, "only who was served is charged")
		require.Equal(t, "1", c.Ask("RL.RESET", fmt.Sprint("user:", i)).Text)
	}
	require.Equal(t, "0", c.Ask("DBSIZE").Text, "nobody was served later")
}

// TestWorkersShareLeases: workers that wait for a lease do as much work at a time as the limit allows, never more, and hardly less, which is told.
func TestWorkersShareLeases(t *testing.T) {
	const workers, limit, work = 40, 10, 20 * time.Millisecond
	s := harness.Start(t)
	var atWork, busy atomic.Int64
	var all sync.WaitGroup
	begin := time.Now()
	end := begin.Add(*waitWork)
	for range workers {
		c := harness.Dial(t, s.Addr)
		all.Go(func() {
			for time.Now().Before(end) {
				v, ok := call(c, "RL.ACQUIRE pool 10 1h WAIT 1m")
				if !ok || len(v.Items) != 6 || v.Items[0].Text != "0" {
					t.Errorf("no lease: %s", v.Wire())
					return
				}
				since := time.Now()
				if n := atWork.Add(1); n > limit {
					t.Errorf("%d at work", n)
				}
				time.Sleep(work)
				if now := time.Now(); now.Before(end) {
					busy.Add(int64(now.Sub(since)))
				} else {
					busy.Add(int64(max(end.Sub(since), 0)))
				}
				atWork.Add(-1)
				if v, ok := call(c, "RL.RELEASE pool "+v.Items[5].Text); !ok || v.Text != "1" {
					t.Errorf("not released: %s", v.Wire())
					return
				}
			}
		})
	}
	all.Wait()
	require.Positive(t, busy.Load())
	t.Logf("%d workers shared %d leases for %v: %.1f %% of what the leases allow was used", workers, limit, *waitWork, 100*float64(busy.Load())/float64(limit*int64(*waitWork)))
	require.Equal(t, "0", harness.Dial(t, s.Addr).Ask("EXISTS", "pool").Text)
}

// call sends a command from any goroutine, and returns its reply.
func call(c *harness.Client, line string) (v harness.Value, ok bool) {
	if c.Send(harness.Command(strings.Fields(line)...)) != nil {
		return v, false
	}
	v, err := c.Read(harness.ReplyTimeout)
	return v, err == nil
}
