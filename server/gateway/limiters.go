package gateway

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"headgate/internal/ascii"
	"headgate/internal/respcmd"
	"headgate/server/command"
	"headgate/server/exec"
	"headgate/server/limiter"
	"headgate/server/limiter/scripted"
	"headgate/server/limits"
	"headgate/server/types"
	"headgate/server/upstream"
	"headgate/throttle"
)

// limitCall is what a limiter is asked about one key.
type limitCall struct {
	kind     limitKind
	question scripted.Question
	policy   limiter.Policy // if kind is byPolicy
	request  limiter.Request
	gcra     throttle.GCRA // if it is byGCRA
	quantity int64
	increx   limiter.Increx // if it is increasing
	shown    int64          // the limit that the answer shows
	ttl      int64          // if it is renewing
	id       []byte         // of a lease, or a member
	err      error
}

// limitKind is which command of a limiter it is.
type limitKind uint8

const (
	byPolicy limitKind = iota
	byGCRA
	releasing
	renewing
	resetting
	increasing
)

// forget lets go of what a call pointed to.
func (l *limitCall) forget() {
	switch l.err = nil; l.kind {
	case byPolicy:
		l.policy, l.request = limiter.Policy{}, limiter.Request{}
	case increasing:
		l.increx = limiter.Increx{}
	}
	if cap(l.id) > keptBytes {
		l.id = nil
	}
}

// askedLimit is a call of one limiter, by a script.
type askedLimit struct{}

// newLimit returns a call of a limiter about the key at args[1].
func (g *Gateway) newLimit(c *command.Ctx, kind limitKind) *call {
	k := g.newCall(c, askedLimit{})
	g.setKey(k, c.Args[1])
	g.addLimit(k, kind)
	k.limit.question.Inline, k.limit.question.NowMs = g.collecting != nil, c.Now
	return k
}

// setKey has a call be about a key.
func (g *Gateway) setKey(k *call, key []byte) {
	k.key = append(k.key[:0], key...)
	k.up.Slot = g.slotOfKey(k.key)
}

// addLimit has a call ask a limiter.
func (g *Gateway) addLimit(k *call, kind limitKind) {
	if last := len(g.spareLimits) - 1; last >= 0 {
		k.limit, g.spareLimits[last] = g.spareLimits[last], nil
		g.spareLimits = g.spareLimits[:last]
	} else {
		k.limit = &limitCall{}
	}
	k.limit.kind, k.limit.err = kind, nil
}

// releaseLimit ends that.
func (g *Gateway) releaseLimit(k *call) {
	l := k.limit
	k.limit = nil
	if l.forget(); len(g.spareLimits) < spareCalls && l.question.Kept() <= keptBytes {
		g.spareLimits = append(g.spareLimits, l)
	}
}

// sendLimit has a call of a limiter under way, whose command was appended, or answers it if no server is needed for that.
func (g *Gateway) sendLimit(c *command.Ctx, k *call) {
	if len(k.up.Request) == 0 {
		_, k.limit.err = k.limit.question.Answer(nil)
		k.handler.writeReply(k, c)
		g.release(k)
		return
	}
	k.up.Script = g.scriptOf(&k.limit.question)
	if g.collecting != nil {
		g.collecting.undecided = k.limit.question.Loads()
	}
	g.send(c, k)
}

// scriptOf returns the script of a question's last command.
func (g *Gateway) scriptOf(q interface{ Script() *scripted.Script }) *upstream.Script {
	return g.scripts[q.Script()]
}

// Throttle implements limits.Remote.
func (g *Gateway) Throttle(c *command.Ctx, cell *throttle.GCRA, quantity int64, form limits.Form) {
	if g.failing != nil {
		g.fallBackGCRA(c, c.Args[1], cell, quantity, form)
		return
	}
	if g.leaseThrottle(c, cell, quantity, form) {
		return
	}
	charged := g.strictThrottle(cell)
	if charged == cell && g.passLimit(c) {
		return
	}
	if charged == cell && g.collecting == nil && g.askPlain(c, cell, quantity, form) {
		return
	}
	k := g.newLimit(c, byGCRA)
	l := k.limit
	l.gcra, l.quantity, l.shown = *cell, quantity, cell.Limit()
	k.form = form
	k.up.Request = l.question.AskGCRA(k.up.Request, k.key, *charged, quantity)
	g.sendLimit(c, k)
}

