package web

import (
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWhoHasHungUpGivesWayFirst: connections of which much has arrived that waits for its turn take nobody's place when their peers have gone.
func TestWhoHasHungUpGivesWayFirst(t *testing.T) {
	all := NewConns(8, 1, RequestBytes)
	kept, asks := connected(t, all)
	all.Begin(kept)
	all.End(kept)
	for range 7 {
		accepted, peer := connected(t, all)
		_, err := peer.Write(make([]byte, 5*RequestBytes))
		require.NoError(t, err)
		require.NoError(t, peer.Close())
		all.Begin(accepted)
		if all.answering.length%2 == 0 {
			all.End(accepted)
		}
	}
	for range 20 {
		_, peer := connected(t, all)
		require.NoError(t, peer.Close())
	}
	_, err := asks.Write([]byte("x"))
	require.NoError(t, err)
	_, err = io.ReadFull(kept, make([]byte, 1))
	require.NoError(t, err)
}

// TestOnlyThePresentAreAnswered: what a peer has sent before it hung up is not dealt with, if that is asked for.
func TestOnlyThePresentAreAnswered(t *testing.T) {
	for _, present := range []bool{false, true} {
		all := NewConns(2, 1, RequestBytes)
		if present {
			all.OnlyPresent()
		}
		accepted, peer := connected(t, all)
		_, err := peer.Write(make([]byte, 5*RequestBytes))
		require.NoError(t, err)
		buf := make([]byte, 10)
		_, err = accepted.Read(buf)
		require.NoError(t, err)
		require.NoError(t, peer.CloseWrite())
		_, err = accepted.Read(buf)
		if present {
			require.ErrorIs(t, err, net.ErrClosed)
			_, err = peer.Read(buf)
			require.Error(t, err, "it has been closed")
		} else {
			require.NoError(t, err)
		}
	}
}
