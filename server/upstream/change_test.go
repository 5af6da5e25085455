package upstream

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// silence has a fake Sentinel say nothing of its primary, and hang up.
func silence(sentinels ...*fakeNode) {
	for _, s := range sentinels {
		s.answer(on("SENTINEL", func([]string) string { return hangup }))
	}
}

// namedByThree returns an Upstream of three Sentinels that name a primary after failover 5.
func namedByThree(t *testing.T, primary string) (u *Upstream, sentinels [3]*fakeNode, addrs []string) {
	t.Helper()
	for i := range sentinels {
		sentinels[i] = startFake(t, naming(primary, "5"))
		addrs = append(addrs, sentinels[i].addr)
	}
	return started(t, Config{Kind: Sentinel, Addrs: addrs, Master: "m"}), sentinels, addrs
}

// believe has a fleet look until it believes what most Sentinels name, without the wait.
func believe(t *testing.T, f *fleet) {
	t.Helper()
	_ = f.look(t.Context())
	f.doubted(func(d *doubt) { d.since -= int64(doubtMax) })
	require.NoError(t, f.look(t.Context()))
}

// TestWhatTheFormerConfigurationGaveUp while a new one is tried is given up there, too.
func TestWhatTheFormerConfigurationGaveUp(t *testing.T) {
	t.Run("a primary", func(t *testing.T) {
		a, b := startFake(t, nil), startFake(t, nil)
		u, sentinels, addrs := namedByThree(t, a.addr)
		f := u.fleet.Load()
		silence(sentinels[0])
		next := successor(t, u, addrs[0], "127.0.0.1:1", "127.0.0.1:2") // the others are not there yet
		require.Error(t, next.look(t.Context()))
		require.False(t, next.catchUp())
		for _, s := range sentinels[1:] { // set up anew, with another primary
			s.answer(naming(b.addr, "0"))
		}
		believe(t, f)
		require.Equal(t, b.addr, do(t, u, "PING").node)
		sentinels[0].answer(naming(a.addr, "5"))
		for range 3 {
			if _ = next.look(t.Context()); !next.catchUp() {
				require.Equal(t, b.addr, next.used())
			}
		}
	})
	t.Run("a failover by hearsay", func(t *testing.T) {
		a := startFake(t, nil)
		u, sentinels, addrs := namedByThree(t, a.addr)
		f := u.fleet.Load()
		sentinels[2].answer(naming("127.0.0.1:1", "9"))
		require.Error(t, f.look(t.Context()))
		next := successor(t, u, addrs[0], "127.0.0.1:2", "127.0.0.1:3")
		require.Error(t, next.look(t.Context()))
		believe(t, f)
		_ = next.look(t.Context())
		require.True(t, next.catchUp())
		require.NoError(t, next.look(t.Context()), "Sentinel and primary are those of the configuration in use, which is well")
	})
}

// TestAPasswordBesideUnwellSentinels is used as soon as the primary accepts it: the former one may be removed then.
func TestAPasswordBesideUnwellSentinels(t *testing.T) {
	changed := func(t *testing.T, u *Upstream, primary string) {
		t.Helper()
		cfg := u.fleet.Load().cfg
		cfg.Password = "new"
		u.SetConfig(cfg)
		eventually(t, "the password is used", func() bool { return !u.Status().Changing })
		require.Equal(t, primary, do(t, u, "PING").node)
		require.Equal(t, "new", u.fleet.Load().cfg.Password)
	}
	t.Run("of which one is outdated and others are silent", func(t *testing.T) {
		u, _, primary, sentinels := failedOver(t)
		silence(sentinels[1:]...)
		changed(t, u, primary.addr)
	})
	t.Run("of which all are silent", func(t *testing.T) {
		u, _, primary, sentinels := failedOver(t)
		silence(sentinels[:]...)
		changed(t, u, primary.addr)
	})
	t.Run("of which one names a dead primary", func(t *testing.T) {
		node := startFake(t, nil)
		first, second := startFake(t, naming(node.addr, "5")), startFake(t, naming(node.addr, "5"))
		u := started(t, Config{Kind: Sentinel, Addrs: []string{first.addr, second.addr}, Master: "m"})
		first.answer(naming("127.0.0.1:1", "9"))
		require.Error(t, u.fleet.Load().look(t.Context()))
		changed(t, u, node.addr)
	})
}

