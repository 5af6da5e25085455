package script

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"

	lua "github.com/yuin/gopher-lua"

	"headgate/server/script/limits"
)

// Script is one compiled script.
type Script struct {
	// SHA is the script's name: the SHA-1 of Source in 40 lower-case digits.
	SHA string
	// Source is the text, with its #! line.
	Source string
	// Flags are those of the #! line.
	Flags Flags
	// Shebang is false for a script without #! line. Redis then judges each
	// command by itself, and runs the script on replicas and when memory is
	// short.
	Shebang bool

	function           *lua.LFunction
	keeps, usesGlobals bool
	loaded             bool // by SCRIPT LOAD
	bytes              int  // what it takes up, about
	older, newer       *Script
}

// digest names a script.
type digest [sha1.Size]byte

// cache keeps scripts by their SHA-1. Those that EVAL brought are in a list, the
// one used last at its end.
type cache struct {
	scripts map[digest]*Script
	bytes   int
	list    Script // older is the end of the list, newer its start
}

// errScriptSize is the refusal of a text above MaxScriptBytes.
var errScriptSize = errors.New("ERR Script is too long: the limit is 1048576 bytes")

// errCacheFull is the refusal of SCRIPT LOAD when no script can make room.
var errCacheFull = errors.New("ERR Too many scripts are loaded: SCRIPT FLUSH makes room")

// Load returns src compiled, and keeps it. The error is the reply's text,
// starting with "ERR ".
//
// Redis keeps every script until SCRIPT FLUSH. Here their number and their size
// are bounded (see Options): the scripts that EVAL brought make room, those
// first that were used longest ago. keep protects a script from that: SCRIPT
// LOAD sets it, and is refused when all the room is taken by such scripts.
func (e *Engine) Load(src []byte, keep bool) (*Script, error) {
	if len(src) > MaxScriptBytes {
		return nil, errScriptSize
	}
	sum := digest(sha1.Sum(src))
	s := e.cache.scripts[sum]
	if s == nil {
		if keep && e.full(len(src)) {
			return nil, errCacheFull // before it is compiled, which takes long and leaves much garbage
		}
		var err error
		if s, err = e.compileScript(string(src), sum); err != nil {
			return nil, err
		}
		if !e.makeRoom(s.bytes) {
			if keep {
				return nil, errCacheFull
			}
			return s, nil
		}
		e.cache.scripts[sum] = s
		e.cache.bytes += s.bytes
	}
	switch {
	case s.loaded:
	case keep:
		s.loaded = true
		e.cache.unlink(s)
	default:
		e.cache.touch(s)
	}
	return s, nil
}

// scriptBytes is about what a script that is kept takes up beside its text and
// what that is compiled to: its name, its entries in the tables, its function.
const scriptBytes = 400

// compileScript compiles the text of a script.
func (e *Engine) compileScript(src string, sum digest) (*Script, error) {
	s := &Script{SHA: hex.EncodeToString(sum[:]), Source: src}
	body, err := s.readShebang()
	if err != nil {
		return nil, err
	}
	c, err := e.eval.compile(body, "user_script", fromClient)
	if err != nil {
		return nil, errors.New("ERR Error compiling script (new function): " + err.Error())
	}
	s.function = e.eval.L.NewFunctionFromProto(c.proto)
	s.keeps, s.usesGlobals = c.keeps, c.usesGlobals
	s.bytes = scriptBytes + len(src) + limits.Compiled(c.proto)
	return s, nil
}

// lacksRoom reports whether there is no room for a script of size bytes yet.
func (e *Engine) lacksRoom(size int) bool {
	return len(e.cache.scripts) >= e.options.MaxScripts || e.cache.bytes+size > e.options.MaxCacheBytes
}

// full reports whether nothing can make room for a script of size bytes.
func (e *Engine) full(size int) bool {
	return e.lacksRoom(size) && e.cache.list.newer == &e.cache.list
}

// makeRoom evicts scripts until one of size bytes fits; false when it cannot.
func (e *Engine) makeRoom(size int) bool {
	c := &e.cache
	if size > e.options.MaxCacheBytes {
		return false
	}
	for e.lacksRoom(size) {
		if e.full(size) {
			return false
		}
		oldest := c.list.newer
		c.unlink(oldest)
		c.bytes -= oldest.bytes
		var sum digest
		_, _ = hex.Decode(sum[:], []byte(oldest.SHA)) // It is our own.
		delete(c.scripts, sum)
	}
	return true
}

// Get returns the script whose SHA-1 is sha, in digits of either case, or nil.
func (e *Engine) Get(sha []byte) *Script {
	var sum digest
	if len(sha) != hex.EncodedLen(len(sum)) {
		return nil
	}
	if _, err := hex.Decode(sum[:], sha); err != nil {
		return nil
	}
	s := e.cache.scripts[sum]
	if s != nil && !s.loaded {
		e.cache.touch(s)
	}
	return s
}

// Flush forgets all scripts. One that runs ends as if it were still there.
func (e *Engine) Flush() {
	e.cache = cache{scripts: make(map[digest]*Script)}
	e.cache.list.older, e.cache.list.newer = &e.cache.list, &e.cache.list
}

// Len returns the number of scripts that are kept.
func (e *Engine) Len() int { return len(e.cache.scripts) }

// CacheBytes returns about what all kept scripts take up, as text and compiled.
func (e *Engine) CacheBytes() int { return e.cache.bytes }

// touch makes s the end of the list.
func (c *cache) touch(s *Script) {
	if c.list.older == s {
		return
	}
	c.unlink(s)
	s.older, s.newer = c.list.older, &c.list
	s.older.newer, c.list.older = s, s
}

// unlink takes s out of the list, if it is in there.
func (c *cache) unlink(s *Script) {
	if s.newer != nil {
		s.older.newer, s.newer.older = s.newer, s.older
		s.older, s.newer = nil, nil
	}
}
