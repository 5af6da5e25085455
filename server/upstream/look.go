package upstream

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// How often the topology is looked at. Up to a quarter is added by chance.
const (
	lookEvery    = 5 * time.Second        // when all is well
	lookSentinel = time.Second            // when all is well; a primary that has been replaced may not tell
	lookTroubled = 250 * time.Millisecond // while a primary rests, or slots have none
	lookFailed   = time.Second            // after a new configuration has not worked
	lookPause    = 20 * time.Millisecond  // at least, between two looks
	lookShare    = 4                      // times as long as a look took, likewise: that of many ranges of slots is much work,
	lookPauseMax = 500 * time.Millisecond // but no longer: one that took long has mostly waited for nodes that do not answer
	lookMax      = 5 * time.Second        // that one look may take
	clockMax     = 250 * time.Millisecond // likewise to be asked for the time, which is not urgent, while the next look may be
	askMax       = connectMax * 5 / 4     // that one node may take to be connected and to answer
	proofMax     = time.Second            // for which a node that was of no use is taken to be of none without being asked, however long upstream-rest-ms is
)

// watch looks at the topology until the fleet is closed.
func (f *fleet) watch() {
	timer := time.NewTimer(jittered(f.lookAfter()))
	defer timer.Stop()
	clocks := Now()
	var unread []*node
	for {
		select {
		case <-f.done:
			return
		case <-f.wanted:
		case <-timer.C:
		}
		begin := Now()
		ctx, cancel := context.WithTimeout(f.ctx, lookMax)
		f.note(f.look(ctx))
		cancel()
		took := time.Duration(Now() - begin)
		if Now()-clocks >= int64(lookEvery) && len(unread) == 0 {
			clocks, unread = Now(), *f.primaries.Load()
		}
		unread = f.readClocks(unread)
		f.reap()
		timer.Reset(jittered(f.lookAfter()))
		select {
		case <-f.done:
			return
		case <-time.After(jittered(pauseAfterLook(took))):
		}
	}
}

// pauseAfterLook is how long no other look begins after one that took so long.
func pauseAfterLook(took time.Duration) time.Duration {
	return max(lookPause, min(lookShare*took, lookPauseMax))
}

