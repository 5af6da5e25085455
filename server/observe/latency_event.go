package observe

import (
	"time"
)

// LatencyEvent is one kind of thing that takes long now and then, as LATENCY tells of it.
type LatencyEvent int

// The events that are watched, in the order of their names. They have Redis's where Redis has them; snapshot-cycle is in place of its fork.
const (
	EventSyncAlways LatencyEvent = iota
	EventWrite
	EventWriteActiveChild
	EventWriteAlone
	EventWritePendingSync
	eventCommand
	EventEvictionCycle
	EventExpireCycle
	eventFastCommand
	EventSnapshotCycle
	latencyEvents
)

// latencyText is an event's name, what takes so long, and what to do about it.
type latencyText struct{ Name, What, Advice string }

// LatencyEventTexts are the texts of all events.
var LatencyEventTexts = [latencyEvents]latencyText{
	EventSyncAlways: {"aof-fsync-always", "syncing the append-only file, which `appendfsync always` waits for",
		"The disk is slow: use a faster one, or appendfsync everysec."},
	EventWrite: {"aof-write", "writing to the append-only file, and under `everysec` waiting for a disk that is seconds behind; each is also one of the next three",
		"Its three kinds say what the disk did meanwhile."},
	EventWriteActiveChild: {"aof-write-active-child", "the same while a snapshot or a rewrite was written",
		"The disk cannot do both: use a faster one, or rewrite at quieter times (auto-aof-rewrite-percentage)."},
	EventWriteAlone: {"aof-write-alone", "the same while nothing else was written or synced",
		"Other programs keep the disk busy, it is slow, or one command has changed very much."},
	EventWritePendingSync: {"aof-write-pending-fsync", "the same while the file was synced in the background",
		"The disk syncs slowly: use a faster one, or appendfsync no."},
	eventCommand: {"command", "a command",
		"SLOWLOG GET shows which commands took long."},
	EventEvictionCycle: {"eviction-cycle", "a slice of making room under `maxmemory`",
		"Lower maxmemory-eviction-tenacity for shorter slices."},
	EventExpireCycle: {"expire-cycle", "a slice of removing keys past their time",
		"A slice is meant to take a tenth of a millisecond: most likely " + elsewhere},
	eventFastCommand: {"fast-command", "a command that takes no longer for more elements",
		"Unless its value is megabytes long, most likely " + elsewhere},
	EventSnapshotCycle: {"snapshot-cycle", "a slice of a snapshot or a rewrite, on the loop that serves clients",
		"A slice is meant to take a tenth of a millisecond: most likely " + elsewhere},
}

const elsewhere = "the CPU was not available to the server. Look for other programs, for steal in top, and for a CPU limit."

// latencyEventNamed finds an event.
func latencyEventNamed(name []byte) (event LatencyEvent, ok bool) {
	for event, texts := range LatencyEventTexts {
		if texts.Name == string(name) {
			return LatencyEvent(event), true
		}
	}
	return 0, false
}

// latencySamples is how many spikes are kept of one event, as in Redis.
const latencySamples = 160

// spike is the longest time that something took within one second.
type spike struct {
	at, ms int64 // at is in Unix seconds
}

// spikes are those of one event.
type spikes struct {
	samples []spike // the oldest first
	Max     int64   // ms, of all there ever were
}

// add enters a spike.
func (e *spikes) add(at, ms int64) {
	e.Max = max(e.Max, ms)
	if last := len(e.samples) - 1; last >= 0 && e.samples[last].at == at {
		e.samples[last].ms = max(e.samples[last].ms, ms)
		return
	}
	if len(e.samples) == latencySamples {
		e.samples = append(e.samples[:0], e.samples[1:]...)
	}
	e.samples = append(e.samples, spike{at, ms})
}

// average is in ms; there must be spikes.
func (e *spikes) average() int64 {
	sum := int64(0)
	for _, s := range e.samples {
		sum += s.ms
	}
	return sum / int64(len(e.samples))
}

// WatchesLatency reports whether spikes are entered at all.
func (r *Recorder) WatchesLatency() bool { return r.Config.Get().LatencyMonitorThreshold > 0 }

// WatchLatency enters a spike of an event if it took latency-monitor-threshold or longer. The caller holds the executor's lock.
func (r *Recorder) WatchLatency(event LatencyEvent, took time.Duration) {
	threshold := r.Config.Get().LatencyMonitorThreshold
	ms := took.Milliseconds()
	if threshold == 0 || ms < int64(threshold) {
		return
	}
	r.Latency[event].add(r.Clock.Read()/int64(time.Second), ms)
}

// WatchLatencySince is watchLatency for what has begun then and ends now. It does not look at the clock in vain.
func (r *Recorder) WatchLatencySince(event LatencyEvent, begun time.Time) {
	if r.WatchesLatency() {
		r.WatchLatency(event, time.Since(begun))
	}
}
