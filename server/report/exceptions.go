package report

import (
	"strings"

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
	r.locked(func() {
		for _, counted := range r.Limits.Policies.Counts.List { // so that a series goes back to 0 with its last key, and does not end
			if counted.Blocks > 0 && counted.Name != limits.OtherPolicies {
				e.blocked[counted.Name] += 0
			}
		}
	})
	return e
}

// collectExceptions sends the numbers of keys. Of policies beyond maxPolicySeries it sends the sum.
func (m *Collector) collectExceptions(out chan<- prometheus.Metric) {
	e := m.exceptions()
	for _, kind := range []struct {
		family *family
		keys   map[string]int
	}{{policyBlocked, e.blocked}, {policyOverridden, e.overridden}} {
		others, sent := 0, 0
		for policy, n := range kind.keys {
			if sent++; sent > maxPolicySeries {
				others += n
				continue
			}
			kind.family.send(out, float64(n), policy)
		}
		if others > 0 {
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
		for _, b := range r.Limits.Policies.Blocked.List() {
			list = append(list, pageBlocked{keyForPage(b.Key, b.Long, b.DB), b.Policy, b.At, b.Until})
		}
	})
	return list
}
