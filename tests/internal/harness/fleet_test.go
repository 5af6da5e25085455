package harness

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestCluster: a cluster serves, knows the slots that Slot knows, moves them with their keys, and has a node back that was killed.
func TestCluster(t *testing.T) {
	t.Parallel()
	c := StartCluster(t, 3, 1, 10*time.Second)
	require.Len(t, c.Nodes, 6)
	first := Dial(t, c.Nodes[0].Addr)
	for _, key := range []string{"", "a", "user:1", "{user}:1", "{}x", "x{y}z{w}", "{{y}}", "x}y{z}", "{", "\x00\xff"} {
		require.Equal(t, strconv.Itoa(Slot(key)), first.Ask("CLUSTER", "KEYSLOT", key).Text, "%q", key)
	}
	for shard := range c.Primaries {
		require.Equal(t, shard, c.PrimaryOf(shard))
		require.Equal(t, shard, c.Shard(c.KeyIn(shard, "k", 3)))
	}

	key := c.KeyIn(0, "moved", 0)
	require.Equal(t, "OK", first.Ask("SET", key, "v").Text)
	mover, err := c.NewMover(0, 1)
	require.NoError(t, err)
	defer mover.Close()
	moved, err := mover.Move(Slot(key), 1)
	require.NoError(t, err)
	require.True(t, moved)
	require.NoError(t, mover.Settle())
	require.Equal(t, fmt.Sprintf("MOVED %d %s", Slot(key), c.Nodes[1].Addr), first.Ask("GET", key).Text)
	require.Equal(t, "v", Dial(t, c.Nodes[1].Addr).Ask("GET", key).Text)
	_, err = mover.Move(Slot(key), 0)
	require.NoError(t, err)
	require.Equal(t, "v", first.Ask("GET", key).Text)

	replica := Dial(t, c.Nodes[3].Addr)
	require.Contains(t, replica.Ask("INFO", "replication").Text, "master_link_status:up")
	c.Nodes[4].Kill()
	c.Restart(4)
	c.WaitServing()
}

// TestSentinel: a sentinel knows who the primary is.
func TestSentinel(t *testing.T) {
	t.Parallel()
	s := StartSentinel(t, time.Minute)
	reply := Dial(t, s.Watcher.Addr).Ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", sentinelName)
	require.Equal(t, []string{"127.0.0.1", strconv.Itoa(s.Primary.Port)}, reply.Strings())
}
