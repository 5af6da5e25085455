package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// How long the other Sentinels are waited for once one has answered: those whose machines are gone cost a look no more.
const (
	sentinelGrace     = 100 * time.Millisecond
	sentinelGraceLong = 500 * time.Millisecond // where what has been answered may be outdated
)

// demotedError tells of a node that Sentinels name as the primary and that is a replica, as it is for a moment while they change the two about.
type demotedError string

func (e demotedError) Error() string { return string(e) }

// sentinelAnswer is what a Sentinel says of the primary.
type sentinelAnswer struct {
	at int // of Addrs
	failover
	err error
}

// askSentinels finds the primary that the Sentinels name, and sees that it is one. One that is cut off from the others has missed failovers, so that what
// those name counts that know of the latest one, and among these what most of them name. A primary that does not answer for a moment stays the one that
// is named: what an outdated Sentinel names may well believe that it is a primary, too. What the latest one was is remembered, see doubt.
func (f *fleet) askSentinels(ctx context.Context) error {
	answers, failures := f.sentinelAnswers(ctx)
	if len(answers) == 0 {
		return &lookError{failures}
	}
	claims := f.claims(answers, Now())
	if claims == nil {
		return f.stay(answers, failures)
	}
	for _, c := range claims {
		if latest := heard(answers, c.addrs[0]); latest.epoch > f.latest.epoch && !slices.Contains(f.retired, latest) {
			f.latest = latest
		}
		unfit := f.follow(c.addrs)
		if unfit == nil {
			f.settle((*f.primaries.Load())[0].addr, c.byMost, answers)
			return nil
		}
		failures = append(failures, unfit...)
	}
	f.doubt.finds(f.unfit(), Now())
	return &lookError{failures}
}

// follow has all calls go to the first node of a list, unless that is a replica: then to the next. It returns why it is none of them. The nodes stay known
// until the next look, and no longer.
func (f *fleet) follow(addrs []string) (failures []error) {
	kept := map[*node]bool{}
	for _, used := range *f.primaries.Load() {
		kept[used] = true
	}
	var named []*node
	for _, addr := range addrs {
		if n := f.node(addr, primary); n != nil {
			kept[n] = true
			named = append(named, n)
		}
	}
	f.keepOnly(kept)
	if len(named) < len(addrs) {
		failures = append(failures, errTooManyNodes)
	}
	for _, n := range named {
		err := f.setPrimary(n)
		if err == nil {
			return nil
		}
		failures = append(failures, err)
		if !errors.As(err, new(demotedError)) {
			break
		}
	}
	return failures
}

// sentinelAnswers asks all Sentinels at once.
func (f *fleet) sentinelAnswers(ctx context.Context) (answers []sentinelAnswer, failures []error) {
	ctx, cancel := context.WithTimeout(ctx, askMax)
	defer cancel()
	all := make(chan sentinelAnswer, len(f.cfg.Addrs))
	for at, sentinel := range f.cfg.Addrs {
		go func() {
			a := sentinelAnswer{at: at}
			a.addr, a.epoch, a.err = f.askSentinel(ctx, sentinel)
			all <- a
		}()
	}
	waited := false
	for range f.cfg.Addrs {
		var a sentinelAnswer
		select {
		case a = <-all:
		case <-ctx.Done():
			return answers, append(failures, errors.New("not all Sentinels have answered in time"))
		}
		if a.err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", f.cfg.Addrs[a.at], a.err))
			continue
		}
		if answers = append(answers, a); len(answers) == 1 {
			defer time.AfterFunc(sentinelGraceLong, cancel).Stop()
		}
		if !waited && f.suffice(answers) {
			waited = true
			defer time.AfterFunc(sentinelGrace, cancel).Stop()
		}
	}
	return answers, failures
}

// suffice reports whether answers are not outdated, as far as can be told: they know of the latest failover that is known here, or most Sentinels have
// given them. While there is a doubt, or the primary in use is left alone, the number counts alone.
func (f *fleet) suffice(answers []sentinelAnswer) bool {
	if len(answers) > len(f.cfg.Addrs)/2 {
		return true
	}
	rests := func(n *node) bool { return n.restsFor() != "" }
	return f.known.Load() && f.doubt == doubt{} && !slices.ContainsFunc(*f.primaries.Load(), rests) && slices.ContainsFunc(answers, f.counts)
}

