package limits

import (
	"bytes"
	"errors"
	"strings"

	"headgate/internal/ascii"
	"headgate/server/command"
	"headgate/server/limiter"
)

const (
	// maxWritten is how long a policy may be that a call writes out, in bytes.
	maxWritten = 256
	// maxWrittenKnown is how many of these are remembered with what they stand for.
	maxWrittenKnown = 10_000
	// maxWrittenNames is how many names calls may bring by NAME. It is far below MaxCounted and what Prometheus is shown, so that whoever may call
	// limiters cannot have policies go uncounted.
	maxWrittenNames = 500
	// wordName stands before the name under which the calls of a policy are counted that is written out. It is the last but one of the words.
	wordName = "NAME"
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
	words, name, err := withoutName(limiter.Words(string(text)))
	if err != nil {
		return nil, err
	}
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
	p := newKnown(writtenPolicies, &parsed, known.countsOfWritten(name))
	known.written[string(text)] = p
	return p, nil
}

// withoutName parts the name under which calls are counted from the words of a policy that is written out; "" if it has none.
func withoutName(words [][]byte) (rest [][]byte, name string, err error) {
	last := len(words) - 1
	if last < 1 || !ascii.EqualFold(words[last-1], wordName) {
		return words, "", nil
	}
	return words[:last-1], string(words[last]), limiter.CheckName(words[last])
}

// countsOfWritten is what is counted of a policy that is written out: under the name that it brings, as long as there are not too many of these.
func (p *Policies) countsOfWritten(name string) *CountedPolicy {
	if name != "" && p.Counts.byName[name] == nil {
		if p.writtenNames == maxWrittenNames {
			name = ""
		} else {
			p.writtenNames++
		}
	}
	if name == "" {
		name = writtenPolicies
	}
	return p.Counts.Of(name)
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
