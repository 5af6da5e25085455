package limits

import (
	"slices"

	"headgate/server/command"
	"headgate/server/limiter"
	"headgate/server/resp"
	"headgate/store"
	"headgate/throttle"
)

// Remote decides for limiters whose state lies with another server, and answers later. Its methods are called with the executor's lock held,
// in place of what a command would do here; the arguments that they are given have been read, and are the command's until the method
// returns. A gateway sets it before the commands are declared.
type Remote interface {
	// Pass has the command be answered by a server that knows it, as it is, and reports whether there is one.
	Pass(c *command.Ctx) bool
	// Refuse answers a command that only a server can do which knows it, where Pass has found none.
	Refuse(c *command.Ctx)
	// Wait has a command that may wait for so many ms be answered by a server that knows it, as it is; or it sends the error if there is no
	// such server. It reports false, and does neither, where that server has failed.
	Wait(c *command.Ctx, ms int64) bool
	// Decides reports whether calls of one limit may be decided or changed here although there is such a server: they are given to Throttle
	// and Ask, which pass the others on.
	Decides() bool
	// Forget has nothing more be decided here by what is known of the keys from args[1] on, whose state is going to be forgotten.
	Forget(c *command.Ctx)
	// Throttle asks about the key at args[1] by a GCRA, and answers with what form makes of the decision.
	Throttle(c *command.Ctx, g *throttle.GCRA, quantity int64, form Form)
	// Ask asks a limit about the key at args[1].
	Ask(c *command.Ctx, p *limiter.Policy, r *limiter.Request)
	// Release gives back the lease at args[2] of the key at args[1].
	Release(c *command.Ctx)
	// Renew has that lease end after so many ms.
	Renew(c *command.Ctx, ttl int64)
	// Reset forgets what limiters keep at the keys from args[1] on.
	Reset(c *command.Ctx)
	// Take charges several limits at once. pairs are the caller's again when it returns.
	Take(c *command.Ctx, pairs []Pair, peek bool)
	// KnowsPolicies reports whether the policies of the hash PoliciesKey are known here, or sends the error and returns false.
	KnowsPolicies(c *command.Ctx) bool
	// SetPolicy keeps a policy, whose text is in its canonical form, under the name at args[2].
	SetPolicy(c *command.Ctx, text string)
	// DeletePolicy forgets the policy at args[2].
	DeletePolicy(c *command.Ctx)
}

// either is the handler of a command that is answered here, or by Remote if there is one. Whichever it is costs nothing for the other.
func (l *Limits) either(here, elsewhere command.Handler) command.Handler {
	if l.Remote == nil {
		return here
	}
	return elsewhere
}

// Form is in which units an answer tells the times of a decision, which is in nanoseconds.
type Form uint8

const (
	inSeconds         Form = iota // CL.THROTTLE's
	inSecondsOfMicros             // GCRA's, which counts in microseconds
)

// Write writes the numbers of an answer to v. Copies of both would be what an answer that needs nothing else spends most of its time on.
func (f Form) Write(v *throttle.Verdict, d *throttle.Decision) {
	v.Limited, v.Limit, v.Remaining = d.Limited, d.Limit, d.Remaining
	if f == inSeconds {
		v.RetryAfter, v.ResetAfter = throttle.RetrySeconds(d.RetryAfter), throttle.Seconds(d.ResetAfter)
		return
	}
	v.RetryAfter, v.ResetAfter = throttle.NoRetry, throttle.SecondsOfMicros(d.ResetAfter)
	if d.RetryAfter >= 0 {
		v.RetryAfter = max(1, throttle.SecondsOfMicros(d.RetryAfter))
	}
}

// throttleElsewhere is throttle by Remote.
func (l *Limits) throttleElsewhere(c *command.Ctx) {
	if !l.Remote.Decides() && l.Remote.Pass(c) {
		return
	}
	q := &recent(c).quota
	if (c.Shape == 0 || c.Shape != q.shape || c.Cfg != q.cfg) && !readQuota(c, q) || !forLimiter(c, 1) {
		return
	}
	l.Remote.Throttle(c, &q.gcra, q.quantity, inSeconds)
}

