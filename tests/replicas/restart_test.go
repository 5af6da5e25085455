package replicas

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// TestRestartGoesOn restarts a replica, and then its primary, in all the ways in which data are kept: after an orderly end each goes on where it was, and nothing
// is sent anew. A killed one whose snapshot is older asks for what came behind that; one whose append-only file does not say asks for everything.
func TestRestartGoesOn(t *testing.T) {
	t.Parallel()
	type start func(t testing.TB, flags ...string) *harness.Server
	for name, primaryKind := range map[string]start{"headgate": harness.Start, "redis-server": harness.StartReference} {
		for kept, flags := range map[string][]string{"append-only file": {"--appendonly", "yes"}, "snapshot": {"--save", "3600 1"}} {
			t.Run(name+", "+kept, func(t *testing.T) {
				t.Parallel()
				primary := primaryKind(t, append(diskless, flags...)...)
				p := harness.Dial(t, primary.Addr)
				fill(p)
				flags := append(flags, follow(primary.Port)...)
				replica := harness.Start(t, flags...)
				r := harness.Dial(t, replica.Addr)
				harness.AwaitSame(t, p, r)
				count := func(times int) {
					for i := range times {
						p.Ask("INCR", "n")
						p.Ask("SELECT", strconv.Itoa(i%3))
						p.Ask("RPUSH", "list", strconv.Itoa(i))
					}
				}
				syncs := func() (full, partial string) {
					stats := p.Info("stats")
					return stats["sync_full"], stats["sync_partial_ok"]
				}
				check := func(full, partial string) {
					t.Helper()
					r = harness.Dial(t, replica.Addr)
					harness.AwaitSame(t, p, r)
					require.Equal(t, digest(p), digest(r))
					gotFull, gotPartial := syncs()
					require.Equal(t, []string{full, partial}, []string{gotFull, gotPartial}, replica.Log())
				}
				check("1", "0")
				count(30)
				harness.AwaitSame(t, p, r)
				require.NoError(t, replica.Terminate())
				count(30)
				replica = harness.Again(t, replica, flags...)
				check("1", "1")

				// Once more, with nothing in between; and killed right after that.
				require.NoError(t, replica.Terminate())
				replica = harness.Again(t, replica, flags...)
				check("1", "2")
				if kept == "snapshot" {
					count(10)
					harness.AwaitSame(t, p, r)
					r.Ask("SAVE")
				}
				count(10)
				harness.AwaitSame(t, p, r)
				replica.Kill()
				count(10)
				replica = harness.Again(t, replica, flags...)
				if kept == "snapshot" {
					check("1", "3")
				} else {
					check("2", "2")
				}

				if name == "headgate" {
					require.NoError(t, primary.Terminate())
					primary = harness.Again(t, primary, append(diskless, flags[:2]...)...)
					p = harness.Dial(t, primary.Addr)
					check("0", "1")
					count(10)
					check("0", "1")
					primary.Kill()
					primary = harness.Again(t, primary, append(diskless, flags[:2]...)...)
					p = harness.Dial(t, primary.Addr)
					check("1", "0") // the replica has what the primary has lost, or does not know that it has not
				}
			})
		}
	}
}

// TestKeysThatExpireWhileThePrimaryIsAway: a primary that has been started again drops what has expired meanwhile, also at its replicas, which go on where they were.
func TestKeysThatExpireWhileThePrimaryIsAway(t *testing.T) {
	t.Parallel()
	for kept, flags := range map[string][]string{"append-only file": {"--appendonly", "yes"}, "snapshot": {"--save", "3600 1"}} {
		t.Run(kept, func(t *testing.T) {
			t.Parallel()
			const life = time.Second
			flags = append(flags, diskless...)
			primary := harness.Start(t, flags...)
			p := harness.Dial(t, primary.Addr)
			replicas := []*harness.Server{harness.Start(t, follow(primary.Port)...), harness.StartReference(t, follow(primary.Port)...)}
			online(t, p, len(replicas))
			until := time.Now().Add(life)
			for i := range 50 {
				p.Ask("SET", "brief"+strconv.Itoa(i), "v", "PXAT", strconv.FormatInt(until.UnixMilli(), 10))
			}
			p.Ask("SET", "stays", "v")
			for _, replica := range replicas {
				harness.AwaitSame(t, p, harness.Dial(t, replica.Addr))
			}
			require.NoError(t, primary.Terminate())
			time.Sleep(time.Until(until) + 2*tick)
			primary = harness.Again(t, primary, flags...)
			p = harness.Dial(t, primary.Addr)
			await(t, "they have gone", func() bool { return p.Ask("DBSIZE").Text == "1" })
			for _, replica := range replicas {
				r := harness.Dial(t, replica.Addr)
				harness.AwaitSame(t, p, r)
				require.Equal(t, "1", r.Ask("DBSIZE").Text, replica.Name)
			}
			require.Equal(t, "0", p.Info("stats")["sync_full"])
		})
	}
}
