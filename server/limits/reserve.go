package limits

import (
	"bytes"
	"slices"

	"headgate/internal/glob"
	"headgate/internal/number"
	"headgate/server/acl"
	"headgate/server/command"
	"headgate/server/config"
	"headgate/server/limiter"
	"headgate/throttle"
)

// reserveCommands are those of work whose cost is known late: it is charged what it may cost at most, and gets back what it did not use.
func reserveCommands(l *Limits) []*command.Command {
	return []*command.Command{
		{
			Name: "rl.cancel", Group: command.GroupThrottle, Since: "headgate 0.1.0", Complexity: "O(n) in the number of pairs, each as its policy's algorithm",
			Summary: "Give back everything that a reservation has charged.",
			Arity:   2, Flags: command.Write | command.Fast,
			Args: []command.Arg{reservationArg}, Errors: []string{command.ErrDeniedKey},
			Reply: command.ReplyInteger, Returns: []string{"1 if the reservation was cancelled, 0 if it was settled, cancelled or timed out already"}, Handler: l.either(l.cancel, l.refuseElsewhere),
		},
		{
			Name: "rl.reservations", Group: command.GroupThrottle, Since: "headgate 0.1.0", Complexity: "O(n log n) in the number of open reservations",
			Summary: "Return open reservations, sorted by when they time out.",
			Arity:   -1, Flags: command.ReadOnly | command.Admin,
			Args: []command.Arg{
				command.Pattern("pattern").After("MATCH").Opt().Means("a glob pattern for the id, or for one of the keys"),
				command.Integer("count").After("COUNT").Opt().Fails(limiter.InvalidCount).Means("how many to return at most, 1 or more; 100 by default"),
			},
			Errors: []string{command.ErrUsage},
			Reply:  command.ReplyArray, Returns: []string{"for each reservation a map: id, database, age-ms, timeout-ms (milliseconds until it is cancelled), and pairs, an array of its policy, key and cost for each pair"}, Handler: l.either(l.listReservations, l.refuseElsewhere),
		},
		{
			Name: "rl.reserve", Group: command.GroupThrottle, Since: "headgate 0.1.0", Complexity: "O(n) in the number of pairs, each as its policy's algorithm",
			Summary: "Charge several limits at once, as RL.TAKE does, and keep the charge under an id until RL.SETTLE reports the actual cost or RL.CANCEL gives it back. At the TTL, the server cancels it.",
			Arity:   -6, Flags: command.Write | command.DenyOOM | command.Fast | command.DecidesFirst, Keys: []command.KeySpec{{Access: "RW ACCESS UPDATE", Begin: 1, KeyNum: true, Skip: 1, Step: 2}},
			Args: []command.Arg{
				numPairsArg, pairsArg, costsArg,
				durationArg("ttl", "when the server cancels the reservation").After(ttlWord),
				command.Str("id").After(idWord).Opt().Means("the reservation's id, 1 to 128 bytes; the server draws a random one by default"), waitArg,
			},
			Errors: slices.Concat([]string{errFewPairs, command.ErrUsage, errCostsNumber, errReservedCost, errReservationID}, errorsOf(limiter.DurationErrors...), []string{string(limiter.ErrLongWait)}, l.costErrors(),
				[]string{errReservedEntries, errDuplicateKey, errReservationThere, errReservations, command.ErrNotInteger, string(limiter.ErrForeign), command.ErrWrongType}),
			Reply: command.ReplyArray, Returns: []string{fiveNumbers[0], limitingPair, "id: of the reservation; null if the call was limited", pairNumbers}, Handler: l.either(l.reserve, l.reserveElsewhere),
		},
		{
			Name: "rl.settle", Group: command.GroupThrottle, Since: "headgate 0.1.0", Complexity: "O(n) in the number of pairs, each as its policy's algorithm",
			Summary: "End a reservation with the actual cost: what was reserved beyond it is given back, and what exceeds the reservation is charged, even above the limit. A lease is always given back.",
			Arity:   -4, Flags: command.Write | command.Fast,
			Args: []command.Arg{
				reservationArg,
				command.OneOf("actuals",
					command.Integer("n").After(actualWord).Fails(limiter.InvalidInteger(actualWord)).Means("units that were used of every pair, 0 or more"),
					command.Integer("each").After(actualsWord).Multi().Fails(limiter.InvalidInteger(actualsWord)).Means("units that were used of each pair, one number for each")),
			},
			Errors: []string{command.ErrUsage, errActual, command.ErrDeniedKey, errFewActuals, errReservedEntries},
			Reply:  command.ReplyArray, Returns: []string{"settled: 1, or 0 if the reservation was settled, cancelled or timed out already", pairNumbers + "; empty if the first element is 0"}, Handler: l.either(l.settle, l.refuseElsewhere),
		},
	}
}