// decideGCRAElsewhere is decideGCRA by Remote.
func (l *Limits) decideGCRAElsewhere(c *command.Ctx) {
	if !l.Remote.Decides() && l.Remote.Pass(c) {
		return
	}
	g, tokens, ok := gcraArgs(c)
	if !ok || !forLimiter(c, 1) {
		return
	}
	cell := &recent(c).cell
	*cell = g
	l.Remote.Throttle(c, cell, tokens, inSecondsOfMicros)
}

// answerElsewhere is answer by Remote.
func (l *Limits) answerElsewhere(c *command.Ctx, call *oneLimit) {
	said := &recent(c).limit
	if namesWait(c, 2) && (!l.readLimit(c, said, call.algorithm) || said.Wait > 0 && l.Remote.Wait(c, said.Wait)) || !l.Remote.Decides() && l.Remote.Pass(c) {
		return
	}
	if (c.Shape == 0 || c.Shape != said.shape) && !l.readLimit(c, said, call.algorithm) {
		return
	}
	if said.Policy.Limit < 0 { // there is no state
		l.answer(c, call)
		return
	}
	if forLimiter(c, 1) {
		l.Remote.Ask(c, &said.Policy, &said.Request)
	}
}

// ErrWaitElsewhere is what a call with WAIT is answered with where the other server cannot have it wait.
const ErrWaitElsewhere = "ERR 'WAIT' is not served while the upstream is a Redis"

// namesWait reports whether one of the arguments from args[i] on is the word, which may also be a value.
func namesWait(c *command.Ctx, i int) bool {
	for ; i < len(c.Args); i++ {
		if c.Is(i, limiter.WaitWord) {
			return true
		}
	}
	return false
}

// forLimiter reports whether the key at args[i] may be a limiter's, or sends the error and returns false.
func forLimiter(c *command.Ctx, i int) bool {
	if keptByServer(c.Args[i]) {
		c.Err(command.ErrWrongType)
		return false
	}
	return true
}

// releaseElsewhere is release by Remote.
func (l *Limits) releaseElsewhere(c *command.Ctx) {
	if !l.Remote.Pass(c) && forLimiter(c, 1) {
		l.Remote.Release(c)
	}
}

// renewElsewhere is renew by Remote.
func (l *Limits) renewElsewhere(c *command.Ctx) {
	if l.Remote.Pass(c) {
		return
	}
	ttl, err := limiter.ParseDuration(c.Args[3])
	if err != nil {
		errLimiter(c, err)
		return
	}
	l.watchUnits(c, c.Args[3])
	if forLimiter(c, 1) {
		l.Remote.Renew(c, ttl)
	}
}

// resetElsewhere is reset by Remote.
func (l *Limits) resetElsewhere(c *command.Ctx) {
	l.Remote.Forget(c)
	if l.Remote.Pass(c) {
		return
	}
	for i := range c.Args[1:] {
		if !forLimiter(c, 1+i) {
			return
		}
	}
	l.Remote.Reset(c)
}

// Pair is one limit that RL.TAKE asks.
type Pair struct {
	Key     []byte
	Policy  *limiter.Policy
	Request limiter.Request
	Verdict limiter.Verdict
	Shown   int64          // the limit that the answer shows, if it is not the policy's
	Counts  *CountedPolicy // of the policy's name
}

