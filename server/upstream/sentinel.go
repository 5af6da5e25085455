package upstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"headgate/internal/respcmd"
)

// sentinelGrace is how long the other Sentinels are waited for once there are answers to act on: those whose machines are gone cost a look no more.
const sentinelGrace = 100 * time.Millisecond

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
// is named: what an outdated Sentinel names may well believe that it is a primary, too. What the latest one was is remembered, see failovers.
func (f *fleet) askSentinels(ctx context.Context) error {
	answers, silent := f.sentinelAnswers(ctx)
	if len(answers) == 0 {
		err := f.failovers.choose(answers, silent, f, Now())
		if f.former != nil && slices.Equal(f.cfg.Addrs, f.former.cfg.Addrs) && f.followFormer() {
			return &lookError{failures: silent, settled: true}
		}
		return err
	}
	clear(f.tried)
	err := f.failovers.choose(answers, silent, f, Now())
	f.keepTried()
	return err
}

// followFormer has the primary used that the former configuration uses, and reports whether it is of use: that Sentinels are silent keeps no new password
// from being used.
func (f *fleet) followFormer() bool {
	used := f.former.used()
	return used != "" && f.follow([]string{used}) == nil
}

// keepTried has the nodes forgotten that this look has not tried, but for the one in use.
func (f *fleet) keepTried() {
	for _, used := range *f.primaries.Load() {
		f.tried[used] = true
	}
	f.keepOnly(f.tried)
}

// follow has all calls go to the first node of a list, unless that is a replica: then to the next. It returns why it is none of them. The nodes that a look
// tries stay known until the end of the next one: what they have answered is not forgotten while they are named.
func (f *fleet) follow(addrs []string) (failures []error) {
	var named []*node
	for _, addr := range addrs {
		if n := f.node(addr, primary); n != nil {
			f.tried[n] = true
			named = append(named, n)
		}
	}
	if len(named) < len(addrs) {
		failures = append(failures, errTooManyNodes)
	}
	for _, n := range named {
		err := f.askWhether(n)
		if err == nil {
			f.setPrimaries([]*node{n})
			f.known.Store(true)
			failures = nil
			break
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
	sufficed := false
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
		answers = append(answers, a)
		if !sufficed && f.failovers.suffice(answers) {
			sufficed = true
			defer time.AfterFunc(sentinelGrace, cancel).Stop()
		}
	}
	return answers, failures
}

// askWhether asks a node whether it is a primary that serves this gateway, and returns why it is none.
func (f *fleet) askWhether(n *node) error {
	if why := n.restsFor(); why != "" {
		if Now()-n.since.Load() < int64(proofMax) {
			return fmt.Errorf("%s: %s", n.addr, why)
		}
		if n.tryOut(); n.rests() { // it may have been long ago
			return fmt.Errorf("%s: %s", n.addr, n.restsFor())
		}
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
		n.refuses(errReplica.Error())
		return demotedError(nodeError(n, err).Error())
	}
	n.accepted()
	return nil
}

// askSentinel asks one Sentinel for the primary's address, and for the failover that it knows of.
func (f *fleet) askSentinel(ctx context.Context, addr string) (primary string, epoch int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, connectMax)
	defer cancel()
	conn, err := f.dial(ctx, addr)
	if err != nil {
		return "", 0, err
	}
	defer hangUp(conn)
	if err := conn.SetDeadline(time.Now().Add(connectMax)); err != nil {
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
		request = respcmd.Append(request, "AUTH", user, f.cfg.Password)
		replies++
	}
	request = respcmd.Append(request, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", f.cfg.Master)
	request = respcmd.Append(request, "SENTINEL", "MASTER", f.cfg.Master)
	if _, err := conn.Write(request); err != nil {
		return "", 0, errors.New(reason(err))
	}
	values, err := readValues(conn, replies, handshakeMax)
	if err != nil && len(values) > 0 && values[0].isError() { // it says why it hangs up
		return "", 0, refusedError(values[0].text[:min(len(values[0].text), detailMax)])
	}
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
