package compat

import (
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
		return harness.CloseInTime(reference, subject, (ttlTolerance + lag).Milliseconds())
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