// Ask implements limits.Remote.
func (g *Gateway) Ask(c *command.Ctx, p *limiter.Policy, r *limiter.Request) {
	if g.failing != nil {
		g.fallBackPolicy(c, c.Args[1], p, r)
		return
	}
	if g.leasePolicy(c, p, r) {
		return
	}
	charged := g.strictPolicy(p)
	if charged == p && g.passLimit(c) {
		return
	}
	k := g.newLimit(c, byPolicy)
	l := k.limit
	l.policy, l.request, l.shown = *charged, *r, p.Limit
	if r.HasMember {
		l.id = append(l.id[:0], r.Member...)
		l.request.Member = l.id
	}
	k.up.Request = l.question.Ask(k.up.Request, k.key, &l.policy, &l.request)
	g.sendLimit(c, k)
}

// Release implements limits.Remote.
func (g *Gateway) Release(c *command.Ctx) {
	if isOpenLease(c.Args[2]) { // it was had without the upstream, which knows nothing of it
		c.Reply.One()
		return
	}
	if g.failing != nil {
		g.fallBackLease(c, releasing, c.Args[1], c.Args[2], 0)
		return
	}
	k := g.newLimit(c, releasing)
	k.limit.id = append(k.limit.id[:0], c.Args[2]...)
	k.up.Request = k.limit.question.AskRelease(k.up.Request, k.key, k.limit.id)
	g.sendLimit(c, k)
}

// Renew implements limits.Remote.
func (g *Gateway) Renew(c *command.Ctx, ttl int64) {
	if isOpenLease(c.Args[2]) {
		c.Reply.One()
		return
	}
	if g.failing != nil {
		g.fallBackLease(c, renewing, c.Args[1], c.Args[2], ttl)
		return
	}
	k := g.newLimit(c, renewing)
	k.limit.id, k.limit.ttl = append(k.limit.id[:0], c.Args[2]...), ttl
	k.up.Request = k.limit.question.AskRenew(k.up.Request, k.key, k.limit.id, ttl)
	g.sendLimit(c, k)
}

// Reset implements limits.Remote.
func (g *Gateway) Reset(c *command.Ctx) {
	if g.failing != nil {
		sendFailure(c, g.failing.failure)
		return
	}
	slot, ok := g.slotOf(c)
	if !ok {
		c.Err(errCrossSlot)
		return
	}
	k := g.newLimit(c, resetting)
	k.up.Slot = slot
	k.up.Request = k.limit.question.AskReset(k.up.Request, c.Args[1:])
	g.sendLimit(c, k)
}

// increx answers INCREX.
func (g *Gateway) increx(c *command.Ctx) {
	if g.Up.Headgate() {
		g.passByKeys(c)
		return
	}
	var x limiter.Increx
	if !types.ReadIncrex(c, &x) {
		return
	}
	k := g.newLimit(c, increasing)
	k.limit.increx = x
	k.up.Request = k.limit.question.AskIncrex(k.up.Request, k.key, &k.limit.increx)
	g.sendLimit(c, k)
}

func (askedLimit) parseReply(k *call, reply []byte) (again bool) {
	q := &k.limit.question
	outcome, err := q.Answer(reply)
	if k.limit.err = err; outcome != scripted.Again {
		return false
	}
	k.up.Request, k.up.Headless = q.Next(k.up.Request[:0]), false
	k.up.Script = k.g.scriptOf(q)
	return true
}

