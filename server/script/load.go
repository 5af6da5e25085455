package script

import (
	"errors"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"headgate/server/script/lualib/luacall"
	"headgate/server/script/syntax"
)

// baseLoadString is loadstring.
func (s *sandbox) baseLoadString(L *lua.LState) int {
	src := luacall.String(L, 1)
	return s.loadText(L, src, luacall.OptString(L, 2, src))
}

// baseLoad is load, whose text comes in the pieces that a function returns. Lua parses what it has before it asks for more, and asks no more
// once that is wrong. So does this, except in a function that another load is asking: that is asked for all of the text first, since
// what has been parsed of it may be large, and loads within loads would keep one tree each.
func (s *sandbox) baseLoad(L *lua.LState) int {
	r := &reader{s: s, L: L, f: luacall.Function(L, 1), handler: s.handler}
	name := luacall.OptString(L, 2, "=(load)")
	if r.handler == s.outermost {
		r.handler = s.read
	}
	defer func() { s.engine.budget.Done(r.text) }()
	var err error
	if s.reading {
		err = r.all()
	} else {
		err = s.check(name, r)
	}
	if err != nil {
		return loadFails(L, name, err)
	}
	return s.loadText(L, text(r.text), name)
}

// check has the text parsed while it is read.
func (s *sandbox) check(name string, r *reader) error {
	s.reading = true
	defer func() { s.reading = false }()
	return syntax.Check(chunkName(cut(name), chunkNameMax), r.more)
}

// reader gathers the text that a function returns in pieces.
type reader struct {
	s       *sandbox
	L       *lua.LState
	f       lua.LValue
	handler *lua.LFunction // of the function's errors
	asked   bool
	text    []byte
}

// more returns the text with one more piece, or as it was once there is none: once the function returns nil or an empty string. If it begins with
// that it is asked again, as Lua does that looks at the first byte before it reads. An error of the function, or one that it has returned no string, has
// gone through the handler, and is a *lua.ApiError.
func (r *reader) more() (string, error) {
	for {
		first := !r.asked
		r.asked = true
		piece, err := r.ask()
		if err != nil {
			return "", err
		}
		if len(r.text)+len(piece) > MaxScriptBytes {
			return "", errBadCode
		}
		if piece == "" && first {
			continue
		}
		r.text = append(r.s.engine.budget.Grow(r.L, r.text, len(piece)), piece...)
		return text(r.text), nil
	}
}

// all reads the whole text.
func (r *reader) all() error {
	for read := -1; read < len(r.text); {
		read = len(r.text)
		if _, err := r.more(); err != nil {
			return err
		}
	}
	return nil
}

// ask calls the function.
func (r *reader) ask() (string, error) {
	L, s := r.L, r.s
	top := L.GetTop()
	L.Push(r.f)
	if err := s.protect(L, 0, r.handler); err != nil {
		return "", err
	}
	v := L.Get(top + 1)
	L.SetTop(top)
	piece, ok := toText(v)
	if ok || v == lua.LNil {
		return piece, nil
	}
	L.Push(r.handler)
	L.Push(lua.LString(position(L, 1) + "reader function must return a string"))
	s.catching++ // and this catches it
	loud := L.Panic
	s.engine.budget.Call(L, 1, 1)
	L.Panic = loud // as PCall would
	s.engine.stopAgain()
	s.catching--
	return "", &lua.ApiError{Object: L.Get(-1)}
}

// errBadCode is the refusal of a text above MaxScriptBytes, behind the name of the chunk.
var errBadCode = errors.New(": bad code")

// loadText compiles text that a script made, and pushes the function, or nil and
// a message.
func (s *sandbox) loadText(L *lua.LState, src, name string) int {
	s.engine.budget.Spend(int64(len(src)) + callSteps)
	luacall.SpendOn(L, len(name))
	if len(src) > MaxScriptBytes {
		return loadFails(L, name, errBadCode)
	}
	display := chunkName(cut(name), chunkNameMax)
	c, err := s.compile(src, display, fromScript)
	if err != nil {
		return loadFails(L, name, err)
	}
	e := s.engine
	if e.run.sources == nil {
		e.run.sources = make(map[string]string)
	}
	if len(e.run.sources) < sourcesMax {
		e.run.sources[display] = name
	}
	L.Push(L.NewFunctionFromProto(c.proto))
	return 1
}

// loadFails pushes what a load that fails returns: nil and what is wrong.
func loadFails(L *lua.LState, name string, err error) int {
	L.Push(lua.LNil)
	if raised := (*lua.ApiError)(nil); errors.As(err, &raised) {
		L.Push(raised.Object)
		return 2
	}
	complaint := strings.TrimPrefix(err.Error(), chunkName(cut(name), chunkNameMax))
	L.Push(lua.LString(chunkName(cut(name), parsedNameMax) + complaint))
	return 2
}

// sourcesMax is how many chunks' full names are remembered while a script runs.
const sourcesMax = 1000

// How long a chunk's name gets in messages, in bytes: in those of what runs, and in those of the parser.
const (
	chunkNameMax  = 60
	parsedNameMax = 80
)

// chunkName returns how messages call a chunk, in at most so many bytes: a name behind = or @ as it is,
// and text by its first line.
func chunkName(name string, most int) string {
	if name != "" && (name[0] == '=' || name[0] == '@') {
		rest := name[1:]
		if name[0] == '=' {
			return strings.Clone(rest[:min(len(rest), most-1)]) // not a part of what may be long: functions keep it
		}
		room := most - len(" '...' ") - 1
		if len(rest) > room {
			return "..." + rest[len(rest)-room:]
		}
		return strings.Clone(rest)
	}
	room := most - len(` [string "..."] `) - 1
	line, _, broken := strings.Cut(strings.ReplaceAll(name, "\r", "\n"), "\n")
	if len(line) > room {
		line, broken = line[:room], true
	}
	if broken {
		line += "..."
	}
	return `[string "` + line + `"]`
}
