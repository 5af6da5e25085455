package replication

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/server/command"
)

// TestAskingEndsRests: nobody who waits for replicas waits for the end of a rest.
func TestAskingEndsRests(t *testing.T) {
	p := &Primary{Core: &command.Core{}, backlog: NewBacklog(0, blockSize)}
	reader, ok := p.backlog.Read(0, nil)
	require.True(t, ok)
	p.feeds = []*feed{{primary: p}, {primary: p, reader: reader}}
	p.askAcks()
	p.askAcks() // nobody listens, and nobody waits for that
	reader.Rest(time.Hour)
	_, to := p.backlog.Extent()
	require.EqualValues(t, 2*len(streamGetAck), to)
}
