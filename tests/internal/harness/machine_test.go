package harness

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMostLost(t *testing.T) {
	const ms = time.Millisecond
	calm := func(n int) (all []moment) {
		for i := range n {
			all = append(all, moment{at: time.Duration(i) * ms, reads: 10 * time.Microsecond})
		}
		return all
	}
	require.Zero(t, mostLost(nil, 20*ms))
	require.Zero(t, mostLost(calm(100), 20*ms))

	late := calm(100)
	late[10].late, late[25].late, late[31].late = 3*ms, 4*ms, 6*ms
	require.Equal(t, 10*ms, mostLost(late, 20*ms), "what is further apart than that does not count together")
	require.Equal(t, 13*ms, mostLost(late, 21*ms))

	slow := calm(100)
	for i := 40; i < 48; i++ {
		slow[i].reads *= 4
	}
	require.Equal(t, 6*ms, mostLost(slow, 20*ms), "at a quarter of the speed three quarters are lost")
	slow[60].reads /= 2
	require.Equal(t, 6*ms, mostLost(slow, 20*ms), "what is faster than usual makes up for nothing")
}

func TestWatchProcessors(t *testing.T) {
	stop := watchProcessors()
	time.Sleep(50 * time.Millisecond)
	for cpu, all := range stop() {
		before := time.Duration(0)
		for _, m := range all { // none without the right to real-time priority
			require.Greater(t, m.at, before, "processor %d", cpu)
			require.GreaterOrEqual(t, m.late, time.Duration(0), "processor %d", cpu)
			require.Greater(t, m.reads, time.Duration(0), "processor %d", cpu)
			before = m.at + m.late
		}
		t.Logf("processor %d: %d moments", cpu, len(all))
	}
}

func TestPace(t *testing.T) {
	const us = time.Microsecond
	p := newPace()
	require.Equal(t, 100, p.Look(), "nothing was seen")
	p.note(0, 100*us)
	p.note(0, 140*us)
	p.note(1, 200*us)
	p.note(1, 200*us)
	require.Equal(t, 50, p.Look(), "the slowest, of the best")
	p.note(0, 110*us)
	p.note(1, 125*us)
	require.Equal(t, 80, p.Look(), "the best stays")

	ctx, cancel := context.WithCancel(t.Context())
	p = WatchPace(ctx)
	time.Sleep(3 * paceEvery)
	cancel()
	percent := p.Look()
	require.True(t, percent > 0 && percent <= 100, percent)
	t.Logf("%d %%", percent)
}