// ranked returns the addresses that count, those of the latest failover, the one to be used first. primaries are those in use.
func ranked(answers []sentinelAnswer, latest int64, primaries []*node) (addrs []string) {
	votes, used := map[string]int{}, map[string]bool{}
	for _, n := range primaries {
		used[n.addr] = true
	}
	slices.SortFunc(answers, func(a, b sentinelAnswer) int { return cmp.Compare(a.at, b.at) })
	for _, a := range answers {
		if a.epoch == latest {
			if votes[a.addr]++; votes[a.addr] == 1 {
				addrs = append(addrs, a.addr)
			}
		}
	}
	slices.SortStableFunc(addrs, func(a, b string) int {
		switch {
		case votes[a] != votes[b]:
			return votes[b] - votes[a]
		case used[a] == used[b]:
			return 0
		case used[a]: // it stays
			return -1
		}
		return 1
	})
	return addrs
}

// setPrimary has all calls go to a node, if it is a primary. One that is not stays known until the next look, and no longer.
func (f *fleet) setPrimary(n *node) error {
	if err := f.askWhether(n); err != nil {
		return err
	}
	f.setPrimaries([]*node{n})
	f.known.Store(true)
	f.keepOnly(map[*node]bool{n: true})
	return nil
}

// askWhether asks a node whether it is a primary that serves this gateway, and returns why it is none.
func (f *fleet) askWhether(n *node) error {
	if why := n.restsFor(); why != "" {
		return fmt.Errorf("%s: %s", n.addr, why)
	}
	hello, err := n.ask(askMax, "HELLO")
	if err == nil {
		var g *greeting
		if g, err = n.judge(hello); err == nil {
			n.hello.Store(g)
			err = f.askAbout(n)
		}
	}
	if err != nil {
		if !errors.Is(problemOf(err), errReplica) {
			return nodeError(n, err)
		}
		select {
		case <-f.wanted: // this is the look that finding a replica has asked for
		default:
		}
		return demotedError(nodeError(n, err).Error())
	}
	return nil
}

// askSentinel asks one Sentinel for the primary's address, and for the failover that it knows of.
func (f *fleet) askSentinel(ctx context.Context, addr string) (primary string, epoch int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, askMax)
	defer cancel()
	conn, err := f.dial(ctx, addr)
	if err != nil {
		return "", 0, err
	}
	defer hangUp(conn)
	if err := conn.SetDeadline(time.Now().Add(askMax)); err != nil {
		return "", 0, err
	}
	var request []byte
	replies := 2
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
	request = appendCommand(request, "SENTINEL", "MASTER", f.cfg.Master)
	if _, err := conn.Write(request); err != nil {
		return "", 0, errors.New(reason(err))
	}
	values, err := readValues(conn, replies, handshakeMax)
	if err != nil {
		return "", 0, errors.New(reason(err))
	}
	found := values[replies-2]
	switch {
	case strings.HasPrefix(found.text, "ERR unknown command"):
		return "", 0, refusedError("it is not a Sentinel: name a Sentinel, whose port is 26379 by default, or set upstream to redis:// and this address")
	case found.isError():
		return "", 0, refusedError(found.text[:min(len(found.text), detailMax)])
	case len(found.list) != 2:
		return "", 0, refusedError(fmt.Sprintf("it knows no primary named %q; SENTINEL MASTERS lists those that it knows", f.cfg.Master))
	}
	host, port := found.list[0].text, found.list[1]
	if !isHost(host) || !isPort(port.number()) {
		return "", 0, refusedError(fmt.Sprintf("it names a primary at %.*q, which is no address", addrShown, host+":"+port.text))
	}
	if epoch, err = strconv.ParseInt(values[replies-1].field("config-epoch").text, 10, 64); err != nil {
		epoch = 0 // it may not say, or says nonsense
	}
	return net.JoinHostPort(host, itoa(port.number())), max(epoch, 0), nil
}