// The words before options of RL.RESERVE.
const (
	ttlWord = "TTL"
	idWord  = "ID"
)

// The words before what was used: of every pair, or of each.
const (
	actualWord  = "ACTUAL"
	actualsWord = "ACTUALS"
)

var reservationArg = command.Str("id").Means("the id of the reservation, which RL.RESERVE has returned")

// Errors of reservations.
const (
	errReservedCost     = "ERR cost of a reservation must be >= 0"
	errReservedEntries  = "ERR cost of a reserved log must be <= 10000"
	errReservationID    = "ERR id must be 1 to 128 bytes"
	errReservationThere = "ERR reservation '%s' exists"
	errReservations     = "ERR too many open reservations"
	errActual           = "ERR actual must be >= 0"
	errFewActuals       = "ERR ACTUALS must give one number for each pair"
)

const (
	// MaxReservations is how many reservations may be open.
	MaxReservations = 100_000
	// maxReservationID is the longest id of a reservation, in bytes.
	maxReservationID = 128
	// maxReservedEntries is how many entries a reservation may add to a sliding log: they are given back one by one.
	maxReservedEntries = 10_000
	// reservationsShown is how many RL.RESERVATIONS shows by default.
	reservationsShown = 100
)

// reserveOptions are what stands behind the pairs of RL.RESERVE.
type reserveOptions struct {
	costs   bool // they are given
	ttl     int64
	ttlWord []byte // as it was written
	id      []byte // nil: one is drawn
	wait    int64  // ms; 0: not at all
}

// readReserve reads the options, or sends the error and returns false.
func (l *Limits) readReserve(c *command.Ctx, pairs []takenPair) (o reserveOptions, ok bool) {
	for i := 2 + 2*len(pairs); i < len(c.Args); i++ {
		last := i+1 == len(c.Args)
		switch {
		case !o.costs && (c.Is(i, limiter.CostWord) || c.Is(i, costsWord)):
			if i, ok = readCosts(c, i, pairs); !ok {
				return o, false
			}
			o.costs = true
		case o.ttl == 0 && !last && c.Is(i, ttlWord):
			ttl, err := limiter.ParseDuration(c.Args[i+1])
			if err != nil {
				errLimiter(c, err)
				return o, false
			}
			o.ttl, o.ttlWord = ttl, c.Args[i+1]
			i++
		case o.id == nil && !last && c.Is(i, idWord):
			if o.id = c.Args[i+1]; !mayBeReservationID(o.id) {
				c.Err(errReservationID)
				return o, false
			}
			i++
		case o.wait == 0 && !last && c.Is(i, limiter.WaitWord):
			wait, err := limiter.ParseWait(c.Args[i+1])
			if err != nil {
				errLimiter(c, err)
				return o, false
			}
			o.wait = wait
			i++
		default:
			l.strayOption(c, i, pairs, reserveWords)
			return o, false
		}
	}
	if o.ttl == 0 {
		errLimiter(c, limiter.Hint("%s is missing", ttlWord))
		return o, false
	}
	return o, true
}

