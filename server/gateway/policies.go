package gateway

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"headgate/internal/respcmd"
	"headgate/server/command"
	"headgate/server/config"
	"headgate/server/limits"
	"headgate/server/upstream"
)

// The upstream's policies are followed by asking for all of them: the hash limits.PoliciesKey of a Redis, or RL.POLICY LIST of a headgate.
// The keyspace here holds what was found, so that they are looked up as at home.

const (
	// policiesEvery is how often they are asked for: a change holds after so long at most.
	policiesEvery = 900 * time.Millisecond
	// policiesPatience is how long the answer may take.
	policiesPatience = 500 * time.Millisecond
	// policiesTries is how often they are asked for in a row when they are changed through here meanwhile, so that the reply may be older.
	policiesTries = 3
)

// policies is what is known of the upstream's policies.
type policies struct {
	known   bool
	changes uint64 // that were made through here
	read    uint64 // changes when last was asked for
	last    []byte // the reply that they were read from; followPolicies' own

	problem  atomic.Pointer[string] // why the last reply could not be read, nil if it could; read without a lock
	warned   time.Time              // when that was logged
	warnedOf string
}

// policyWarnings is the shortest time between two log lines of the same kind about policies.
const policyWarnings = time.Minute

// followPolicies asks for the policies again and again.
func (g *Gateway) followPolicies(ctx context.Context) {
	for {
		g.lookAtPolicies()
		pause := policiesEvery - time.Duration(rand.Int64N(int64(policiesEvery/4)))
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// lookAtPolicies asks for the policies.
func (g *Gateway) lookAtPolicies() {
	for range policiesTries {
		if g.tryPolicies() {
			return
		}
	}
}

// tryPolicies asks for the policies once, and reports false if a change was made meanwhile which the reply may not have.
func (g *Gateway) tryPolicies() (current bool) {
	g.core.Lock()
	changes := g.policies.changes
	g.core.Unlock()
	words := [][]byte{[]byte("HGETALL"), []byte(limits.PoliciesKey)}
	if g.Up.Headgate() {
		words = [][]byte{[]byte("RL.POLICY"), []byte("LIST")}
	}
	reply, err := g.request(g.slotOfKey([]byte(limits.PoliciesKey)), words)
	if err != nil {
		return true
	}
	fields, ok := bulksOf(reply)
	g.core.Lock()
	defer g.core.Unlock()
	known := &g.policies
	if !ok || len(fields)%2 != 0 {
		known.unreadable(g, reply)
		return true
	}
	if known.changes != changes {
		return false
	}
	if known.problem.Swap(nil) != nil {
		g.logger().Info("the upstream's policies can be read again")
	}
	if known.known && string(known.last) == string(reply) && known.read == changes {
		return true
	}
	if err := g.checkPolicies(); err != nil && !known.known {
		g.logger().Error("a start with the upstream there would have refused this configuration", "err", err)
	}
	g.begin()
	g.limits.HoldPolicies(&g.ctx, fields)
	known.known, known.last, known.read = true, reply, changes
	return true
}

// unreadable notes a reply that is not the policies. Those that are known stay, unless it says that there is no hash of policies any more. The
// executor's lock is held.
func (p *policies) unreadable(g *Gateway, reply []byte) {
	problem := "it holds something else"
	if len(reply) > 0 && reply[0] == '-' {
		problem, _, _ = strings.Cut(string(reply[1:]), "\r\n")
	}
	problem = limits.PoliciesKey + ": " + problem
	p.problem.Store(&problem)
	if strings.HasPrefix(string(reply), "-WRONGTYPE ") && p.known {
		g.begin()
		g.limits.HoldPolicies(&g.ctx, nil)
		p.known, p.last = false, nil
	}
	if now := time.Now(); problem != p.warnedOf || now.Sub(p.warned) >= policyWarnings {
		p.warned, p.warnedOf = now, problem
		g.logger().Warn("the upstream's policies cannot be read", "why", problem)
	}
}

// Problem says why the upstream's policies cannot be read, "" if they can. It is safe for concurrent use.
func (p *policies) Problem() string {
	if problem := p.problem.Load(); problem != nil {
		return "the policies cannot be read: " + *problem
	}
	return ""
}

// Status returns how the upstream is, its policies included. It is safe for concurrent use.
func (g *Gateway) Status() upstream.Status {
	s := g.Up.Status()
	if problem := g.policies.Problem(); problem != "" {
		if s.Problem != "" {
			s.Problem += "; "
		}
		s.Problem += problem
	}
	return s
}

// request sends one command, which changes nothing, and waits for its reply.
func (g *Gateway) request(slot int, words [][]byte) (reply []byte, err error) {
	answered := make(chan struct{})
	up := &upstream.Call{
		Slot: slot, Proto: 2, Request: respcmd.Append(nil, words...), Replies: 1, Deadline: upstream.Now() + int64(policiesPatience), Reads: true,
		Done: func(c *upstream.Call) {
			if c.Err != nil {
				err = errors.New(c.Err.Error())
			} else {
				reply = append([]byte(nil), c.Reply...)
			}
			close(answered)
		},
	}
	g.Up.Send(up)
	g.Up.Flush()
	<-answered
	return reply, err
}

// KnowsPolicies implements limits.Remote.
func (g *Gateway) KnowsPolicies(c *command.Ctx) bool {
	if g.policies.known {
		return true
	}
	if g.failing != nil {
		sendFailure(c, g.failing.failure)
	} else if problem := g.policies.Problem(); problem != "" {
		c.Err(command.OneLine("UPSTREAM " + problem))
	} else {
		c.Err("UPSTREAM the policies are not known yet, since the upstream has not answered with them since the start")
	}
	return false
}

// changedPolicy is a change of one policy.
type changedPolicy struct {
	passed
	name, text string
	deleted    bool
}

// SetPolicy implements limits.Remote.
func (g *Gateway) SetPolicy(c *command.Ctx, text string) {
	g.changePolicy(c, &changedPolicy{name: string(c.Args[2]), text: text}, []byte("HSET"), []byte(limits.PoliciesKey), c.Args[2], []byte(text))
}

// DeletePolicy implements limits.Remote.
func (g *Gateway) DeletePolicy(c *command.Ctx) {
	g.changePolicy(c, &changedPolicy{name: string(c.Args[2]), deleted: true}, []byte("HDEL"), []byte(limits.PoliciesKey), c.Args[2])
}

func (g *Gateway) changePolicy(c *command.Ctx, what *changedPolicy, words ...[]byte) {
	k := g.newCall(c, what)
	k.up.Slot, k.up.DB = g.slotOfKey([]byte(limits.PoliciesKey)), 0
	k.up.Request = respcmd.Append(k.up.Request, words...)
	g.send(c, k)
}

// writeReply has the change hold here at once, too.
func (p *changedPolicy) writeReply(k *call, c *command.Ctx) {
	if len(k.reply) == 0 || k.reply[0] != ':' {
		sendReply(c, k.reply)
		return
	}
	g := k.g
	g.policies.changes++
	g.limits.HoldPolicy(c, p.name, p.text, p.deleted)
	if p.deleted {
		c.Reply.Raw(k.reply)
	} else {
		c.OK()
	}
}

// checkPolicies refuses policies of the configuration before a headgate, whose policies are its own; and before a Redis those that it cannot decide.
func (g *Gateway) checkPolicies() error {
	if named := g.core.Config.Get().Policies; g.Up.Headgate() && len(named) > 0 {
		return fmt.Errorf("policy %s: before a headgate the policies are the upstream's alone; set it there, or take it out", named[0].Name)
	}
	return checkHomeOnly(g.core.Config.Get().Policies)
}

// checkHomeOnly refuses policies with words that only a headgate which has the keys can serve.
func checkHomeOnly(policies []config.NamedPolicy) error {
	for _, p := range policies {
		if word := p.Policy.HomeOnly(); word != "" {
			return fmt.Errorf("policy %s: %s", p.Name, strings.TrimPrefix(limits.NotServedByRedis(word), "ERR "))
		}
	}
	return nil
}

// bulksOf reads an array of bulk strings.
func bulksOf(reply []byte) (bulks [][]byte, ok bool) {
	list, ok := elementsOf(reply)
	if !ok {
		return nil, false
	}
	for _, e := range list {
		if len(e) < 5 || e[0] != '$' || e[1] == '-' {
			return nil, false
		}
		at := len(firstLine(e)) + 2
		bulks = append(bulks, e[at:len(e)-2])
	}
	return bulks, true
}
