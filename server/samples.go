package server

import (
	"slices"
	"time"
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
	at                         int64   // ms
	allowed, limited, commands float64 // a second
	usec                       [percentilesOfPage]float64
	memory                     uint64
	keys                       int
	near                       float64 // a second, and among those that are allowed
}

// samples are those that the page shows: a ring, of which nothing is there until there is a page. The executor's lock guards it.
type samples struct {
	on    bool
	next  int64 // ns
	ring  []pageSample
	first int // of the ring, once it is full
	last  struct {
		at              int64 // ns; 0: there is none
		decisions       decisions
		commands        uint64
		times, previous histogram // of all commands, then and at the sample before
	}
}

// takeSample enters a sample, if it is time and there is a page.
func (r *Reports) takeSample(now int64) {
	p := &r.samples
	if !p.on || now < p.next {
		return
	}
	p.next = now + int64(pagePeriod)
	l := &p.last
	before, commands, from := l.decisions, l.commands, l.at
	l.decisions, l.commands, l.at = r.limits.total(), r.stats.processed, now
	l.previous, l.times = l.times, histogram{}
	for i := range r.stats.commands {
		if h := r.stats.commands[i].times; h != nil {
			l.times.addAll(h)
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
		at:      now / 1e6,
		allowed: rate(l.decisions.allowed, before.allowed), limited: rate(l.decisions.limited, before.limited), commands: rate(l.commands, commands),
		memory: r.usedMemory(), keys: r.keys.Stats().Keys, near: rate(l.decisions.near, before.near),
	}
	recent := l.times
	if recent.subtract(&l.previous); recent.total > 0 {
		for i, percent := range pagePercentiles {
			sample.usec[i] = float64(recent.percentile(percent)) / 1e3
		}
	}
	if len(p.ring) < keptSamples {
		p.ring = append(p.ring, sample)
		return
	}
	p.ring[p.first] = sample
	p.first = (p.first + 1) % keptSamples
}

// since returns the samples after a time in ms, the oldest first.
func (p *samples) since(ms int64) []pageSample {
	all := slices.Concat(p.ring[p.first:], p.ring[:p.first])
	i, _ := slices.BinarySearchFunc(all, ms+1, func(s pageSample, ms int64) int { return int(s.at - ms) })
	return all[i:]
}
