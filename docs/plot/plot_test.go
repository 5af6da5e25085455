package main

import (
	"encoding/xml"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPlots fails when a plot and the algorithms say different things; go generate mends it.
func TestPlots(t *testing.T) {
	for _, s := range subjects {
		held, err := os.ReadFile(s.name + ".svg")
		require.NoError(t, err)
		require.Equal(t, s.draw(), string(held), "%s: run: go generate ./docs/plot", s.name)
	}
}

// TestLeases: so with the plot and the table of leases.
func TestLeases(t *testing.T) {
	held, err := os.ReadFile("leases.svg")
	require.NoError(t, err)
	require.Equal(t, drawLeases(), string(held), "run: go generate ./docs/plot")
	page, err := os.ReadFile(tablePage)
	require.NoError(t, err)
	require.Contains(t, string(page), "(plot/leases.svg)")
	require.Equal(t, withTable(string(page)), string(page), "run: go generate ./docs/plot")
	require.Contains(t, string(page), leaseTable())
	for _, gateways := range leaseFleets {
		for _, units := range beyondRate(gateways) {
			require.LessOrEqual(t, units, leaseCapacity*1.051)
		}
	}
}

// TestPlotsAreXML: each is well formed, small and used.
func TestPlotsAreXML(t *testing.T) {
	const largest = 12 << 10
	page, err := os.ReadFile("../algorithms.md")
	require.NoError(t, err)
	for _, s := range subjects {
		text := s.draw()
		require.LessOrEqual(t, len(text), largest, s.name)
		require.Contains(t, string(page), "(plot/"+s.name+".svg)")
		decoder := xml.NewDecoder(strings.NewReader(text))
		for {
			_, err := decoder.Token()
			if err == io.EOF {
				break
			}
			require.NoError(t, err, s.name)
		}
	}
}

// TestGuarantees: what the page says of each algorithm shows in its line.
func TestGuarantees(t *testing.T) {
	highest := map[string]int{}
	for _, s := range subjects {
		r := s.run()
		for _, n := range r.within {
			highest[s.name] = max(highest[s.name], n)
		}
		for i := range r.passed {
			require.True(t, s.name == "queue" || r.passed[i] <= r.came[i], s.name)
		}
	}
	require.Equal(t, limit, highest["log"])
	require.Equal(t, limit, highest["sliding"])
	require.Equal(t, limit, highest["queue"])
	require.Equal(t, holders, highest["acquire"])
	require.Greater(t, highest["fixed"], limit*3/2)
	require.Greater(t, highest["gcra"], limit)
	require.LessOrEqual(t, highest["gcra"], 2*limit)
	for _, n := range newQueueResult().passed {
		require.LessOrEqual(t, n, 1, "a queue lets no burst through")
	}
}

func newQueueResult() result {
	for _, s := range subjects {
		if s.name == "queue" {
			return s.run()
		}
	}
	panic("no queue")
}
