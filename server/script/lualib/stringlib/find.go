package stringlib

import (
	"math"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"headgate/server/script/lualib/luacall"
)

// special are the bytes that make a text more than itself to string.find.
const special = "^$*+?.([%-"

func (lib *library) find(L *lua.LState) int { return lib.findOrMatch(L, true) }

func (lib *library) match(L *lua.LState) int { return lib.findOrMatch(L, false) }

func (lib *library) findOrMatch(L *lua.LState, find bool) int {
	s, pattern := luacall.String(L, 1), luacall.String(L, 2)
	from := position(luacall.OptInteger(L, 3, 1), len(s)) - 1
	from = min(max(from, 0), len(s))
	if find && (lua.LVAsBool(L.Get(4)) || isPlain(pattern)) {
		return lib.findPlain(L, s, pattern, from)
	}
	m := lib.takeMatcher(L, s, pattern, true)
	start, end := m.search(from)
	pushed := 1
	switch {
	case end == noMatch:
		L.Push(lua.LNil)
	case find:
		L.Push(luacall.IntValue(start + 1))
		L.Push(luacall.IntValue(end))
		pushed = 2 + m.pushCaptures(start, end, false)
	default:
		pushed = m.pushCaptures(start, end, true)
	}
	lib.giveMatcher(m)
	return pushed
}

// isPlain reports whether no byte before the first NUL is special.
func isPlain(pattern string) bool {
	if i := strings.IndexByte(pattern, 0); i >= 0 {
		pattern = pattern[:i]
	}
	return !strings.ContainsAny(pattern, special)
}

// findPlain is string.find for a text.
func (lib *library) findPlain(L *lua.LState, s, text string, from int) int {
	const bytesPerSearch = 1 << 20
	luacall.SpendOn(L, len(text))
	for at := from; ; at += bytesPerSearch {
		slice := s[at:min(at+bytesPerSearch+len(text), len(s))]
		lib.budget.Spend(int64(len(slice)>>3) + 1)
		if i := strings.Index(slice, text); i >= 0 {
			L.Push(luacall.IntValue(at + i + 1))
			L.Push(luacall.IntValue(at + i + len(text)))
			return 2
		}
		if at+len(slice) == len(s) {
			L.Push(lua.LNil)
			return 1
		}
	}
}

// pushCaptures pushes all captures and returns their number. For a pattern
// without captures it pushes the match, if whole is true.
func (m *matcher) pushCaptures(start, end int, whole bool) int {
	n := m.level
	if n == 0 && whole {
		n = 1
	}
	for i := range n {
		m.L.Push(m.captured(i, start, end))
	}
	return n
}

// captured returns what capture i has captured; capture 0 of a pattern without
// captures is the match.
func (m *matcher) captured(i, start, end int) lua.LValue {
	if i >= m.level {
		if i > 0 {
			luacall.Error(m.L, "invalid capture index")
		}
		return m.part(start, end)
	}
	c := m.captures[i]
	switch c.length {
	case positionOnly:
		return luacall.IntValue(c.start + 1)
	case unfinished:
		luacall.Error(m.L, "unfinished capture")
	}
	return m.part(c.start, c.start+c.length)
}

// part returns a piece of the subject.
func (m *matcher) part(start, end int) lua.LValue {
	m.budget.CheckString(m.L, end-start)
	return luacall.PartValue(m.subject, m.subject[start:end])
}

func (lib *library) gmatch(L *lua.LState) int {
	s, pattern := luacall.String(L, 1), luacall.String(L, 2)
	next := 0
	// The function has the strings as upvalues too, where they are counted.
	L.Push(L.NewClosure(func(L *lua.LState) int {
		if next > len(s) {
			return 0
		}
		m := lib.takeMatcher(L, s, pattern, false)
		start, end := m.search(next)
		if end == noMatch {
			next = len(s) + 1
			lib.giveMatcher(m)
			return 0
		}
		next = end
		if start == end {
			next++ // an empty match must not be found again
		}
		pushed := m.pushCaptures(start, end, true)
		lib.giveMatcher(m)
		return pushed
	}, L.Get(1), L.Get(2)))
	return 1
}

func (lib *library) gsub(L *lua.LState) int {
	s, pattern := luacall.String(L, 1), luacall.String(L, 2)
	most := math.MaxInt
	if L.Get(4) != lua.LNil {
		most = luacall.Int(L, 4)
	}
	replacement := L.Get(3)
	switch replacement.(type) {
	case lua.LNumber:
		replacement = lua.LString(luacall.String(L, 3))
	case lua.LString, *lua.LFunction, *lua.LTable:
	default:
		luacall.ArgError(L, 3, "string/function/table expected")
	}
	m := lib.takeMatcher(L, s, pattern, true)
	var b *buffer            // nil up to the first match
	n, copied, at := 0, 0, 0 // copied is up to where b has s
	for n < most {
		start, end := m.search(at)
		if end == noMatch {
			break
		}
		if n++; b == nil {
			b = lib.takeBuffer(L)
		}
		b.writeString(s[copied:start])
		lib.replace(m, b, replacement, start, end)
		copied, at = end, end
		if start == end {
			at++ // the byte behind an empty match is not part of another
		}
		if m.anchored || at > len(s) {
			break
		}
	}
	lib.giveMatcher(m)
	if b == nil {
		L.Push(luacall.StringValue(s))
	} else {
		b.writeString(s[copied:])
		L.Push(lib.give(b))
	}
	L.Push(luacall.IntValue(n))
	return 2
}

// replace writes what stands for one match.
func (lib *library) replace(m *matcher, b *buffer, replacement lua.LValue, start, end int) {
	L := m.L
	if _, text := replacement.(lua.LString); !text && cap(m.choices) > choicesKeepMax {
		m.choices = nil // The script may go on to search inside, again and again.
	}
	var value lua.LValue
	switch r := replacement.(type) {
	case lua.LString:
		m.expand(b, string(r), start, end)
		return
	case *lua.LTable:
		value = L.GetTable(r, m.captured(0, start, end))
	default:
		L.Push(r)
		lib.budget.Call(L, m.pushCaptures(start, end, true), 1)
		value = L.Get(-1)
		L.Pop(1)
	}
	switch v := value.(type) {
	case lua.LString:
		b.writeString(string(v))
	case lua.LNumber:
		b.writeNumber(float64(v))
	default:
		if lua.LVAsBool(value) {
			luacall.Errorf(L, "invalid replacement value (a %s)", value.Type())
		}
		b.writeString(m.subject[start:end])
	}
}

// expand writes a replacement text, in which % and a digit stand for a capture,
// %0 for the match, and % before anything else for that.
func (m *matcher) expand(b *buffer, text string, start, end int) {
	for {
		m.budget.Spend(1)
		i := strings.IndexByte(text, '%')
		if i < 0 {
			b.writeString(text)
			return
		}
		b.writeString(text[:i])
		text = text[i+1:]
		var c byte // 0 at the end, where C finds the NUL behind the text
		if text != "" {
			c, text = text[0], text[1:]
		}
		switch {
		case !isDigit(c):
			b.writeByte(c)
		case c == '0':
			b.writeString(m.subject[start:end])
		default:
			switch v := m.captured(int(c-'1'), start, end).(type) {
			case lua.LString:
				b.writeString(string(v))
			case lua.LNumber:
				b.writeNumber(float64(v))
			}
		}
	}
}
