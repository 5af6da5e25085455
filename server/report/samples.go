package report

import (
	"slices"
	"time"

	"headgate/server/command"
	"headgate/server/limits"
)

// The page shows the last 15 minutes, a sample a second.
const (
	keptSamples       = 900
	pagePeriod        = time.Second
	percentilesOfPage = 3
)

// pagePercentiles are those of the time of commands that the page shows.
var pagePercentiles = [percentilesOfPage]float64{50, 99, 99.9}

// pageSample is what happened from one sample to the next, and how things stood then.
type pageSample struct {
	At                         int64   // ms
	allowed, limited, Commands float64 // a second
	usec                       [percentilesOfPage]float64
	memory                     uint64
	keys                       int
	near                       float64 // a second, and among those that are allowed
}

// samples are those that the page shows: a ring, of which nothing is there until there is a page. The executor's lock guards it.
type samples struct {
	On    bool
	next  int64 // ns
	ring  []pageSample
	first int // of the ring, once it is full
	last  struct {
		at              int64 // ns; 0: there is none
		decisions       limits.Decisions
		commands        uint64
		times, previous command.Histogram // of all commands, then and at the sample before
	}
}

// TakeSample enters a sample, if it is time and there is a page.
func (r *Reports) TakeSample(now int64) {
	p := &r.Samples
	if !p.On || now < p.next {
		return
	}
	p.next = now + int64(pagePeriod)
	l := &p.last
	before, commands, from := l.decisions, l.commands, l.at
	l.decisions, l.commands, l.at = r.Limits.Total(), r.Stats.Processed, now
	l.previous, l.times = l.times, command.Histogram{}
	for i := range r.Stats.Commands {
		if h := r.Stats.Commands[i].Times; h != nil {
			l.times.AddAll(h)
		}
	}
	if from == 0 || now <= from {
		return
	}
	seconds := float64(now-from) / 1e9
	rate := func(now, before uint64) float64 {
		if now < before { // CONFIG RESETSTAT
			before = 0
		}
		return float64(now-before) / seconds
	}
	sample := pageSample{
		At:      now / 1e6,
		allowed: rate(l.decisions.Allowed, before.Allowed), limited: rate(l.decisions.Limited, before.Limited), Commands: rate(l.commands, commands),
		memory: r.UsedMemory(), keys: r.Keys.Stats().Keys, near: rate(l.decisions.Near, before.Near),
	}
	recent := l.times
	if recent.Subtract(&l.previous); recent.Total > 0 {
		for i, percent := range pagePercentiles {
			sample.usec[i] = float64(recent.Percentile(percent)) / 1e3
		}
	}
	if len(p.ring) < keptSamples {
		p.ring = append(p.ring, sample)
		return
	}
	p.ring[p.first] = sample
	p.first = (p.first + 1) % keptSamples
}

// Since returns the samples after a time in ms, the oldest first.
func (p *samples) Since(ms int64) []pageSample {
	all := slices.Concat(p.ring[p.first:], p.ring[:p.first])
	i, _ := slices.BinarySearchFunc(all, ms+1, func(s pageSample, ms int64) int { return int(s.At - ms) })
	return all[i:]
}
