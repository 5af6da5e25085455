package web

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAnswersAreSpaced: requests that come at once have their turns one after another; one that comes later does not wait.
func TestAnswersAreSpaced(t *testing.T) {
	var p pace
	now := time.Now()
	for i := range 100 {
		turn, _ := p.enter(now)
		require.Equal(t, time.Duration(i)*answerEvery, turn)
	}
	turn, _ := p.enter(now.Add(100 * answerEvery))
	require.Zero(t, turn)
	turn, _ = p.enter(now.Add(time.Minute))
	require.Zero(t, turn)
}

// TestQueueOfTheGoneIsForgotten: who asks and goes away keeps nobody waiting for longer than a full port does.
func TestQueueOfTheGoneIsForgotten(t *testing.T) {
	var p pace
	now := time.Now()
	for range 10 * MaxConns {
		turn, _ := p.enter(now)
		require.LessOrEqual(t, turn, time.Duration(paceMax))
	}
}

// TestHurriedRequestsGoOn: those that wait go on at once when there is no room for others, and so does the next one. Time is made up, or on a slow
// machine the first of them would have had its turn before the last one came.
func TestHurriedRequestsGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pace
		began := time.Now()
		p.next = began.Add(paceMax / 2)
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() { p.wait(context.Background()) })
		}
		synctest.Wait()
		require.Equal(t, 5, p.waiting)
		p.hurry()
		turn, _ := p.enter(time.Now())
		require.Zero(t, turn)
		all.Wait()
		require.Zero(t, p.waiting)
		require.Zero(t, time.Since(began))
	})
}

// TestWhoHasGoneDoesNotWait: a request whose peer has gone does not wait for its turn.
func TestWhoHasGoneDoesNotWait(t *testing.T) {
	var p pace
	p.next = time.Now().Add(paceMax / 2)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	p.wait(ctx)
	require.Zero(t, p.waiting)
}
