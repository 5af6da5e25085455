package scripted

import (
	"headgate/internal/respcmd"
	"headgate/server/limiter"
)

// Take is several limiters' calls that are charged together or not at all, as RL.TAKE's: all keys are in one slot, and different from each other.
// It is reused as a Question is.
//
// For pairs in several slots there is one Take for each slot. Where all are charged but one, the others give back what they were charged
// (AskGiveBack) and answer as a look would (Look). A giveback may come late, or never: so it gives back no more than what has not been paid
// off since, by the same server's clock, and only to the window or the entries that were charged. It must not be sent twice.
type Take struct {
	// Peek has all calls be looks.
	Peek bool
	// Limiting is the index of the first pair that limits, or -1.
	Limiting int

	exchange
	pairs []*Pair
	given int // pairs that give back
}

// Pair is one call of a Take.
type Pair struct {
	Key     []byte // which Ask copies
	Policy  *limiter.Policy
	Request limiter.Request // of which the Cost is the caller's to set, and nothing else
	Call    limiter.Call    // its Verdict is the answer

	asked   asked
	charged charge
}

// charge is what a pair has been charged.
type charge struct {
	made  bool
	ns    int64 // when, by the server's clock
	endMs int64 // of a counter: when its window ends
}

// Pairs returns so many pairs, to be filled in for the next call. They belong to the Take.
func (t *Take) Pairs(n int) []*Pair {
	for len(t.pairs) < n {
		t.pairs = append(t.pairs, &Pair{})
	}
	t.pairs = t.pairs[:n]
	for _, p := range t.pairs {
		p.Key, p.Policy, p.Request = nil, nil, limiter.Request{}
	}
	return t.pairs
}

// Ask appends the command that asks for the pairs. If nothing is appended no server is needed, as with Question.Ask.
func (t *Take) Ask(dst []byte) []byte {
	t.start()
	t.Limiting = -1
	exact, words := true, 1
	for _, p := range t.pairs {
		p.charged = charge{}
		p.Request.Call.Peek = t.Peek
		a := &p.asked
		a.begin(&p.Call, p.Key)
		if p.Policy.Limit < 0 {
			continue
		}
		if t.err = refusal(p.Policy, &p.Request); t.err != nil {
			t.list = t.list[:0]
			return dst
		}
		a.askLimiter(p.Policy, &p.Request)
		exact = exact && a.exact && (a.family != ofRate || a.certain)
		t.list = append(t.list, a)
		words += 2 + a.arguments()
	}
	switch {
	case len(t.list) == 0:
		t.conclude()
		return dst
	case !exact:
		return t.load(dst)
	}
	dst = t.call(dst, takeScript, deciding, words)
	dst = appendFlag(dst, !t.Peek)
	for _, a := range t.list {
		dst = respcmd.AppendBulk(dst, parts[a.family])
		dst = appendNumber(dst, int64(a.arguments()))
		dst = a.appendArguments(dst, t.NowMs)
	}
	return dst
}

// Answer takes the reply to the last command, as Question.Answer does.
func (t *Take) Answer(text []byte) (Outcome, error) {
	if t.stage == answered {
		return Done, t.err
	}
	if err := WireError(text); err != nil {
		return Done, err
	}
	switch t.stage {
	case loading:
		return t.loaded(text, t.conclude)
	case swapping:
		outcome, err := t.swapped(text)
		if outcome == Done && err == nil {
			t.note()
		}
		return outcome, err
	}
	return t.decided(text)
}

// decided takes the reply of take.lua.
func (t *Take) decided(text []byte) (Outcome, error) {
	r := reply{rest: text}
	elements := r.array()
	now := clock(&r)
	if left := r.number(); left == codeLeft && !r.bad {
		t.stage = loading
		return Again, nil
	}
	if elements != 4 || r.array() != len(t.list) {
		return Done, ErrMalformed
	}
	for _, a := range t.list {
		elements = r.array()
		a.code = r.number()
		a.prepare(now)
		err := a.readPart(&r)
		if elements == 3 {
			a.readStamps(&r)
		}
		switch {
		case r.bad:
			return Done, ErrMalformed
		case err == nil:
			err = a.decide()
		}
		if err != nil {
			t.disagrees = a.code != codeLimited // then nothing was charged
			return Done, err
		}
		t.check(a)
	}
	t.conclude()
	t.note()
	return Done, nil
}

