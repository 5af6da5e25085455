package server

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// What the page shows of slow commands.
const (
	pageSlow      = 10  // the newest so many
	pageSlowBytes = 240 // of a command line
)

// pageMemory is how much may be in use, and what happens when it is.
type pageMemory struct {
	Max     uint64 `json:"max"` // bytes; 0: no limit
	Policy  string `json:"policy"`
	Evicted uint64 `json:"evicted"` // keys
}

// pageDisk is what stands on the disk, and what keeps anything from it.
type pageDisk struct {
	Unwritable string       `json:"unwritable,omitempty"` // what writes are answered with
	Log        *pageLog     `json:"log"`                  // null: appendonly is no
	Snapshot   pageSnapshot `json:"snapshot"`
}

type pageLog struct {
	Sync      string `json:"sync"` // appendfsync
	Bytes     int64  `json:"bytes"`
	LagMs     int64  `json:"lag"`                 // age of the oldest change that no sync has begun for
	Failed    string `json:"failed,omitempty"`    // why the last write did
	Rewrite   string `json:"rewrite,omitempty"`   // why the last rewrite failed
	Rewriting bool   `json:"rewriting,omitempty"` // now
}

type pageSnapshot struct {
	Points  bool   `json:"points"` // there are save points
	At      int64  `json:"at"`     // ms; 0: none since the start
	Changes uint64 `json:"changes"`
	Failed  bool   `json:"failed,omitempty"`
	Saving  bool   `json:"saving,omitempty"` // now
}

// pageCertificate is the one that tls-port shows.
type pageCertificate struct {
	Until  int64  `json:"until"`            // ms
	Soon   bool   `json:"soon,omitempty"`   // it ends soon, or has ended
	Broken string `json:"broken,omitempty"` // why the files that are there now are not used
}

// pageSlowCommand is an entry of the slow log, without what SLOWLOG GET takes out of it either.
type pageSlowCommand struct {
	At     int64  `json:"at"` // s
	Usec   int64  `json:"usec"`
	Text   string `json:"text"`
	Client string `json:"client"`
}

// addState adds how memory, disk and certificate stand, and the slow commands.
func (r *Reports) addState(d *pageReply) {
	var slow []slowEntry
	r.locked(func() {
		cfg := r.config.Get()
		d.MemoryLimit = pageMemory{Max: r.exec.memory.max, Policy: cfg.MaxMemoryPolicy.String(), Evicted: r.keys.Stats().Evicted - r.stats.evictedBefore}
		d.Disk = r.diskForPage()
		slow = slices.Clone(r.recorder.slowlog.entries[max(0, len(r.recorder.slowlog.entries)-pageSlow):])
		d.SlowFrom = int64(cfg.SlowlogLogSlowerThan)
		if cfg.SlowlogMaxLen == 0 {
			d.SlowFrom = -1
		}
	})
	if r.config.Get().TLSPort > 0 {
		d.Certificate = r.fronts.tls.forPage()
	}
	d.Slow = make([]pageSlowCommand, 0, len(slow))
	for _, e := range slices.Backward(slow) {
		d.Slow = append(d.Slow, pageSlowCommand{At: e.at, Usec: e.usec, Text: lineForPage(e.args), Client: readable([]byte(cmp.Or(e.name, e.addr)))})
	}
}

// diskForPage is how the files stand. The caller holds the executor's lock.
func (r *Reports) diskForPage() pageDisk {
	cfg, v, k := r.config.Get(), &r.journal.saving, &r.journal.aof.rewriter
	d := pageDisk{
		Unwritable: r.gate.unwritable(),
		Snapshot:   pageSnapshot{Points: len(cfg.Save) > 0, Changes: r.journal.changes(), Failed: v.failed, Saving: v.active},
	}
	if v.count > 0 {
		d.Snapshot.At = v.last / 1e6
	}
	if !r.effects.on {
		return d
	}
	d.Log = &pageLog{
		Sync: cfg.AppendFsync.String(), Bytes: r.journal.aof.size, LagMs: r.journal.aof.syncer.lag().Milliseconds(), Failed: errorText(r.journal.aof.failed),
		Rewrite: errorText(k.err), Rewriting: k.rewriting,
	}
	return d
}

// errorText is what an error says, or nothing if there is none.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// forPage is how the certificate stands.
func (f *tlsFront) forPage() *pageCertificate {
	f.mu.Lock()
	defer f.mu.Unlock()
	until := time.Unix(f.notAfter.Load(), 0)
	return &pageCertificate{Until: until.UnixMilli(), Soon: time.Until(until) < expiryWarning, Broken: f.broken}
}

// lineForPage is a command line for people to read, cut where it is long.
func lineForPage(args [][]byte) string {
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = readable(arg)
		if strings.ContainsRune(words[i], ' ') && words[i][0] != '"' {
			words[i] = `"` + words[i] + `"`
		}
	}
	line := strings.Join(words, " ")
	if len(line) <= pageSlowBytes {
		return line
	}
	end := pageSlowBytes
	for !utf8.RuneStart(line[end]) {
		end--
	}
	return line[:end] + "…"
}
