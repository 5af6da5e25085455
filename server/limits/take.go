package limits

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"headgate/internal/number"
	"headgate/server/command"
	"headgate/server/config"
	"headgate/server/limiter"
	"headgate/store"
	"headgate/throttle"
)

func takeCommand(l *Limits) *command.Command {
	return &command.Command{
		Name: "rl.take", Group: command.GroupThrottle, Since: "headgate 0.1.0", Complexity: "O(n) in the number of pairs, each as its policy's algorithm",
		Summary: "Charge several limits at once: all of them, or none if any of them limits.",
		Arity:   -4, Flags: command.Write | command.DenyOOM | command.Fast | command.DecidesFirst, Keys: []command.KeySpec{{Access: "RW ACCESS UPDATE", Begin: 1, KeyNum: true, Skip: 1, Step: 2}},
		Args: []command.Arg{
			numPairsArg, pairsArg, costsArg,
			peekArg, waitArg,
		},
		Errors: slices.Concat([]string{errFewPairs, command.ErrUsage, errCostsNumber}, l.costErrors(), errorsOf(limiter.DurationErrors...), []string{string(limiter.ErrLongWait), errDuplicateKey, command.ErrNotInteger, string(limiter.ErrForeign), command.ErrWrongType}),
		Reply:  command.ReplyArray, Returns: []string{
			fiveNumbers[0], limitingPair, pairNumbers, "ids, only if a policy is an ACQUIRE: for each pair the id of its lease, or null",
		}, Handler: l.either(l.take, l.takeElsewhere),
	}
}

// costsWord stands before the cost of each pair.
const costsWord = "COSTS"

// Arguments and elements of replies of commands that charge several limits.
var (
	numPairsArg = command.Integer("numpairs").Fails(errNumPairs).Means("how many pairs of a policy and a key follow, from 1 to 128")
	pairsArg    = command.Block("pair",
		command.Str("policy").Fails(ErrNoPolicy).Means("a policy's name, or a limit in one argument, as RL.POLICY SET takes it, without BLOCK: `\"GCRA 10 5 1s\"`. NAME and a name at its end say under which its calls are counted: `\"GCRA 10 5 1s NAME search\"`"),
		command.Key("key").Means("the key that the policy limits; each only once")).Multi()
	costsArg = command.OneOf("costs",
		command.Integer("n").After(limiter.CostWord).Fails(limiter.InvalidInteger(limiter.CostWord)).Means("units to take of every pair, 1 by default"),
		command.Integer("each").After(costsWord).Multi().Fails(limiter.InvalidInteger(costsWord)).Means("units to take of each pair, one number for each")).Opt()
)

const (
	limitingPair = "index: of the first pair that limits, from 0; -1 if none does"
	pairNumbers  = "numbers: for each pair an array of its five numbers, as RL.GCRA returns them"
)

// Errors of RL.TAKE.
const (
	errNumPairs     = "ERR numpairs must be from 1 to 128, not '%s'"
	errFewPairs     = "ERR numpairs is greater than the number of pairs"
	errCostsNumber  = "ERR COSTS must give one cost for each pair"
	errDuplicateKey = "ERR duplicate key '%s'"
)

// maxPairs is how many limits one RL.TAKE may ask. Pairs are compared with each other, so the number matters squared.
const maxPairs = 128

// costErrors are those with which policies refuse a cost.
func (l *Limits) costErrors() (texts []string) {
	for _, a := range l.Algorithms.All() {
		if a.Costs != "" && !a.CommandOnly {
			texts = append(texts, string(a.Costs))
		}
	}
	return texts
}

// takenPair is one limit that RL.TAKE asks.
type takenPair struct {
	key     store.Key
	known   *KnownPolicy    // by its name
	policy  *limiter.Policy // that holds for the key: the same, or what stands in its place
	request limiter.Request
	verdict limiter.Verdict

	// Of a policy that is more than its limit.
	blockable bool
	blocks    bool  // the key may be blocked
	blocked   bool  // and it is
	shadowed  bool  // the policy would limit the call, and lets it pass
	begins    int64 // ms: for how long the key is blocked if the call is limited for good; 0: it is not
	retry     int64 // what the verdict's RetryAfter is without that

	// What is to be kept of a limit whose state is a number, once all limits have let the call pass. Others are asked again then.
	write            throttle.Write
	number, expireAt int64
}

