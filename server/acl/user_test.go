package acl

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRightsToKeysThatTurnUpLater: a key that a call only comes to while it runs may be used by a selector that allows both, the call and
// the key. Its name may be told to whoever may use it by any call.
func TestRightsToKeysThatTurnUpLater(t *testing.T) {
	table := testTable()
	select0 := call(table, "select 0") // which names no key
	for _, tc := range []struct {
		rules           string
		key, every, use bool // whether ab may be read by select0, whether every key may, whether ab may be read at all
	}{
		{rules: ""},
		{rules: "+select"},
		{rules: "+select ~b*"},
		{rules: "+select ~a*", key: true, use: true},
		{rules: "+select %W~a*"},
		{rules: "+select %R~a*", key: true, use: true},
		{rules: "+select ~*", key: true, every: true, use: true},
		{rules: "+select %W~*"},
		{rules: "+get ~*", use: true},
		{rules: "+select (+get ~*)", use: true},
		{rules: "+get (+select ~a*)", key: true, use: true},
		{rules: "+get (+select ~*)", key: true, every: true, use: true},
	} {
		u := setUser(t, NewUsers(table), "u", strings.Fields(tc.rules)...)
		require.Equal(t, tc.key, u.MayWithKey(select0, []byte("ab"), ReadKey), "%q", tc.rules)
		require.Equal(t, tc.every, u.MayWithEveryKey(select0, ReadKey), "%q", tc.rules)
		require.Equal(t, tc.use, u.MayUse([]byte("ab"), ReadKey), "%q", tc.rules)
	}
}
