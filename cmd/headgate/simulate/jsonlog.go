package simulate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// jsonLog reads lines that are objects of JSON, as Caddy writes them and nginx may. A field is named by the way to it, with points. It is
// found in place: nothing is decoded but strings with escapes that are wanted.
type jsonLog struct {
	paths  []jsonPath
	fields int
	ranks  []int // of the values that the line has given so far; one with a lower rank wins
	time   []byte
}

// jsonPath is a way to a value. The time is the field -1.
type jsonPath struct {
	steps [][]byte
	field int
	rank  int
}

const (
	maxJSONPaths = 64 // as many as a word has bits
	maxJSONDepth = 64
	timeField    = -1
)

// jsonTimes are where times are looked for. The first that is there counts.
var jsonTimes = []string{"ts", "time", "timestamp", "@timestamp", "time_iso8601", "msec", "time_local"}

// jsonNames are where Caddy has what nginx calls so. The first that is there counts; before all comes the name itself.
var jsonNames = map[string][]string{
	"remote_addr":     {"request.client_ip", "request.remote_ip"},
	"remote_user":     {"user_id"},
	"request_method":  {"request.method"},
	"request_uri":     {"request.uri"},
	"host":            {"request.host"},
	"server_protocol": {"request.proto"},
	"body_bytes_sent": {"size"},
}

func newJSON(wanted []string) (format, error) {
	j := &jsonLog{fields: len(wanted), ranks: make([]int, len(wanted)+1)}
	add := func(path string, field, rank int) {
		j.paths = append(j.paths, jsonPath{steps: bytes.Split([]byte(path), []byte(".")), field: field, rank: rank})
	}
	for i, path := range jsonTimes {
		add(path, timeField, i)
	}
	for i, name := range wanted {
		add(name, i, 0)
		for n, path := range jsonNames[name] {
			add(path, i, n+1)
		}
		if header, ok := strings.CutPrefix(name, "http_"); ok {
			add("request.headers."+strings.ReplaceAll(header, "_", "-"), i, 1)
		}
	}
	if len(j.paths) > maxJSONPaths {
		return nil, fmt.Errorf("the key has too many fields: at most %d are looked for", maxJSONPaths)
	}
	return j, nil
}

func (j *jsonLog) parse(line []byte, r *record) bool {
	r.values = r.values[:0]
	for range j.fields {
		r.values = append(r.values, nil)
	}
	for i := range j.ranks {
		j.ranks[i] = maxJSONPaths
	}
	j.time = nil
	s := &jsonScan{b: line, log: j, record: r}
	if s.space(); !s.value(0, ^uint64(0)>>(64-len(j.paths))) || j.time == nil {
		return false
	}
	if s.space(); s.at != len(line) || line[bytes.IndexAny(line, "{[")] != '{' {
		return false
	}
	ns, ok := parseTime(j.time)
	r.ns = ns
	return ok
}

// take gives the value of all paths in found to their fields.
func (j *jsonLog) take(found uint64, value []byte, r *record) {
	for i := range j.paths {
		p := &j.paths[i]
		if found&(1<<i) == 0 || j.ranks[p.field+1] <= p.rank {
			continue
		}
		j.ranks[p.field+1] = p.rank
		if p.field == timeField {
			j.time = value
		} else {
			r.values[p.field] = value
		}
	}
}

// jsonScan walks over one line.
type jsonScan struct {
	b      []byte
	at     int
	log    *jsonLog
	record *record
}

func (s *jsonScan) space() {
	for s.at < len(s.b) && (s.b[s.at] == ' ' || s.b[s.at] == '\t' || s.b[s.at] == '\r' || s.b[s.at] == '\n') {
		s.at++
	}
}

// eat takes a byte if it is next.
func (s *jsonScan) eat(c byte) bool {
	s.space()
	if s.at < len(s.b) && s.b[s.at] == c {
		s.at++
		return true
	}
	return false
}

// value reads the next value. Of the paths in active so many steps have been gone; for those that end here the value is taken.
func (s *jsonScan) value(depth int, active uint64) bool {
	if s.space(); s.at >= len(s.b) || depth > maxJSONDepth {
		return false
	}
	switch s.b[s.at] {
	case '{':
		return s.object(depth, active)
	case '[':
		return s.array(depth, active)
	case '"':
		raw, escaped, ok := s.text()
		if ending := s.ending(depth, active); ok && ending != 0 && len(raw) > 0 {
			if escaped {
				raw, ok = decoded(raw)
			}
			s.log.take(ending, raw, s.record)
		}
		return ok
	}
	from := s.at
	for s.at < len(s.b) && bytes.IndexByte([]byte(",]} \t\r\n"), s.b[s.at]) < 0 {
		s.at++
	}
	raw := s.b[from:s.at]
	if ending := s.ending(depth, active); ending != 0 && !bytes.Equal(raw, []byte("null")) {
		s.log.take(ending, raw, s.record)
	}
	return len(raw) > 0
}

// ending are those of the paths that have no further step.
func (s *jsonScan) ending(depth int, active uint64) (ending uint64) {
	for i := range s.log.paths {
		if active&(1<<i) != 0 && len(s.log.paths[i].steps) == depth {
			ending |= 1 << i
		}
	}
	return ending
}

func (s *jsonScan) object(depth int, active uint64) bool {
	s.at++
	if s.eat('}') {
		return true
	}
	for {
		if s.space(); s.at >= len(s.b) || s.b[s.at] != '"' {
			return false
		}
		name, _, ok := s.text()
		if !ok || !s.eat(':') {
			return false
		}
		var next uint64
		for i := range s.log.paths {
			if steps := s.log.paths[i].steps; active&(1<<i) != 0 && len(steps) > depth && bytes.EqualFold(steps[depth], name) {
				next |= 1 << i
			}
		}
		if !s.value(depth+1, next) {
			return false
		}
		if s.eat('}') {
			return true
		}
		if !s.eat(',') {
			return false
		}
	}
}

// array takes the first element for the whole: Caddy has lists of the values of a header.
func (s *jsonScan) array(depth int, active uint64) bool {
	if s.at++; s.eat(']') {
		return true
	}
	for ; ; active = 0 {
		// An array in an array is one step further down, so that none is too deep.
		if s.space(); s.at < len(s.b) && s.b[s.at] == '[' {
			if !s.value(depth+1, 0) {
				return false
			}
		} else if !s.value(depth, active) {
			return false
		}
		if s.eat(']') {
			return true
		}
		if !s.eat(',') {
			return false
		}
	}
}

// text reads a string, as it is written between its quotes.
func (s *jsonScan) text() (raw []byte, escaped, ok bool) {
	s.at++
	for from := s.at; s.at < len(s.b); s.at++ {
		switch s.b[s.at] {
		case '"':
			s.at++
			return s.b[from : s.at-1], escaped, true
		case '\\':
			escaped = true
			s.at++
		}
	}
	return nil, escaped, false
}

func decoded(raw []byte) ([]byte, bool) {
	var text string
	err := json.Unmarshal(append(append([]byte{'"'}, raw...), '"'), &text)
	return []byte(text), err == nil
}