// take implements RL.TAKE numpairs policy key [policy key …] [COST n | COSTS n …] [PEEK] [WAIT duration].
func (l *Limits) take(c *command.Ctx) {
	pairs, said, ok := l.readTake(c)
	defer clear(pairs) // they point into the input
	if !ok {
		return
	}
	if l.concernsWaits(said.wait) {
		l.answerInTurn(c, severalLimits{}, pairs, said.peek, said.wait)
		return
	}
	limiting, err := l.askAll(c, pairs, said.peek)
	switch {
	case err != nil || said.peek:
	case limiting >= 0:
		err = l.lookAtOthers(c, pairs)
	default:
		if err = l.refusalOfAny(c, pairs); err == nil {
			err = l.chargeAll(c, pairs)
		}
	}
	if err != nil {
		errLimiter(c, err)
		return
	}
	if !said.peek {
		l.beginBlocks(c, pairs)
		l.countPairs(c, pairs, limiting >= 0)
	}
	sendPairs(c, pairs, limiting)
}

// takeOptions is what stands behind the pairs of RL.TAKE, but for the costs.
type takeOptions struct {
	peek  bool
	wait  int64 // ms; 0: not at all
	costs bool  // they are given
}

// readTake reads the arguments of RL.TAKE, or sends the error and returns ok false. The pairs are to be cleared: they point into the arguments.
func (l *Limits) readTake(c *command.Ctx) (pairs []takenPair, said takeOptions, ok bool) {
	n, ok := takeNumber(c)
	if !ok {
		return nil, said, false
	}
	pairs = l.pairs[:n]
	said, ok = l.readTakeOptions(c, pairs)
	return pairs, said, ok && l.takePolicies(c, pairs, said.peek, said.costs)
}

// takeNumber reads how many pairs there are, or sends the error and returns false.
func takeNumber(c *command.Ctx) (n int64, ok bool) {
	n, ok = number.ParseInt(c.Args[1])
	if !ok || n < 1 || n > maxPairs {
		errLimiter(c, limiter.Quoting(errNumPairs, c.Args[1]))
		return 0, false
	}
	if len(c.Args) < 2+2*int(n) {
		c.Err(errFewPairs)
		return 0, false
	}
	return n, true
}

// sendPairs sends what the limits have answered. limiting is the index of the first that limits, or -1.
func sendPairs(c *command.Ctx, pairs []takenPair, limiting int) {
	leases := false
	for i := range pairs {
		leases = leases || pairs[i].policy.Algorithm.Beyond == limiter.LeaseID
	}
	c.Reply.Array(3 + int(oneIf(leases)))
	c.Reply.Int(oneIf(limiting >= 0))
	c.Reply.Int(int64(limiting))
	c.Reply.Array(len(pairs))
	for i := range pairs {
		c.Reply.Array(5)
		sendNumbers(c.Reply, &pairs[i].verdict.Verdict)
	}
	if !leases {
		return
	}
	c.Reply.Array(len(pairs))
	for i := range pairs {
		sendID(c.Reply, pairs[i].verdict.ID)
	}
}

// readTakeOptions reads what stands behind the pairs, and gives them the costs that are among it; or it sends the error and returns ok false.
func (l *Limits) readTakeOptions(c *command.Ctx, pairs []takenPair) (said takeOptions, ok bool) {
	for i := 2 + 2*len(pairs); i < len(c.Args); i++ {
		switch {
		case !said.peek && c.Is(i, "PEEK"):
			said.peek = true
		case said.wait == 0 && i+1 < len(c.Args) && c.Is(i, limiter.WaitWord):
			i++
			wait, err := limiter.ParseWait(c.Args[i])
			if err != nil {
				errLimiter(c, err)
				return said, false
			}
			said.wait = wait
		case !said.costs && (c.Is(i, limiter.CostWord) || c.Is(i, costsWord)):
			if i, ok = readCosts(c, i, pairs); !ok {
				return said, false
			}
			said.costs = true
		default:
			l.strayOption(c, i, pairs, takeWords)
			return said, false
		}
	}
	return said, true
}

// Options of RL.TAKE and RL.RESERVE.
var (
	costWords    = []limiter.Expected{{Token: limiter.CostWord, Value: true, Or: costsWord}, {Token: costsWord, Value: true, Or: limiter.CostWord}}
	takeWords    = slices.Concat(costWords, limiter.CallWords)
	reserveWords = append(costWords[:2:2], limiter.Expected{Token: ttlWord, Value: true}, limiter.Expected{Token: idWord, Value: true}, limiter.Expected{Token: limiter.WaitWord, Value: true})
)

