package throttle

import "math"

// Terms are what a decision of GCRA or Rate compares, and do not depend on the state: so the comparison may be made elsewhere, next to the
// state. With now, the stored TAT or now where that is later, and
//
//	newTAT = max(now, max(now, TAT) + Charge)
//
// the call is limited when newTAT is later than now + Tolerance. Otherwise newTAT is stored, or the key deleted where newTAT is now; but a
// Charge of 0 stores nothing.
type Terms struct {
	Charge    int64 // ns; below 0 for a call that gives back
	Tolerance int64 // ns; below 0: the call is limited whatever is stored
}

// never limits every call.
const never = -1

// Terms returns what a call for so many units compares. It is false where DecideTo would return an error whatever is stored.
func (g *GCRA) Terms(quantity int64) (Terms, bool) {
	charge, ok := mul(g.interval, quantity)
	switch {
	case g.interval == 0 || !ok:
		return Terms{}, false
	case g.interval < 0:
		return Terms{Tolerance: never}, true
	}
	return Terms{Charge: charge, Tolerance: g.tolerance}, true
}

// Terms returns what a call compares, whether it is a Peek or not. It is false where ChargeTo would return an error whatever is stored.
func (r *Rate) Terms(cost int64) (Terms, bool) {
	if cost > r.capacity {
		return Terms{Tolerance: never}, true
	}
	charge, ok := r.bounded(cost)
	switch {
	case !ok:
		return Terms{}, false
	case cost < 0:
		return Terms{Charge: charge, Tolerance: math.MaxInt64}, true
	}
	return Terms{Charge: charge, Tolerance: r.tolerance}, true
}
