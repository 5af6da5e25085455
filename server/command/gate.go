package command

import (
	"math/bits"
	"sync/atomic"
)

// GateReason is why commands may not all simply run. Reasons are bits, so that a command asks for several of them by one look.
type GateReason uint32

// The reasons, and how many they are.
const (
	GateDisk      GateReason = 1 << iota // what is written could not be logged
	GateRoom                             // the log has no room for what the running command may change, though it may have some for others
	GateUnsaved                          // snapshots fail, and writes are to be refused then
	GateLoading                          // data are being loaded
	GateBusy                             // a script overruns
	GateMemory                           // memory has a limit: commands make room before they run
	GateShort                            // no room could be made when the running command began
	GatePaused                           // CLIENT PAUSE
	GateBlocked                          // clients wait for keys
	GateTracking                         // clients track the keys that they read
	GateMonitors                         // clients monitor
	GateTimed                            // every command is timed
	GateNoTouch                          // commands of some clients are no uses of their keys
	GatePassword                         // a client has to authenticate before it may do much
	GateDeferred                         // commands are to be answered later
	GateFollows                          // a primary is followed: keys go when it says so
	GateReadOnly                         // and clients are not to write
	GateStale                            // and what there is may be old, and is not to be read
	GateOwnWrites                        // and clients may write all the same
	GateUnsynced                         // and its data have not come yet
	GateMoved                            // and clients are sent on to it
	GateReplicas                         // too few replicas are near enough for clients to write
	GateCrowded                          // few addresses of the keyspace are left: each command is asked how many it may need
	GateReasons   = iota
)

// What is asked of the gate.
const (
	GateUnwritable = GateDisk | GateUnsaved | GateRoom                                                                          // commands that write are refused
	GateRefuses    = GateUnwritable | GateLoading | GateBusy | GateMemory | GateReadOnly | GateStale | GateMoved | GateReplicas // some commands are refused, or may be
	GateNoWrites   = GateReadOnly | GateReplicas                                                                                // commands that write are refused to clients, whatever may be logged
	GateHolds      = GatePaused | GateBlocked | GateDeferred                                                                    // some clients' commands wait
	GateHalts      = GateLoading | GateBusy | GatePaused                                                                        // nothing changes keys, not even a primary
	GateFrozen     = GateHalts | GateFollows                                                                                    // no key expires or is evicted
	GateAttended   = GateTracking | GateMonitors | GateTimed | GateNoTouch | GatePaused | GateOwnWrites | GateCrowded           // somebody wants more of each command than its reply
	GateChanges    = GateUnwritable | GateShort | GateNoWrites | GateCrowded                                                    // what a limiter has decided on may be refused
)

// Gate is why commands may not all simply run now. Whoever knows a reason sets it when it begins or ends to hold, and nothing is derived
// from the reasons that would have to be worked out anew. The executor's lock guards changes and the errors; whether a reason holds may be
// asked without it.
type Gate struct {
	reasons  atomic.Uint32
	refusals [GateReasons]string // by the reason's bit; empty if it does not hold, or refuses nothing
}

// Has reports whether one of the reasons holds.
func (g *Gate) Has(reasons GateReason) bool { return GateReason(g.reasons.Load())&reasons != 0 }

// Set has one reason hold or not.
func (g *Gate) Set(reason GateReason, holds bool) {
	if g.Has(reason) != holds {
		g.reasons.Store(g.reasons.Load() ^ uint32(reason))
	}
}

// Refuse has one reason hold, and what is refused for it answered with an error; an empty one ends that.
func (g *Gate) Refuse(reason GateReason, refusal string) {
	g.refusals[bits.TrailingZeros32(uint32(reason))] = refusal
	g.Set(reason, refusal != "")
}

// Refusal returns the error of one reason, or nothing if it does not hold.
func (g *Gate) Refusal(reason GateReason) string {
	return g.refusals[bits.TrailingZeros32(uint32(reason))]
}

// Unwritable returns the error for commands that write, or nothing if they may.
func (g *Gate) Unwritable() string {
	for _, reason := range [...]GateReason{GateUnsaved, GateDisk} {
		if g.Has(reason) {
			return g.Refusal(reason)
		}
	}
	return g.Refusal(GateRoom)
}

// NoWrites returns the error for clients that write and may not, or nothing if they may.
func (g *Gate) NoWrites() string {
	if g.Has(GateReplicas) {
		return g.Refusal(GateReplicas)
	}
	return g.Refusal(GateReadOnly)
}

// MayWriteNow reports whether the command may write, or sends the error and returns false. Only commands marked DecidesFirst have to
// ask, once they know that they are going to change something; limiters have their state ask.
func (c *Ctx) MayWriteNow() bool {
	gate := &c.Core.Gate
	switch {
	case gate.Has(GateUnwritable):
		c.Err(gate.Unwritable())
	case gate.Has(GateNoWrites) && !c.Client.Primary:
		c.Err(gate.NoWrites())
	default:
		return true
	}
	return false
}