func mayBeReservationID(id []byte) bool { return len(id) > 0 && len(id) <= maxReservationID }

// reserve implements RL.RESERVE numpairs policy key [policy key …] [COST n | COSTS n …] TTL duration [ID id] [WAIT duration].
func (l *Limits) reserve(c *command.Ctx) {
	pairs, o, ok := l.readReserveCall(c)
	defer clear(pairs) // they point into the input
	if !ok {
		return
	}
	if l.concernsWaits(o.wait) {
		l.Waits.reserving = o
		l.answerInTurn(c, reservationCall{}, pairs, false, o.wait)
		l.Waits.reserving = reserveOptions{}
		return
	}
	limiting, err := l.askAll(c, pairs, false)
	switch {
	case err != nil:
	case limiting >= 0:
		err = l.lookAtOthers(c, pairs)
	default:
		if err = l.refusalOfReservation(c); err == nil {
			err = l.chargeReserved(c, pairs, &o)
		}
	}
	if err != nil {
		errLimiter(c, err)
		return
	}
	l.beginBlocks(c, pairs)
	l.countPairs(c, pairs, limiting >= 0)
	sendReserved(c, pairs, limiting, o.id)
}

// readReserveCall reads the arguments of RL.RESERVE, or sends the error and returns ok false. The pairs are to be cleared: they point into the
// arguments.
func (l *Limits) readReserveCall(c *command.Ctx) (pairs []takenPair, o reserveOptions, ok bool) {
	n, ok := takeNumber(c)
	if !ok {
		return nil, o, false
	}
	pairs = l.pairs[:n]
	if o, ok = l.readReserve(c, pairs); ok {
		l.watchUnits(c, o.ttlWord)
	}
	return pairs, o, ok && l.takePolicies(c, pairs, false, o.costs) && checkReserved(c, pairs) && l.nameReservation(c, &o, pairs)
}

// checkReserved refuses costs that could not be given back, or sends the error and returns false.
func checkReserved(c *command.Ctx, pairs []takenPair) bool {
	for i := range pairs {
		p := &pairs[i]
		switch cost := p.request.Call.Cost; {
		case cost < 0:
			c.Err(errReservedCost)
			return false
		case p.policy.Algorithm.Returns == limiter.ReturnEntries && cost > maxReservedEntries && cost <= p.policy.Limit:
			c.Err(errReservedEntries)
			return false
		}
	}
	return true
}

// nameReservation sees to the reservation's id, by which its leases go, too; or it sends the error and returns false.
func (l *Limits) nameReservation(c *command.Ctx, o *reserveOptions, pairs []takenPair) bool {
	if o.id == nil {
		o.id = limiter.AppendDrawnID(l.drawn[:0])
	} else if l.findReservation(c, o.id) != nil {
		c.Errf(errReservationThere, o.id)
		return false
	}
	if l.Reservations.Open() >= MaxReservations {
		c.Err(errReservations)
		return false
	}
	for i := range pairs {
		if pairs[i].policy.Algorithm.Returns == limiter.ReturnLease && pairs[i].request.Call.Cost > 0 {
			pairs[i].request.Member, pairs[i].request.HasMember = o.id, true
		}
	}
	return true
}

// refusalOfReservation returns why nothing can be reserved now, or nil: the reservation itself has to be kept, whatever the limits' own
// state would take.
func (l *Limits) refusalOfReservation(c *command.Ctx) error {
	switch gate := &c.Core.Gate; {
	case gate.Has(command.GateNoWrites) && !c.Client.Primary:
		return limiter.Error(gate.NoWrites())
	case gate.Has(command.GateUnwritable):
		return limiter.Error(gate.Unwritable())
	case gate.Has(command.GateShort|command.GateCrowded) && lacksRoom(c, maxPairs):
		return limiter.Error(command.ErrOOM)
	}
	return nil
}

