package stringlib

import (
	"strings"

	lua "github.com/yuin/gopher-lua"

	"headgate/server/script/limits"
	"headgate/server/script/lualib/luacall"
)

const (
	// capturesMax is the most captures of one pattern, as in Lua 5.1.
	capturesMax = 32
	// choicesMax is the most choices that may be open at once while a pattern
	// is matched. There are never more than the pattern has items, and
	// redis-server runs out of stack at some 80,000 of them.
	choicesMax = 1 << 16
	// matchersMax is how many matchers are kept for reuse.
	matchersMax = 4
	// choicesKeepMax is the largest room for choices that is kept.
	choicesKeepMax = 256
	// sliceMax is how many bytes a loop looks at between two looks at the
	// budget.
	sliceMax = 4096
)

const noMatch = -1

// Lengths of captures that are none.
const (
	unfinished   = -1 // opened and not closed yet
	positionOnly = -2 // (), which captures where it is
)

type capture struct{ start, length int }

// choiceKind says what is undone or tried next when a match fails.
type choiceKind uint8

const (
	tryOnce    choiceKind = iota // go on with pattern at subject, once
	tryShorter                   // the same, then one byte earlier, not before limit
	tryLonger                    // match one more of the item at pattern, then go on behind it
	undoOpen                     // forget the last capture
	undoClose                    // open capture number limit again
)

// choice is a point to which matching goes back. Offsets are into subject and
// pattern; end is where a tryLonger's item ends. What is tried goes on only where
// the subject has the byte next, unless that is negative.
type choice struct {
	kind                         choiceKind
	next                         int16
	subject, pattern, end, limit int
}

// matcher matches one pattern of Lua 5.1 against one subject. Where the C
// implementation recurses, it keeps a list of choices.
type matcher struct {
	L       *lua.LState
	budget  *limits.Budget
	subject string
	// pattern ends at the first NUL byte, as in C; the anchor is cut off.
	pattern  string
	anchored bool
	// literal is the byte that every match starts with, or -1.
	literal  int
	level    int // captures opened
	captures [capturesMax]capture
	choices  []choice
}

// takeMatcher returns a matcher. One that an error keeps from being given back
// is garbage.
func (lib *library) takeMatcher(L *lua.LState, subject, pattern string, anchors bool) *matcher {
	luacall.SpendOn(L, len(pattern))
	var m *matcher
	if n := len(lib.matchers); n > 0 {
		m, lib.matchers = lib.matchers[n-1], lib.matchers[:n-1]
	} else {
		m = &matcher{budget: lib.budget}
	}
	if i := strings.IndexByte(pattern, 0); i >= 0 {
		pattern = pattern[:i]
	}
	m.anchored = anchors && pattern != "" && pattern[0] == '^'
	if m.anchored {
		pattern = pattern[1:]
	}
	m.L, m.subject, m.pattern = L, subject, pattern
	m.literal = int(m.literalAt(0))
	return m
}

// literalAt returns the byte that what matches the pattern from p on starts with, or -1 if that is not a certain one.
func (m *matcher) literalAt(p int) int16 {
	if p >= len(m.pattern) || strings.IndexByte("()%.[$", m.pattern[p]) >= 0 || isOptional(m.at(p+1)) {
		return -1
	}
	return int16(m.pattern[p])
}

// giveMatcher keeps m for reuse.
func (lib *library) giveMatcher(m *matcher) {
	if len(lib.matchers) < matchersMax && cap(m.choices) <= choicesKeepMax {
		m.L, m.subject, m.pattern = nil, "", ""
		lib.matchers = append(lib.matchers, m)
	}
}

// isOptional reports whether an item with this suffix may match nothing.
func isOptional(suffix byte) bool { return suffix == '*' || suffix == '?' || suffix == '-' }

// at returns the byte at pattern[i:], 0 at the end.
func (m *matcher) at(i int) byte {
	if i < len(m.pattern) {
		return m.pattern[i]
	}
	return 0
}

// search finds the first match that starts at from or later.
func (m *matcher) search(from int) (start, end int) {
	for s := from; s <= len(m.subject); s++ {
		if m.literal >= 0 && !m.anchored {
			if s = m.skipTo(s); s < 0 {
				break
			}
		}
		if e := m.match(s); e != noMatch {
			return s, e
		}
		if m.anchored {
			break
		}
	}
	return 0, noMatch
}

