package main

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"strings"

	"headgate/server/config"
	"headgate/throttle"
)

// What gateways with leases let pass, by the very code that they decide by: for a plot, and for the table of docs/operations.md.

const nsPerSecond = 1_000_000_000

// fleet is gateways that are asked about one key, and the server that has it. Time is made up, and calls come at random, but always the same.
type fleet struct {
	random  *rand.Rand
	rate    throttle.Rate
	terms   throttle.LeaseTerms
	tat     int64
	exists  bool
	now     int64 // ns since the start
	events  events
	order   int
	calls   int
	local   int // of these: decided without asking
	charges int
	passed  []int64 // when
}

// event is what happens at a time. Of two at one time the one that was made first comes first.
type event struct {
	at    int64
	order int
	do    func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// newFleet returns gateways that are asked so many times a second each, about a limit of a capacity and a rate a second.
func newFleet(gateways int, each float64, capacity, rate int64) *fleet {
	f := &fleet{random: rand.New(rand.NewPCG(1, 2))} //nolint:gosec // always the same on purpose
	var err error
	if f.rate, err = throttle.NewRate(capacity, rate, nsPerSecond); err != nil {
		panic(err)
	}
	cfg := config.Default()
	f.terms = f.rate.LeaseTerms(throttle.LeaseOptions{Overshoot: cfg.UpstreamLeaseOvershoot, Max: int64(cfg.UpstreamLeaseMax)})
	for range gateways {
		lease := &throttle.QuotaLease{}
		var next func()
		next = func() {
			f.after(int64(f.random.ExpFloat64()/each*nsPerSecond)+1, func() {
				f.call(lease)
				next()
			})
		}
		next()
		f.sweep(lease)
	}
	return f
}

// sweep gives back what was not spent of a gateway's leases, every tenth of a second.
func (f *fleet) sweep(lease *throttle.QuotaLease) {
	f.after(nsPerSecond/10, func() {
		if back := lease.Ended(&f.terms, f.clock()); back.Units > 0 {
			f.charges++
			f.after(f.message(), func() {
				if write, tat := f.rate.GiveBack(f.clock(), f.tat, f.exists, back.ChargedAt, back.Units); write != throttle.Keep {
					f.tat, f.exists = tat, write == throttle.Set
				}
			})
		}
		f.sweep(lease)
	})
}

func (f *fleet) after(ns int64, do func()) {
	f.order++
	heap.Push(&f.events, event{f.now + ns, f.order, do})
}

// run lets so many seconds go by.
func (f *fleet) run(seconds float64) {
	end := f.now + int64(seconds*nsPerSecond)
	for f.events[0].at <= end {
		e := heap.Pop(&f.events).(event)
		f.now = e.at
		e.do()
	}
	f.now = end
}

// message is how long one takes.
func (f *fleet) message() int64 { return 100_000 + f.random.Int64N(500_000) }

// call is one call for one unit, at a gateway that holds a lease.
func (f *fleet) call(lease *throttle.QuotaLease) {
	f.calls++
	switch lease.Decide(&f.terms, f.clock(), 1) {
	case throttle.LeaseSpent:
		f.local++
		f.passed = append(f.passed, f.now)
	case throttle.LeaseRefused:
		f.local++
	case throttle.LeaseAsk:
		f.charge(lease, 1)
		return
	}
	if lease.Renews(&f.terms, f.clock()) {
		f.charge(lease, 0)
	}
}

// clock is the time at the gateways and at the server.
func (f *fleet) clock() int64 { return epoch*nsPerMs + f.now }

// charge charges a call of this cost, or none, and a lease if that pays.
func (f *fleet) charge(lease *throttle.QuotaLease, cost int64) {
	var sizes [throttle.MaxLeaseSizes]int64
	sent := f.clock()
	n := lease.Sizes(&f.terms, sent, cost, &sizes)
	leases := n > 0
	if !leases {
		if cost == 0 {
			return
		}
		sizes[0], n = cost, 1
	}
	f.charges++
	f.after(f.message(), func() {
		var d throttle.Decision
		units, charged := int64(0), f.clock()
		for _, size := range sizes[:n] {
			if err := f.rate.ChargeTo(&d, charged, f.tat, f.exists, throttle.Call{Cost: size}); err != nil {
				panic(err)
			}
			if !d.Limited {
				units, f.tat, f.exists = size, d.TAT, true
				break
			}
		}
		f.after(f.message(), func() {
			if units > 0 && cost > 0 {
				f.passed = append(f.passed, f.now)
			}
			switch {
			case !leases:
			case units > 0:
				lease.Granted(&f.terms, throttle.LeaseGrant{
					Units: units - cost, Sent: sent, Heard: f.clock(), ChargedAt: charged, Remaining: d.Remaining, ResetAfter: d.ResetAfter,
				})
			default:
				lease.Refused(&f.terms, throttle.LeaseRefusal{
					Cost: sizes[n-1], Ahead: cost == 0, Heard: f.clock(), RetryAfter: d.RetryAfter, ResetAfter: d.ResetAfter, Remaining: d.Remaining,
				})
			}
		})
	})
}

// leaseRows are the limits and fleets of the table: capacity, units a second, gateways, and calls a second at each.
var leaseRows = []struct {
	capacity, rate int64
	gateways       int
	each           float64
}{
	{100, 10, 4, 2}, {100, 10, 4, 25},
	{1000, 100, 4, 20}, {1000, 100, 16, 5}, {1000, 100, 16, 20},
	{1000, 1000, 4, 200}, {1000, 1000, 20, 45}, {1000, 1000, 20, 100},
	{6000, 100, 4, 25}, {6000, 100, 4, 100}, {6000, 100, 16, 25},
	{10_000, 10_000, 4, 2000}, {10_000, 10_000, 20, 450}, {10_000, 10_000, 20, 1000},
	{100_000, 10_000, 20, 450}, {100_000, 10_000, 20, 1000},
}

// leaseTable is the table, in Markdown: of the time after the capacity is used up, if more is asked for than comes back.
func leaseTable() string {
	var b strings.Builder
	b.WriteString("| capacity | a second | a lease lasts | gateways | calls a second at each | decided without a hop | charges upstream for each call | of what may pass, passes |\n|---|---|---|---|---|---|---|---|\n")
	for _, row := range leaseRows {
		f := newFleet(row.gateways, row.each, row.capacity, row.rate)
		asked := row.each * float64(row.gateways)
		settle := 3.0
		if beyond := asked - float64(row.rate); beyond > 0 {
			settle += float64(row.capacity) / beyond
		}
		f.run(settle)
		f.calls, f.local, f.charges, f.passed = 0, 0, 0, nil
		const counted = 20.0
		f.run(counted)
		may := min(float64(f.calls), float64(row.rate)*counted)
		fmt.Fprintf(&b, "| %d | %d | %d ms | %d | %g | %.0f %% | %.2f | %.0f %% |\n", row.capacity, row.rate, f.terms.Length/nsPerMs, row.gateways, row.each,
			100*float64(f.local)/float64(f.calls), float64(f.charges)/float64(f.calls), min(100, 100*float64(len(f.passed))/may))
	}
	return b.String()
}

// The plot of leases: how much has passed beyond what has come back, by fleets that are asked for three times the rate.
const (
	leaseCapacity, leaseRate = 1000, 100
	leaseSeconds             = 20
	leaseHighest             = 1100
	leaseStep                = nsPerSecond / 10
)

var leaseFleets = []int{1, 4, 16}

// beyondRate is, for each step, how much more has passed than comes back in that time.
func beyondRate(gateways int) (points []float64) {
	f := newFleet(gateways, 3*leaseRate/float64(gateways), leaseCapacity, leaseRate)
	f.run(leaseSeconds)
	passed := 0
	for at := int64(0); at <= leaseSeconds*nsPerSecond; at += leaseStep {
		for passed < len(f.passed) && f.passed[passed] <= at {
			passed++
		}
		points = append(points, float64(passed)-float64(at)*leaseRate/nsPerSecond)
	}
	return points
}

// drawLeases renders the plot.
func drawLeases() string {
	px := func(step int) float64 { return left + float64(step)*plotWidth*leaseStep/(leaseSeconds*nsPerSecond) }
	py := func(units float64) float64 { return top + plotHeight - units*plotHeight/leaseHighest }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, "<title>Leases of RL.GCRA key 1000 100 1s by 1, 4 and 16 gateways</title>\n<style>%s.a{fill:none;stroke:#1f7a4d;stroke-width:1.4}.b{stroke-dasharray:2 2}.c{stroke-dasharray:7 3}</style>\n", style)
	for n := 0.0; n <= leaseHighest; n += 250 {
		fmt.Fprintf(&b, `<path class="g" d="M%d %.1fH%d"/><text x="%d" y="%.1f" text-anchor="end">%.0f</text>`+"\n", left, py(n), width-right, left-5, py(n)+4, n)
	}
	for second := 0; second <= leaseSeconds; second += 5 {
		at := px(second * 10)
		fmt.Fprintf(&b, `<path class="g" d="M%.1f %dV%d"/><text x="%.1f" y="%d" text-anchor="middle">%d s</text>`+"\n", at, top, top+plotHeight, at, top+plotHeight+axisLabelOffset, second)
	}
	fmt.Fprintf(&b, `<path class="l" d="M%d %.1fH%d"/>`+"\n", left, py(leaseCapacity*1.05), width-right)
	fmt.Fprintf(&b, `<path class="w" d="M%d %.1fL%.1f %.1fH%d"/>`+"\n", left, py(0), px(50), py(leaseCapacity), width-right)
	for i, gateways := range leaseFleets {
		fmt.Fprintf(&b, `<path class="a %s" d="M`, []string{"", "c", "b"}[i])
		for step, units := range beyondRate(gateways) {
			if step%2 == 0 {
				fmt.Fprintf(&b, "%.0f %.1f ", px(step), py(max(units, 0)))
			}
		}
		b.WriteString(`"/>` + "\n")
	}
	fmt.Fprintf(&b, `<text class="t" x="%d" y="%d">passed beyond 100 a second, asked for 300: 1 gateway (solid), 4 (long dashes), 16 (dots); one server (orange), the bound</text>`+"\n</svg>\n", left, captionY)
	return b.String()
}
