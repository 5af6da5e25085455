package limiter

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestExpiryOfINCREX: when the key is to expire that INCREX has added to, by its options and by what the key had before.
func TestExpiryOfINCREX(t *testing.T) {
	const now = 1000
	for _, c := range []struct {
		options  string
		increx   Increx
		present  int64
		wantAtMs int64
		wantKept bool
	}{
		{"none, and the key never expires", Increx{}, 0, 0, true},
		{"none, and the key expires", Increx{}, 5000, 5000, true},
		{"PERSIST", Increx{Persist: true}, 5000, 0, false},
		{"PX 250", Increx{Expires: true, Relative: true, TimeMs: 250}, 5000, now + 250, false},
		{"PXAT 9000", Increx{Expires: true, TimeMs: 9000}, 5000, 9000, false},
		{"PX 250 ENX, and the key expires", Increx{Expires: true, Relative: true, TimeMs: 250, Absent: true}, 5000, 5000, true},
		{"PX 250 ENX, and the key never expires", Increx{Expires: true, Relative: true, TimeMs: 250, Absent: true}, 0, now + 250, false},
	} {
		atMs, kept := c.increx.Expiry(c.present, now)
		require.Equal(t, c.wantAtMs, atMs, c.options)
		require.Equal(t, c.wantKept, kept, c.options)
	}
}
