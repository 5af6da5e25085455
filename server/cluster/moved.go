package cluster

import (
	"strconv"

	"headgate/internal/hashslot"
	"headgate/server/command"
)

// Moved returns the error that sends a client of a replica on to the primary, as a node of a Redis Cluster does: for each command with a key, unless
// the client has said READONLY and only reads. Publish and subscribe go on here, also by shards. It returns nothing for what is answered here. It is
// called with the executor's lock held while a primary is followed.
func (s *Cluster) Moved(c *command.Ctx) string {
	if c.Cmd.Flags&command.PubSub != 0 || c.Client.ReadsReplica && c.Cmd.Flags&command.Write == 0 {
		return ""
	}
	key, found := firstKey(c)
	if !found {
		return ""
	}
	primary := s.Topology().Primary
	return "MOVED " + strconv.Itoa(int(hashslot.Of(key))) + " " + address(primary.Host, primary.Port)
}

// firstKey returns the first key of a command line.
func firstKey(c *command.Ctx) (key []byte, found bool) {
	var room [8]int
	for i := range c.Cmd.Keys {
		if at := c.Cmd.Keys[i].Find(room[:0], c.Args); len(at) > 0 {
			return c.Args[at[0]], true
		}
	}
	return nil, false
}
