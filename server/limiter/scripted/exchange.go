package scripted

import (
	"headgate/internal/respcmd"
	"headgate/server/limiter"
	"headgate/throttle"
)

// Outcome is what an answer leads to.
type Outcome uint8

// The outcomes.
const (
	Done  Outcome = iota // the answer is there
	Again                // another command has to be sent
)

// maxTries is how often a change that a script could not decide on is tried, if others change the key meanwhile. At each try somebody's
// change is made.
const maxTries = 32

// ErrContended is what a call is answered with whose tries have come to nothing. Nothing was charged.
const ErrContended = limiter.Error("UPSTREAM others changed the key each of 32 times")

// stage is what an exchange waits for.
type stage uint8

const (
	answered stage = iota // nothing: no server is needed
	deciding              // the script's decision
	loading               // the states of all keys
	swapping              // whether they were still the same
)

// exchange is how calls that are decided together are sent and answered.
type exchange struct {
	// Inline has scripts be sent whole, by EVAL, in place of their names: within a MULTI nobody could load one that is missing.
	Inline bool
	// NowMs is about the server's time, in Unix ms, for windows by the calendar. Where it is far off, or 0, such a call takes two more commands.
	NowMs int64

	stage     stage
	script    *Script
	tries     int
	list      []*asked
	err       error  // of a call that needs no server
	disagrees bool   // the script and the decision here differ
	changes   []byte // the arguments of swap.lua behind the digests
	words     int    // and how many these are
}

// start has an exchange begin.
func (e *exchange) start() {
	e.stage, e.script, e.tries, e.err, e.disagrees = answered, nil, 0, nil, false
	e.list = e.list[:0]
}

// Script is the script of the last command that was appended, for a server that does not know it.
func (e *exchange) Script() *Script { return e.script }

// Loads reports whether the last command that was appended asks for states, so that another one may have to follow its answer.
func (e *exchange) Loads() bool { return e.stage == loading }

// Disagrees reports whether the answer differs from what the script has done, which then stands. It never should.
func (e *exchange) Disagrees() bool { return e.disagrees }

// Kept returns about how many bytes are kept for the next use, which is much after a long key, or a state of many entries.
func (e *exchange) Kept() (bytes int) {
	bytes = cap(e.changes)
	for _, a := range e.list {
		bytes += cap(a.key) + cap(a.digest) + entrySize*cap(a.state) + rankSize*(cap(a.ranks)+cap(a.call.Found.Slices))
		for i := range a.state {
			bytes += len(a.state[i].member) // a part of the reply
		}
	}
	return bytes
}

// Sizes of an entry, and of a rank or a slice, in bytes.
const (
	entrySize = 32
	rankSize  = 16
)

// call appends the beginning of a call of a script and its keys.
func (e *exchange) call(dst []byte, s *Script, to stage, args int) []byte {
	e.script, e.stage = s, to
	dst = appendCall(dst, s, e.Inline, len(e.list), args)
	for _, a := range e.list {
		dst = respcmd.AppendBulk(dst, a.key)
	}
	return dst
}

// Next appends the next command, after an answer that has led to Again.
func (e *exchange) Next(dst []byte) []byte {
	if e.stage == swapping {
		dst = e.call(dst, swapScript, swapping, 2*len(e.list)+e.words)
		for _, a := range e.list {
			dst = respcmd.AppendBulk(dst, kindName(a))
			dst = respcmd.AppendBulk(dst, a.digest)
		}
		return append(dst, e.changes...)
	}
	return e.load(dst)
}

// load appends the command that asks for all states.
func (e *exchange) load(dst []byte) []byte {
	dst = e.call(dst, loadScript, loading, len(e.list))
	for _, a := range e.list {
		dst = respcmd.AppendBulk(dst, kindName(a))
	}
	return dst
}

// kindName is what load.lua and swap.lua call the kind of a call's state.
func kindName(a *asked) string {
	switch {
	case a.action != acquire:
		return "entries"
	case a.call.Policy == nil:
		return "number"
	}
	switch a.call.Policy.Algorithm.Kind {
	case limiter.Slices:
		return "slices"
	case limiter.Entries:
		return "entries"
	}
	return "number"
}

// clock reads the server's time at the beginning of a reply, in ns.
func clock(r *reply) int64 {
	seconds := r.number()
	return seconds*nsPerSecond + r.number()*1000
}

// loaded reads all states and decides by them. conclude then says which changes are to be made: it leaves the others with Keep.
func (e *exchange) loaded(text []byte, conclude func()) (Outcome, error) {
	r := reply{rest: text}
	if r.array() != 2+len(e.list) {
		return Done, ErrMalformed
	}
	now := clock(&r)
	for _, a := range e.list {
		a.prepare(now)
		err := a.readState(&r)
		switch {
		case r.bad:
			return Done, ErrMalformed
		case err != nil:
			return Done, err
		}
		if err := a.decide(); err != nil {
			return Done, err
		}
	}
	conclude()
	e.changes, e.words = e.changes[:0], 0
	for i, a := range e.list {
		e.appendChange(a, i+1)
	}
	if e.words == 0 {
		return Done, nil
	}
	e.stage = swapping
	return Again, nil
}

// swapped reads whether the changes were made.
func (e *exchange) swapped(text []byte) (Outcome, error) {
	r := reply{rest: text}
	done := r.number()
	switch e.tries++; {
	case r.bad:
		return Done, ErrMalformed
	case done == 1:
		return Done, nil
	case e.tries == maxTries:
		return Done, ErrContended
	}
	e.stage = loading
	return Again, nil
}

// writes reports whether a call's change is to be written.
func (a *asked) writes() bool { return a.call.Change.Write != throttle.Keep }