// skipTo returns where the literal that a match starts with is next, -1 if
// nowhere.
func (m *matcher) skipTo(s int) int {
	for s < len(m.subject) {
		slice := m.subject[s:min(s+sliceMax, len(m.subject))]
		if i := strings.IndexByte(slice, byte(m.literal)); i >= 0 {
			m.budget.Spend(int64(i >> 3))
			return s + i
		}
		m.budget.Spend(int64(len(slice) >> 3))
		s += len(slice)
	}
	return -1
}

// match matches the whole pattern at s and returns where the match ends, or
// noMatch.
func (m *matcher) match(s int) int {
	m.level, m.choices = 0, m.choices[:0]
	p := 0
	for {
		m.budget.Spend(1)
		if p == len(m.pattern) {
			return s
		}
		ok := true
		switch c := m.pattern[p]; {
		case c == '(':
			p = m.open(s, p)
		case c == ')':
			m.close(s)
			p++
		case c == '$' && p+1 == len(m.pattern):
			if s == len(m.subject) {
				return s
			}
			ok = false
		case c == '%' && m.at(p+1) == 'b':
			s, ok = m.balanced(s, p+2)
			p += len("%bxy")
		case c == '%' && m.at(p+1) == 'f':
			p, ok = m.frontier(s, p+2)
		case c == '%' && isDigit(m.at(p+1)):
			s, ok = m.repeated(s, m.at(p+1))
			p += len("%1")
		default:
			s, p, ok = m.item(s, p)
		}
		if !ok {
			if s, p, ok = m.back(); !ok {
				return noMatch
			}
		}
	}
}

// item matches a single class of characters and its suffix.
func (m *matcher) item(s, p int) (nextS, nextP int, ok bool) {
	end := m.classEnd(p)
	m.budget.Spend(weight(p, end) - 1)
	switch m.at(end) {
	case '?':
		if m.single(s, p, end) {
			m.push(choice{kind: tryOnce, subject: s, pattern: end + 1})
			s++
		}
		return s, end + 1, true
	case '*', '+':
		least := 0
		if m.pattern[end] == '+' {
			least = 1
		}
		n := m.run(s, p, end)
		if n > least {
			m.push(choice{kind: tryShorter, next: m.literalAt(end + 1), subject: s + n - 1, limit: s + least, pattern: end + 1})
		}
		return s + n, end + 1, n >= least
	case '-':
		m.push(choice{kind: tryLonger, next: m.literalAt(end + 1), subject: s, pattern: p, end: end})
		return s, end + 1, true
	}
	return s + 1, end, m.single(s, p, end)
}

// weight is what one look at the class from p to end costs in steps.
func weight(p, end int) int64 { return 1 + int64(end-p)>>3 }

// run returns how many bytes from s on are of the class from p to end.
func (m *matcher) run(s, p, end int) int {
	if m.pattern[p] == '.' {
		return len(m.subject) - s
	}
	perByte := weight(p, end)
	slice := max(1, sliceMax/int(perByte))
	n := 0
	for {
		first := n
		for n-first < slice && m.single(s+n, p, end) {
			n++
		}
		m.budget.Spend(int64(n-first) * perByte)
		if n-first < slice {
			return n
		}
	}
}

// push adds a choice.
func (m *matcher) push(c choice) {
	if len(m.choices) >= choicesMax {
		luacall.Error(m.L, "pattern too complex")
	}
	m.choices = append(m.choices, c)
}

// back goes back to the last choice that has something left to try.
func (m *matcher) back() (s, p int, ok bool) {
	for len(m.choices) > 0 {
		last := len(m.choices) - 1
		c := &m.choices[last]
		switch c.kind {
		case tryOnce:
			m.choices = m.choices[:last]
			return c.subject, c.pattern, true
		case tryShorter:
			for s = c.subject; s > c.limit && !m.goesOn(s, c.next); s-- {
				m.budget.Spend(1)
			}
			if c.subject = s - 1; c.subject < c.limit {
				m.choices = m.choices[:last]
			}
			return s, c.pattern, true
		case tryLonger:
			cost := weight(c.pattern, c.end)
			for m.budget.Spend(cost); m.single(c.subject, c.pattern, c.end); m.budget.Spend(cost) {
				if c.subject++; m.goesOn(c.subject, c.next) {
					return c.subject, c.end + 1, true
				}
			}
		case undoOpen:
			m.level--
		case undoClose:
			m.captures[c.limit].length = unfinished
		}
		m.choices = m.choices[:last]
	}
	return 0, 0, false
}

// goesOn reports whether a pattern may match at s whose next byte is next, see choice.
func (m *matcher) goesOn(s int, next int16) bool {
	return next < 0 || s < len(m.subject) && m.subject[s] == byte(next)
}

