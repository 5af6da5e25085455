package report

import (
	"slices"
	"strings"

	"headgate/server/limiter"
	"headgate/server/limits"

	"github.com/prometheus/client_golang/prometheus"
)

// exceptions is how many keys are blocked, and have words of their own, by their policies.
type exceptions struct{ blocked, overridden map[string]int }

// exceptions adds up the keys of all databases, those past their time but not yet removed among them. It takes the executor's lock for one database after
// the other.
func (r *Reports) exceptions() (e exceptions) {
	e.blocked, e.overridden = map[string]int{}, map[string]int{}
	for i := range r.Keys.Databases() {
		r.locked(func() {
			r.Keys.DB(i).ReservedLabels(func(label string, keys int) {
				if policy, found := strings.CutPrefix(label, limits.BlockPrefix); found {
					e.blocked[policy] += keys
				} else if policy, found := strings.CutPrefix(label, limits.OverridePrefix); found {
					e.overridden[policy] += keys
				}
			})
		})
	}
	return e
}

// policies are the names of policies in the order in which their series are sent: first those that were used first, maxPolicySeries at most, then all others
// with exceptions. Of a gateway there are none: its upstream keeps the keys.
func (m *Collector) policies(e exceptions) (names []string) {
	if m.Gateway != nil {
		return nil
	}
	m.locked(func() {
		list := m.Limits.Policies.Counts.List
		for _, counted := range list[:min(len(list), maxPolicySeries)] {
			if limiter.CheckName([]byte(counted.Name)) == nil {
				names = append(names, counted.Name)
			}
		}
	})
	seen, others := map[string]bool{}, []string(nil)
	for _, name := range names {
		seen[name] = true
	}
	for _, keys := range []map[string]int{e.blocked, e.overridden} {
		for name := range keys {
			if !seen[name] {
				seen[name], others = true, append(others, name)
			}
		}
	}
	slices.Sort(others)
	return append(names, others...)
}

// collectExceptions sends the numbers of keys, also where they are 0: a series that ended with its last key would leave graphs and alerts with what it was.
// Of policies beyond maxPolicySeries it sends the sum.
func (m *Collector) collectExceptions(out chan<- prometheus.Metric) {
	e := m.exceptions()
	names := m.policies(e)
	own := min(len(names), maxPolicySeries)
	for _, kind := range []struct {
		family *family
		keys   map[string]int
	}{{policyBlocked, e.blocked}, {policyOverridden, e.overridden}} {
		for _, policy := range names[:own] {
			kind.family.send(out, float64(kind.keys[policy]), policy)
		}
		if own < len(names) {
			others := 0
			for _, policy := range names[own:] {
				others += kind.keys[policy]
			}
			kind.family.send(out, float64(others), limits.OtherPolicies)
		}
	}
}

// pageBlocked is a key that was blocked.
type pageBlocked struct {
	Key    pageKey `json:"key"`
	Policy string  `json:"policy"`
	At     int64   `json:"at"`    // ms
	Until  int64   `json:"until"` // ms
}

// lastBlocked reads the keys that were blocked last.
func (r *Reports) lastBlocked() []pageBlocked {
	list := []pageBlocked{}
	r.locked(func() {
		for _, b := range r.Limits.LastBlocked() {
			list = append(list, pageBlocked{keyForPage(b.Key, b.Long, b.DB), b.Policy, b.At, b.Until})
		}
	})
	return list
}
