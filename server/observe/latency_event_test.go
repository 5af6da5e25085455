package observe

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLatencyEventTexts: every event has its texts, and LATENCY LATEST names them in order.
func TestLatencyEventTexts(t *testing.T) {
	last := ""
	for event, texts := range LatencyEventTexts {
		require.Greater(t, texts.Name, last)
		require.NotEmpty(t, texts.What)
		require.True(t, strings.HasSuffix(texts.Advice, "."), texts.Name)
		named, ok := latencyEventNamed([]byte(texts.Name))
		require.True(t, ok)
		require.EqualValues(t, event, named)
		last = texts.Name
	}
	_, ok := latencyEventNamed([]byte("fork"))
	require.False(t, ok)
}

// TestSpikesOfOneSecond: of one second the longest is kept, of all seconds the last ones, and the longest of all even when it is gone.
func TestSpikesOfOneSecond(t *testing.T) {
	e := &spikes{}
	e.add(1, 500)
	for _, ms := range []int64{20, 40, 30} {
		e.add(2, ms)
	}
	require.Equal(t, []spike{{1, 500}, {2, 40}}, e.samples)
	require.EqualValues(t, 270, e.average())
	for at := range int64(latencySamples) {
		e.add(3+at, 10+at)
	}
	require.Len(t, e.samples, latencySamples)
	require.Equal(t, spike{3, 10}, e.samples[0])
	require.Equal(t, spike{2 + latencySamples, 9 + latencySamples}, e.samples[latencySamples-1])
	require.EqualValues(t, 500, e.Max)
}
