package main

import (
	"slices"

	"headgate/throttle"
)

// A limiter answers one request at now (ms): when it passes, and whether it does. Only a queue lets a request pass later.
type limiter func(now int64) (passes int64, ok bool)

// subject is one plot.
type subject struct {
	name    string // of the file
	title   string
	limiter func() limiter
	bound   int    // what the line is compared with
	span    int64  // ms: the line counts what has passed in so long
	line    string // what the line means
}

// epoch is when the plots begin, in Unix ms; a multiple of the window.
const epoch = 1_700_000_000_000

var one = throttle.Call{Cost: 1}

const inWindow = "passed in the last 10 s"

var subjects = []subject{
	{"gcra", "RL.GCRA key 20 20 10s", newGCRA, limit, window, inWindow},
	{"queue", "RL.QUEUE key 20 20 10s", newQueue, limit, window, inWindow},
	{"fixed", "RL.FIXED key 20 10s ALIGNED", newFixed, limit, window, inWindow},
	{"sliding", "RL.SLIDING key 20 10s", newSliding, limit, window, inWindow},
	{"log", "RL.LOG key 20 10s", newLog, limit, window, inWindow},
	{"acquire", "RL.ACQUIRE key 4 30s, each held for 2 s", newLeases, holders, heldFor, "held at once"},
}

// gcra is a key that GCRA decides about.
type gcra struct {
	throttle.Rate
	tat    int64
	exists bool
}

func (g *gcra) charge(nowNs int64) (wait int64, ok bool) {
	wait = g.Wait(nowNs, g.tat, g.exists)
	var d throttle.Decision
	err := g.ChargeTo(&d, nowNs, g.tat, g.exists, one)
	if err != nil {
		panic(err)
	}
	if d.Write == throttle.Set {
		g.tat, g.exists = d.TAT, true
	}
	return wait, !d.Limited
}

const nsPerMs = 1_000_000

func newGCRAKey() *gcra {
	decider, err := throttle.NewRate(limit, limit, window*nsPerMs)
	if err != nil {
		panic(err)
	}
	return &gcra{Rate: decider}
}

func newGCRA() limiter {
	key := newGCRAKey()
	return func(now int64) (int64, bool) {
		_, ok := key.charge((epoch + now) * nsPerMs)
		return now, ok
	}
}

func newQueue() limiter {
	key := newGCRAKey()
	return func(now int64) (int64, bool) {
		wait, ok := key.charge((epoch + now) * nsPerMs)
		return now + throttle.Millis(wait), ok
	}
}

func newFixed() limiter {
	var state throttle.FixedState
	return func(now int64) (int64, bool) {
		f := throttle.Fixed{Limit: limit, EndMs: throttle.AlignedEnd(epoch+now, window)}
		d := f.Decide(epoch+now, state, one)
		if d.Write == throttle.Set {
			state = throttle.FixedState{Count: d.Count, ExpireAtMs: d.ExpireAtMs, Exists: true}
		}
		return now, !d.Limited
	}
}

// defaultSlices is what RL.SLIDING takes without SLICES.
const defaultSlices = 10

func newSliding() limiter {
	s := throttle.NewSliding(limit, window, defaultSlices)
	held := make(map[int64]int64) // the beginning of a slice -> its count
	return func(now int64) (int64, bool) {
		counts := make([]int64, s.Counts())
		for start, count := range held {
			if i, ok := s.Index(epoch+now, start); ok {
				counts[i] += count
			}
		}
		d := s.Decide(epoch+now, counts, one)
		if d.Write == throttle.Set {
			held[s.StartOf(epoch+now, 0)] = counts[0]
		}
		return now, !d.Limited
	}
}

func newLog() limiter {
	l := throttle.Log{Limit: limit, Window: window}
	var entries []int64
	return func(now int64) (int64, bool) {
		for len(entries) > 0 && entries[0] <= l.Since(epoch+now) {
			entries = entries[1:]
		}
		d := l.Decide(epoch+now, int64(len(entries)), func(i int64) int64 { return entries[i] }, one)
		for range d.Add {
			entries = append(entries, epoch+now)
		}
		return now, !d.Limited
	}
}

// The concurrency limit's: requests take some time, and give their leases back.
const (
	holders  = 4
	leaseTTL = 30_000 // ms
	heldFor  = 2_000  // ms
)

func newLeases() limiter {
	l := throttle.Leases{Limit: holders, TTL: leaseTTL}
	var released, ends []int64
	return func(now int64) (int64, bool) {
		for len(released) > 0 && released[0] <= epoch+now {
			released, ends = released[1:], ends[1:]
		}
		state := throttle.LeasesState{Held: int64(len(ends))}
		if len(ends) > 0 {
			state.Last = slices.Max(ends)
		}
		v := l.Acquire(epoch+now, state, func(i int64) int64 { return ends[i] }, throttle.Call{Cost: 1})
		if v.Write == throttle.Set {
			released, ends = append(released, epoch+now+heldFor), append(ends, epoch+now+l.TTL)
		}
		return now, !v.Limited
	}
}
