package replication

import (
	"errors"
	"math"
	"time"

	"headgate/internal/number"
	"headgate/server/command"
)

// A failover on demand has a replica take this server's place, without a change being lost: clients' writes are held back, as soon as the replica has
// acknowledged all changes this server follows it, and asks by PSYNC … FAILOVER that it go on as the primary (https://redis.io/docs/latest/commands/failover/).

// failoverState is how far a failover has come.
type failoverState uint8

const (
	failoverNone     failoverState = iota
	failoverWaits                  // for a replica to have everything
	failoverProceeds               // the replica is asked to take over
)

// String is the state in the words of INFO.
func (s failoverState) String() string {
	return [...]string{"no-failover", "waiting-for-sync", "failover-in-progress"}[s]
}

// failover is one that is under way. The executor's lock guards it.
type failover struct {
	state failoverState
	to    Address   // the replica that was named; the zero Address: any that is first to have everything
	force bool      // it takes over when the time is up, though it may lack changes
	end   time.Time // when the time is up; zero: never
	asked bool      // PSYNC … FAILOVER may be with the replica, which cannot be taken back: the time does not count any more
	over  bool      // ABORT was called since: the time counts again
	alone time.Time // since when there has been no replica that it could hand over to; zero: there is one
}

const (
	aloneTime  = 3 * time.Second  // how long writes wait for a replica that has gone to come back
	forcedTime = 10 * time.Second // how long a replica that takes over by force may take to do so
	abortTime  = time.Second      // how long ABORT waits for the answer of a replica that was asked: if it has taken over, nothing can be aborted
)

// Errors of FAILOVER, in Redis's words.
const (
	errNoFailover        = "ERR No failover in progress."
	errFailoverTimeout   = "ERR FAILOVER timeout must be greater than 0"
	errFailoverAlready   = "ERR FAILOVER already in progress."
	errFailoverReplica   = "ERR FAILOVER is not valid when server is a replica."
	errFailoverNobody    = "ERR FAILOVER requires connected replicas."
	errFailoverForce     = "ERR FAILOVER with force option requires both a timeout and target HOST and IP."
	errFailoverUnknown   = "ERR FAILOVER target HOST and PORT is not a replica."
	errFailoverOffline   = "ERR FAILOVER target replica is not online."
	errReplicaOfMeantime = "ERR REPLICAOF not allowed while failing over."
)

// Why a failover is over that was called off.
var (
	errAborted  = errors.New("FAILOVER ABORT was called")
	errNoAnswer = errors.New("FAILOVER ABORT was called, and the replica has not answered whether it has taken over: see by ROLE that there are not two primaries")
)

// errRejected is why a failover has come to nothing: the replica has said no.
var errRejected = errors.New("the replica does not take over")

func (r *Replica) failoverCommand() *command.Command {
	return &command.Command{
		Name: "failover", Group: command.GroupServer, Since: "6.2.0", Complexity: "O(1)",
		Summary: "Hand over to a replica as soon as it has all changes; writes wait until then. ABORT cancels the failover.",
		Arity:   -1, Flags: command.Admin | command.NoScript | command.Stale | command.HomeOnly,
		Args: []command.Arg{
			command.Block("target", command.Str("host"), command.Integer("port"), command.Tok("FORCE").Opt()).After("TO").Opt(),
			command.Tok("ABORT").Opt(), command.Integer("milliseconds").After("TIMEOUT").Opt(),
		},
		Reply: command.ReplySimple, Handler: r.failOver,
	}
}

// failOver implements FAILOVER [TO host port [FORCE]] [ABORT] [TIMEOUT milliseconds].
func (r *Replica) failOver(c *command.Ctx) {
	if len(c.Args) == 2 && c.Is(1, "ABORT") {
		if r.failover.state == failoverNone {
			c.Err(errNoFailover)
			return
		}
		r.abortSoon()
		c.OK()
		return
	}
	f, ok := readFailover(c)
	if !ok {
		return
	}
	if refusal := r.failoverRefusal(f); refusal != "" {
		c.Err(refusal)
		return
	}
	f.state = failoverWaits
	r.failover = f
	r.exec.HoldWrites(true)
	r.Primary.askAcks()
	r.exec.Soon()
	r.Logger.Info("failover requested: writes wait until a replica has all changes", "to", f.target())
	c.OK()
}

// target is the replica that was named, for the log.
func (f *failover) target() string {
	if f.to == (Address{}) {
		return "any replica"
	}
	return f.to.String()
}

// readFailover reads the arguments of FAILOVER, or sends the error and returns false.
func readFailover(c *command.Ctx) (f failover, ok bool) {
	timeout := int64(0)
	for i := 1; i < len(c.Args); i++ {
		left := len(c.Args) - i - 1
		switch {
		case left >= 1 && timeout == 0 && c.Is(i, "TIMEOUT"):
			if timeout, ok = c.Integer(i + 1); !ok {
				return f, false
			}
			if timeout <= 0 {
				c.Err(errFailoverTimeout)
				return f, false
			}
			f.end = time.Now().Add(time.Duration(min(timeout, math.MaxInt64/int64(2*time.Millisecond))) * time.Millisecond)
			i++
		case left >= 2 && f.to == (Address{}) && c.Is(i, "TO"):
			port, ok := number.ParseInt(c.Args[i+2])
			if !ok {
				c.Err(command.ErrNotInteger)
				return f, false
			}
			f.to = Address{string(c.Args[i+1]), int(port)}
			i += 2
		case !f.force && c.Is(i, "FORCE"):
			f.force = true
		default:
			c.Err(command.ErrSyntax)
			return f, false
		}
	}
	return f, true
}

