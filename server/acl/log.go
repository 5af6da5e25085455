package acl

import (
	"slices"
	"strings"
)

// Context is how a call that was denied came about.
type Context uint8

// The contexts.
const (
	Toplevel Context = iota
	InMulti
	InScript
)

// String returns the context's name in the log.
func (c Context) String() string { return [...]string{"toplevel", "multi", "lua"}[c] }

// LogEntry is one entry of the log: a denial, and how often it has happened.
type LogEntry struct {
	Count   int64
	Reason  Denial
	Context Context
	Object  string // the command, key or channel
	User    string
	AtMs    int64  // when it happened last
	Client  string // line of CLIENT LIST of the client to whom it did
}

// Log keeps the latest denials, the newest first. Its zero value is empty.
type Log struct {
	entries []LogEntry
}

const (
	groupedWithin = 60_000 // ms between two denials that are one entry
	groupedAmong  = 10     // newest entries that are looked at for one that is alike
	maxEntries    = 100_000
	maxObject     = 1_024 // bytes that are kept of an object and of a user's name
	maxClient     = 2_048 // bytes that are kept of a client's line: it has three names that the client chooses
)

// Add notes a denial: in the entry of one like it, or in a new one. The oldest entries beyond most are dropped.
func (l *Log) Add(e LogEntry, most int) {
	e.Object, e.User, e.Client = shorten(e.Object, maxObject), shorten(e.User, maxObject), shorten(e.Client, maxClient)
	e.Count = 1
	for i, known := range l.entries[:min(len(l.entries), groupedAmong)] {
		apart := max(e.AtMs-known.AtMs, known.AtMs-e.AtMs)
		if known.Reason == e.Reason && known.Context == e.Context && known.Object == e.Object && known.User == e.User && apart <= groupedWithin {
			e.Count += known.Count
			l.entries = slices.Delete(l.entries, i, i+1)
			break
		}
	}
	l.entries = slices.Insert(l.entries, 0, e)
	if most = min(most, maxEntries); len(l.entries) > most {
		l.entries = slices.Delete(l.entries, most, len(l.entries))
	}
}

// shorten returns the beginning of a text. The rest is not kept in memory by it.
func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.Clone(text[:most])
}

// Newest returns up to n entries, the newest first.
func (l *Log) Newest(n int) []LogEntry { return l.entries[:min(n, len(l.entries))] }

// Reset forgets all entries.
func (l *Log) Reset() { l.entries = nil }
