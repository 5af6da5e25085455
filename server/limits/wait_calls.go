package limits

import (
	"headgate/server/command"
	"headgate/server/limiter"
	"headgate/store"
)

// oneLimit is a call of an algorithm's own command. It implements waitingCall.
type oneLimit struct{ algorithm *limiter.Algorithm }

// pairOf has the first of the pairs be the one limit of a call.
func (l *Limits) pairOf(k store.Key, said *limit) []takenPair {
	l.pairs[0] = takenPair{key: k, policy: &said.Policy, request: said.Request}
	return l.pairs[:1]
}

// read implements waitingCall.
func (o *oneLimit) read(l *Limits, c *command.Ctx) (pairs []takenPair, ok bool) {
	said := &l.Waits.asking
	*said = limit{}
	if err := o.algorithm.ReadCall(&said.Policy, &said.Request, c.Args[2:]); err != nil {
		errLimiter(c, err)
		return nil, false
	}
	return l.pairOf(c.Key(1), said), true
}

// pass implements waitingCall.
func (o *oneLimit) pass(l *Limits, c *command.Ctx, pairs []takenPair) error {
	p := &pairs[0]
	p.request.Call.Peek = false
	if err := l.decide(c, p.key, p.policy, &p.request); err != nil {
		return err
	}
	v := &l.Asked.Verdict
	if p.request.Call.Cost > 0 {
		l.decided(c, p.key, o.algorithm, v.Limited, v.Limit, v.Remaining)
	}
	SendVerdict(c.Reply, o.algorithm.Beyond, v)
	return nil
}

// limited implements waitingCall.
func (o *oneLimit) limited(l *Limits, c *command.Ctx, pairs []takenPair, _ int, peek bool) {
	p := &pairs[0]
	v := &p.verdict
	if p.request.Call.Cost > 0 && !peek {
		l.decided(c, p.key, o.algorithm, v.Limited, v.Limit, v.Remaining)
	}
	SendVerdict(c.Reply, o.algorithm.Beyond, v)
}

// severalLimits is a call of RL.TAKE. It implements waitingCall.
type severalLimits struct{}

// read implements waitingCall.
func (severalLimits) read(l *Limits, c *command.Ctx) (pairs []takenPair, ok bool) {
	if pairs, _, ok = l.readTake(c); !ok {
		clear(pairs)
	}
	return pairs, ok
}

// pass implements waitingCall.
func (severalLimits) pass(l *Limits, c *command.Ctx, pairs []takenPair) error {
	err := l.refusalOfAny(c, pairs)
	if err == nil {
		err = l.chargeAll(c, pairs)
	}
	if err == nil {
		l.beginBlocks(c, pairs) // of those in the shadow
		l.countPairs(c, pairs, false)
		sendPairs(c, pairs, -1)
	}
	return err
}

// limited implements waitingCall.
func (severalLimits) limited(l *Limits, c *command.Ctx, pairs []takenPair, limiting int, peek bool) {
	if !peek {
		l.beginBlocks(c, pairs)
		l.countPairs(c, pairs, true)
	}
	sendPairs(c, pairs, limiting)
}

// reservationCall is a call of RL.RESERVE. It implements waitingCall.
type reservationCall struct{}

// read implements waitingCall.
func (reservationCall) read(l *Limits, c *command.Ctx) (pairs []takenPair, ok bool) {
	if pairs, l.Waits.reserving, ok = l.readReserveCall(c); !ok {
		clear(pairs)
	}
	return pairs, ok
}

// pass implements waitingCall.
func (reservationCall) pass(l *Limits, c *command.Ctx, pairs []takenPair) error {
	o := &l.Waits.reserving
	err := l.refusalOfReservation(c)
	if err == nil {
		err = l.chargeReserved(c, pairs, o)
	}
	if err == nil {
		l.beginBlocks(c, pairs) // of those in the shadow
		l.countPairs(c, pairs, false)
		sendReserved(c, pairs, -1, o.id)
	}
	return err
}

// limited implements waitingCall.
func (reservationCall) limited(l *Limits, c *command.Ctx, pairs []takenPair, limiting int, _ bool) {
	l.beginBlocks(c, pairs)
	l.countPairs(c, pairs, true)
	sendReserved(c, pairs, limiting, nil)
}
