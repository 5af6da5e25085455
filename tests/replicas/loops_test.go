package replicas

import (
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// ring is some servers, each of which may be told to follow another one.
type ring struct {
	t       *testing.T
	servers []*harness.Server
	clients []*harness.Client
}

func newRing(t *testing.T, n int) *ring {
	r := &ring{t: t}
	for range n {
		s := harness.Start(t, diskless...)
		r.servers, r.clients = append(r.servers, s), append(r.clients, harness.Dial(t, s.Addr))
	}
	return r
}

// follows has one server follow another, without waiting for anything.
func (r *ring) follows(one, other int) {
	r.t.Helper()
	require.Equal(r.t, "+OK\r\n", string(r.clients[one].Do("REPLICAOF", "127.0.0.1", strconv.Itoa(r.servers[other].Port))))
}

// linked has one server follow another, and waits for the link.
func (r *ring) linked(one, other int) {
	r.t.Helper()
	r.follows(one, other)
	r.awaitLink(one)
}

func (r *ring) awaitLink(one int) {
	r.t.Helper()
	await(r.t, "the link is up", func() bool { return r.clients[one].Info("replication")["master_link_status"] == "up" })
}

// awaitData waits until a server has the first one's key, so that it has asked again since those that it follows reach the first one: a link that
// is up may be the one from before.
func (r *ring) awaitData(one int) {
	r.t.Helper()
	await(r.t, "the data of the first", func() bool { return r.clients[one].Ask("GET", "k").Text == "v" })
	r.awaitLink(one)
}

// refused reports whether the last link of a server did not come about since it would have closed a loop.
func (r *ring) refused(one int) bool {
	return strings.Contains(r.clients[one].Info("replication")["master_link_last_error"], "a loop of replicas has no primary")
}

// TestLoops: a server that is told to follow one that follows it says so and keeps its data, however long the loop is and whichever link comes last; once
// one of them is a primary, the others follow.
func TestLoops(t *testing.T) {
	t.Parallel()
	for name, closes := range map[string]func(r *ring) (last, follows int){
		"of two":   func(r *ring) (int, int) { r.linked(1, 0); return 0, 1 },
		"of three": func(r *ring) (int, int) { r.linked(1, 0); r.linked(2, 1); return 0, 2 },
		"of three, made from the other end": func(r *ring) (int, int) {
			r.linked(2, 1)
			r.linked(1, 0)
			r.awaitData(2)
			return 0, 2
		},
		"of four, made of two halves": func(r *ring) (int, int) {
			r.linked(1, 0)
			r.linked(3, 2)
			r.linked(2, 1)
			r.awaitData(3)
			return 0, 3
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRing(t, 4)
			r.clients[0].Ask("SET", "k", "v")
			last, follows := closes(r)
			r.follows(last, follows)
			await(t, "it finds out", func() bool { return r.refused(last) })
			require.Equal(t, "v", r.clients[last].Ask("GET", "k").Text)
			require.Equal(t, "OK", r.clients[follows].Ask("REPLICAOF", "NO", "ONE").Text)
			r.awaitLink(last)
			r.clients[follows].Ask("SET", "k", "w")
			await(t, "the new primary's data", func() bool { return r.clients[last].Ask("GET", "k").Text == "w" })
		})
	}
}

// TestLoopMadeAtOnce: two servers are told at the same time to follow each other, so that neither is a replica yet when it is asked. Both links do not stay.
func TestLoopMadeAtOnce(t *testing.T) {
	t.Parallel()
	for range 2 {
		r := newRing(t, 2)
		var both sync.WaitGroup
		for one := range 2 {
			both.Go(func() { r.clients[one].Ask("REPLICAOF", "127.0.0.1", strconv.Itoa(r.servers[1-one].Port)) })
		}
		both.Wait()
		await(t, "one says so", func() bool {
			down := 0
			for _, c := range r.clients {
				info := c.Info("replication")
				if info["master_link_status"] == "down" && info["master_link_last_error"] != "" {
					down++
				}
			}
			return down > 0
		})
		time.Sleep(3 * time.Second / 2) // longer than a link's rest
		up := 0
		for _, c := range r.clients {
			if c.Info("replication")["master_link_status"] == "up" {
				up++
			}
		}
		require.Less(t, up, 2)
		r.clients[0].Ask("REPLICAOF", "NO", "ONE")
		r.awaitLink(1)
	}
}

// TestTimeoutReachesTheLink: repl-timeout counts for the link that is there, and a value that goes with no primary's PINGs is warned of.
func TestTimeoutReachesTheLink(t *testing.T) {
	t.Parallel()
	primary := harness.Start(t, append(diskless, "--repl-ping-replica-period", "3600", "--repl-timeout", "7200")...)
	replica := harness.Start(t, follow(primary.Port)...)
	p, r := harness.Dial(t, primary.Addr), harness.Dial(t, replica.Addr)
	harness.AwaitSame(t, p, r)
	require.NotContains(t, replica.Log(), "repl-ping-replica-period")
	require.Equal(t, "OK", r.Ask("CONFIG", "SET", "repl-timeout", "1").Text)
	awaitLog(t, replica, "nothing has come from the primary for repl-timeout")
	awaitLog(t, replica, "it is not above repl-ping-replica-period")
	require.Equal(t, "OK", r.Ask("CONFIG", "SET", "repl-timeout", "60").Text)
	p.Ask("SET", "k", "v")
	harness.AwaitSame(t, p, r)
}

// TestEmptyPrimary: a replica whose keys go since its primary has none, as after a restart without its data, says so in a warning.
func TestEmptyPrimary(t *testing.T) {
	t.Parallel()
	primary, replica := harness.Start(t, diskless...), harness.Start(t)
	r := harness.Dial(t, replica.Addr)
	r.Ask("REPLICAOF", "127.0.0.1", strconv.Itoa(primary.Port))
	awaitLog(t, replica, "the primary's data are loaded")
	require.NotContains(t, replica.Log(), "the primary has no keys", "nor had the replica")
	r.Ask("REPLICAOF", "NO", "ONE")
	r.Ask("SET", "k", "v")
	r.Ask("REPLICAOF", "127.0.0.1", strconv.Itoa(primary.Port))
	awaitLog(t, replica, "the primary has no keys, and so all keys here are gone")
}
