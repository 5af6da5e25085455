package simulate

import (
	"headgate/server/limiter"
)

// Replay asks policies call by call.
type Replay struct{ r *runner }

// NewReplay makes a Replay of these policies.
func NewReplay(spare bool, texts ...string) (*Replay, error) {
	var policies []Policy
	for _, text := range texts {
		p, err := parsePolicy(text)
		if err != nil {
			return nil, err
		}
		policies = append(policies, p)
	}
	r, err := newRunner(policies, spare)
	return &Replay{r}, err
}

// Take asks for one request, and returns what each policy says.
func (p *Replay) Take(key string, ns int64) (verdicts []limiter.Verdict, err error) {
	err = p.r.take([]byte(key), ns)
	for _, one := range p.r.runs {
		verdicts = append(verdicts, one.call.Verdict)
	}
	return verdicts, err
}

// Live is how many keys have state.
func (p *Replay) Live() int { return len(p.r.ids) }

// Smallest is the smallest limit with which so many keys are never limited, by the first policy, and the policy with it.
func (p *Replay) Smallest(keys int) (limit int64, text string, spared int, err error) {
	found, limit, spared, err := p.r.runs[0].probe.smallest(keys)
	return limit, found.Text, spared, err
}

// Keys is how many keys there were, and Spared how many of them the first policy has never limited.
func (p *Replay) Keys() int { return len(p.r.calls) }

// Spared is how many keys the first policy has never limited.
func (p *Replay) Spared() (n int) {
	for _, refusals := range p.r.runs[0].refusals {
		if refusals == 0 {
			n++
		}
	}
	return n
}
