package limits

import (
	"bytes"
	"errors"
	"strings"

	"headgate/server/command"
	"headgate/server/limiter"
)

const (
	// maxWritten is how long a policy may be that a call writes out, in bytes.
	maxWritten = 256
	// maxWrittenKnown is how many of these are remembered with what they stand for.
	maxWrittenKnown = 10_000
)

// errBlockWithoutName is what a policy with BLOCK is refused with that has no name: blocks are kept by that.
const errBlockWithoutName = limiter.Error("ERR a policy with BLOCK needs a name, see RL.POLICY SET")

// writtenPolicy returns the limit that a call writes out where others have a name, as "FIXED 100 1m", or nil for what is neither: no name has a space.
// Strangers may choose such a text, so that only those that parse are remembered, and not for ever.
func (l *Limits) writtenPolicy(c *command.Ctx, text []byte) (*KnownPolicy, error) {
	if len(text) > maxWritten || bytes.IndexByte(text, ' ') < 0 {
		return nil, nil
	}
	known := &l.Policies
	if p := known.written[string(text)]; p != nil {
		return p, nil
	}
	words := limiter.Words(string(text))
	parsed, _, err := l.Algorithms.ParseText(words)
	if err != nil {
		return nil, err
	}
	if parsed.Block.Length > 0 {
		return nil, errBlockWithoutName
	}
	l.watchUnits(c, parsed.PolicyDurations(words)...)
	if known.written == nil || len(known.written) >= maxWrittenKnown {
		known.written = map[string]*KnownPolicy{}
	}
	p := newKnown(writtenPolicies, &parsed, known.Counts.Of(writtenPolicies))
	known.written[string(text)] = p
	return p, nil
}

// failPolicy sends why a policy cannot be had.
func failPolicy(c *command.Ctx, err error) {
	var text limiter.Error
	if !errors.As(err, &text) {
		c.Fail(err)
		return
	}
	errLimiter(c, limiter.Error(strings.Replace(string(text), limiter.PolicyCall, "", 1))) // there is no name here
}