func (askedLimit) writeReply(k *call, c *command.Ctx) {
	l := k.limit
	q := &l.question
	if q.Disagrees() {
		k.g.disagreed(k)
	}
	if l.err != nil {
		sendError(c, l.err)
		return
	}
	switch l.kind {
	case byPolicy:
		v, a := &q.Call.Verdict, l.policy.Algorithm
		v.Limit = l.shown
		if l.request.Call.Cost > 0 && !l.request.Call.Peek {
			k.g.limits.Count(c, k.key, a, &v.Verdict)
		}
		limits.SendVerdict(c.Reply, a.Beyond, v)
	case byGCRA:
		q.Decision.Limit = l.shown
		var v throttle.Verdict
		k.form.Write(&v, &q.Decision)
		if l.quantity > 0 {
			k.g.limits.Count(c, k.key, k.g.limits.GCRA(), &v)
		}
		limits.SendNumbers(c.Reply, &v)
	case resetting:
		c.Reply.Int(q.Forgotten)
	case increasing:
		sendIncreased(c, &q.Increased, l.increx.Float)
	default:
		sendHeld(c, q.Held)
	}
}

func sendIncreased(c *command.Ctx, answer *scripted.Increased, float bool) {
	c.Reply.Array(2)
	if float {
		c.Reply.LongDouble(answer.SumText)
		c.Reply.LongDouble(answer.AppliedText)
	} else {
		c.Reply.Ints(answer.Sum, answer.Applied)
	}
}

func sendHeld(c *command.Ctx, held bool) {
	if held {
		c.Reply.One()
	} else {
		c.Reply.Zero()
	}
}

func (askedLimit) writeFailure(k *call, c *command.Ctx) {
	l := k.limit
	switch k.g.failing = k; l.kind {
	case byPolicy:
		k.g.fallBackPolicy(c, k.key, &l.policy, &l.request)
	case byGCRA:
		k.g.fallBackGCRA(c, k.key, &l.gcra, l.quantity, k.form)
	case resetting, increasing:
		sendFailure(c, k.failure)
	default:
		k.g.fallBackLease(c, l.kind, k.key, l.id, l.ttl)
	}
	k.g.failing = nil
}

// sendError sends the error of an answer.
func sendError(c *command.Ctx, err error) {
	var text limiter.Error
	if !errors.As(err, &text) {
		text = limiter.Error("UPSTREAM " + err.Error())
	}
	c.Err(command.OneLine(string(text)))
}

// disagreementWarnings is the shortest time between two log lines about disagreements.
const disagreementWarnings = time.Minute

// disagreed counts an answer about which the script and this process disagree.
func (g *Gateway) disagreed(k *call) {
	g.Counts.Disagreements.Add(1)
	if now := time.Now(); now.Sub(g.warnedOfDisagreement) >= disagreementWarnings {
		g.warnedOfDisagreement = now
		g.logger().Error("a script of the upstream has decided differently from this process; the script's decision stands",
			"command", k.cmd.FullName, "key", string(limiter.Shown(k.key)), "disagreements", g.Counts.Disagreements.Load())
	}
}

// Decides implements limits.Remote.
func (g *Gateway) Decides() bool { return g.leases.on || g.leases.options.Strict }

// passLimit is Pass for a command that was read, since a lease might have answered it, or another limit might have been charged.
func (g *Gateway) passLimit(c *command.Ctx) bool { return g.Decides() && g.Pass(c) }

// Pass implements limits.Remote.
func (g *Gateway) Pass(c *command.Ctx) bool {
	if g.failing != nil || !g.Up.Headgate() {
		return false
	}
	slot, ok := g.slotOf(c)
	if !ok {
		c.Err(errCrossSlot)
		return true
	}
	g.pass(c, slot, passedLimit{})
	return true
}

