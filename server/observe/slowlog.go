package observe

import (
	"fmt"
	"math"
	"strings"
	"time"

	"headgate/internal/ascii"
	"headgate/server/command"
	"headgate/server/config"
)

// slowLog keeps the commands that took long, the newest last. The executor's lock guards it.
type slowLog struct {
	Entries []SlowEntry
	NextID  int64
	From    int64 // ns from which a command is slow; math.MaxInt64 = none is
}

// SlowEntry is one slow command.
type SlowEntry struct {
	id, At, Usec int64 // At is in Unix seconds
	Args         [][]byte
	Addr, Name   string
}

// What is kept of a slow command.
const (
	slowArgs     = 32
	SlowArgBytes = 128
	slowName     = 1024 // bytes of the client's name
)

// ManyArguments is from how many arguments on a command marked Fast is timed each time, since then it may be slow.
const ManyArguments = 64

// defaultSlowerThan is slowlog-log-slower-than's default, in µs. Below it even commands marked Fast may pass for slow, so each is
// timed.
const defaultSlowerThan = 10_000

// LimitTimes derives from the configuration which commands are slow, and whether each has to be timed to find them.
func (r *Recorder) LimitTimes(cfg *config.Config) {
	r.Slowlog.limit(cfg.SlowlogLogSlowerThan, cfg.SlowlogMaxLen)
	r.NoteFrom = r.Slowlog.From
	if ms := cfg.LatencyMonitorThreshold; ms > 0 && ms <= math.MaxInt64/int(time.Millisecond) {
		r.NoteFrom = min(r.NoteFrom, int64(ms)*int64(time.Millisecond))
	}
	r.Gate.Set(command.GateTimed, r.NoteFrom < defaultSlowerThan*int64(time.Microsecond))
}

// NoteSlow enters a command that took so many ns into the slow log, and among the spikes of latency, if it belongs there.
func (r *Recorder) NoteSlow(c *command.Ctx, cmd *command.Command, args [][]byte, took int64) {
	if c.Client.ID == 0 {
		return
	}
	if took >= r.Slowlog.From && cmd.Flags&command.SkipSlowlog == 0 {
		r.Slowlog.add(c, cmd, args, took, c.Cfg.SlowlogMaxLen)
	}
	event := eventCommand
	if cmd.Flags&command.Fast != 0 {
		event = eventFastCommand
	}
	r.WatchLatency(event, time.Duration(took))
}

// limit derives from the configuration what the log takes, in µs; below 0 it is off.
func (l *slowLog) limit(slowerThan, most int) {
	l.From = math.MaxInt64
	if slowerThan >= 0 && slowerThan <= math.MaxInt64/int(time.Microsecond) && most > 0 {
		l.From = int64(slowerThan) * int64(time.Microsecond)
	}
}

// add enters a command that took so many ns, and drops the oldest entries beyond most.
func (l *slowLog) add(c *command.Ctx, cmd *command.Command, args [][]byte, took int64, most int) {
	addr, name := c.Client.Conn.Remote, c.Client.Name
	if len(name) > slowName {
		name = strings.Clone(name[:slowName])
	}
	if calledByScript(c) {
		addr, name = "?:0", ""
	}
	l.Entries = append(l.Entries, SlowEntry{
		id: l.NextID, At: c.Core.Clock.Read() / int64(time.Second), Usec: took / int64(time.Microsecond),
		Args: trimArguments(Redacted(c, cmd, args)), Addr: addr, Name: name,
	})
	l.NextID++
	if extra := len(l.Entries) - most; extra > 0 {
		clear(l.Entries[:extra])
		l.Entries = l.Entries[extra:]
	}
}

// trimArguments copies a command line: at most slowArgs arguments, of which the last says how many were left out, each of at most
// SlowArgBytes bytes and a word on the rest.
func trimArguments(args [][]byte) [][]byte {
	shown := min(len(args), slowArgs)
	kept := make([][]byte, shown)
	for i := range kept {
		switch extra := len(args[i]) - SlowArgBytes; {
		case i == slowArgs-1 && len(args) > slowArgs:
			kept[i] = fmt.Appendf(nil, "... (%d more arguments)", len(args)-slowArgs+1)
		case extra > 0:
			kept[i] = fmt.Appendf(nil, "%s... (%d more bytes)", args[i][:SlowArgBytes], extra)
		default:
			kept[i] = append([]byte(nil), args[i]...)
		}
	}
	return kept
}

// calledByScript reports whether the command is one that a script calls.
func calledByScript(c *command.Ctx) bool { return c.Reply != c.Client.Reply }

// RedactedWord stands for a secret where commands are shown.
var RedactedWord = []byte("(redacted)")

// Redacted returns a command line with its secrets taken out: a copy if it has any.
func Redacted(c *command.Ctx, cmd *command.Command, args [][]byte) [][]byte {
	if cmd.Secret == nil {
		return args
	}
	shown := make([][]byte, len(args))
	for i := range args {
		shown[i] = args[i]
		if cmd.Secret(c, args, i) {
			shown[i] = RedactedWord
		}
	}
	return shown
}

// IsWord reports whether there is an option args[i] and it is the given word, in any case. word is in upper case.
func IsWord(args [][]byte, i int, word string) bool { return i > 1 && ascii.EqualFold(args[i], word) }
