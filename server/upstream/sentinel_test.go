package upstream

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

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

// naming answers as a Sentinel that names a primary, and the failover that it knows of: "" if it may not say.
func naming(primary, epoch string) func([]string) string {
	host, port, _ := net.SplitHostPort(primary)
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

// TestAnOutdatedSentinel: of the nodes that Sentinels name the one of the latest failover counts, or else of most of them; also while it does not answer for a
// moment, and the outdated one is a primary, too.
func TestAnOutdatedSentinel(t *testing.T) {
	for name, epochs := range map[string][3]string{"by its epoch": {"7", "8", "7"}, "by their number": {"", "", ""}} {
		t.Run(name, func(t *testing.T) {
			old, primary := startFake(t, nil), startFake(t, nil)
			others := [2]*fakeNode{old, primary}
			if epochs[0] == "" {
				others[0] = primary
			}
			first, second, third := startFake(t, naming(others[0].addr, epochs[0])), startFake(t, naming(others[1].addr, epochs[1])), startFake(t, naming(old.addr, epochs[2]))
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

// TestALookThatWaitedLong for nodes that do not answer does not put off the next one for as long.
func TestALookThatWaitedLong(t *testing.T) {
	require.Equal(t, lookPause, pauseAfterLook(lookPause/lookShare/2))
	require.Equal(t, lookShare*lookPause, pauseAfterLook(lookPause))
	require.Equal(t, lookPauseMax, pauseAfterLook(lookMax))
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
	u := open(t, Config{Kind: Sentinel, Addrs: []string{"127.0.0.1:1"}, Master: "m"}) // which nobody asks
	f := u.fleet.Load()
	require.Empty(t, f.follow([]string{node.addr}))
	for i := range 5 {
		clear(f.tried) // as each look does
		require.NotEmpty(t, f.follow([]string{fmt.Sprintf("127.0.0.1:%d", i+1)}))
		f.keepTried()
		require.LessOrEqual(t, len(f.all()), 2)
	}
	require.Equal(t, node.addr, do(t, u, "PING").node)
	clear(f.tried)
	require.Empty(t, f.follow([]string{node.addr}))
	f.keepTried()
	require.Len(t, f.all(), 1)
}

// successor returns a new configuration with other Sentinels, which begins with what the one in use knows, and as if it were the next one of u.
func successor(t *testing.T, u *Upstream, addrs ...string) *fleet {
	cfg := u.fleet.Load().cfg
	cfg.Addrs = addrs
	next := newFleet(u, cfg)
	t.Cleanup(next.close)
	next.succeed(u.fleet.Load())
	return next
}

// TestSentinelsOfANewConfiguration: while two of the three that it names are not there yet, the outdated third does not lead back to the former primary, and
// what is tried meanwhile does not pile up.
func TestSentinelsOfANewConfiguration(t *testing.T) {
	u, _, primary, sentinels := failedOver(t)
	gone := startFake(t, nil)
	require.NoError(t, gone.listener.Close())
	next := successor(t, u, sentinels[0].addr, startFake(t, naming(gone.addr, "9")).addr, "127.0.0.1:1")
	for range 20 {
		require.Error(t, next.look(t.Context()))
		require.False(t, next.catchUp())
		require.Equal(t, primary.addr, next.used(), "which is the former configuration's")
		next.reap()
		next.doubted(func(d *doubt) { d.useless, d.named = -int64(doubtMax), 0 }) // as if time passed
	}
	require.LessOrEqual(t, len(next.allEver()), 3)
}

// TestTheFormerPrimaryIsDead: most Sentinels of the new configuration name it, and so it stays as it would without a new one, even if one misses an answer.
func TestTheFormerPrimaryIsDead(t *testing.T) {
	u, _, primary, sentinels := failedOver(t)
	f := u.fleet.Load()
	_ = primary.listener.Close()
	primary.hangUp()
	require.Error(t, f.look(t.Context()))
	f.doubted(func(d *doubt) { d.useless -= int64(doubtMax) })
	require.Error(t, f.look(t.Context()))
	next := successor(t, u, f.cfg.Addrs...)
	sentinels[1].answer(on("SENTINEL", func([]string) string { return "-ERR it misses one\r\n" }))
	for range 3 {
		require.Error(t, next.look(t.Context()))
		require.Equal(t, primary.addr, next.used())
	}
}

// TestAFailoverDuringAChange: what the configuration in use hears of while the new one looks is not forgotten, and what the new one has heard neither.
func TestAFailoverDuringAChange(t *testing.T) {
	u, _, primary, sentinels := failedOver(t)
	current := u.fleet.Load()
	next := successor(t, u, current.cfg.Addrs...)
	require.Equal(t, failover{2, primary.addr}, next.knownFailovers().latest)
	require.False(t, next.catchUp())
	hear := func(f *fleet, told failover) {
		f.looking.Lock()
		f.failovers.latest = told
		f.looking.Unlock()
	}
	hear(current, failover{3, "b:1"})
	require.True(t, next.catchUp())
	require.False(t, next.catchUp(), "it has")
	require.Equal(t, failover{3, "b:1"}, next.knownFailovers().latest)
	hear(next, failover{5, "c:1"})
	hear(current, failover{4, "d:1"})
	require.True(t, next.catchUp())
	require.Equal(t, failover{5, "c:1"}, next.knownFailovers().latest, "that is later")
	next.stands()
	require.False(t, next.catchUp())
	require.Empty(t, next.used())
	other := successor(t, u, "127.0.0.1:1")
	require.Zero(t, other.knownFailovers().latest, "no Sentinel is the same")
	require.NotEmpty(t, sentinels)
}

// TestANewConfigurationThatServes is used although what most of its Sentinels name is of no use as yet.
func TestANewConfigurationThatServes(t *testing.T) {
	u, old, primary, sentinels := failedOver(t)
	gone := startFake(t, nil)
	for _, n := range []*fakeNode{gone, primary} {
		_ = n.listener.Close()
		n.hangUp()
	}
	sentinels[1].answer(naming(gone.addr, "1"))
	sentinels[2].answer(naming(gone.addr, "1"))
	next := successor(t, u, u.fleet.Load().cfg.Addrs...)
	for range 2 {
		var look *lookError
		require.ErrorAs(t, next.look(t.Context()), &look)
		require.Equal(t, next.used() == old.addr, look.settled)
		next.doubted(func(d *doubt) {
			*d = doubt{addr: d.addr, seen: d.seen, since: -int64(doubtMax), useless: -int64(doubtMax)}
		}) // as if all had been so for long
	}
	require.Equal(t, old.addr, next.used())
}

// failedOver returns an Upstream of three Sentinels of which one has missed the latest failover, and the former primary, which still is one.
func failedOver(t *testing.T) (u *Upstream, old, primary *fakeNode, sentinels [3]*fakeNode) {
	t.Helper()
	old, primary = startFake(t, nil), startFake(t, nil)
	addrs := make([]string, len(sentinels))
	for i := range sentinels {
		node, epoch := primary, "2"
		if i == 0 {
			node, epoch = old, "1"
		}
		sentinels[i] = startFake(t, naming(node.addr, epoch))
		addrs[i] = sentinels[i].addr
	}
	u = started(t, Config{Kind: Sentinel, Addrs: addrs, Master: "m", Rest: time.Hour})
	require.Equal(t, primary.addr, do(t, u, "PING").node)
	return u, old, primary, sentinels
}

// doubted changes what a fleet remembers of its doubts, as if they were older.
func (f *fleet) doubted(change func(d *doubt)) {
	f.looking.Lock()
	defer f.looking.Unlock()
	change(&f.failovers.doubt)
}

// TestALaterFailoverIsRemembered: a Sentinel that has missed it leads nobody back, also if it is the only one that answers, while the primary in use is one.
func TestALaterFailoverIsRemembered(t *testing.T) {
	for _, how := range []string{hangup, stall} {
		t.Run(how, func(t *testing.T) {
			u, old, primary, sentinels := failedOver(t)
			for _, s := range sentinels[1:] {
				s.answer(on("SENTINEL", func([]string) string { return how }))
			}
			f := u.fleet.Load()
			for range 3 {
				require.ErrorContains(t, f.look(t.Context()), "it knows nothing of the latest failover (config-epoch 1, not 2), and names "+old.addr+", which is not used")
				require.Equal(t, primary.addr, do(t, u, "PING").node)
			}
			sentinels[1].answer(naming(primary.addr, "2"))
			require.NoError(t, f.look(t.Context()))
		})
	}
}

// TestSentinelsThatBeginAnew: where most of them know only of earlier failovers, they are believed at once if the primary in use is none any more, and else
// after a while.
func TestSentinelsThatBeginAnew(t *testing.T) {
	u, old, primary, sentinels := failedOver(t)
	f := u.fleet.Load()
	sentinels[1].answer(naming(old.addr, "0"))
	sentinels[2].answer(on("SENTINEL", func([]string) string { return hangup }))
	require.Error(t, f.look(t.Context()))
	require.Equal(t, primary.addr, do(t, u, "PING").node)
	f.doubted(func(d *doubt) { d.since -= int64(doubtMax) })
	require.NoError(t, f.look(t.Context()))
	require.Equal(t, old.addr, do(t, u, "PING").node)
	require.NoError(t, f.look(t.Context()), "what they say is the latest now")

	u, old, primary, sentinels = failedOver(t)
	sentinels[1].answer(naming(old.addr, "0"))
	sentinels[2].answer(naming(old.addr, "0"))
	primary.answer(on("HELLO", func([]string) string {
		return array(bulk("version"), bulk("7.0.15"), bulk("mode"), bulk("standalone"), bulk("role"), bulk("replica"))
	}))
	eventually(t, "they are believed", func() bool { return do(t, u, "PING").node == old.addr })
}

// TestOneSentinelThatDidNotBeginAnew: the others are believed, although it goes on to tell of a later failover; what it tells then counts no more, until most
// tell the same.
func TestOneSentinelThatDidNotBeginAnew(t *testing.T) {
	begin := func() (u *Upstream, old, primary *fakeNode, sentinels [3]*fakeNode) {
		u, old, primary, sentinels = failedOver(t)
		sentinels[0].answer(naming(primary.addr, "2"))
		sentinels[1].answer(naming(old.addr, "0"))
		sentinels[2].answer(naming(old.addr, "0"))
		return u, old, primary, sentinels
	}
	u, old, primary, sentinels := begin()
	f := u.fleet.Load()
	require.NoError(t, f.look(t.Context()))
	require.Equal(t, primary.addr, do(t, u, "PING").node)
	f.doubted(func(d *doubt) { d.since -= int64(doubtMax) })
	for range 3 {
		require.NoError(t, f.look(t.Context()))
		require.Equal(t, old.addr, do(t, u, "PING").node)
	}
	for _, s := range sentinels[1:] {
		s.answer(on("SENTINEL", func([]string) string { return hangup }))
	}
	require.ErrorContains(t, f.look(t.Context()), "it names "+primary.addr+" (config-epoch 2), which most Sentinels have given up")
	require.Equal(t, old.addr, do(t, u, "PING").node)
	sentinels[1].answer(naming(primary.addr, "2"))
	require.NoError(t, f.look(t.Context()))
	require.Equal(t, primary.addr, do(t, u, "PING").node)

	u, old, primary, _ = begin()
	_ = primary.listener.Close()
	primary.hangUp()
	f = u.fleet.Load()
	require.Error(t, f.look(t.Context()))
	require.Equal(t, primary.addr, (*f.primaries.Load())[0].addr)
	f.doubted(func(d *doubt) { d.since -= int64(doubtMax) })
	require.NoError(t, f.look(t.Context()))
	require.Equal(t, old.addr, do(t, u, "PING").node)

	u, old, primary, _ = begin()
	primary.answer(isReplica)
	eventually(t, "they are believed at once", func() bool { return do(t, u, "PING").node == old.addr })
}

// TestAFailoverIsHeardOf: it is remembered also while its primary is of no use, and given up only if most Sentinels do not know of it for a while.
func TestAFailoverIsHeardOf(t *testing.T) {
	const gone = "127.0.0.1:1"
	u, _, primary, sentinels := failedOver(t)
	sentinels[0].answer(naming(gone, "9"))
	f := u.fleet.Load()
	require.Error(t, f.look(t.Context()))
	require.Equal(t, primary.addr, do(t, u, "PING").node)
	sentinels[0].answer(on("SENTINEL", func([]string) string { return hangup }))
	require.ErrorContains(t, f.look(t.Context()), sentinels[1].addr+": it knows nothing of the latest failover (config-epoch 2, not 9), to "+gone+", which is of no use")
	sentinels[0].answer(naming(gone, "9"))
	require.Error(t, f.look(t.Context()))
	f.doubted(func(d *doubt) { d.since -= int64(doubtMax) })
	for range 2 {
		require.NoError(t, f.look(t.Context()))
		require.Equal(t, primary.addr, do(t, u, "PING").node)
	}
}

// TestFewSentinelsAreLeft: those that know only of earlier failovers are believed once the primary in use has been of no use for long.
func TestFewSentinelsAreLeft(t *testing.T) {
	u, old, primary, sentinels := failedOver(t)
	for _, s := range sentinels[1:] {
		s.answer(on("SENTINEL", func([]string) string { return hangup }))
	}
	f := u.fleet.Load()
	(*f.primaries.Load())[0].rest("it does not answer")
	require.Error(t, f.look(t.Context()))
	require.Equal(t, primary.addr, (*f.primaries.Load())[0].addr)
	f.doubted(func(d *doubt) { d.useless -= int64(doubtMax) })
	require.NoError(t, f.look(t.Context()))
	require.Equal(t, old.addr, do(t, u, "PING").node)
}

// TestANewConfigurationRemembersFailovers that the one before it knows of, unless it is about other Sentinels.
func TestANewConfigurationRemembersFailovers(t *testing.T) {
	u, old, primary, sentinels := failedOver(t)
	for _, s := range sentinels[1:] {
		s.answer(on("SENTINEL", func([]string) string { return hangup }))
	}
	cfg := u.fleet.Load().cfg
	cfg.Addrs = append(cfg.Addrs[:1:1], "127.0.0.1:1")
	u.SetConfig(cfg)
	eventually(t, "it does not work", func() bool {
		s := u.Status()
		return strings.Contains(s.Problem, "it knows nothing of the latest failover")
	})
	require.Equal(t, primary.addr, do(t, u, "PING").node)
	other := startFake(t, naming(old.addr, "1"))
	cfg.Addrs = []string{other.addr}
	u.SetConfig(cfg)
	eventually(t, "other Sentinels are believed", func() bool { return do(t, u, "PING").node == old.addr })
}

// TestAFailoverWhileAConfigurationIsTried is remembered, too: what the new one's Sentinel names is outdated.
func TestAFailoverWhileAConfigurationIsTried(t *testing.T) {
	old, primary := startFake(t, nil), startFake(t, nil)
	first, second := startFake(t, naming(old.addr, "1")), startFake(t, naming(old.addr, "1"))
	cfg := Config{Kind: Sentinel, Addrs: []string{first.addr, second.addr}, Master: "m"}
	u := started(t, cfg)
	first.answer(on("SENTINEL", func([]string) string { return hangup }))
	cfg.Addrs = cfg.Addrs[:1]
	u.SetConfig(cfg)
	eventually(t, "it does not work", func() bool { s := u.Status(); return s.Changing && strings.Contains(s.Problem, first.addr) })
	second.answer(naming(primary.addr, "2"))
	eventually(t, "the primary has changed", func() bool { return do(t, u, "PING").node == primary.addr })
	first.answer(naming(old.addr, "1"))
	eventually(t, "it is used", func() bool { return !u.Status().Changing })
	require.Equal(t, primary.addr, do(t, u, "PING").node)
	eventually(t, "it is said what is outdated", func() bool { return strings.Contains(u.Status().Problem, "it knows nothing of the latest failover") })
}

// TestAnEpochThatIsNone, since no number is so long, is not the latest.
func TestAnEpochThatIsNone(t *testing.T) {
	old, primary := startFake(t, nil), startFake(t, nil)
	addrs := []string{startFake(t, naming(old.addr, strings.Repeat("9", 30))).addr, startFake(t, naming(primary.addr, "3")).addr}
	u := started(t, Config{Kind: Sentinel, Addrs: addrs, Master: "m"})
	require.Equal(t, primary.addr, do(t, u, "PING").node)
}

// TestANegativeEpoch is none.
func TestANegativeEpoch(t *testing.T) {
	node := startFake(t, nil)
	u := started(t, Config{Kind: Sentinel, Addrs: []string{startFake(t, naming(node.addr, "-5")).addr}, Master: "m"})
	require.Equal(t, node.addr, do(t, u, "PING").node)
}

// TestWhatSentinelsNameAtOneEpoch: one does not lead away from what most of them name, also if it is the only one that answers.
func TestWhatSentinelsNameAtOneEpoch(t *testing.T) {
	old, primary := startFake(t, nil), startFake(t, nil)
	first, second, third := startFake(t, naming(old.addr, "2")), startFake(t, naming(primary.addr, "2")), startFake(t, naming(primary.addr, "2"))
	u := started(t, Config{Kind: Sentinel, Addrs: []string{first.addr, second.addr, third.addr}, Master: "m"})
	f := u.fleet.Load()
	require.Equal(t, primary.addr, do(t, u, "PING").node)
	for _, s := range []*fakeNode{second, third} {
		s.answer(on("SENTINEL", func([]string) string { return hangup }))
	}
	for range 2 {
		require.ErrorContains(t, f.look(t.Context()), first.addr+": it names "+old.addr+", and not "+primary.addr+", after the same failover (config-epoch 2)")
		require.Equal(t, primary.addr, do(t, u, "PING").node)
	}
}

// TestOneSentinelThatIsNear and outdated does not keep the gateway from what the others name, who take longer to answer.
func TestOneSentinelThatIsNear(t *testing.T) {
	old, primary := startFake(t, nil), startFake(t, nil)
	first, second, third := startFake(t, naming(old.addr, "2")), startFake(t, naming(old.addr, "2")), startFake(t, naming(old.addr, "2"))
	u := started(t, Config{Kind: Sentinel, Addrs: []string{first.addr, second.addr, third.addr}, Master: "m"})
	f := u.fleet.Load()
	_ = old.listener.Close()
	old.hangUp()
	later := naming(primary.addr, "3")
	for _, s := range []*fakeNode{second, third} {
		s.answer(func(args []string) string {
			time.Sleep(sentinelGrace + sentinelGrace/2)
			return later(args)
		})
	}
	_ = f.look(t.Context())
	require.NoError(t, f.look(t.Context()))
	require.Equal(t, primary.addr, do(t, u, "PING").node)
}

// TestSentinelsThatDisagree: five that name four primaries do not lead away from one that is of use.
func TestSentinelsThatDisagree(t *testing.T) {
	primary := startFake(t, nil)
	answers := []func([]string) string{naming(primary.addr, "5"), naming(primary.addr, "5"), naming("127.0.0.1:1", "3"), naming("127.0.0.1:2", "2"), naming("127.0.0.1:3", "0")}
	cfg := Config{Kind: Sentinel, Master: "m"}
	for _, answer := range answers {
		cfg.Addrs = append(cfg.Addrs, startFake(t, answer).addr)
	}
	u := started(t, cfg)
	f := u.fleet.Load()
	for range 2 {
		require.NoError(t, f.look(t.Context()))
		f.doubted(func(d *doubt) { require.Empty(t, d.addr) })
	}
	require.Equal(t, primary.addr, do(t, u, "PING").node)
}

// TestWhatIsRetiredIsRemembered by a new configuration, and counts again once what most had led to has been of no use for long.
func TestWhatIsRetiredIsRemembered(t *testing.T) {
	u, old, primary, sentinels := failedOver(t)
	f := u.fleet.Load()
	sentinels[0].answer(naming(primary.addr, "2"))
	sentinels[1].answer(naming(old.addr, "0"))
	sentinels[2].answer(naming(old.addr, "0"))
	require.NoError(t, f.look(t.Context()))
	f.doubted(func(d *doubt) { d.since -= int64(doubtMax) })
	require.NoError(t, f.look(t.Context()))
	require.Equal(t, old.addr, do(t, u, "PING").node)
	cfg := f.cfg
	cfg.Addrs = []string{cfg.Addrs[2], cfg.Addrs[1], cfg.Addrs[0]}
	u.SetConfig(cfg)
	eventually(t, "it is in use", func() bool { return !u.Status().Changing })
	f = u.fleet.Load()
	require.NoError(t, f.look(t.Context()))
	require.Equal(t, old.addr, do(t, u, "PING").node)

	sentinels[1].answer(on("SENTINEL", func([]string) string { return hangup }))
	old.answer(isReplica)
	require.Error(t, f.look(t.Context()))
	require.Equal(t, old.addr, (*f.primaries.Load())[0].addr)
	f.doubted(func(d *doubt) { d.useless -= int64(doubtMax) })
	require.NoError(t, f.look(t.Context()))
	require.Equal(t, primary.addr, do(t, u, "PING").node)
}

// TestDoubts: what counts is without a gap, which silence is not unless it is long.
func TestDoubts(t *testing.T) {
	now := int64(time.Hour)
	var d doubt
	hears := func(most string, votes map[string]int, after time.Duration) bool {
		now += int64(after)
		d.hears(most, votes, 3, now)
		return d.believes(most, now)
	}
	two := map[string]int{"b": 2}
	require.False(t, hears("b", two, 0))
	require.False(t, hears("b", two, doubtMax/3))
	require.False(t, hears("", map[string]int{"b": 1, "a": 1}, doubtMax/3), "one is silent")
	require.True(t, hears("b", two, doubtMax-2*(doubtMax/3)))
	require.False(t, hears("", map[string]int{"a": 2}, 0), "most name another one")
	require.False(t, hears("b", two, 0))
	require.False(t, hears("c", map[string]int{"c": 2}, doubtMax/2))
	require.False(t, hears("c", map[string]int{"c": 2}, doubtMax-1))
	require.True(t, hears("c", map[string]int{"c": 2}, 1))
	require.False(t, hears("c", map[string]int{"c": 2}, doubtMax), "that was long ago")
	require.False(t, hears("", nil, doubtMax))
	require.Zero(t, d)

	d.finds([]error{errClusterDown}, now)
	require.False(t, d.isUseless(now+int64(doubtMax)-1))
	require.True(t, d.isUseless(now+int64(doubtMax)))
	require.False(t, hears("b", two, 0))
	d.finds([]error{demotedError("it is a replica")}, now)
	require.True(t, hears("b", two, 0), "at once")
	d.finds(nil, now)
	require.False(t, d.isUseless(now+int64(doubtMax)))
}

// TestAddressesThatAreNone: what a Sentinel names is told on only if it can be a host and a port.
func TestAddressesThatAreNone(t *testing.T) {
	for _, bad := range [][2]string{{"127.0.0.9\r\nupstream_evil:1", "6379"}, {strings.Repeat("a", 60000), "6379"}, {"\x1b[31mred\x00\xff", "6379"}, {"", "6379"}, {"host", "6379\r\nx"}, {"host", "0"}} {
		s := startFake(t, on("SENTINEL", func([]string) string { return array(bulk(bad[0]), bulk(bad[1])) }))
		u := open(t, Config{Kind: Sentinel, Addrs: []string{s.addr}, Master: "m"})
		err := u.Start(t.Context())
		require.ErrorContains(t, err, s.addr+": it names a primary at ")
		require.ErrorContains(t, err, ", which is no address")
		require.Less(t, len(err.Error()), 512)
		require.NotContains(t, err.Error(), "\n")
		require.Empty(t, u.fleet.Load().all())
	}
	for _, host := range []string{"10.0.0.1", "::1", "fe80::1%eth0", "redis-1.my_net.example.com.", "localhost", strings.Repeat("a", hostMax)} {
		require.True(t, isHost(host), host)
	}
}

// TestNodesWithoutAnAddress: a cluster that names such a node is not followed.
func TestNodesWithoutAnAddress(t *testing.T) {
	nodes := fakeCluster(t, 1)
	nodes[0].answer(clustered(array(array(integer(0), integer(Slots-1), array(bulk("evil\r\nupstream_evil:1"), integer(1), bulk("id")))), nil))
	err := open(t, Config{Addrs: []string{nodes[0].addr}}).Start(t.Context())
	require.ErrorContains(t, err, `it names a node at "[evil\r\nupstream_evil:1]:1", which is no address`)
}

// TestMostNameOneOfNoUse: that is told, and the node that they name is remembered from look to look, so that it is left alone as any that rests.
func TestMostNameOneOfNoUse(t *testing.T) {
	const gone = "127.0.0.1:1"
	u, _, primary, sentinels := failedOver(t)
	f := u.fleet.Load()
	sentinels[1].answer(naming(gone, "0"))
	sentinels[2].answer(naming(gone, "0"))
	sentinels[0].answer(naming(primary.addr, "2"))
	require.NoError(t, f.look(t.Context()))
	f.doubted(func(d *doubt) { d.since -= int64(doubtMax) })
	require.ErrorContains(t, f.look(t.Context()), gone+": ")
	named := f.named(gone)
	require.NotNil(t, named)
	for range 2 {
		require.ErrorContains(t, f.look(t.Context()), gone+": ")
		require.Same(t, named, f.named(gone))
		require.Equal(t, primary.addr, do(t, u, "PING").node)
	}
	for _, s := range sentinels[1:] {
		s.answer(naming(primary.addr, "2"))
	}
	require.NoError(t, f.look(t.Context()))
	require.Nil(t, f.named(gone))
}

// TestAClosedFleet makes no nodes, which would be asked for ever.
func TestAClosedFleet(t *testing.T) {
	f := open(t, Config{Kind: Sentinel, Addrs: []string{"127.0.0.1:1"}, Master: "m"}).fleet.Load()
	f.close()
	require.Nil(t, f.node("127.0.0.1:2", primary))
}

// TestASentinelThatHangsUp is believed when it says why.
func TestASentinelThatHangsUp(t *testing.T) {
	s := startFake(t, on("SENTINEL", func(args []string) string {
		if args[1] == "MASTER" {
			return hangup
		}
		return "-DENIED Redis is running in protected mode\r\n"
	}))
	u := open(t, Config{Kind: Sentinel, Addrs: []string{s.addr}, Master: "m"})
	require.ErrorContains(t, u.Start(t.Context()), s.addr+": DENIED Redis is running in protected mode")
}