// Wait implements limits.Remote. The call has a connection to its server for itself, which ends with the client. Where so many wait that one more may
// not, and in a transaction, which does not wait there either, it goes as the others do.
func (g *Gateway) Wait(c *command.Ctx, ms int64) bool {
	switch {
	case g.failing != nil:
		return false
	case g.Up.Unknown() != nil: // it is asked as those that do not wait are, and fails as they do
		return false
	case !g.Up.Headgate():
		c.Err(limits.ErrWaitElsewhere)
		return true
	case g.collecting != nil || !c.MayBlock():
		return g.Pass(c)
	}
	slot, ok := g.slotOf(c)
	if !ok {
		c.Err(errCrossSlot)
		return true
	}
	if g.waiting >= g.waitRoom {
		k := g.newCall(c, passedLimit{})
		k.up.Slot, k.up.Keeps = slot, true
		k.up.Request = respcmd.Append(k.up.Request, withoutWait(c.Args)...)
		g.send(c, k)
		return true
	}
	k := g.newPassed(c, slot, passedLimit{})
	until := k.up.At + ms*int64(time.Millisecond)
	k.up.Deadline = until + int64(c.Cfg.UpstreamTimeout)
	g.waiting++
	k.waits = true
	g.exec.DeferWaiting(c, &k.Answer, len(k.up.Request), exec.Awaited{What: firstKey(c), Until: c.NowNs + ms*int64(time.Millisecond)})
	k.Leave = g.Up.SendAlone(&k.up, upstream.Wait{Until: until, Words: func(left time.Duration) []byte {
		return respcmd.Append(nil, withWait(argumentsOf(k.up.Request), left)...)
	}})
	return true
}

// firstKey is the first key of a command, "" if it has none.
func firstKey(c *command.Ctx) string {
	for _, spec := range c.Cmd.Keys {
		for _, i := range spec.Find(nil, c.Args) {
			return string(c.Args[i])
		}
	}
	return ""
}

// withoutWait returns the arguments of a call that says for how long it may wait, but for that.
func withoutWait(args [][]byte) [][]byte {
	if i := waitIn(args); i > 0 {
		return slices.Concat(args[:i], args[i+2:])
	}
	return args
}

// withWait returns them with another duration: the least number of milliseconds that is no less, and at least 1, since no wait is shorter.
func withWait(args [][]byte, left time.Duration) [][]byte {
	i := waitIn(args)
	if i == 0 {
		return args
	}
	ms := max(1, (left+time.Millisecond-1)/time.Millisecond)
	args = slices.Clone(args)
	args[i+1] = strconv.AppendInt(nil, int64(ms), 10)
	return args
}

// waitIn returns where the arguments say for how long the call may wait, 0 if they do not. Behind no other word may a duration stand that
// is called so: the last such pair of words is the option.
func waitIn(args [][]byte) int {
	for i := len(args) - 2; i > 0; i-- {
		if ascii.EqualFold(args[i], limiter.WaitWord) {
			if _, err := limiter.ParseWait(args[i+1]); err == nil {
				return i
			}
		}
	}
	return 0
}

// Refuse implements limits.Remote.
func (g *Gateway) Refuse(c *command.Ctx) {
	if k := g.failing; k != nil {
		sendFailure(c, k.failure)
		return
	}
	if failure := g.Up.Unknown(); failure != nil {
		sendFailure(c, failure)
		return
	}
	c.Err(limits.NotServedByRedis(nameOf(c.Cmd)))
}

// passedLimit is a command of a limiter that goes as it is, to another headgate.
type passedLimit struct{ passed }

// writeFailure has the command's own handler read its arguments, and answer without the upstream.
func (passedLimit) writeFailure(k *call, c *command.Ctx) {
	if k.cmd.Flags&command.DecidesFirst == 0 { // about policies
		sendFailure(c, k.failure)
		return
	}
	k.g.failing = k
	c.Args, c.Client = argumentsOf(k.up.Request), k.Client()
	k.cmd.Handler(c)
	c.Args = nil
	k.g.failing = nil
}

// argumentsOf reads a request that respcmd.Append has made.
func argumentsOf(request []byte) (args [][]byte) {
	number := func() (n int) {
		for i := 1; i < len(request); i++ {
			if request[i] == '\r' {
				request = request[i+2:]
				return n
			}
			n = n*10 + int(request[i]-'0')
		}
		return 0
	}
	for n := number(); n > 0; n-- {
		size := number()
		args = append(args, request[:size:size])
		request = request[size+2:]
	}
	return args
}
