package aof

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Kind is what a file of the manifest is for.
type Kind byte

// The kinds, by the letters of the manifest.
const (
	Base        Kind = 'b'
	Incremental Kind = 'i'
	History     Kind = 'h'
)

// Entry is a line of the manifest.
type Entry struct {
	Name string
	Seq  int64
	Kind Kind
}

// Manifest lists the files that make up the data. The zero value is that of a new directory.
type Manifest struct {
	Base    *Entry // nil if there is none
	Incr    []Entry
	History []Entry
}

// Limits of a manifest. Redis bounds the lines alone, to as much.
const (
	maxManifest     = 1 << 20 // bytes
	maxManifestLine = 1024
)

// Errors of manifests, in Redis's words where it has any.
var (
	errManifestEmpty     = errors.New("found an empty AOF manifest")
	errManifestTooLong   = errors.New("the AOF manifest is too long")
	errManifestLine      = errors.New("the AOF manifest file contains a line that is too long")
	errManifestFormat    = errors.New("invalid AOF manifest file format")
	errManifestPath      = errors.New("the file name cannot be a path")
	errManifestBases     = errors.New("found duplicate base file information")
	errManifestSequence  = errors.New("found a non-monotonic sequence number")
	errManifestNoNewline = errors.New("the last line of the AOF manifest is incomplete")
)

// ParseManifest reads a manifest's text.
func ParseManifest(text []byte) (*Manifest, error) {
	switch {
	case len(text) == 0:
		return nil, errManifestEmpty
	case len(text) > maxManifest:
		return nil, errManifestTooLong
	case text[len(text)-1] != '\n':
		return nil, errManifestNoNewline
	}
	m := &Manifest{}
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		if line[0] == '#' {
			continue
		}
		if err := m.addLine(line); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
	return m, nil
}

func (m *Manifest) addLine(line string) error {
	if len(line) > maxManifestLine {
		return errManifestLine
	}
	words, ok := splitWords(strings.TrimRight(line, " \t\r\n"))
	if !ok || len(words) < 6 || len(words)%2 != 0 {
		return errManifestFormat
	}
	var e Entry
	for i := 0; i < len(words); i += 2 {
		value := words[i+1]
		switch strings.ToLower(words[i]) {
		case "file":
			if filepath.Base(value) != value || value == "." || value == ".." {
				return errManifestPath
			}
			e.Name = value
		case "seq":
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return errManifestFormat
			}
			e.Seq = n
		case "type":
			if len(value) == 0 {
				return errManifestFormat
			}
			e.Kind = Kind(value[0])
		}
	}
	if e.Name == "" || e.Seq <= 0 {
		return errManifestFormat
	}
	return m.add(e)
}

func (m *Manifest) add(e Entry) error {
	switch e.Kind {
	case Base:
		if m.Base != nil {
			return errManifestBases
		}
		m.Base = &e
	case Incremental:
		if n := len(m.Incr); n > 0 && e.Seq <= m.Incr[n-1].Seq {
			return errManifestSequence
		}
		m.Incr = append(m.Incr, e)
	case History:
		m.History = append(m.History, e)
	default:
		return errManifestFormat
	}
	return nil
}

// Encode returns the manifest's text.
func (m *Manifest) Encode() []byte {
	var text []byte
	for _, e := range m.all() {
		text = fmt.Appendf(text, "file %s seq %d type %c\n", quoteWord(e.Name), e.Seq, e.Kind)
	}
	return text
}

// all returns the lines in the order in which they are written.
func (m *Manifest) all() []Entry {
	var list []Entry
	if m.Base != nil {
		list = append(list, *m.Base)
	}
	list = append(list, m.History...)
	return append(list, m.Incr...)
}

// clone returns a copy that can be changed.
func (m *Manifest) clone() *Manifest {
	c := &Manifest{Incr: slices.Clone(m.Incr), History: slices.Clone(m.History)}
	if m.Base != nil {
		base := *m.Base
		c.Base = &base
	}
	return c
}

// toHistory makes the base and the increments up to the one numbered seq history.
func (m *Manifest) toHistory(seq int64) {
	if m.Base != nil {
		m.Base.Kind = History
		m.History = append(m.History, *m.Base)
		m.Base = nil
	}
	for len(m.Incr) > 0 && m.Incr[0].Seq <= seq {
		e := m.Incr[0]
		e.Kind = History
		m.History = append(m.History, e)
		m.Incr = m.Incr[1:]
	}
}

// lastSeq returns the highest numbers of base files and of increments so far.
func (m *Manifest) lastSeq() (base, incr int64) {
	if m.Base != nil {
		base = m.Base.Seq
	}
	if n := len(m.Incr); n > 0 {
		incr = m.Incr[n-1].Seq
	}
	return base, incr
}

// quoteWord writes a name so that splitWords reads it back, as Redis does for those with bytes that are not plain.
func quoteWord(name string) string {
	for i := range len(name) {
		if c := name[i]; c <= ' ' || c >= 0x7f || c == '"' || c == '\'' || c == '\\' {
			return strconv.Quote(name)
		}
	}
	return name
}

// splitWords cuts a line at its spaces. A word in double quotes may have escapes.
func splitWords(line string) (words []string, ok bool) {
	for {
		line = strings.TrimLeft(line, " \t")
		switch {
		case line == "":
			return words, true
		case line[0] == '"':
			quoted, err := strconv.QuotedPrefix(line)
			if err != nil {
				return nil, false
			}
			word, err := strconv.Unquote(quoted)
			if line = line[len(quoted):]; err != nil || (line != "" && line[0] != ' ' && line[0] != '\t') {
				return nil, false
			}
			words = append(words, word)
		default:
			end := strings.IndexAny(line, " \t")
			if end < 0 {
				end = len(line)
			}
			words = append(words, line[:end])
			line = line[end:]
		}
	}
}