// check compares the decision about a pair with the script's, which stands.
func (t *Take) check(a *asked) {
	limited := a.code == codeLimited || a.code == codeMended
	if t.Peek && !a.unknown && a.call.Verdict.Limited == limited || !t.Peek && a.agrees() {
		return
	}
	t.disagrees = true
	a.follow()
}

// conclude finds what limits. If something does, those that do not answer as a look would, since they have charged nothing.
func (t *Take) conclude() {
	t.Limiting = -1
	for i, p := range t.pairs {
		if p.Policy.Limit >= 0 && p.Call.Verdict.Limited && t.Limiting < 0 {
			t.Limiting = i
		}
	}
	for _, p := range t.pairs {
		if p.Policy.Limit < 0 {
			p.unlimited()
		}
	}
	if t.Limiting >= 0 && !t.Peek {
		t.Look()
	}
}

// unlimited answers for a policy that has no limit.
func (p *Pair) unlimited() {
	p.Call.Unlimited(p.Policy, &p.Request)
	if p.Call.Verdict.Draw {
		p.asked.draw()
		p.Call.Verdict.ID = p.asked.drawn[:]
	}
}

// note notes what was charged, for AskGiveBack.
func (t *Take) note() {
	if t.Limiting >= 0 || t.Peek {
		return
	}
	for _, a := range t.list {
		if a.call.Request.Call.Cost <= 0 || !a.writes() {
			continue
		}
		for _, p := range t.pairs {
			if &p.asked == a {
				p.charged = charge{made: true, ns: a.call.NowNs, endMs: a.call.Change.ExpireAtMs}
			}
		}
	}
}

// Look has the pairs that do not limit answer as a look would have been answered at the time of the call, for a Take that another one
// has come to nothing with.
func (t *Take) Look() {
	for _, p := range t.pairs {
		if p.Call.Verdict.Limited {
			continue
		}
		p.Request.Call.Peek = true
		if p.Policy.Limit < 0 {
			p.unlimited()
		} else if p.asked.decide() != nil { // it has been decided before
			t.disagrees = true
		}
	}
}

// AskGiveBack appends the command that gives back what the pairs were charged. If nothing is appended nothing was.
func (t *Take) AskGiveBack(dst []byte) []byte {
	t.given = 0
	for _, p := range t.pairs {
		if p.charged.made {
			t.given++
		}
	}
	if t.given == 0 {
		return dst
	}
	t.script = giveBackScript
	dst = appendCall(dst, giveBackScript, t.Inline, t.given, 5*t.given)
	for _, p := range t.pairs {
		if p.charged.made {
			dst = respcmd.AppendBulk(dst, p.asked.key)
		}
	}
	for _, p := range t.pairs {
		if p.charged.made {
			dst = p.appendGiveBack(dst)
			p.charged.made = false
		}
	}
	return dst
}

// appendGiveBack appends the part of giveback.lua and its four arguments.
func (p *Pair) appendGiveBack(dst []byte) []byte {
	a := &p.asked
	ns, ms, cost := p.charged.ns, floorMs(p.charged.ns), p.Request.Call.Cost
	switch a.family {
	case ofRate:
		seconds, rest := split(a.terms.Charge)
		at, atNs := split(ns)
		return appendPart(dst, "rate", seconds, rest, at, atNs/1000)
	case ofCounter:
		return appendPart(dst, "counter", cost, p.charged.endMs, 0, 0)
	case ofSlices:
		return appendPart(dst, "slices", cost, p.Policy.Sliding.Start(ms), 0, 0)
	case ofLog:
		return appendPart(dst, "stamped", ms, a.first, a.last, cost)
	case ofLease:
		dst = respcmd.AppendBulk(dst, "entry")
		dst = appendNumber(dst, ms+p.Policy.Window)
		dst = respcmd.AppendBulk(dst, a.drawn[:])
		return appendNumber(appendNumber(dst, 0), 0)
	}
	return appendPart(dst, "nothing", 0, 0, 0, 0)
}

func appendPart(dst []byte, name string, arguments ...int64) []byte {
	dst = respcmd.AppendBulk(dst, name)
	for _, n := range arguments {
		dst = appendNumber(dst, n)
	}
	return dst
}

// AnswerGiveBack takes the reply to AskGiveBack.
func (t *Take) AnswerGiveBack(text []byte) error { return gaveBack(text) }

// gaveBack takes the reply of giveback.lua.
func gaveBack(text []byte) error {
	if err := WireError(text); err != nil {
		return err
	}
	r := reply{rest: text}
	if r.number() != 1 || r.bad {
		return ErrMalformed
	}
	return nil
}