// lookAfter is how long the topology is believed.
func (f *fleet) lookAfter() time.Duration {
	primaries := *f.primaries.Load()
	for _, n := range primaries {
		if n.rests() {
			return lookTroubled
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.err != nil || len(primaries) == 0:
		return lookTroubled
	case f.cfg.Kind == Sentinel:
		return lookSentinel
	}
	return lookEvery
}

// note logs how a look went, if that has changed.
func (f *fleet) note(err error) {
	f.mu.Lock()
	was := f.err
	f.err = err
	f.mu.Unlock()
	if f.ctx.Err() != nil {
		return
	}
	switch {
	case err != nil && (was == nil || was.Error() != err.Error()):
		f.up.log.Warn("upstream: the topology cannot be read", "upstream", f.String(), "error", err)
	case err == nil && was != nil:
		f.up.log.Info("upstream: the topology is known again", "upstream", f.String())
	}
}

// look finds out who the primaries are.
func (f *fleet) look(ctx context.Context) error {
	f.looking.Lock()
	defer f.looking.Unlock()
	f.up.totals.looks.Add(1)
	if f.cfg.Kind == Sentinel {
		return f.askSentinels(ctx)
	}
	witnesses, failures := f.witnesses()
	for _, n := range witnesses {
		if ctx.Err() != nil {
			break
		}
		err := f.askNode(n)
		if err == nil {
			if f.askingRefusing.CompareAndSwap(false, true) {
				go f.askRefusing()
			}
			return nil
		}
		failures = append(failures, nodeError(n, err))
	}
	if len(failures) == 0 {
		failures = append(failures, fmt.Errorf("no node of %s answers", f))
	}
	return &lookError{failures: failures}
}

// askRefusing asks nodes again, at most witnessesMax, that have refused a connection: no call is sent to a replica, which would count as refusing for as
// long as it is one.
func (f *fleet) askRefusing() {
	defer f.askingRefusing.Store(false)
	asked := 0
	for _, n := range f.all() {
		if n.refusals.connection.Load() == nil {
			continue
		}
		if asked++; asked > witnessesMax || f.ctx.Err() != nil {
			return
		}
		_, _ = n.ask(askMax, "HELLO") // that it is connected counts
	}
}

// lookError is why the topology could not be read: what each node, or Sentinel, that was asked has answered.
type lookError struct {
	failures []error
	settled  bool // on a primary that Sentinels name, though what most of them name is of no use
}

func (e *lookError) Error() string {
	texts := make([]string, len(e.failures))
	for i, err := range e.failures {
		texts[i] = err.Error()
	}
	slices.Sort(texts) // nodes are asked in an order of chance
	return strings.Join(texts, "; ")
}

// IsLasting reports whether an error of Start tells of nodes that have all answered, and will not serve this gateway however long is waited.
func IsLasting(err error) bool {
	var look *lookError
	if !errors.As(err, &look) {
		return false
	}
	for _, failure := range look.failures {
		var refusal refusedError
		if !errors.As(failure, &refusal) || !refusal.lasting() {
			return false
		}
	}
	return true
}

// nodeError names the node that an error of ask is about.
func nodeError(n *node, err error) error { return fmt.Errorf("%s: %w", n.addr, problemOf(err)) }

// problemOf says what is wrong with a node, by an error of ask, without its name.
func problemOf(err error) error {
	var failure *Failure
	switch {
	case !errors.As(err, &failure):
		return err
	case failure.Kind == Timeout:
		return errors.New("no answer in time")
	case failure.refused:
		return refusedError(failure.Detail)
	}
	return errors.New(failure.Detail)
}

// witnesses are the nodes that may be asked for the topology, at most witnessesMax, in the order in which to ask: primaries first. Those
// that rest are left alone, and why is told instead.
func (f *fleet) witnesses() (ranked []*node, resting []error) {
	nodes := f.all()
	rand.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	for _, wanted := range [...]role{primary, seed, replica} {
		for _, n := range nodes {
			if role(n.role.Load()) != wanted {
				continue
			}
			if why := n.restsFor(); why != "" {
				resting = append(resting, fmt.Errorf("%s: %s", n.addr, why))
			} else {
				ranked = append(ranked, n)
			}
		}
	}
	return ranked[:min(len(ranked), witnessesMax)], resting[:min(len(resting), witnessesMax)]
}

const witnessesMax = 8

// askNode has a node tell of the topology.
func (f *fleet) askNode(n *node) error {
	hello, err := n.ask(askMax, "HELLO")
	if err != nil {
		return err
	}
	g, err := n.judge(hello)
	if err != nil {
		return err
	}
	n.hello.Store(g)
	if err := f.askAbout(n); err != nil {
		return err
	}
	if !g.inCluster() {
		n.role.Store(int32(primary))
		f.cluster.Store(false)
		f.setPrimaries([]*node{n})
		if !f.known.Swap(true) {
			go f.warnOfOthers(n)
		}
		return nil
	}
	if err := f.askSlots(n); err != nil {
		return err
	}
	f.known.Store(true)
	return f.askState(n)
}

// inCluster reports whether the server is a node of a cluster.
func (g *greeting) inCluster() bool { return g.mode == "cluster" }

// askState returns an error if the node answers no calls, since its cluster is down. A user that may not ask for that is taken to be served.
func (f *fleet) askState(n *node) error {
	if f.stateless.Load() {
		return nil
	}
	reply, err := n.ask(askMax, "CLUSTER", "INFO")
	switch {
	case err != nil:
		return err
	case reply.isError():
		f.stateless.Store(refusedError(reply.text).lasting()) // one that is loading is asked again
	case infoField(reply.text, "cluster_state") == "fail":
		return errClusterDown
	}
	return nil
}

// errClusterDown is what such a node answers to calls.
const errClusterDown = refusedError("CLUSTERDOWN The cluster is down")

// warnOfOthers warns if other servers that the configuration names are primaries as well, although there is no cluster: state is kept in one of them.
func (f *fleet) warnOfOthers(used *node) {
	for _, n := range f.all() {
		if n == used {
			continue
		}
		hello, err := n.ask(askMax, "HELLO")
		if err != nil {
			continue
		}
		if _, err := n.judge(hello); err == nil {
			f.up.log.Warn("upstream: two of these servers are primaries, and they are no cluster; one of them is used, and another one after it has failed, which knows nothing of its limits",
				"upstream", f.String(), "used", used.addr, "also", n.addr)
			return
		}
	}
}

// askAbout finds out whether a node is a headgate, and not this one. One that answers BUSY or the like stays what it was; a user that may
// not ask for it is told of a Redis.
func (f *fleet) askAbout(n *node) error {
	info, err := n.ask(askMax, "INFO", "server")
	if err != nil {
		return err
	}
	if info.isError() && !refusedError(info.text).lasting() {
		return nil // it is what it was, and says so again when its script has ended
	}
	id := infoField(info.text, "run_id")
	if id != "" && id == f.cfg.RunID {
		return refusedError("that is this gateway itself")
	}
	f.headgate.Store(!info.isError() && infoField(info.text, "headgate_version") != "")
	return nil
}

// infoField returns a field of INFO's reply.
func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if field, text, found := strings.Cut(strings.TrimSpace(line), ":"); found && field == name {
			return text
		}
	}
	return ""
}

