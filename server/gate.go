package server

import (
	"math/bits"
	"sync/atomic"
)

// gateReason is why commands may not all simply run. Reasons are bits, so that a command asks for several of them by one look.
type gateReason uint32

const (
	gateDisk     gateReason = 1 << iota // what is written could not be logged
	gateUnsaved                         // snapshots fail, and writes are to be refused then
	gateLoading                         // data are being loaded
	gateBusy                            // a script overruns
	gateMemory                          // memory has a limit: commands make room before they run
	gateShort                           // no room could be made when the running command began
	gatePaused                          // CLIENT PAUSE
	gateBlocked                         // clients wait for keys
	gateTracking                        // clients track the keys that they read
	gateMonitors                        // clients monitor
	gateTimed                           // every command is timed
	gateNoTouch                         // commands of some clients are no uses of their keys
	gatePassword                        // a client has to authenticate before it may do much
	gateReasons  = iota
)

// What is asked of the gate.
const (
	gateUnwritable = gateDisk | gateUnsaved                                // commands that write are refused
	gateRefuses    = gateUnwritable | gateLoading | gateBusy | gateMemory  // some commands are refused, or may be
	gateHolds      = gatePaused | gateBlocked                              // some clients' commands wait
	gateFrozen     = gateLoading | gateBusy | gatePaused                   // no key goes or changes by itself
	gateAttended   = gateTracking | gateMonitors | gateTimed | gateNoTouch // somebody wants more of each command than its reply
)

// gate is why commands may not all simply run now. Whoever knows a reason sets it when it begins or ends to hold, and nothing is derived
// from the reasons that would have to be worked out anew. The executor's lock guards changes and the errors; whether a reason holds may be
// asked without it.
type gate struct {
	reasons  atomic.Uint32
	refusals [gateReasons]string // by the reason's bit; empty if it does not hold, or refuses nothing
}

// has reports whether one of the reasons holds.
func (g *gate) has(reasons gateReason) bool { return gateReason(g.reasons.Load())&reasons != 0 }

// set has one reason hold or not.
func (g *gate) set(reason gateReason, holds bool) {
	if g.has(reason) != holds {
		g.reasons.Store(g.reasons.Load() ^ uint32(reason))
	}
}

// refuse has one reason hold, and what is refused for it answered with an error; an empty one ends that.
func (g *gate) refuse(reason gateReason, refusal string) {
	g.refusals[bits.TrailingZeros32(uint32(reason))] = refusal
	g.set(reason, refusal != "")
}

// refusal returns the error of one reason, or nothing if it does not hold.
func (g *gate) refusal(reason gateReason) string {
	return g.refusals[bits.TrailingZeros32(uint32(reason))]
}

// unwritable returns the error for commands that write, or nothing if they may.
func (g *gate) unwritable() string {
	if g.has(gateUnsaved) {
		return g.refusal(gateUnsaved)
	}
	return g.refusal(gateDisk)
}

// mayWriteNow reports whether the command may write, or sends the error and returns false. Only commands marked DecidesFirst have to
// ask, once they know that they are going to change something; limiters have their state ask.
func (c *Ctx) mayWriteNow() bool {
	if c.core.gate.has(gateUnwritable) {
		c.err(c.core.gate.unwritable())
		return false
	}
	return true
}
