package fleet

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// upstreamText is a field of INFO upstream, "" where there is none.
func upstreamText(c *harness.Client, name string) string {
	for line := range strings.Lines(c.Ask("INFO", "upstream").Text) {
		if field, text, found := strings.Cut(strings.TrimSpace(line), ":"); found && field == "upstream_"+name {
			return text
		}
	}
	return ""
}

// awaitField waits until a field of INFO upstream is as wanted.
func awaitField(t *testing.T, c *harness.Client, name string, wanted func(text string) bool) {
	t.Helper()
	require.Eventually(t, func() bool { return wanted(upstreamText(c, name)) }, failoverTimeout, 20*time.Millisecond, "%s: %s", name, upstreamText(c, name))
}

func is(wanted string) func(string) bool { return func(text string) bool { return text == wanted } }

// TestUpstreamChanges under load: to another server and back, to one that does not answer, and with a password that is exchanged. No call
// fails, and none is charged twice.
func TestUpstreamChanges(t *testing.T) {
	t.Parallel()
	first := harness.StartReference(t, "--requirepass", "one")
	second := harness.StartReference(t)
	gateway := harness.StartGateway(t, "redis://"+first.Addr, "--upstream-password", "one", "--upstream-timeout-ms", patient)
	admin, owner := harness.Dial(t, gateway.Addr), harness.Dial(t, first.Addr)
	require.Equal(t, "OK", owner.Ask("AUTH", "one").Text)
	set := func(words ...string) {
		t.Helper()
		require.Equal(t, "OK", texts(admin.Ask(append([]string{"CONFIG", "SET"}, words...)...)))
	}
	charged := func(c *harness.Client) (keys int) {
		_, err := fmt.Sscanf(texts(c.Ask("DBSIZE")), "%d", &keys)
		require.NoError(t, err)
		return keys
	}
	const callers = 12
	l := startLoad(t, gateway.Addr, 1, callers, sized(300, 2000), func(_, n int) string { return fmt.Sprint("change:", n) })
	require.Eventually(t, func() bool { return charged(owner) == callers }, failoverTimeout, 10*time.Millisecond)

	// The password is exchanged while both are valid.
	require.Equal(t, "OK", texts(owner.Ask("ACL", "SETUSER", "default", ">two")))
	set("upstream-password", "two")
	awaitField(t, admin, "state", is("up"))
	require.Equal(t, "OK", texts(owner.Ask("ACL", "SETUSER", "default", "<one")))

	// A wrong one, and a server that is not there, are told of, and what works goes on being used.
	set("upstream-password", "wrong")
	awaitField(t, admin, "problem", func(text string) bool { return strings.Contains(text, "wrong user name or password") })
	require.Equal(t, "degraded", upstreamText(admin, "state"))
	set("upstream", fmt.Sprintf("redis://127.0.0.1:%d", harness.FreePort(t)))
	awaitField(t, admin, "problem", func(text string) bool { return strings.Contains(text, "connection refused") })
	require.Equal(t, "0 10 9 -1 3600", texts(admin.Ask("CL.THROTTLE", "change:meanwhile", "9", "1", "3600")))
	require.Equal(t, "1", texts(owner.Ask("EXISTS", "change:meanwhile")))
	set("upstream", "redis://"+first.Addr, "upstream-password", "two")
	awaitField(t, admin, "state", is("up"))

	// Another server has none of the counts.
	l.stop(t)
	require.Empty(t, l.errors())
	l.requireChargedOnce(t)
	l = startLoad(t, gateway.Addr, 1, callers, sized(300, 2000), func(_, n int) string { return fmt.Sprint("moved:", n) })
	set("upstream", "redis://"+second.Addr, "upstream-password", "")
	other := harness.Dial(t, second.Addr)
	require.Eventually(t, func() bool { return charged(other) == callers }, failoverTimeout, 10*time.Millisecond)
	time.Sleep(100 * time.Millisecond)
	l.stop(t)
	require.Empty(t, l.errors(), "no call fails when the server is another one")
	agrees(t, gateway)
}

