package simulate

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// format reads the lines of one kind of log. It is bound to the names of the fields that are wanted.
type format interface {
	// parse reads a line into r, whose values are parts of the line. It reports whether the line is one of this format, with a time.
	parse(line []byte, r *record) bool
}

// record is what is known of a line.
type record struct {
	ns     int64    // Unix time
	values [][]byte // of the fields that are wanted, in their order; nil where the line has none
}

// Names of the formats.
const (
	autoFormat     = "auto"
	combinedFormat = "combined"
	haproxyFormat  = "haproxy"
	jsonFormat     = "json"
)

// newFormat makes the format of a name, or of a regular expression with named groups, for these fields.
func newFormat(name string, wanted []string) (format, error) {
	switch name {
	case combinedFormat:
		return newCombined(wanted)
	case haproxyFormat:
		return newHAProxy(wanted)
	case jsonFormat:
		return newJSON(wanted)
	}
	if strings.Contains(name, "(?") {
		return newPattern(name, wanted)
	}
	return nil, fmt.Errorf("there is no format %q: choose among %s, %s, %s, %s, or give a regular expression with named groups, including (?P<time>...)",
		name, autoFormat, combinedFormat, haproxyFormat, jsonFormat)
}

// detect says by a log's beginning which format it has: that of the first line that any of them takes.
func detect(beginning []byte) string {
	kinds := []string{jsonFormat, haproxyFormat, combinedFormat}
	for line := range bytes.Lines(beginning) {
		for _, kind := range kinds {
			f, err := newFormat(kind, nil)
			if err == nil && f.parse(bytes.TrimRight(line, "\r\n"), &record{}) {
				return kind
			}
		}
	}
	return combinedFormat
}

// places says at which place in all each wanted field stands.
func places(kind string, all, wanted []string) (at []int, err error) {
	for _, name := range wanted {
		i := slices.Index(all, name)
		if i < 0 {
			return nil, fmt.Errorf("lines of format %s have no $%s: they have $%s", kind, name, strings.Join(all, ", $"))
		}
		at = append(at, i)
	}
	return at, nil
}

// pick sets the values of a record, and takes - for none, as servers write it.
func (r *record) pick(fields [][]byte, at []int) {
	r.values = r.values[:0]
	for _, i := range at {
		v := fields[i]
		if len(v) == 0 || len(v) == 1 && v[0] == '-' {
			v = nil
		}
		r.values = append(r.values, v)
	}
}

// pattern is a regular expression, whose named groups are the fields.
type pattern struct {
	re     *regexp.Regexp
	groups []int
	time   int
}

const timeGroup = "time"

func newPattern(text string, wanted []string) (format, error) {
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("--format: %w", err)
	}
	p := &pattern{re: re, time: re.SubexpIndex(timeGroup)}
	if p.time < 0 {
		return nil, fmt.Errorf("--format: a regular expression needs a group (?P<%s>...)", timeGroup)
	}
	for _, name := range wanted {
		i := re.SubexpIndex(name)
		if i < 0 {
			return nil, fmt.Errorf("the regular expression has no group for $%s", name)
		}
		p.groups = append(p.groups, i)
	}
	return p, nil
}

func (p *pattern) parse(line []byte, r *record) (ok bool) {
	found := p.re.FindSubmatchIndex(line)
	if found == nil || found[2*p.time] < 0 {
		return false
	}
	r.values = r.values[:0]
	for _, g := range p.groups {
		var v []byte
		if from, to := found[2*g], found[2*g+1]; from >= 0 && to > from {
			v = line[from:to]
		}
		r.values = append(r.values, v)
	}
	r.ns, ok = parseTime(line[found[2*p.time]:found[2*p.time+1]])
	return ok
}