// open starts a capture at s and returns where the pattern goes on.
func (m *matcher) open(s, p int) int {
	if m.level >= capturesMax {
		luacall.Error(m.L, "too many captures")
	}
	c := &m.captures[m.level]
	c.start, c.length = s, unfinished
	p++
	if m.at(p) == ')' {
		c.length = positionOnly
		p++
	}
	m.level++
	m.push(choice{kind: undoOpen})
	return p
}

// close ends the innermost open capture at s.
func (m *matcher) close(s int) {
	for i := m.level - 1; i >= 0; i-- {
		if c := &m.captures[i]; c.length == unfinished {
			c.length = s - c.start
			m.push(choice{kind: undoClose, limit: i})
			return
		}
	}
	luacall.Error(m.L, "invalid pattern capture")
}

// repeated matches what the capture that digit names has captured.
func (m *matcher) repeated(s int, digit byte) (next int, ok bool) {
	i := int(digit) - '1'
	if i < 0 || i >= m.level || m.captures[i].length == unfinished {
		luacall.Error(m.L, "invalid capture index")
	}
	c := m.captures[i]
	if c.length == positionOnly || len(m.subject)-s < c.length {
		return s, false
	}
	m.budget.Spend(int64(c.length >> 3))
	return s + c.length, m.subject[c.start:c.start+c.length] == m.subject[s:s+c.length]
}

// balanced matches %bxy, of which x stands at pattern[p:].
func (m *matcher) balanced(s, p int) (next int, ok bool) {
	if p+1 >= len(m.pattern) {
		luacall.Error(m.L, "unbalanced pattern")
	}
	opening, closing := m.pattern[p], m.pattern[p+1]
	if s >= len(m.subject) || m.subject[s] != opening {
		return s, false
	}
	depth := 1
	for i := s + 1; i < len(m.subject); i++ {
		if (i-s)%sliceMax == 0 {
			m.budget.Spend(sliceMax)
		}
		switch m.subject[i] {
		case closing:
			if depth--; depth == 0 {
				m.budget.Spend(int64(i-s) % sliceMax)
				return i + 1, true
			}
		case opening:
			depth++
		}
	}
	m.budget.Spend(int64(len(m.subject)-s) % sliceMax)
	return s, false
}

// frontier matches %f[set], of which the set stands at pattern[p:]: the empty
// place between a byte that is not in the set and one that is. Before the
// subject and behind it there are NUL bytes.
func (m *matcher) frontier(s, p int) (next int, ok bool) {
	if m.at(p) != '[' {
		luacall.Error(m.L, "missing '[' after '%f' in pattern")
	}
	end := m.classEnd(p)
	m.budget.Spend(weight(p, end))
	var before, after byte
	if s > 0 {
		before = m.subject[s-1]
	}
	if s < len(m.subject) {
		after = m.subject[s]
	}
	return end, !m.inSet(before, p, end-1) && m.inSet(after, p, end-1)
}

// classEnd returns where the single class at pattern[p:] ends.
func (m *matcher) classEnd(p int) int {
	c := m.pattern[p]
	p++
	if c == '%' {
		if p == len(m.pattern) {
			luacall.Error(m.L, "malformed pattern (ends with '%')")
		}
		return p + 1
	}
	if c != '[' {
		return p
	}
	if m.at(p) == '^' {
		p++
	}
	for first := p; ; {
		if p >= len(m.pattern) {
			luacall.Error(m.L, "malformed pattern (missing ']')")
		}
		c := m.pattern[p]
		if c == ']' && p > first { // one that comes first is a member
			return p + 1
		}
		p++
		if c == '%' && p < len(m.pattern) {
			p++
		}
	}
}

// single reports whether the byte at subject[s:] is of the class from p to end.
func (m *matcher) single(s, p, end int) bool {
	if s >= len(m.subject) {
		return false
	}
	c := m.subject[s]
	switch m.pattern[p] {
	case '.':
		return true
	case '%':
		return matchesClass(c, m.pattern[p+1])
	case '[':
		return m.inSet(c, p, end-1)
	}
	return m.pattern[p] == c
}

// inSet reports whether c is in the set from p to last, its two brackets.
func (m *matcher) inSet(c byte, p, last int) bool {
	in := true
	p++
	if m.pattern[p] == '^' {
		in = false
		p++
	}
	for ; p < last; p++ {
		switch {
		case m.pattern[p] == '%':
			p++
			if matchesClass(c, m.pattern[p]) {
				return in
			}
		case m.pattern[p+1] == '-' && p+2 < last:
			if m.pattern[p] <= c && c <= m.pattern[p+2] {
				return in
			}
			p += 2
		case m.pattern[p] == c:
			return in
		}
	}
	return !in
}