// takeElsewhere is take by Remote.
func (l *Limits) takeElsewhere(c *command.Ctx) {
	waits := namesWait(c, 2)
	if !waits && l.Remote.Pass(c) {
		return
	}
	n, ok := takeNumber(c)
	if !ok {
		return
	}
	pairs := l.pairs[:n]
	defer clear(pairs)
	said, ok := l.readTakeOptions(c, pairs)
	if !ok || said.wait > 0 && l.Remote.Wait(c, said.wait) || waits && l.Remote.Pass(c) {
		return
	}
	peek := said.peek
	if l.namesKept(c, int(n)) && !l.Remote.KnowsPolicies(c) || !l.takePolicies(c, pairs, peek, said.costs) {
		return
	}
	for i := range pairs {
		if !forLimiter(c, 3+2*i) {
			return
		}
	}
	asked := slices.Grow(l.elsewhere[:0], int(n))[:n]
	l.elsewhere = asked
	defer clear(asked)
	for i := range pairs {
		p := &pairs[i]
		asked[i] = Pair{Key: p.key.Name, Policy: p.policy, Request: p.request, Counts: p.known.counts}
		asked[i].Request.Call.Peek = peek
	}
	l.Remote.Take(c, asked, peek)
}

// namesKept reports whether RL.TAKE names a policy that only the hash of policies may have: none of the configuration, and no limit in full.
func (l *Limits) namesKept(c *command.Ctx, pairs int) bool {
	for i := range pairs {
		if name := c.Args[2+2*i]; l.Policies.Fixed[string(name)] == nil && limiter.CheckName(name) == nil {
			return true
		}
	}
	return false
}

// SendPairs writes the answer of RL.TAKE, where limiting is the index of the first pair that limits, or -1.
func SendPairs(w *resp.Writer, pairs []Pair, limiting int) {
	leases := false
	for i := range pairs {
		leases = leases || pairs[i].Policy.Algorithm.Beyond == limiter.LeaseID
	}
	w.Array(3 + int(oneIf(leases)))
	w.Int(oneIf(limiting >= 0))
	w.Int(int64(limiting))
	w.Array(len(pairs))
	for i := range pairs {
		w.Array(5)
		sendNumbers(w, &pairs[i].Verdict.Verdict)
	}
	if !leases {
		return
	}
	w.Array(len(pairs))
	for i := range pairs {
		sendID(w, pairs[i].Verdict.ID)
	}
}

// CountPairs counts what the pairs of an RL.TAKE were answered that was no peek. The executor's lock is held.
func (l *Limits) CountPairs(c *command.Ctx, pairs []Pair, limited bool) {
	for i := range pairs {
		p := &pairs[i]
		if v := &p.Verdict; v.Limited == limited && p.Request.Call.Cost > 0 {
			l.decidedBy(c, p.Counts, l.Keys.Key(p.Key), p.Policy.Algorithm, &v.Verdict)
		}
	}
}

// Count counts a decision about a key of the context's database. The executor's lock is held.
func (l *Limits) Count(c *command.Ctx, key []byte, a *limiter.Algorithm, v *throttle.Verdict) {
	l.decided(c, l.Keys.Key(key), a, v.Limited, v.Limit, v.Remaining)
}

// CountKey is Count for a key whose hash is known.
func (l *Limits) CountKey(c *command.Ctx, k store.Key, a *limiter.Algorithm, v *throttle.Verdict) {
	l.decided(c, k, a, v.Limited, v.Limit, v.Remaining)
}

// GCRA is the algorithm as which CL.THROTTLE and GCRA count.
func (l *Limits) GCRA() *limiter.Algorithm { return l.gcra }

// DecideHere asks a limit about a key of the context's database here, whatever Remote there is, and keeps the key's new state. The answer is
// in l.Asked. The executor's lock is held.
func (l *Limits) DecideHere(c *command.Ctx, key []byte, p *limiter.Policy, r *limiter.Request) error {
	return l.decide(c, l.Keys.Key(key), p, r)
}

// ThrottleHere is DecideHere for a GCRA. The error is one for the client.
func (l *Limits) ThrottleHere(c *command.Ctx, key []byte, g *throttle.GCRA, quantity int64) (d throttle.Decision, err error) {
	tat, exists, err := l.number(c, l.Keys.Key(key))
	if err != nil {
		return d, err
	}
	if err := g.DecideTo(&d, c.NowNs, tat, exists, quantity); err != nil {
		return d, limiter.ErrNotInteger
	}
	return d, l.keepTAT(&d)
}