// strayOption sends the error for args[i], which cannot stand where an option behind the pairs is expected.
func (l *Limits) strayOption(c *command.Ctx, i int, pairs []takenPair, expected []limiter.Expected) {
	n, place := len(pairs), ""
	switch {
	case i == 2+2*n && n == 1:
		place = " after 1 pair"
	case i == 2+2*n:
		place = fmt.Sprintf(" after %d pairs", n)
	case c.Is(i-1-n, costsWord):
		if _, more := number.ParseInt(c.Args[i]); more {
			c.Err(errCostsNumber)
			return
		}
		place = " after COSTS with one number for each pair"
	}
	for p := range pairs { // of which one may be a limit without its quotes
		if word := c.Args[2+2*p]; i == 2+2*n && l.Algorithms.Find(string(word)) != nil {
			place += fmt.Sprintf(`; a limit is one argument: quote it in full, as in "%s …"`, word)
			break
		}
	}
	errLimiter(c, limiter.StrayWord(c.Args[i], i+1 == len(c.Args), place, expected))
}

// readCosts reads COST and the pairs' cost, or COSTS and each pair's, from args[i] on. It returns the index of the last one, or sends the error
// and returns false.
func readCosts(c *command.Ctx, i int, pairs []takenPair) (last int, ok bool) {
	token, each := limiter.CostWord, 0
	if c.Is(i, costsWord) {
		token, each = costsWord, 1
	}
	last = i + 1 + each*(len(pairs)-1)
	switch {
	case last < len(c.Args):
	case each > 0:
		c.Err(errCostsNumber)
		return 0, false
	default:
		errLimiter(c, limiter.LacksValue(token))
		return 0, false
	}
	for p := range pairs {
		at := i + 1 + each*p
		cost, ok := number.ParseInt(c.Args[at])
		switch {
		case ok:
		case each > 0 && isTakeOption(c, at):
			c.Err(errCostsNumber)
			return 0, false
		default:
			errLimiter(c, limiter.Quoting(limiter.InvalidInteger(token), c.Args[at]))
			return 0, false
		}
		pairs[p].request.Call.Cost = cost
	}
	return last, true
}

// isTakeOption reports whether args[i] is an option of RL.TAKE or RL.RESERVE, which stands where a cost should if there are too few.
func isTakeOption(c *command.Ctx, i int) bool {
	return slices.ContainsFunc(slices.Concat(takeWords, reserveWords), func(e limiter.Expected) bool { return c.Is(i, e.Token) })
}

// integerAfter parses args[i], which stands behind a token, as a whole number, or sends the error and returns false.
func integerAfter(c *command.Ctx, token string, i int) (n int64, ok bool) {
	if n, ok = number.ParseInt(c.Args[i]); !ok {
		errLimiter(c, limiter.Quoting(limiter.InvalidInteger(token), c.Args[i]))
	}
	return n, ok
}

// takePolicies finds the pairs' limits and keys, and their costs unless these are given, or sends the error and returns false.
func (l *Limits) takePolicies(c *command.Ctx, pairs []takenPair, peek, given bool) bool {
	for i := range pairs {
		pairs[i].key = c.Key(3 + 2*i)
		for _, other := range pairs[:i] {
			if other.key.Hash == pairs[i].key.Hash && bytes.Equal(other.key.Name, pairs[i].key.Name) {
				c.Errf(errDuplicateKey, limiter.Shown(other.key.Name))
				return false
			}
		}
	}
	logged := int64(0)
	for i := range pairs {
		name := c.Args[2+2*i]
		p, err := l.policy(c, name)
		switch {
		case err != nil:
			failPolicy(c, err)
			return false
		case p == nil && c.Cfg.UnknownPolicy == config.UnknownPolicyAllow:
			p = &KnownPolicy{Policy: l.unlimited, Name: missingPolicies, counts: l.Policies.Counts.Of(missingPolicies)}
		case p == nil:
			errUnknownPolicy(c, name)
			return false
		}
		if !given {
			pairs[i].request.Call.Cost = p.Algorithm.CostUnsaid(peek)
		}
		if err := p.RefuseCost(pairs[i].request.Call.Cost); err != nil {
			errLimiter(c, err)
			return false
		}
		pairs[i].known, pairs[i].policy = p, p.Policy
		if p.has(c.DB) {
			pairs[i].blockable, pairs[i].blocks = true, p.except.blocks
			pairs[i].policy = l.override(c, p, pairs[i].key.Name)
		}
		cost := pairs[i].request.Call.Cost
		if p.Algorithm.Returns == limiter.ReturnEntries && cost > 0 && cost <= pairs[i].policy.Limit {
			logged += min(cost, math.MaxInt64-logged)
		}
	}
	if logged > limiter.MaxLogCost {
		errLimiter(c, limiter.ErrLogCost)
		return false
	}
	return true
}

