package exec

import (
	"time"

	"headgate/server/command"
	"headgate/server/config"
)

// What tests of this package need to know of its inside.
const (
	TurnCommands   = turnCommands
	TurnReplies    = turnReplies
	TurnTime       = turnTime
	CarriedTime    = carriedTime
	AlwaysTimed    = alwaysTimed
	ContainerShare = containerShare
	HeapShare      = heapShare
	LeastHeap      = leastHeap
	SweepVisits    = sweepVisits
	GiveBackPause  = giveBackPause
	LeastPace      = leastPace
	MaxDeferred    = maxDeferred
	FirstDeferred  = firstDeferred
	MaxComing      = maxComing
)

func Share(n uint64, percent int) uint64 { return share(n, percent) }

func (x *Executor) SetJobs(jobs ...Job)                { x.above.Jobs = jobs }
func (x *Executor) SetOverloaded(f func() bool)        { x.above.Overloaded = f }
func (x *Executor) LimitMemory(cfg *config.Config)     { x.limitMemory(cfg) }
func (x *Executor) LimitHeap(outside uint64)           { x.limitHeap(outside) }
func (x *Executor) GiveBack(mono int64)                { x.giveBack(mono) }
func (x *Executor) EndTimeouts(now int64) (next int64) { return x.endTimeouts(now) }

func (x *Executor) Idle(cl *command.Client, timeout time.Duration) bool {
	return x.idle(cl, int64(timeout))
}
func (g *Garbage) Worth(used uint64, mono int64) uint64 { return g.worth(used, mono) }
func (g *Garbage) WorthFree(worth uint64, mono int64) uint64 {
	return g.worthFree(worth, mono)
}
func (g *Garbage) SetGiven(mono, took int64) { g.given, g.took = mono, took }

func (g *Garbage) KeepScriptPace(percent int, live, scanned, held uint64) {
	g.keepScriptPace(percent, goHeap{live: live, scanned: scanned, held: held})
}
func (g *Garbage) KeepPace(percent int, live, scanned, held uint64) {
	g.keepPace(percent, goHeap{live: live, scanned: scanned, held: held})
}