// HoldPolicies has the hash of policies hold what another server's does, in the order name, text, …: so they are found as at home. The
// executor's lock is held.
func (l *Limits) HoldPolicies(c *command.Ctx, fields [][]byte) {
	db, k := l.Keys.DB(0), l.Keys.Key([]byte(PoliciesKey))
	texts := make(map[string][]byte, len(fields)/2)
	for i := 0; i+1 < len(fields) && len(texts) < maxPolicies; i += 2 {
		texts[string(fields[i])] = fields[i+1]
	}
	h, err := db.HashCreate(k, c.Now)
	if err != nil { // nobody else writes it
		return
	}
	var gone [][]byte
	h.Each(func(name, text []byte) bool {
		if kept, found := texts[string(name)]; !found {
			gone = append(gone, append([]byte(nil), name...))
		} else if string(kept) == string(text) {
			delete(texts, string(name))
		}
		return true
	})
	for _, name := range gone {
		h.Delete(name)
	}
	for name, text := range texts {
		if len(gone) > 0 { // the hash may be gone with the last of them
			if h, err = db.HashCreate(k, c.Now); err != nil {
				return
			}
		}
		h.Set([]byte(name), text)
	}
}

// setPolicyElsewhere is setPolicy by Remote.
func (l *Limits) setPolicyElsewhere(c *command.Ctx) {
	if l.Remote.Pass(c) {
		return
	}
	p, text, ok := l.policyText(c)
	if word := p.HomeOnly(); ok && word != "" {
		c.Err(NotServedByRedis(word))
		return
	}
	if ok && l.Remote.KnowsPolicies(c) && l.policyFits(c) {
		l.Remote.SetPolicy(c, text)
	}
}

// policyFits reports whether there may be a policy of the name at args[2], or sends the error and returns false.
func (l *Limits) policyFits(c *command.Ctx) bool {
	h, ok := l.changeablePolicy(c)
	if !ok {
		return false
	}
	if _, found := h.Get(c.Args[2]); !found && h.Len() >= maxPolicies {
		c.Err(errTooManyPolicies)
		return false
	}
	return true
}

// deletePolicyElsewhere is deletePolicy by Remote.
func (l *Limits) deletePolicyElsewhere(c *command.Ctx) {
	if l.Remote.Pass(c) {
		return
	}
	if l.Policies.Fixed[string(c.Args[2])] != nil {
		c.Errf(errFixedPolicy, c.Args[2])
		return
	}
	l.Remote.DeletePolicy(c)
}

// showPolicies answers by a handler of the hash here, if that is what the other server holds.
func (l *Limits) showPolicies(here command.Handler) command.Handler {
	return l.either(here, func(c *command.Ctx) {
		if !l.Remote.Pass(c) && l.Remote.KnowsPolicies(c) {
			here(c)
		}
	})
}

// LeaseHere gives back a lease of a key here, or has it end after so many ms, and reports whether there was one. The error is one for the
// client. The executor's lock is held.
func (l *Limits) LeaseHere(c *command.Ctx, key, id []byte, renews bool, ttl int64) (held bool, err error) {
	l.state.open(c, l.Keys.Key(key))
	l.Asked.PrepareLease(id, c.Now, c.NowNs)
	if err := l.state.Load(&l.Asked); err != nil {
		return false, err
	}
	if renews {
		held = l.Asked.Renew(ttl)
	} else {
		held = l.Asked.Release()
	}
	if !held {
		return false, nil
	}
	return true, l.state.Keep(&l.Asked)
}

// HoldPolicy has the hash of policies hold one policy, or hold it no longer. The executor's lock is held.
func (l *Limits) HoldPolicy(c *command.Ctx, name, text string, deleted bool) {
	h, err := l.Keys.DB(0).HashCreate(l.Keys.Key([]byte(PoliciesKey)), c.Now)
	switch {
	case err != nil: // nobody else writes it
	case deleted:
		h.Delete([]byte(name))
	default:
		h.Set([]byte(name), []byte(text))
	}
}