// chargeReserved charges every limit, and keeps what there is to know for giving it back.
func (l *Limits) chargeReserved(c *command.Ctx, pairs []takenPair, o *reserveOptions) error {
	l.state.added = l.Reservations.noteEntry
	l.Reservations.added = l.Reservations.added[:0]
	err := l.chargeAll(c, pairs)
	l.state.added = nil
	if err != nil {
		return err
	}
	r := reservationValue{deadline: c.Now + o.ttl, ticket: l.Reservations.nextTicket(c.NowNs)}
	for i := range pairs {
		r.pairs = append(r.pairs, l.reservedPairOf(c, pairs, i))
	}
	l.keepReservation(c, o.id, &r)
	l.Reservations.Counts.Reserved++
	return nil
}

// reservedPairOf is what is kept of a pair that has been charged.
func (l *Limits) reservedPairOf(c *command.Ctx, pairs []takenPair, i int) reservedPair {
	p := &pairs[i]
	pair := reservedPair{name: string(nameKept(c.Args[2+2*i])), key: p.key.Name, words: p.policy.Words, cost: p.request.Call.Cost, policy: p.policy}
	if p.shadowed { // nothing was charged, and nothing is to be
		pair.policy = l.unlimited
	}
	if p.policy.Words == "" || p.shadowed {
		pair.words = l.unlimited.Algorithm.Name
	}
	if p.policy.Limit < 0 || pair.cost == 0 || p.shadowed {
		return pair
	}
	switch p.policy.Algorithm.Returns {
	case limiter.ReturnBacklog:
		pair.where = c.NowNs
	case limiter.ReturnCount:
		pair.where = p.expireAt
	case limiter.ReturnSlice:
		pair.where = p.policy.Sliding.Start(c.Now)
	case limiter.ReturnEntries:
		pair.where = c.Now
		pair.entries = l.Reservations.entriesOf(p.key)
	}
	return pair
}

// nameKept is what a reservation keeps of a policy's name: all of it for one that there may be, also for one that is written out.
func nameKept(name []byte) []byte { return name[:min(len(name), maxWritten)] }

// keepReservation makes the reservation a key, and follows it.
func (l *Limits) keepReservation(c *command.Ctx, id []byte, r *reservationValue) {
	k := l.Keys.Key(appendReservationKey(nil, id))
	l.Reservations.text = r.appendText(l.Reservations.text[:0], id)
	expireAt := r.deadline + reservationKept
	c.DB.SetText(k, l.Reservations.text, expireAt)
	c.Effect("SET", k.Name, l.Reservations.text, "PXAT", expireAt)
	c.Notify(config.EventString, "set", k.Name)
	c.Notify(config.EventGeneric, "expire", k.Name)
	l.Reservations.add(c.DB, string(id), r, c.NowNs, justCharged)
}

// sendReserved sends what the limits have answered, and the id unless one limits.
func sendReserved(c *command.Ctx, pairs []takenPair, limiting int, id []byte) {
	if limiting >= 0 {
		id = nil
	}
	c.Reply.Array(4)
	c.Reply.Int(oneIf(limiting >= 0))
	c.Reply.Int(int64(limiting))
	sendID(c.Reply, id)
	c.Reply.Array(len(pairs))
	for i := range pairs {
		c.Reply.Array(5)
		sendNumbers(c.Reply, &pairs[i].verdict.Verdict)
	}
}

