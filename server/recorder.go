package server

// Recorder keeps what took long, and shows every command to those who monitor. The executor's lock guards it.
type Recorder struct {
	*Core

	slowlog  slowLog
	latency  [latencyEvents]spikes
	noteFrom int64 // ns from which a command's time is noted by the slow log or the latency monitor
	monitors []*Client
}

// declarations are the commands that show what is recorded.
func (r *Recorder) declarations() []*Command {
	return []*Command{r.latencyCommand(), r.monitorCommand(), r.slowlogCommand()}
}
