package scripted

import (
	"headgate/server/limiter"
	"headgate/throttle"
)

// Question is one call on its way to the server that has its key. It is reused; what is found belongs to the last call. The zero value is ready.
// It may not be copied.
type Question struct {
	// Call holds the answer of a limiter's call, in its Verdict: the id of a lease that was drawn is in the Question's memory.
	Call limiter.Call
	// Decision is the answer to AskGCRA.
	Decision throttle.Decision
	// Held is the answer to AskRelease and AskRenew: there was such a lease.
	Held bool
	// Increased is the answer to AskIncrex.
	Increased Increased
	// Forgotten is the answer to AskReset: how many keys there were.
	Forgotten int64

	exchange
	one    asked
	resets resets
}

// Kept returns about how many bytes are kept for the next use.
func (q *Question) Kept() int {
	bytes := q.exchange.Kept()
	for _, key := range q.resets.keys {
		bytes += cap(key)
	}
	return bytes
}

// begin has a question be about a key.
func (q *Question) begin(key []byte) *asked {
	q.start()
	q.resets.keys = q.resets.keys[:0]
	q.one.begin(&q.Call, key)
	q.list = append(q.list, &q.one)
	return &q.one
}

// Ask appends the command that asks for a limiter's call of a key. p, r and r.Member are kept until the answer is there; key is not.
//
// If nothing is appended no server is needed: the policy has no limit, or the call is refused. Answer(nil) then says what the answer is. So
// with all that begin with Ask.
func (q *Question) Ask(dst, key []byte, p *limiter.Policy, r *limiter.Request) []byte {
	a := q.begin(key)
	if p.Limit < 0 {
		q.Call.Unlimited(p, r)
		if q.Call.Verdict.Draw {
			a.draw()
			q.Call.Verdict.ID = a.drawn[:]
		}
		return dst
	}
	if q.err = refusal(p, r); q.err != nil {
		return dst
	}
	a.askLimiter(p, r)
	return q.decideThere(dst, r.Call.Peek || r.Call.Cost == 0)
}

// AskGCRA is Ask for CL.THROTTLE and GCRA, for a quantity. The answer is in Decision; ErrNotInteger is the error of one whose numbers leave
// 64 bits.
func (q *Question) AskGCRA(dst, key []byte, g throttle.GCRA, quantity int64) []byte {
	a := q.begin(key)
	q.Call.Policy, q.Call.Request = nil, nil
	a.family, a.cell, a.quantity = ofRate, g, quantity
	a.terms, a.certain = g.Terms(quantity)
	a.exact = string(key) != PoliciesKey
	return q.decideThere(dst, false)
}

// AskRelease is Ask for a lease that is to be given back. id is kept until the answer is there.
func (q *Question) AskRelease(dst, key, id []byte) []byte {
	return q.askLease(dst, key, id, release, 0)
}

// AskRenew is Ask for a lease that is to end after so many ms from now on. id is kept until the answer is there.
func (q *Question) AskRenew(dst, key, id []byte, ttl int64) []byte {
	return q.askLease(dst, key, id, renew, ttl)
}

func (q *Question) askLease(dst, key, id []byte, do action, ttl int64) []byte {
	a := q.begin(key)
	a.family, a.action, a.ttl, a.exact = ofLease, do, ttl, string(key) != PoliciesKey
	q.Call.PrepareLease(id, 0, 0)
	return q.decideThere(dst, false)
}

// decideThere appends the command that has a script decide, or the one that loads the state where none can.
func (q *Question) decideThere(dst []byte, looks bool) []byte {
	a := &q.one
	switch {
	case !a.exact:
		return q.load(dst)
	case a.family == ofRate:
		if looks || !a.certain || !decides(a.terms) {
			a.terms = look
		}
		dst = q.call(dst, rateScript, deciding, rateArguments)
	default:
		dst = q.call(dst, familyScripts[a.family], deciding, 1+a.arguments())
		dst = appendFlag(dst, !looks)
	}
	return a.appendArguments(dst, q.NowMs)
}

// Answer takes the reply to the last command. With Done the answer is there, or the error is: one for the client, of type limiter.Error, or
// ErrMalformed. With Again Next has the command that is to be sent now. The reply is not kept.
func (q *Question) Answer(text []byte) (Outcome, error) {
	if q.stage == answered {
		return Done, q.err
	}
	if err := WireError(text); err != nil {
		return Done, err
	}
	outcome, err := q.take(text)
	if err == nil && outcome == Done {
		q.Decision, q.Held, q.Increased = q.one.decision, q.one.held, q.one.increased
	}
	return outcome, err
}

// take is Answer for what is no error.
func (q *Question) take(text []byte) (Outcome, error) {
	switch {
	case len(q.resets.keys) > 0:
		return q.resetAnswer(text)
	case q.stage == loading:
		return q.loaded(text, func() {})
	case q.stage == swapping:
		return q.swapped(text)
	case q.one.family == ofRate:
		return q.rateAnswer(text)
	}
	return q.partAnswer(text)
}

// rateAnswer takes the reply of rate.lua.
func (q *Question) rateAnswer(text []byte) (Outcome, error) {
	a, r := &q.one, reply{rest: text}
	elements := r.array()
	now := clock(&r)
	if a.code = r.number(); a.code == codeLeft && !r.bad {
		q.stage = loading
		return Again, nil
	}
	state := r.text()
	if r.bad || elements != 4 {
		return Done, ErrMalformed
	}
	a.prepare(now)
	if err := a.foundNumber(state, 0); err != nil {
		return Done, err
	}
	if err := a.decide(); err != nil {
		q.disagrees = a.code == codeCharged
		return Done, err
	}
	q.check(a.terms == look)
	return Done, nil
}

// partAnswer takes the reply of one.lua.
func (q *Question) partAnswer(text []byte) (Outcome, error) {
	a, r := &q.one, reply{rest: text}
	elements := r.array()
	now := clock(&r)
	if a.code = r.number(); a.code == codeLeft && !r.bad {
		q.stage = loading
		return Again, nil
	}
	a.prepare(now)
	err := a.readPart(&r)
	if elements == 5 {
		a.readStamps(&r)
	}
	switch {
	case r.bad || elements < 4:
		return Done, ErrMalformed
	case err == nil:
		err = a.decide()
	}
	if err != nil {
		q.disagrees = true // scripts leave states to the caller that are wrong
		return Done, err
	}
	q.check(a.increx == nil && a.action == acquire && (q.Call.Request.Call.Peek || q.Call.Request.Call.Cost == 0))
	return Done, nil
}

// check compares the decision with the script's. One that only looked has written nothing, and rate.lua then has not decided at all.
func (q *Question) check(looked bool) {
	a := &q.one
	switch {
	case !looked:
		q.disagrees = !a.agrees()
	case a.family == ofRate:
		q.disagrees = a.code != codeLimited
		return
	default:
		limited := a.code == codeLimited || a.code == codeMended
		q.disagrees = a.unknown || q.Call.Verdict.Limited != limited || a.writes()
	}
	if q.disagrees {
		a.follow()
	}
}