// settle implements RL.SETTLE id ACTUAL n | ACTUALS n ….
func (l *Limits) settle(c *command.Ctx) {
	each, token := c.Is(2, actualsWord), actualWord
	if each {
		token = actualsWord
	}
	if !each && (!c.Is(2, actualWord) || len(c.Args) != 4) {
		c.ErrUsage()
		return
	}
	actuals := make([]int64, 0, len(c.Args)-3)
	for i := range c.Args[3:] {
		n, ok := integerAfter(c, token, 3+i)
		if !ok {
			return
		}
		if n < 0 {
			c.Err(errActual)
			return
		}
		actuals = append(actuals, n)
	}
	r := l.findReservation(c, c.Args[1])
	if r == nil {
		c.Reply.Array(2)
		c.Reply.Zero()
		c.Reply.Array(0)
		return
	}
	if !mayEnd(c, r) {
		return
	}
	if !each {
		for len(actuals) < len(r.pairs) {
			actuals = append(actuals, actuals[0])
		}
	}
	if len(actuals) != len(r.pairs) {
		c.Err(errFewActuals)
		return
	}
	if tooManyEntries(r, actuals) {
		c.Err(errReservedEntries)
		return
	}
	l.endReservation(c, r, actuals, limiter.MaxLogCost)
	l.Reservations.Counts.Settled++
	c.Reply.Array(2)
	c.Reply.One()
	c.Reply.Array(len(r.pairs))
	for i := range r.pairs {
		v := l.lookAtReserved(c, &r.pairs[i])
		c.Reply.Array(5)
		sendNumbers(c.Reply, &v)
	}
}

// tooManyEntries reports whether what was used is more than may be charged to logs: by one of them, or by all together. Where another pair has
// reserved more than it has used there is no more room for this one's debt.
func tooManyEntries(r *openReservation, actuals []int64) bool {
	reserved, used := int64(0), int64(0)
	for i := range r.pairs {
		p := &r.pairs[i]
		if p.policy.Algorithm.Returns != limiter.ReturnEntries || p.policy.Limit < 0 {
			continue
		}
		if actuals[i] > max(maxReservedEntries, p.cost) {
			return true
		}
		reserved += p.cost
		used += actuals[i]
	}
	return used > max(maxReservedEntries, reserved)
}

// cancel implements RL.CANCEL id.
func (l *Limits) cancel(c *command.Ctx) {
	r := l.findReservation(c, c.Args[1])
	if r == nil {
		c.Reply.Zero()
		return
	}
	if !mayEnd(c, r) {
		return
	}
	l.endReservation(c, r, nil, limiter.MaxLogCost)
	l.Reservations.Counts.Cancelled++
	c.Reply.One()
}

// mayEnd reports whether the client has the right to the reservation's keys, which only the server knows, or sends the error and returns false.
func mayEnd(c *command.Ctx, r *openReservation) bool {
	if !mayWithKeys(c, r, acl.ReadKey|acl.WriteKey) {
		c.Err(command.ErrDeniedKey)
		return false
	}
	return true
}

// mayWithKeys reports whether the client's user may do so much with each of the reservation's keys.
func mayWithKeys(c *command.Ctx, r *openReservation, access acl.Access) bool {
	if !c.Client.Guarded {
		return true
	}
	call := c.ACLCall(c.Cmd, c.Args)
	return !slices.ContainsFunc(r.pairs, func(p reservedPair) bool { return !c.Client.User.MayWithKey(call, p.key, access) })
}

// mayReadKeys returns a function that reports whether the client's user may read each key of a reservation.
func mayReadKeys(c *command.Ctx) func(r *reservation) bool {
	if !c.Client.Guarded {
		return func(*reservation) bool { return true }
	}
	call, user := c.ACLCall(c.Cmd, c.Args), c.Client.User
	return func(r *reservation) bool {
		return !slices.ContainsFunc(r.pairs, func(p followedPair) bool { return !user.MayWithKey(call, []byte(p.key), acl.ReadKey) })
	}
}

// lookAtReserved is what a look at a pair answers, by the policy as it is now.
func (l *Limits) lookAtReserved(c *command.Ctx, p *reservedPair) throttle.Verdict {
	policy := l.policyNow(c, p)
	request := limiter.Request{Call: throttle.Call{Peek: true}}
	if err := l.Ask(c, l.Keys.Key(p.key), policy, &request); err != nil { // somebody else's value is there now
		return throttle.Verdict{Limit: policy.Limit, RetryAfter: throttle.NoRetry}
	}
	return l.Asked.Verdict.Verdict
}