// askSlots reads which node has which slots.
func (f *fleet) askSlots(n *node) error {
	reply, err := n.ask(askMax, "CLUSTER", "SLOTS")
	if err != nil {
		return err
	}
	if reply.isError() {
		return refusedError(reply.text)
	}
	if len(reply.list) == 0 {
		return errors.New("it knows of no slots (CLUSTER SLOTS is empty)")
	}
	f.mu.Lock()
	curious := f.curious
	f.curious = false
	f.mu.Unlock()
	if curious {
		f.askNodes(n)
	}
	f.cluster.Store(true)
	members := membersOf(reply, n)
	if len(members) > nodesMax {
		return errTooManyNodes
	}
	for addr := range members {
		if host, _, err := net.SplitHostPort(addr); (err != nil || !isHost(host)) && host != n.host() {
			return fmt.Errorf("it names a node at %.*q, which is no address", addrShown, addr)
		}
	}
	var owners [Slots]*node
	kept := map[*node]bool{}
	var primaries []*node
	for _, shard := range reply.list {
		if len(shard.list) < 3 {
			continue
		}
		for i, entry := range shard.list[2:] {
			as := replica
			if i == 0 {
				as = primary
			}
			member := f.node(announcedIn(entry, n), as)
			if member == nil {
				return errTooManyNodes
			}
			if i > 0 {
				kept[member] = true
				continue
			}
			if !kept[member] {
				kept[member] = true
				primaries = append(primaries, member)
			}
			for slot := max(shard.list[0].number(), 0); slot <= min(shard.list[1].number(), Slots-1); slot++ {
				owners[slot] = member
			}
		}
	}
	for slot, owner := range owners {
		f.setOwner(slot, owner)
	}
	f.setPrimaries(primaries)
	f.keepOnly(kept)
	return nil
}

var errTooManyNodes = fmt.Errorf("there are more than %d nodes", nodesMax)

// membersOf returns the addresses of the nodes that the reply to CLUSTER SLOTS names, one more than nodesMax at most: none of them is to be kept if there
// are more.
func membersOf(slots value, asked *node) map[string]bool {
	members := map[string]bool{}
	for _, shard := range slots.list {
		for _, entry := range shard.list[min(2, len(shard.list)):] {
			if members[announcedIn(entry, asked)] = true; len(members) > nodesMax {
				return members
			}
		}
	}
	return members
}

// announcedIn is the address of a node in CLUSTER SLOTS: its preferred endpoint and port. The endpoint is null or empty where it is that of
// the node that was asked, and ? where a host name is wanted and not known; then the metadata may have the IP address.
func announcedIn(entry value, asked *node) string {
	if len(entry.list) < 2 {
		return asked.addr
	}
	host := entry.list[0].text
	if host == "?" && len(entry.list) > 3 {
		host = entry.list[3].field("ip").text
	}
	return hostPort(host, entry.list[1].number(), asked)
}

// askNodes reads the addresses of all nodes, also of those without slots, as ASK may name one of these.
func (f *fleet) askNodes(n *node) {
	reply, err := n.ask(askMax, "CLUSTER", "NODES")
	if err != nil || reply.isError() {
		return
	}
	var hosts []string
	for line := range strings.Lines(reply.text) {
		// <id> <ip:port@cport[,hostname]> <flags> …
		words := strings.Fields(line)
		if len(words) < 3 || len(hosts) >= 2*nodesMax {
			continue
		}
		endpoint, hostname, _ := strings.Cut(words[1], ",")
		endpoint, _, _ = strings.Cut(endpoint, "@")
		addr := n.announced(endpoint)
		hosts = append(hosts, addr)
		if hostname, _, _ = strings.Cut(hostname, ","); hostname != "" {
			_, port, _ := net.SplitHostPort(addr)
			hosts = append(hosts, net.JoinHostPort(hostname, port))
		}
	}
	f.mu.Lock()
	f.hosts = hosts
	f.mu.Unlock()
}

// readClocks finds out how far the clocks of primaries are from this machine's. When the next look is due it leaves those that it returns for after
// that look, but always asks one, so that looks that are due all the time keep no clock from being read.
func (f *fleet) readClocks(of []*node) (left []*node) {
	for asked := false; len(of) > 0 && f.ctx.Err() == nil; of = of[1:] {
		if asked && len(f.wanted) > 0 {
			return of
		}
		if n := of[0]; !n.rests() {
			n.readClock()
			asked = true
		}
	}
	return nil
}

// readClock finds out how far the node's clock is from this machine's.
func (n *node) readClock() {
	before := time.Now()
	reply, err := n.ask(clockMax, "TIME")
	if err != nil || len(reply.list) != 2 {
		return
	}
	halfway := before.Add(time.Since(before) / 2)
	theirs := time.Unix(reply.list[0].number(), reply.list[1].number()*int64(time.Microsecond))
	n.offset.Store(int64(theirs.Sub(halfway)))
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
