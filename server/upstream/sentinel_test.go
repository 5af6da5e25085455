package upstream

import (
	"fmt"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestASentinelThatMissedAFailover: the others are asked when the node that one names is no primary.
func TestASentinelThatMissedAFailover(t *testing.T) {
	gone, primary := startFake(t, nil), startFake(t, nil)
	names := func(node *fakeNode) func([]string) string {
		host, port, err := net.SplitHostPort(node.addr)
		require.NoError(t, err)
		return on("SENTINEL", func([]string) string { return array(bulk(host), bulk(port)) })
	}
	first, second, third := startFake(t, names(gone)), startFake(t, names(gone)), startFake(t, names(gone))
	u := started(t, Config{Kind: Sentinel, Addrs: []string{first.addr, second.addr, third.addr}, Master: "m"})
	require.Equal(t, gone.addr, do(t, u, "PING").node)
	_ = gone.listener.Close()
	gone.hangUp()
	second.answer(names(primary))
	third.answer(names(primary))
	eventually(t, "the other primary is used", func() bool {
		r := do(t, u, "PING")
		return r.failure == nil && r.node == primary.addr
	})
}

// TestAnOutdatedSentinel: of the nodes that Sentinels name the one of the latest failover counts, or else of most of them; also while it does not answer for a
// moment, and the outdated one is a primary, too.
func TestAnOutdatedSentinel(t *testing.T) {
	for name, epochs := range map[string][3]string{"by its epoch": {"7", "8", "7"}, "by their number": {"", "", ""}} {
		t.Run(name, func(t *testing.T) {
			old, primary := startFake(t, nil), startFake(t, nil)
			names := func(node *fakeNode, epoch string) func([]string) string {
				host, port, err := net.SplitHostPort(node.addr)
				require.NoError(t, err)
				return on("SENTINEL", func(args []string) string {
					switch {
					case args[1] == "GET-MASTER-ADDR-BY-NAME":
						return array(bulk(host), bulk(port))
					case epoch == "":
						return "-NOPERM this user has no permissions\r\n"
					}
					return array(bulk("name"), bulk("m"), bulk("config-epoch"), bulk(epoch))
				})
			}
			others := [2]*fakeNode{old, primary}
			if epochs[0] == "" {
				others[0] = primary
			}
			first, second, third := startFake(t, names(others[0], epochs[0])), startFake(t, names(others[1], epochs[1])), startFake(t, names(old, epochs[2]))
			u := started(t, Config{Kind: Sentinel, Addrs: []string{third.addr, first.addr, second.addr}, Master: "m"})
			require.Equal(t, primary.addr, do(t, u, "PING").node)
			f := u.fleet.Load()
			(*f.primaries.Load())[0].rest("it does not answer for a moment")
			for range 3 {
				_ = f.look(t.Context())
				require.Equal(t, primary.addr, (*f.primaries.Load())[0].addr)
			}
			eventually(t, "it is asked again", func() bool {
				r := do(t, u, "PING")
				return r.failure == nil && r.node == primary.addr
			})
		})
	}
}

// TestSentinelsThatAreSilent: those that answer are asked at once.
func TestSentinelsThatAreSilent(t *testing.T) {
	node := startFake(t, nil)
	host, port, err := net.SplitHostPort(node.addr)
	require.NoError(t, err)
	var addrs []string
	for range 5 {
		addrs = append(addrs, startFake(t, on("SENTINEL", func([]string) string { return stall })).addr)
	}
	addrs = append(addrs, startFake(t, on("SENTINEL", func([]string) string { return array(bulk(host), bulk(port)) })).addr)
	u := started(t, Config{Kind: Sentinel, Addrs: addrs, Master: "m"})
	require.Equal(t, node.addr, do(t, u, "PING").node)
}

// TestASentinelThatIsWrong: of the nodes that it has named and that are none, the last one is remembered.
func TestASentinelThatIsWrong(t *testing.T) {
	node := startFake(t, nil)
	u := started(t, Config{Addrs: []string{node.addr}})
	f := u.fleet.Load()
	f.cfg.Kind = Sentinel
	for i := range 5 {
		require.NotEmpty(t, f.follow([]string{fmt.Sprintf("127.0.0.1:%d", i+1)}))
		require.LessOrEqual(t, len(f.all()), 2)
	}
	require.Equal(t, node.addr, do(t, u, "PING").node)
	require.Empty(t, f.follow([]string{node.addr}))
	require.Len(t, f.all(), 1)
}