// listReservations implements RL.RESERVATIONS [MATCH pattern] [COUNT count]. Those with a key that the user may not read are not shown.
func (l *Limits) listReservations(c *command.Ctx) {
	var pattern []byte
	count := int64(0)
	for i := 1; i < len(c.Args); i += 2 {
		last := i+1 == len(c.Args)
		switch {
		case pattern == nil && !last && c.Is(i, "MATCH"):
			pattern = c.Args[i+1]
		case count == 0 && !last && c.Is(i, "COUNT"):
			var ok bool
			if count, ok = number.ParseInt(c.Args[i+1]); !ok || count < 1 {
				errLimiter(c, limiter.Quoting(limiter.InvalidCount, c.Args[i+1]))
				return
			}
		default:
			c.ErrUsage()
			return
		}
	}
	if count == 0 {
		count = reservationsShown
	}
	var shown []*openReservation
	mayRead := mayReadKeys(c) // asked of what is remembered first: to read thousands that are not shown would take long
	for _, r := range l.Reservations.inOrder(func(r *reservation) bool { return (pattern == nil || r.matches(pattern)) && mayRead(r) }) {
		if int64(len(shown)) == count {
			break
		}
		if open := l.readReservation(l.Keys.DB(r.db), []byte(r.id), c.Now); open != nil && mayWithKeys(c, open, acl.ReadKey) {
			shown = append(shown, open)
		}
	}
	c.Reply.Array(len(shown))
	for _, r := range shown {
		l.sendReservation(c, r)
	}
}

// sendReservation sends one reservation of the list.
func (l *Limits) sendReservation(c *command.Ctx, r *openReservation) {
	c.Reply.Map(5)
	command.SendText(c.Reply, "id", string(r.id))
	command.SendField(c.Reply, "database", r.db.Index())
	command.SendField(c.Reply, "age-ms", int(max(c.NowNs-r.ticket, 0)/nsPerMs))
	command.SendField(c.Reply, "timeout-ms", int(max(r.deadline-c.Now, 0)))
	c.Reply.BulkString("pairs")
	c.Reply.Array(len(r.pairs))
	for i := range r.pairs {
		p := &r.pairs[i]
		c.Reply.Array(3)
		c.Reply.BulkString(p.name)
		c.Reply.Bulk(p.key)
		c.Reply.Int(p.cost)
	}
}

// matches reports whether a pattern matches a reservation's id or one of its keys.
func (r *reservation) matches(pattern []byte) bool {
	if glob.Match(pattern, []byte(r.id), false) {
		return true
	}
	return slices.ContainsFunc(r.pairs, func(p followedPair) bool { return glob.Match(pattern, []byte(p.key), false) })
}

// reserveElsewhere is reserve by Remote.
func (l *Limits) reserveElsewhere(c *command.Ctx) {
	if namesWait(c, 2) {
		n, ok := takeNumber(c)
		if !ok {
			return
		}
		pairs := l.pairs[:n]
		defer clear(pairs)
		if o, ok := l.readReserve(c, pairs); !ok || o.wait > 0 && l.Remote.Wait(c, o.wait) {
			return
		}
	}
	l.refuseElsewhere(c)
}

// refuseElsewhere answers a command that only a headgate can do, where the state lies with another server.
func (l *Limits) refuseElsewhere(c *command.Ctx) {
	if !l.Remote.Pass(c) {
		l.Remote.Refuse(c)
	}
}

// isReservationKey reports whether a key's name is that of a reservation.
func isReservationKey(name []byte) bool {
	return len(name) > len(ReservationPrefix) && bytes.HasPrefix(name, []byte(ReservationPrefix)) && name[len(name)-1] == reservationSuffix
}
