package compat

import (
	"strconv"
	"time"

	"headgate/tests/internal/harness"
)

// ttlTolerance is how far apart two replies that count time may be, beside what the two servers' own answering times
// account for.
const ttlTolerance = 2 * time.Millisecond

// same compares the replies to one step. lag is how much later one server may have run the script's steps than the
// other.
func (st *step) same(reference, subject harness.Value, lag time.Duration) bool {
	if st.unordered {
		reference, subject = reference.Sorted(st.pairs), subject.Sorted(st.pairs)
	}
	if st.shape {
		reference, subject = reference.Shape(), subject.Shape()
	}
	if st.ttl {
		return closeInTime(reference, subject, (ttlTolerance + lag).Milliseconds())
	}
	return st.masked(reference) == st.masked(subject)
}

// masked is the reply's bytes with what the step's masks match blanked out.
func (st *step) masked(v harness.Value) string {
	wire := v.Append(nil)
	for _, mask := range st.masks {
		wire = mask.ReplaceAll(wire, []byte("<masked>"))
	}
	return string(wire)
}

// closeInTime is equality but for integers, which may be tolerance apart.
func closeInTime(a, b harness.Value, tolerance int64) bool {
	if a.Kind != b.Kind || a.Null != b.Null || len(a.Items) != len(b.Items) {
		return false
	}
	for i := range a.Items {
		if !closeInTime(a.Items[i], b.Items[i], tolerance) {
			return false
		}
	}
	if a.Kind != ':' {
		return a.Text == b.Text
	}
	x, errX := strconv.ParseInt(a.Text, 10, 64)
	y, errY := strconv.ParseInt(b.Text, 10, 64)
	return errX == nil && errY == nil && x-y <= tolerance && y-x <= tolerance
}