// failoverRefusal returns why a failover cannot begin, or nothing.
func (r *Replica) failoverRefusal(f failover) string {
	named := f.to != (Address{})
	switch {
	case r.failover.state != failoverNone:
		return errFailoverAlready
	case r.follow != nil:
		return errFailoverReplica
	case len(r.Primary.feeds) == 0:
		return errFailoverNobody
	case f.force && (f.end.IsZero() || !named):
		return errFailoverForce
	case !named:
		return ""
	}
	switch to := r.Primary.find(f.to); {
	case to == nil:
		return errFailoverUnknown
	case to.state != feedOnline:
		return errFailoverOffline
	}
	return ""
}

// find returns the replica that listens at an address as it says, or nil. The caller holds the executor's lock.
func (p *Primary) find(at Address) *feed {
	for _, f := range p.feeds {
		if ip, port := f.address(); !f.ended && ip == at.Host && port == at.Port {
			return f
		}
	}
	return nil
}

// askAcks has all replicas say how far they have come. They are sent the question at once. The caller holds the executor's lock.
func (p *Primary) askAcks() {
	if p.backlog == nil {
		return
	}
	p.say(streamGetAck)
	for _, f := range p.feeds {
		if f.reader != nil {
			f.reader.Hurry()
		}
	}
}

// hasAll reports whether a replica has acknowledged every change.
func (p *Primary) hasAll(f *feed) bool {
	return f != nil && f.state == feedOnline && !f.ended && f.acked == p.backlog.End()
}

// FailoverJob has a failover that is under way go on: background work, an [exec.Job].
func (r *Replica) FailoverJob(int64) (next int64) {
	f := &r.failover
	if f.state == failoverNone {
		return 0
	}
	r.Primary.Effects.Feed()
	late := !f.end.IsZero() && time.Now().After(f.end)
	if f.state == failoverProceeds {
		switch {
		case late && f.over:
			r.abortFailover(errNoAnswer)
		case late && !f.asked:
			r.abortFailover(errors.New("the replica has not taken over in time"))
		}
		return 0
	}
	to := f.to
	if to == (Address{}) {
		for _, each := range r.Primary.feeds {
			if each.port != 0 && r.Primary.hasAll(each) { // of others it is not known where they listen
				to.Host, to.Port = each.address()
				break
			}
		}
	}
	switch {
	case to != (Address{}) && r.Primary.hasAll(r.Primary.find(to)):
		r.Logger.Info("the replica has all changes and takes over", "to", to.String())
	case late && f.force:
		f.end = time.Now().Add(forcedTime)
		r.Logger.Warn("the timeout has passed: the replica takes over although it may lack changes", "to", to.String())
	case late:
		r.abortFailover(errors.New("no replica had all changes in time"))
		return 0
	case !r.canHandOver():
		r.abortFailover(errors.New("the replica has gone"))
		return 0
	default:
		return 0
	}
	f.state, f.to = failoverProceeds, to
	r.Follow(to)
	return 0
}

// canHandOver reports whether the replica that is waited for, or any, has been there lately.
func (r *Replica) canHandOver() bool {
	f := &r.failover
	there := len(r.Primary.feeds) > 0
	if f.to != (Address{}) {
		there = r.Primary.find(f.to) != nil
	}
	switch now := time.Now(); {
	case there:
		f.alone = time.Time{}
	case f.alone.IsZero():
		f.alone = now
	default:
		return now.Sub(f.alone) < aloneTime
	}
	return true
}

// abortSoon ends the failover: at once, or when the replica has answered that was asked to take over.
func (r *Replica) abortSoon() {
	f := &r.failover
	switch {
	case !f.asked:
		r.abortFailover(errAborted)
	case !f.over:
		f.over, f.end = true, time.Now().Add(abortTime)
		r.exec.Soon()
	}
}

// abortFailover has the server go on as the primary. The caller holds the executor's lock.
func (r *Replica) abortFailover(why error) {
	f := r.failover
	r.failover = failover{}
	if f.state == failoverProceeds {
		r.Promote()
	}
	r.exec.HoldWrites(false)
	r.Logger.Warn("the failover has failed: this server remains the primary", "to", f.target(), "err", why)
}

// askToTakeOver notes that the replica is about to be asked by the link of a following, and returns an error if it may not be any more. The caller
// does not hold the executor's lock.
func (r *Replica) askToTakeOver(of *following) (err error) {
	if !r.update(of, func() {
		if r.failover.asked = true; r.failover.over {
			err = errNoAnswer // to the question of an earlier link
		}
	}) {
		err = errEnded
	}
	return err
}

// failedOver is called when the replica has taken over: held writes are answered as a replica does. The caller holds the executor's lock.
func (r *Replica) failedOver() {
	if r.failover.state == failoverProceeds {
		r.Logger.Info("the replica has taken over; this server follows it", "primary", r.failover.target(), "aborted-too-late", r.failover.over)
		r.failover = failover{}
		r.exec.HoldWrites(false)
	}
}
