package simulate

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"

	"headgate/internal/quoting"
	"headgate/server/limiter"
	"headgate/throttle"
)

// maxPolicies is how many policies one run compares.
const maxPolicies = 32

// Policy is a limit to try, and its name if it has one.
type Policy struct {
	Name string
	Text string // in its canonical form

	limit limiter.Policy
}

func (p *Policy) String() string {
	if p.Name != "" {
		return p.Name + ": " + p.Text
	}
	return p.Text
}

// errLease is why a policy of leases is not simulated.
var errLease = errors.New("a log does not say when a lease is given back")

// parsePolicy reads an algorithm and its words. With errLease it returns the policy, too.
func parsePolicy(text string) (p Policy, err error) {
	if p.limit, p.Text, err = limiter.Standard.ParseText(limiter.Words(text)); err != nil {
		why := strings.Replace(strings.TrimPrefix(err.Error(), "ERR "), limiter.PolicyCall, "", 1) // which is not what was typed
		return p, fmt.Errorf("policy %q: %s", text, why)
	}
	if p.limit.Algorithm.Beyond == limiter.LeaseID {
		return p, fmt.Errorf("policy %q: %w", text, errLease)
	}
	return p, nil
}

// readPolicies reads a file of policies: one in a line, or `policy <name> <words>` as in the server's configuration, of which other
// directives are left out. What begins with # says nothing. Policies of leases are skipped: a server's file may well have some.
func readPolicies(path string) (list, skipped []Policy, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	lines := strings.Split(string(text), "\n")
	directive := func(line string) bool {
		words := strings.Fields(line)
		return len(words) > 2 && strings.EqualFold(words[0], "policy")
	}
	configuration := slices.ContainsFunc(lines, directive)
	for i, line := range lines {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || configuration && !directive(line) {
			continue
		}
		name := ""
		if configuration { // where the limit, or each of its words, may be in quotes
			words, err := quoting.Split(line)
			if err == nil && len(words) < 2 { // a vertical tab, or a blank of Unicode's, ends no word there
				err = errors.New("blanks that separate no words")
			}
			if err != nil {
				return nil, nil, fmt.Errorf("%s:%d: %w", path, i+1, err)
			}
			name, line = words[1], strings.Join(words[2:], " ")
		}
		p, err := parsePolicy(line)
		p.Name = name
		switch {
		case errors.Is(err, errLease):
			skipped = append(skipped, p)
		case err != nil:
			return nil, nil, fmt.Errorf("%s:%d: %w", path, i+1, err)
		default:
			list = append(list, p)
		}
	}
	switch {
	case len(list) == 0 && len(skipped) > 0:
		return nil, nil, fmt.Errorf("%s has only policies of leases: %w", path, errLease)
	case len(list) == 0:
		return nil, nil, fmt.Errorf("%s has no policies", path)
	}
	return list, skipped, nil
}

// withLimit is the same policy with another limit or capacity, and with all else as it is.
func (p *Policy) withLimit(limit int64) (Policy, error) {
	words := strings.Fields(p.Text)
	words[1] = strconv.FormatInt(limit, 10)
	return parsePolicy(strings.Join(words, " "))
}

// limits reports whether there is a limit to look for.
func (p *Policy) limits() bool {
	return p.limit.Limit >= 0 && p.limit.Algorithm.Kind != limiter.NoState
}

// gate is a policy with the state of its keys.
type gate struct {
	policy  *limiter.Policy
	request limiter.Request
	call    limiter.Call
	state   *memory
}

func newGate(p *limiter.Policy) *gate {
	g := &gate{policy: p, state: newMemory(p)}
	g.request.Call = throttle.Call{Cost: 1}
	return g
}

// ask asks for one request of a key at an instant. The answer is in call.
func (g *gate) ask(id int32, ns int64) error {
	if g.policy.Limit < 0 {
		g.call.Unlimited(g.policy, &g.request)
		return nil
	}
	g.state.id = id
	if rest := g.state.rest(ns / nsPerMs); rest > 0 {
		g.call.Verdict = limiter.Verdict{Verdict: throttle.Verdict{Limited: true, Limit: g.policy.Limit, RetryAfter: rest}}
		return nil
	}
	g.call.Prepare(g.policy, &g.request, ns/nsPerMs, ns)
	if err := g.state.Load(&g.call); err != nil {
		return err
	}
	if err := g.call.Decide(); err != nil {
		return err
	}
	if g.call.Verdict.StartsBlock(g.request.Call.Cost) {
		g.state.begin(ns / nsPerMs)
	}
	return g.state.Keep(&g.call)
}

var errNoProbe = errors.New("no larger limit is taken")

// probeLimit is the limit of a probe, if the policy takes one that large.
const probeLimit = 1 << 40

// probe is a policy with a limit that nobody reaches. What a key uses of it at most is the smallest limit that would have let all of it pass:
// as long as nothing is refused, what a limiter knows of a key does not depend on the limit.
type probe struct {
	*gate
	of     *Policy
	byRate bool
	needs  []int64 // of each key ever seen
}

func newProbe(p *Policy) (*probe, error) {
	for limit := int64(probeLimit); limit > p.limit.Limit; limit /= 2 {
		if large, err := p.withLimit(limit); err == nil {
			return &probe{gate: newGate(&large.limit), of: p, byRate: p.limit.Rate != throttle.Rate{}}, nil
		}
	}
	return nil, fmt.Errorf("policy %q: %w", p.Text, errNoProbe)
}

// ask asks for one request, and notes what the key has needed.
func (p *probe) ask(id int32, ever uint32, ns int64) error {
	if err := p.gate.ask(id, ns); err != nil {
		return err
	}
	need := p.call.Verdict.Limit - p.call.Verdict.Remaining
	if p.call.Verdict.Limited {
		need = probeLimit
	}
	if p.byRate {
		// Of a rate, how far ahead of the time the key was before: limits are rounded, and this is not.
		if need = 0; p.call.Found.Exists {
			need = max(0, p.call.Found.Number-ns)
		}
	}
	p.needs[ever] = max(p.needs[ever], need)
	return nil
}

// smallest is the smallest limit that never limits so many of the keys, and how many these are.
func (p *probe) smallest(keys int) (found Policy, limit int64, spared int, err error) {
	sorted := slices.Sorted(slices.Values(p.needs))
	need := int64(0)
	if keys > 0 {
		need = sorted[keys-1]
	}
	low, high := int64(1), p.policy.Limit // the answer is above low-1, and not above high
	for p.byRate && low < high {
		middle := low + (high-low)/2
		passes, err := p.passes(middle, need)
		if err != nil {
			return found, 0, 0, err
		}
		if passes {
			high = middle
		} else {
			low = middle + 1
		}
	}
	if limit = max(low, need); p.byRate {
		limit = low
	}
	spared = sort.Search(len(sorted), func(i int) bool {
		passes := sorted[i] <= limit
		if p.byRate {
			passes, _ = p.passes(limit, sorted[i]) // a limit that has been tried
		}
		return !passes
	})
	found, err = p.of.withLimit(limit)
	return found, limit, spared, err
}

// passes reports whether a capacity lets a request of a key pass that is so far ahead of the time.
func (p *probe) passes(capacity, ahead int64) (bool, error) {
	at, err := p.of.withLimit(capacity)
	if err != nil {
		return false, err
	}
	const now = 1_000_000_000 * nsPerSecond
	g := newGate(&at.limit)
	g.state.room(1)
	g.state.numbers[0], g.state.expireAt[0] = now+ahead, limiter.Forever
	err = g.ask(0, now)
	return !g.call.Verdict.Limited, err
}
