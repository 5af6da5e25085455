package server

import (
	"fmt"
	"math"
	"strings"
	"time"

	"headgate/internal/ascii"
	"headgate/server/config"
)

// slowLog keeps the commands that took long, the newest last. The executor's lock guards it.
type slowLog struct {
	entries []slowEntry
	nextID  int64
	from    int64 // ns from which a command is slow; math.MaxInt64 = none is
}

// slowEntry is one slow command.
type slowEntry struct {
	id, at, usec int64 // at is in Unix seconds
	args         [][]byte
	addr, name   string
}

// What is kept of a slow command.
const (
	slowArgs     = 32
	slowArgBytes = 128
	slowName     = 1024 // bytes of the client's name
)

// manyArguments is from how many arguments on a command marked Fast is timed each time, since then it may be slow.
const manyArguments = 64

// defaultSlowerThan is slowlog-log-slower-than's default, in µs. Below it even commands marked Fast may pass for slow, so each is
// timed.
const defaultSlowerThan = 10_000

// limitTimes derives from the configuration which commands are slow, and whether each has to be timed to find them.
func (r *Recorder) limitTimes(cfg *config.Config) {
	r.slowlog.limit(cfg.SlowlogLogSlowerThan, cfg.SlowlogMaxLen)
	r.noteFrom = r.slowlog.from
	if ms := cfg.LatencyMonitorThreshold; ms > 0 && ms <= math.MaxInt64/int(time.Millisecond) {
		r.noteFrom = min(r.noteFrom, int64(ms)*int64(time.Millisecond))
	}
	r.gate.set(gateTimed, r.noteFrom < defaultSlowerThan*int64(time.Microsecond))
}

// noteSlow enters a command that took so many ns into the slow log, and among the spikes of latency, if it belongs there.
func (r *Recorder) noteSlow(c *Ctx, cmd *Command, args [][]byte, took int64) {
	if c.client.id == 0 {
		return
	}
	if took >= r.slowlog.from && cmd.Flags&SkipSlowlog == 0 {
		r.slowlog.add(c, cmd, args, took, c.cfg.SlowlogMaxLen)
	}
	event := eventCommand
	if cmd.Flags&Fast != 0 {
		event = eventFastCommand
	}
	r.watchLatency(event, time.Duration(took))
}

// limit derives from the configuration what the log takes, in µs; below 0 it is off.
func (l *slowLog) limit(slowerThan, most int) {
	l.from = math.MaxInt64
	if slowerThan >= 0 && slowerThan <= math.MaxInt64/int(time.Microsecond) && most > 0 {
		l.from = int64(slowerThan) * int64(time.Microsecond)
	}
}

// add enters a command that took so many ns, and drops the oldest entries beyond most.
func (l *slowLog) add(c *Ctx, cmd *Command, args [][]byte, took int64, most int) {
	addr, name := c.client.conn.Remote, c.client.name
	if len(name) > slowName {
		name = strings.Clone(name[:slowName])
	}
	if c.calledByScript() {
		addr, name = "?:0", ""
	}
	l.entries = append(l.entries, slowEntry{
		id: l.nextID, at: c.core.clock.Read() / int64(time.Second), usec: took / int64(time.Microsecond),
		args: trimArguments(c.redacted(cmd, args)), addr: addr, name: name,
	})
	l.nextID++
	if extra := len(l.entries) - most; extra > 0 {
		clear(l.entries[:extra])
		l.entries = l.entries[extra:]
	}
}

// trimArguments copies a command line: at most slowArgs arguments, of which the last says how many were left out, each of at most
// slowArgBytes bytes and a word on the rest.
func trimArguments(args [][]byte) [][]byte {
	shown := min(len(args), slowArgs)
	kept := make([][]byte, shown)
	for i := range kept {
		switch extra := len(args[i]) - slowArgBytes; {
		case i == slowArgs-1 && len(args) > slowArgs:
			kept[i] = fmt.Appendf(nil, "... (%d more arguments)", len(args)-slowArgs+1)
		case extra > 0:
			kept[i] = fmt.Appendf(nil, "%s... (%d more bytes)", args[i][:slowArgBytes], extra)
		default:
			kept[i] = append([]byte(nil), args[i]...)
		}
	}
	return kept
}

// calledByScript reports whether the command is one that a script calls.
func (c *Ctx) calledByScript() bool { return c.reply != c.client.reply }

// redactedWord stands for a secret where commands are shown.
var redactedWord = []byte("(redacted)")

// redacted returns a command line with its secrets taken out: a copy if it has any.
func (c *Ctx) redacted(cmd *Command, args [][]byte) [][]byte {
	if cmd.Secret == nil {
		return args
	}
	shown := make([][]byte, len(args))
	for i := range args {
		shown[i] = args[i]
		if cmd.Secret(c, args, i) {
			shown[i] = redactedWord
		}
	}
	return shown
}

// isWord reports whether there is an option args[i] and it is the given word, in any case. word is in upper case.
func isWord(args [][]byte, i int, word string) bool { return i > 1 && ascii.EqualFold(args[i], word) }