// askAll asks every limit without charging any, and returns the index of the first that limits, or -1. The answers are those of a peek, but
// for numbers that are not only peeked at.
func (l *Limits) askAll(c *command.Ctx, pairs []takenPair, peek bool) (limiting int, err error) {
	limiting = -1
	for i := range pairs {
		p := &pairs[i]
		p.request.Call.Peek = peek || p.policy.Algorithm.Kind != limiter.Number
		if err := l.askPair(c, p); err != nil {
			return 0, err
		}
		if p.verdict.Limited && limiting < 0 {
			limiting = i
		}
	}
	return limiting, nil
}

// askPair asks a limit, and notes what it answers.
func (l *Limits) askPair(c *command.Ctx, p *takenPair) error {
	if p.blockable {
		return l.askBlockable(c, p)
	}
	return l.askLimit(c, p)
}

// askLimit is askPair for the limit alone.
func (l *Limits) askLimit(c *command.Ctx, p *takenPair) error {
	if err := l.Ask(c, p.key, p.policy, &p.request); err != nil {
		return err
	}
	ch := &l.Asked.Change
	p.verdict = l.Asked.Verdict
	p.write, p.number, p.expireAt = ch.Write, ch.Number, ch.ExpireAtMs
	return nil
}

// countPairs counts what the limits have answered. When one limits, those that would have let the call pass have decided nothing.
func (l *Limits) countPairs(c *command.Ctx, pairs []takenPair, limited bool) {
	for i := range pairs {
		p := &pairs[i]
		switch v := &p.verdict; {
		case p.request.Call.Cost <= 0:
		case p.shadowed:
			l.shadowed(c, p.known.counts, p.key, p.policy.Algorithm)
		case v.Limited == limited:
			l.decidedBy(c, p.known.counts, p.key, p.policy.Algorithm, &v.Verdict)
		}
	}
}

// refusalOfAny returns why one of the limits could not keep what it would be charged, or nil. Only where memory is short, or the disk, or nothing is
// to be written, may one be refused after another has been charged, so that only there it looks.
func (l *Limits) refusalOfAny(c *command.Ctx, pairs []takenPair) error {
	if !c.Core.Gate.Has(command.GateChanges) {
		return nil
	}
	for i := range pairs {
		p := &pairs[i]
		if p.shadowed {
			continue
		}
		request := p.request
		request.Call.Peek = false
		if err := l.Ask(c, p.key, p.policy, &request); err != nil {
			return err
		}
		if refusal := l.state.refusal(&l.Asked, len(pairs)); refusal != nil {
			return refusal
		}
	}
	return nil
}

// chargeAll charges every limit after askAll, which none of them has limited: keys are different from each other, so the answers are
// still right. It returns an error, before anything is charged, if nothing can be kept.
func (l *Limits) chargeAll(c *command.Ctx, pairs []takenPair) error {
	for i := range pairs {
		p := &pairs[i]
		if p.shadowed {
			_ = l.keepPair(c, p) // as of a pair that limits, below
			continue
		}
		if p.request.Call.Peek {
			p.request.Call.Peek = false
			if err := l.decide(c, p.key, p.policy, &p.request); err != nil {
				return err
			}
			if p.verdict = l.Asked.Verdict; p.verdict.Draw {
				p.verdict.ID = append(l.ids[i][:0], p.verdict.ID...)
			}
			continue
		}
		if err := l.keepPair(c, p); err != nil {
			return err
		}
	}
	return nil
}

// keepPair keeps what the decision on a number has noted.
func (l *Limits) keepPair(c *command.Ctx, p *takenPair) error {
	if p.write == throttle.Keep {
		return nil
	}
	l.state.open(c, p.key)
	l.Asked.Policy, l.Asked.Want.Kind = p.policy, limiter.Number
	l.state.find(&l.Asked.Found)
	ch := &l.Asked.Change
	ch.Write, ch.Number, ch.ExpireAtMs = p.write, p.number, p.expireAt
	return l.state.Keep(&l.Asked)
}

// lookAtOthers has the limits that do not limit answer as to a peek, since they have charged nothing. Those that do may have something to
// keep all the same: counters get the expiry that they lack, or they would limit for ever.
func (l *Limits) lookAtOthers(c *command.Ctx, pairs []takenPair) error {
	for i := range pairs {
		p := &pairs[i]
		if p.verdict.Limited || p.shadowed {
			_ = l.keepPair(c, p) // another time
			continue
		}
		p.request.Call.Peek = true
		if err := l.askPair(c, p); err != nil {
			return err
		}
	}
	return nil
}