// TestRightsOnTheWay: a gateway's users reach no more upstream than their patterns and categories allow, and a node on which the gateway's own
// user lacks its rights is told of while the others serve.
func TestRightsOnTheWay(t *testing.T) {
	t.Parallel()
	cluster := harness.StartCluster(t, 3, 0, nodeTimeout)
	for _, node := range cluster.Nodes {
		require.Equal(t, "OK", texts(harness.Dial(t, node.Addr).Ask("ACL", "SETUSER", "gateway", "on", ">secret", "~*", "+@all")))
	}
	url := "redis://gateway@" + strings.TrimPrefix(cluster.URL(), "redis://")
	gateway := harness.StartGateway(t, url, "--upstream-password", "secret", "--upstream-timeout-ms", patient)
	admin := harness.Dial(t, gateway.Addr)
	require.Equal(t, "OK", texts(admin.Ask("ACL", "SETUSER", "shop", "on", ">pw", "~shop:*", "-@all", "+@throttle", "+get", "+multi", "+exec")))
	shop := harness.Dial(t, gateway.Addr)
	require.Equal(t, "OK", texts(shop.Ask("AUTH", "shop", "pw")))
	const noKey = "-NOPERM this user has no permissions to access one of the keys used as arguments"
	for _, step := range []struct{ line, want string }{
		{"RL.FIXED shop:1 5 1h", "0 5 4 -1 3600000"},
		{"RL.FIXED other:1 5 1h", noKey},
		{"CL.THROTTLE other:1 5 1 60", noKey},
		{"RL.RESET shop:1 other:1", noKey},
		{"GET shop:1", "1"},
		{"GET other:1", noKey},
		{"SET shop:1 9", "-NOPERM this user has no permissions to run the 'set' command"},
		{"EVAL return(1) 1 shop:1", "-NOPERM this user has no permissions to run the 'eval' command"},
		{"MULTI", "OK"},
		{"RL.FIXED shop:1 5 1h", "QUEUED"},
		{"RL.FIXED other:1 5 1h", noKey},
		{"EXEC", "-EXECABORT Transaction discarded because of previous errors."},
	} {
		require.Equal(t, step.want, texts(shop.Ask(strings.Fields(step.line)...)), step.line)
	}
	require.Equal(t, "0 5 4 -1 3600000", texts(shop.Ask("RL.FIXED", "shop:2", "5", "1h")))

	require.Equal(t, "up", upstreamText(admin, "state"))
	owner := harness.Dial(t, cluster.Nodes[0].Addr)
	require.Equal(t, "OK", texts(owner.Ask("ACL", "SETUSER", "gateway", "-evalsha")))
	refused := cluster.KeyIn(0, "rights", 0)
	for range 4 {
		require.Equal(t, "-NOPERM upstream: this user has no permissions to run the 'evalsha' command", texts(admin.Ask("RL.FIXED", refused, "5", "1h")))
	}
	require.Equal(t, "0 5 4 -1 3600000", texts(admin.Ask("RL.FIXED", cluster.KeyIn(1, "rights", 0), "5", "1h")))
	require.Equal(t, "degraded", upstreamText(admin, "state"))
	require.Contains(t, upstreamText(admin, "problem"), cluster.Nodes[0].Addr+": NOPERM this user has no permissions to run the 'evalsha' command")
	require.Contains(t, texts(admin.Ask("RL.UPSTREAM", "NODES")), "refusing")
	require.Contains(t, gateway.Log(), "a node refuses calls")
	require.Equal(t, "OK", texts(owner.Ask("ACL", "SETUSER", "gateway", "+evalsha")))
	require.Equal(t, "0 5 4 -1 3600000", texts(admin.Ask("RL.FIXED", refused, "5", "1h")))
	require.Equal(t, "up", upstreamText(admin, "state"))
}
