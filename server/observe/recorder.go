package observe

import (
	"headgate/server/command"
)

// Recorder keeps what took long, and shows every command to those who monitor. The executor's lock guards it.
type Recorder struct {
	*command.Core

	Slowlog  slowLog
	Latency  [latencyEvents]spikes
	NoteFrom int64 // ns from which a command's time is noted by the slow log or the latency monitor
	Monitors []*command.Client
}

// Declarations are the commands that show what is recorded.
func (r *Recorder) Declarations() []*command.Command {
	return []*command.Command{r.latencyCommand(), r.monitorCommand(), r.slowlogCommand()}
}
