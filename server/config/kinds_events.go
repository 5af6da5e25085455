package config

import (
	"strings"

	"headgate/internal/quoting"
)

// Events is a set of classes of key-space events, and of the two ways in which they are published.
type Events uint16

// The letters of notify-keyspace-events.
const (
	EventKeyspace Events = 1 << iota // K: to __keyspace@<db>__:<key>
	EventKeyevent                    // E: to __keyevent@<db>__:<event>
	EventGeneric                     // g: DEL, EXPIRE, RENAME and the like
	EventString                      // $
	EventList                        // l
	EventSet                         // s
	EventHash                        // h
	EventZSet                        // z
	EventExpired                     // x: a key's time has passed
	EventEvicted                     // e: a key went to save memory
	EventStream                      // t
	EventModule                      // d: of modules, of which there are none
	EventNew                         // n: a key was added
	EventMiss                        // m: a key that was asked for is not there

	// EventAll is what A stands for.
	EventAll = EventGeneric | EventString | EventList | EventSet | EventHash | EventZSet | EventExpired | EventEvicted | EventStream | EventModule
)

// eventLetters are the letters in the order in which CONFIG GET shows them.
var eventLetters = []struct {
	letter byte
	event  Events
}{
	{'g', EventGeneric}, {'$', EventString}, {'l', EventList}, {'s', EventSet}, {'h', EventHash}, {'z', EventZSet},
	{'x', EventExpired}, {'e', EventEvicted}, {'t', EventStream}, {'d', EventModule}, {'n', EventNew},
	{'K', EventKeyspace}, {'E', EventKeyevent}, {'m', EventMiss},
}

// eventsKind is notify-keyspace-events.
type eventsKind struct{ single }

func (eventsKind) parse(c *Config, args []string, _ bool) error {
	var events Events
	for i := range len(args[0]) {
		class := eventClass(args[0][i])
		if class == 0 {
			return redisText("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.")
		}
		events |= class
	}
	c.NotifyEvents = events
	return nil
}

// eventClass returns what a letter stands for, or 0.
func eventClass(letter byte) Events {
	if letter == 'A' {
		return EventAll
	}
	for _, l := range eventLetters {
		if l.letter == letter {
			return l.event
		}
	}
	return 0
}

// format shows the set as Redis does, which behind A leaves out n.
func (eventsKind) format(c *Config) string {
	shown := c.NotifyEvents
	var text strings.Builder
	if shown&EventAll == EventAll {
		text.WriteByte('A')
		shown &^= EventAll | EventNew
	}
	for _, l := range eventLetters {
		if shown&l.event != 0 {
			text.WriteByte(l.letter)
		}
	}
	return text.String()
}

// lines writes all of the set, so that nothing is lost when the file is read again.
func (k eventsKind) lines(c *Config) []string {
	text := k.format(c)
	if c.NotifyEvents&(EventAll|EventNew) == EventAll|EventNew {
		text += "n"
	}
	return []string{quoting.Quote(text)}
}

func (eventsKind) syntax() string { return `any of Ag$lshzxeKEtmdn, or ""` }
