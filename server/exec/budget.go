package exec

import (
	"time"

	"headgate/server/command"
)

// What one connection may have of one iteration, so that nobody else waits longer for it. What is over comes in the next iteration, after
// those who have nothing left over. Bytes read and sent are bounded in package netpoll.
const (
	// turnCommands is how many commands of a connection are run.
	turnCommands = 512
	// turnReplies is how many bytes of replies a connection's commands may make before the next one waits for the next iteration: what there
	// is is sent first.
	turnReplies = 64 << 10
	// turnTime is how long commands of a connection may take together before the next one waits.
	turnTime = int64(time.Millisecond)
	// batchTime is how long the commands of one iteration may take together: connections that it has not come to by then are left over, so
	// that somebody who comes meanwhile waits for no more than that.
	batchTime = int64(10 * time.Millisecond)
	// workUntimed is how many bytes commands may move before the clock is read, where each counts for workOfCommand at least.
	workUntimed   = 64 << 10
	workOfCommand = workUntimed / command.TimedEvery
	// carriedTime is for how long the connections that were left over by earlier iterations are served in one.
	carriedTime = 2 * time.Millisecond
)
