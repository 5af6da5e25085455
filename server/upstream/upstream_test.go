package upstream

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCallsAreAnsweredInOrder(t *testing.T) {
	node := startFake(t, nil)
	u := started(t, Config{Addrs: []string{node.addr}})
	var calls []*pending
	for i := range 500 {
		p := newCall("GET", fmt.Sprint(i))
		u.Send(&p.Call)
		calls = append(calls, p)
	}
	u.Flush()
	for i, p := range calls {
		r := p.wait(t)
		require.Nil(t, r.failure)
		require.Equal(t, bulk(fmt.Sprintf("value of %d", i)), r.reply)
		require.Equal(t, node.addr, r.node)
	}
	s := u.Status()
	require.EqualValues(t, 500, s.Calls)
	require.Zero(t, s.PendingCalls)
	require.Zero(t, s.PendingBytes)
}

// TestAStalledNode: calls fail at their deadline, later ones at once, until a probe is answered.
func TestAStalledNode(t *testing.T) {
	node := startFake(t, nil)
	u := started(t, Config{Addrs: []string{node.addr}, Timeout: 50 * time.Millisecond, Rest: 200 * time.Millisecond})
	require.Nil(t, do(t, u, "GET", "k").failure)

	node.answer(func([]string) string { return stall })
	r := do(t, u, "SET", "k", "1")
	require.Equal(t, Timeout, r.failure.Kind)
	require.Equal(t, "UPSTREAM no answer from "+node.addr+" within 50 ms", r.failure.Error())
	require.True(t, r.failure.MayHaveRun())
	r = do(t, u, "SET", "k", "2")
	require.Equal(t, Resting, r.failure.Kind)
	require.Equal(t, "UPSTREAM "+node.addr+" is resting after failures", r.failure.Error())
	require.False(t, r.failure.MayHaveRun())

	node.answer(nil)
	require.Eventually(t, func() bool { return do(t, u, "GET", "k").failure == nil }, 10*time.Second, 10*time.Millisecond)
	require.Equal(t, 1, node.count("SET"), "nothing is sent twice, nor to a node that rests")
}