// TestOrderAtAChange: a client's calls run in order, also while a new configuration comes to be used.
func TestOrderAtAChange(t *testing.T) {
	release, ran := make(chan struct{}), make(chan string, 8)
	node := startFake(t, func(args []string) string {
		switch args[0] {
		case "SLOW":
			<-release
			return "+OK\r\n"
		case "SET":
			ran <- args[2]
		}
		return ""
	})
	cfg := Config{Addrs: []string{node.addr}, Timeout: 10 * time.Second}
	u := started(t, cfg)
	var calls []*pending
	send := func(args ...string) {
		c := newCall(args...)
		c.Slot = anySlot
		calls = append(calls, c.send(u))
	}
	send("SLOW")
	for _, v := range []string{"1", "2", "3", "4"} {
		send("SET", "k", v)
		time.Sleep(20 * time.Millisecond)
	}
	cfg.Password = "new"
	u.SetConfig(cfg)
	eventually(t, "it is used", func() bool { return !u.Status().Changing })
	send("SET", "k", "5")
	time.Sleep(100 * time.Millisecond) // in which it would overtake
	close(release)
	for _, c := range calls {
		require.Nil(t, c.wait(t).failure)
	}
	for _, v := range []string{"1", "2", "3", "4", "5"} {
		require.Equal(t, v, <-ran)
	}
}

// TestARestIsNoProof that a primary is of no use, however long it is set to be.
func TestARestIsNoProof(t *testing.T) {
	u, _, primary, sentinels := failedOver(t) // rests last an hour
	silence(sentinels[1:]...)
	f := u.fleet.Load()
	used := (*f.primaries.Load())[0]
	used.rest("no answer in time") // for a moment
	used.since.Add(-int64(2 * proofMax))
	_ = f.look(t.Context())
	f.doubted(func(d *doubt) { d.useless, d.named = d.useless-int64(doubtMax), 0 })
	_ = f.look(t.Context())
	require.Equal(t, primary.addr, f.used())
	require.Nil(t, do(t, u, "PING").failure)
}

// TestAReplicaThatIsPromoted soon after it was asked is used soon, however long rests are set to be.
func TestAReplicaThatIsPromoted(t *testing.T) {
	node := startFake(t, isReplica)
	s := startFake(t, naming(node.addr, "1"))
	u := open(t, Config{Kind: Sentinel, Addrs: []string{s.addr}, Master: "m", Rest: time.Minute})
	require.Error(t, u.Start(t.Context()))
	node.answer(nil)
	eventually(t, "it is used", func() bool { return do(t, u, "PING").failure == nil })
}

// TestADemotedPrimary that still has its connection is not taken for one that serves.
func TestADemotedPrimary(t *testing.T) {
	node := startFake(t, nil)
	s := startFake(t, naming(node.addr, "1"))
	u := started(t, Config{Kind: Sentinel, Addrs: []string{s.addr}, Master: "m", Timeout: time.Second})
	require.Nil(t, do(t, u, "SET", "k", "v").failure)
	node.answer(func(args []string) string {
		if args[0] == "SET" {
			return "-READONLY You can't write against a read only replica.\r\n"
		}
		return isReplica(args)
	})
	require.NotNil(t, do(t, u, "SET", "k", "v").failure)
	eventually(t, "it is seen", func() bool {
		s := u.Status()
		return strings.Contains(s.Problem, "replica") && s.State() == StateDown
	})
	node.answer(nil)
	eventually(t, "it serves again", func() bool {
		s := u.Status()
		return s.State() == StateUp
	})
}

// TestStalledSentinels are named, one by one.
func TestStalledSentinels(t *testing.T) {
	var addrs []string
	for range 3 {
		addrs = append(addrs, startFake(t, on("SENTINEL", func([]string) string { return stall })).addr)
	}
	err := open(t, Config{Kind: Sentinel, Addrs: addrs, Master: "m"}).Start(t.Context())
	for _, addr := range addrs {
		require.ErrorContains(t, err, addr)
	}
}
