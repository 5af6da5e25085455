package limits

import (
	"errors"

	"headgate/server/command"
	"headgate/server/config"
	"headgate/server/limiter"
	"headgate/server/resp"
	"headgate/store"
	"headgate/throttle"
)

// Limits are the limiters of one server: what they are, the policies, and what is counted of both. The executor's lock guards it.
type Limits struct {
	*command.Core

	Algorithms *limiter.Table
	Remote     Remote             // who decides instead; nil: the state is kept here. It is set before Declarations
	gcra       *limiter.Algorithm // as what CL.THROTTLE and GCRA count
	Policies   Policies
	Top        TopKeys
	Counts     []Decisions     // by algorithm
	unlimited  *limiter.Policy // what unknown-policy allow has a missing policy stand for

	Waits    Waits
	Unlogged InMemory // what was kept although nothing could be written

	Reservations Reservations

	// Memory for one call; commands do not run within each other here.
	state state
	Asked limiter.Call
	drawn [limiter.DrawnIDLength]byte // the id of the call's lease
	pairs [maxPairs]takenPair
	ids   [maxPairs][limiter.DrawnIDLength]byte // of the pairs' leases
	name  []byte                                // of a key beside a limiter's

	digits command.IntegerText // of such a key's value

	elsewhere []Pair // of the RL.TAKE that Remote is given

	unitless map[*command.Command]bool // commands whose clients the log has told that a duration lacks its unit
}

// New returns the limiters of a server, by these algorithms.
func New(core *command.Core, algorithms *limiter.Table) *Limits {
	if algorithms == nil {
		algorithms = limiter.Standard
	}
	l := &Limits{Core: core, Algorithms: algorithms, gcra: algorithms.Find("GCRA"), Counts: make([]Decisions, len(algorithms.All()))}
	l.Waits.Counts = make([]WaitCounts, len(algorithms.All()))
	l.unlimited = &limiter.Policy{Algorithm: algorithms.Find("UNLIMITED"), Limit: -1}
	l.Asked.Found.At, l.state.unlogged = l.state.timeOf, &l.Unlogged
	l.Reservations.limits = l
	return l
}

// Apply takes a configuration into use. The caller holds the lock, or nothing runs yet.
func (l *Limits) Apply(cfg *config.Config) {
	l.Policies.apply(cfg)
	l.Waits.perServer, l.Waits.perKey = cfg.WaitMaxClients, cfg.WaitMaxPerKey
	l.policiesChanged()
	l.Top.apply(cfg, l.Clock.Mono())
}

// Declarations are the commands of limiters: one for each algorithm, and those beside them. Documentation asks without a server.
func (l *Limits) Declarations() []*command.Command {
	if l == nil {
		l = New(nil, nil)
	}
	all := []*command.Command{resetCommand(l), topCommand(l), takeCommand(l), policyCommand(l)}
	all = append(all, throttleCommands(l)...)
	all = append(all, gcraCommand(l))
	all = append(all, leaseCommands(l)...)
	all = append(all, reserveCommands(l)...)
	all = append(all, blockCommands(l)...)
	for _, a := range l.Algorithms.All() {
		if !a.PolicyOnly {
			all = append(all, l.commandOf(a))
		}
	}
	return sortedByName(all)
}

// Ask asks a limit about the key k. The answer is in l.Asked, and nothing is kept.
func (l *Limits) Ask(c *command.Ctx, k store.Key, p *limiter.Policy, r *limiter.Request) error {
	if p.Limit < 0 {
		l.Asked.Unlimited(p, r)
		return nil
	}
	l.state.open(c, k)
	l.Asked.Prepare(p, r, c.Now, c.NowNs)
	if err := l.state.Load(&l.Asked); err != nil {
		return err
	}
	return l.Asked.Decide()
}

// decide asks a limit about the key k, and keeps the key's new state. The answer is in l.Asked.
func (l *Limits) decide(c *command.Ctx, k store.Key, p *limiter.Policy, r *limiter.Request) error {
	if err := l.Ask(c, k, p, r); err != nil {
		return err
	}
	v := &l.Asked.Verdict
	if v.Draw {
		l.drawID()
	}
	if l.Asked.Change.Write == throttle.Keep {
		return nil
	}
	if err := l.state.Keep(&l.Asked); err != nil && !v.Limited {
		return err
	}
	return nil // one that limits does so all the same, and gets the expiry that it lacks another time
}

// number finds the number at the key k.
func (l *Limits) number(c *command.Ctx, k store.Key) (n int64, exists bool, err error) {
	l.state.open(c, k)
	f := &l.Asked.Found
	if err = l.state.loadNumber(f); errors.Is(err, limiter.ErrForeign) {
		err = limiter.ErrNotInteger // in Redis's words
	}
	return f.Number, f.Exists, err
}

// keepTAT does to the key of the call of number before what a decision asks for.
func (l *Limits) keepTAT(d *throttle.Decision) error {
	if d.Write == throttle.Keep {
		return nil
	}
	ch := &l.Asked.Change
	l.Asked.Policy, l.Asked.Want.Kind = nil, limiter.Number
	ch.Write, ch.Number, ch.ExpireAtMs = d.Write, d.TAT, throttle.ExpireAtMs(d.TAT)
	return l.state.Keep(&l.Asked)
}

// sendNumbers sends the five numbers of an answer.
func sendNumbers(w *resp.Writer, v *throttle.Verdict) {
	w.Ints(oneIf(v.Limited), v.Limit, v.Remaining, v.RetryAfter, v.ResetAfter)
}

// SendNumbers is SendVerdict for a limiter that has nothing beyond them.
func SendNumbers(w *resp.Writer, v *throttle.Verdict) {
	w.Array(5)
	sendNumbers(w, v)
}

// SendVerdict writes the answer of a limiter that has so much beyond the five numbers.
func SendVerdict(w *resp.Writer, beyond limiter.Beyond, v *limiter.Verdict) {
	switch beyond {
	case limiter.Nothing:
		SendNumbers(w, &v.Verdict)
	case limiter.WaitTime:
		w.Array(6)
		sendNumbers(w, &v.Verdict)
		w.Int(v.WaitMs)
	case limiter.LeaseID:
		w.Array(6)
		sendNumbers(w, &v.Verdict)
		sendID(w, v.ID)
	}
}

// oneIf is 1 for true and 0 for false.
func oneIf(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// errLimiter sends an error from package limiter.
func errLimiter(c *command.Ctx, err error) {
	var text limiter.Error
	switch {
	case errors.Is(err, limiter.ErrSyntax):
		c.Err(command.OneLine(string(limiter.UsageError(err, c.Cmd.Syntax()))))
	case errors.As(err, &text):
		c.Err(command.OneLine(string(text)))
	default:
		panic("limits: unexpected error from a limiter: " + err.Error())
	}
}
