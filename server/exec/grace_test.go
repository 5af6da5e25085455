package exec_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/server/servertest"
	"headgate/store"
)

// TestNumbersPastTheirTimeGoFirst: where memory is short, numbers that background work has left in their places go before any key that is alive,
// and make room for new ones.
func TestNumbersPastTheirTimeGoFirst(t *testing.T) {
	for _, policy := range []string{"allkeys-lru", "volatile-ttl", "noeviction"} {
		t.Run(policy, func(t *testing.T) {
			w := servertest.NewFullClient(t, policy)
			half := 0
			for ; w.Srv.UsedMemory() < w.Max-servertest.EvictionRoom/10; half++ {
				w.Call(fmt.Sprintf("SET live:%d 1 EX 1000", half))
				w.Call(fmt.Sprintf("SET dead:%d 1 PX 10", half))
			}
			w.Now += 50e6
			w.Sweep(w.Now)
			require.Equal(t, 2*half, w.Srv.Keys.DB(0).Len(), "they are in their places")
			for n := range half / 2 {
				require.Equal(t, "OK", w.Call(fmt.Sprintf("SET new:%d 1", n)))
			}
			require.Zero(t, w.Evicted())
		})
	}
}

// TestNumbersGoAtOnce: where a number past its time would not be written over, it is not left in its place either.
func TestNumbersGoAtOnce(t *testing.T) {
	gone := func(t *testing.T, settings ...string) (after int64) {
		w := servertest.NewClockClient(t)
		for _, line := range settings {
			require.Equal(t, "OK", w.Call(line))
		}
		w.Call("SET number 1 PX 10")
		for ; w.Srv.Keys.DB(0).Len() > 0; after++ {
			require.Less(t, after, int64(10+2*store.MaxGrace))
			w.Now += 1e6
			w.Sweep(w.Now)
		}
		return after
	}
	require.EqualValues(t, 11, gone(t, "CONFIG SET notify-keyspace-events Ex"))
	require.EqualValues(t, 11+store.MaxGrace, gone(t))
}
