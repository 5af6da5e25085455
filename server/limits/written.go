package limits

import (
	"bytes"
	"errors"

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
)

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
	parsed, name, err := l.Algorithms.ParseWritten(words)
	if err != nil {
		return nil, err
	}
	l.watchUnits(c, parsed.PolicyDurations(words)...)
	if known.written == nil || len(known.written) >= maxWrittenKnown {
		known.written = map[string]*KnownPolicy{}
	}
	p := newKnown(writtenPolicies, &parsed, known.countsOfWritten(name))
	known.written[string(text)] = p
	return p, nil
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
	errLimiter(c, text)
}
