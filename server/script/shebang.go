package script

import (
	"bytes"
	"errors"
	"strings"
)

// Flags are what a script or a function declares about itself.
type Flags uint8

// Flags of scripts and functions.
const (
	NoWrites           Flags = 1 << iota // no-writes
	AllowOOM                             // allow-oom
	AllowStale                           // allow-stale
	NoCluster                            // no-cluster
	AllowCrossSlotKeys                   // allow-cross-slot-keys
	AllowKeyLocking                      // allow-key-locking, an Upstash flag that changes nothing
)

// flagNames are the names on the wire, in the order of the bits.
var flagNames = [...]string{"no-writes", "allow-oom", "allow-stale", "no-cluster", "allow-cross-slot-keys", "allow-key-locking"}

// Names returns the names of the flags in f, in the order that FUNCTION LIST
// gives them.
func (f Flags) Names() []string {
	names := []string{}
	for i, name := range flagNames {
		if f&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// flagNamed returns the flag called name.
func flagNamed(name string) (Flags, bool) {
	for i, known := range flagNames {
		if name == known {
			return 1 << i, true
		}
	}
	return 0, false
}

// readShebang reads the #! line of a script, if it has one, and returns the text
// from the end of that line on, so that lines keep their numbers.
func (s *Script) readShebang() (body string, err error) {
	if !strings.HasPrefix(s.Source, "#!") {
		return s.Source, nil
	}
	end := strings.IndexByte(s.Source, '\n')
	if end < 0 {
		return "", errors.New("ERR Invalid script shebang")
	}
	words, ok := splitLine(s.Source[:end])
	if !ok || len(words) == 0 {
		return "", errors.New("ERR Invalid engine in script shebang")
	}
	if words[0] != "#!lua" {
		return "", errors.New("ERR Unexpected engine in script shebang: " + words[0])
	}
	s.Shebang = true
	for _, word := range words[1:] {
		list, ok := strings.CutPrefix(word, "flags=")
		if !ok {
			return "", errors.New("ERR Unknown lua shebang option: " + word)
		}
		if list == "" {
			continue
		}
		for _, name := range strings.Split(list, ",") {
			flag, ok := flagNamed(name)
			if !ok {
				return "", errors.New("ERR Unexpected flag in script shebang: " + name)
			}
			s.Flags |= flag
		}
	}
	return s.Source[end:], nil
}

// Declared returns the flags in the #! line of a script; ok is false when it has none that is right.
func Declared(src []byte) (flags Flags, ok bool) {
	if !bytes.HasPrefix(src, []byte("#!")) {
		return 0, false
	}
	s := Script{Source: string(src)}
	_, err := s.readShebang()
	return s.Flags, err == nil && s.Shebang
}

// splitLine splits a line into words as redis-cli does, with quotes.
func splitLine(line string) (words []string, ok bool) {
	fields, ok := splitInline([]byte(line))
	for _, f := range fields {
		words = append(words, string(bytes.Clone(f)))
	}
	return words, ok
}
