package script

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"headgate/server/script/limits"
)

// Library is a loaded library of functions.
type Library struct {
	// Name is from the #! line, and Code the text with that line.
	Name, Code string
	// Engine is LUA.
	Engine string
	// Functions are in the order of their names.
	Functions []*Function

	proto *lua.FunctionProto // what Code was compiled to
	bytes int                // what it takes up, about
	heap  heap
	// kept is what the variables of its functions held when they were last weighed, in bytes, and gone how many keys without an element were among
	// that.
	kept, gone int
	// removed are keys that its tables have dropped, which functions may still go on from.
	removed limits.Removed
}

// Function is one function of a library.
type Function struct {
	// Name is the one that FCALL takes.
	Name string
	// Description is "" unless HasDescription is set.
	Description    string
	HasDescription bool
	// Flags are those that it was registered with.
	Flags Flags
	// Library is the one it belongs to.
	Library *Library

	callback *lua.LFunction
}

// libraries holds what FUNCTION LOAD loaded.
type libraries struct {
	byName    map[string]*Library
	functions map[string]*Function
	bytes     int
	// loadAPI is the table redis while a library loads.
	loadAPI *lua.LTable
}

// LibrariesMax is how many libraries may be loaded.
const LibrariesMax = 1000

// functionBytes is about what a registered function takes up, with its entry in
// the table.
const functionBytes = 256

var errLibrariesFull = errors.New("ERR Too many libraries are loaded: FUNCTION FLUSH makes room")

// FunctionsMax is how many functions one library may register.
const FunctionsMax = 1000

// LoadLibrary runs the text of a library, which registers its functions, and
// returns the library's name. replace lets it take the place of one with the
// same name. The error is the reply's text, starting with "ERR "; then nothing
// has changed.
func (e *Engine) LoadLibrary(code []byte, replace bool) (name string, err error) {
	if len(code) > MaxScriptBytes {
		return "", errScriptSize
	}
	lib := &Library{Code: string(code), Engine: "LUA"}
	lib.heap.reset()
	body, err := lib.readShebang()
	if err != nil {
		return "", err
	}
	old := e.libraries.byName[lib.Name]
	if old != nil && !replace {
		return "", errors.New("ERR Library '" + lib.Name + "' already exists")
	}
	if old == nil && len(e.libraries.byName) >= LibrariesMax || e.libraries.bytes+len(code) > e.options.MaxCacheBytes {
		return "", errLibrariesFull
	}
	if err := e.register(lib, body); err != nil {
		return "", err
	}
	for _, f := range lib.Functions {
		if other := e.libraries.functions[foldName(f.Name)]; other != nil && other.Library != old {
			return "", errors.New("ERR Function " + f.Name + " already exists")
		}
	}
	lib.bytes = len(code) + limits.Compiled(lib.proto) + functionBytes*len(lib.Functions)
	if e.libraries.bytes+lib.bytes > e.options.MaxCacheBytes {
		return "", errLibrariesFull
	}
	if old != nil {
		e.DeleteLibrary(old.Name)
	}
	e.libraries.byName[lib.Name] = lib
	e.libraries.bytes += lib.bytes
	for _, f := range lib.Functions {
		e.libraries.functions[foldName(f.Name)] = f
	}
	return lib.Name, nil
}

// register runs the text of a library.
func (e *Engine) register(lib *Library, body string) error {
	c, err := e.library.compile(body, "user_function", fromLibrary)
	if err != nil {
		return errors.New("ERR Error compiling function: " + err.Error())
	}
	e.begin(e.library, "", &lib.heap)
	e.run.loading, e.run.library = lib, lib
	e.run.proto, lib.proto = c.proto, c.proto
	L := e.library.L
	L.Push(L.NewFunctionFromProto(c.proto))
	e.library.handler = e.library.caught
	err = e.library.guarded(L, 0, 0, e.library.caught)
	stopped := e.run.stopped
	e.end(e.library)
	switch {
	case stopped != "":
		return errors.New("ERR Error registering functions: " + stopped)
	case err != nil:
		return errors.New("ERR Error registering functions: " + registerError(err))
	case len(lib.Functions) == 0:
		return errors.New("ERR No functions registered")
	}
	slices.SortFunc(lib.Functions, func(a, b *Function) int { return cmp.Compare(a.Name, b.Name) })
	return nil
}

// registerError returns the text of an error that loading a library raised.
func registerError(err error) string {
	var api *lua.ApiError
	if !errors.As(err, &api) {
		return err.Error()
	}
	if t, ok := api.Object.(*lua.LTable); ok {
		message, _ := toText(t.RawGetString("err"))
		return message
	}
	return "ERR " + show(api.Object)
}

// readShebang reads the #! line of a library and returns what is behind it, from
// the end of the line on.
func (lib *Library) readShebang() (body string, err error) {
	if !strings.HasPrefix(lib.Code, "#!") {
		return "", errors.New("ERR Missing library metadata")
	}
	end := strings.IndexByte(lib.Code, '\n')
	if end < 0 {
		return "", errors.New("ERR Invalid library metadata")
	}
	words, ok := splitLine(lib.Code[:end])
	if !ok || len(words) == 0 {
		return "", errors.New("ERR Invalid library metadata")
	}
	engine := strings.TrimPrefix(words[0], "#!")
	hasName := false
	for _, word := range words[1:] {
		name, ok := cutFold(word, "name=")
		if !ok {
			return "", errors.New("ERR Invalid metadata value given: " + word)
		}
		if hasName {
			return "", errors.New("ERR Invalid metadata value, name argument was given multiple times")
		}
		lib.Name, hasName = name, true
	}
	switch {
	case !hasName:
		return "", errors.New("ERR Library name was not given")
	case !validName(lib.Name):
		return "", errors.New("ERR Library names can only contain letters, numbers, or underscores(_) and must be at least one character long")
	case !strings.EqualFold(engine, "lua"):
		return "", errors.New("ERR Engine '" + engine + "' not found")
	}
	return lib.Code[end:], nil
}

// cutFold is strings.CutPrefix without regard to case.
func cutFold(s, prefix string) (string, bool) {
	if len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix) {
		return s[len(prefix):], true
	}
	return "", false
}

// validName holds for the names that libraries and functions may have.
func validName(name string) bool {
	for i := 0; i < len(name); i++ {
		c := name[i]
		if c != '_' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return false
		}
	}
	return name != ""
}

// DeleteLibrary forgets a library; false when there is none.
func (e *Engine) DeleteLibrary(name string) bool {
	lib := e.libraries.byName[name]
	if lib == nil {
		return false
	}
	for _, f := range lib.Functions {
		delete(e.libraries.functions, foldName(f.Name))
	}
	delete(e.libraries.byName, name)
	e.libraries.bytes -= lib.bytes
	return true
}

// FlushLibraries forgets all libraries and what their functions remember.
func (e *Engine) FlushLibraries() {
	e.libraries = libraries{
		byName: make(map[string]*Library), functions: make(map[string]*Function),
		loadAPI: e.library.loadTable(),
	}
	if e.run.active {
		e.run.broken = true
	} else {
		e.library.renew()
	}
}

// KeepLibraries returns what has the libraries be those that there are now again, with all that their functions remember, whatever has been loaded,
// replaced or deleted meanwhile. FlushLibraries must not have been called.
func (e *Engine) KeepLibraries() (putBack func()) {
	kept := e.libraries
	e.libraries.byName, e.libraries.functions = maps.Clone(kept.byName), maps.Clone(kept.functions)
	return func() { e.libraries = kept }
}

// DeleteLibraries forgets all libraries.
func (e *Engine) DeleteLibraries() {
	for name := range e.libraries.byName {
		e.DeleteLibrary(name)
	}
}

// ListLibraries returns all libraries in the order of their names.
func (e *Engine) ListLibraries() []*Library {
	return slices.SortedFunc(maps.Values(e.libraries.byName), func(a, b *Library) int { return cmp.Compare(a.Name, b.Name) })
}

// Function returns the function called name, or nil.
func (e *Engine) Function(name string) *Function { return e.libraries.functions[foldName(name)] }

// foldName is what functions are found by: as in Redis their names differ by more than case.
func foldName(name string) string { return strings.ToLower(name) }

// LibraryBytes returns about what all libraries take up: as text, compiled, and by what their functions keep from one call to the next. The last is
// what it was when they were weighed, which takes place each time that the server has allocated as much as they have room left for.
func (e *Engine) LibraryBytes() int {
	n := e.libraries.bytes
	for _, lib := range e.libraries.byName {
		n += lib.kept
	}
	return n
}

// weigh adds what the functions keep.
func (lib *Library) weigh(s *limits.Scale) {
	bytes, gone := s.Bytes, s.Gone
	s.Removed = lib.removed
	s.Know(lib.proto)
	for _, f := range lib.Functions {
		s.Weigh(f.callback)
	}
	lib.kept, lib.gone = s.Bytes-bytes, s.Gone-gone
}

// end is called when a function has ended, with the steps that it has left over.
func (lib *Library) end(steps int64, stopped bool) {
	lib.heap.steps = steps
	if stopped {
		lib.heap.steps = stepsPerSlice
	}
	if lib.gone > goneMax {
		s := limits.Scale{Compact: true}
		lib.weigh(&s)
		lib.removed = s.Left
		lib.gone = 0 // Those that are left are not looked for again until the next weighing.
	}
	lib.heap.leave(lib.kept)
}

// goneMax is how many keys without an element a library's tables may have together: gopher-lua keeps them, about a hundred bytes each.
const goneMax = 50_000

// countArguments counts the arguments of a function that are about to be copied.
func (s *sandbox) countArguments(*lua.LState) int {
	e := s.engine
	e.budget.Want = int(e.heapLimit() - e.options.MaxHeapBytes)
	e.checkHeap()
	e.budget.Spend(int64(e.budget.Want >> 3))
	e.budget.Want = 0
	return 0
}

// loadTable makes the table redis of a library that loads.
func (s *sandbox) loadTable() *lua.LTable {
	t := s.L.NewTable()
	s.setVersion(t)
	t.RawSetString("register_function", s.L.NewFunction(s.registerFunction))
	return s.show(t, missingField)
}

// registerFunction is redis.register_function.
func (s *sandbox) registerFunction(L *lua.LState) int {
	lib := s.engine.run.loading
	if lib == nil {
		refuse(L, "redis.register_function can only be called on FUNCTION LOAD command")
	}
	f := &Function{Library: lib}
	problem := ""
	switch L.GetTop() {
	case 1:
		problem = f.readNamed(L)
	case 2:
		problem = f.readPositional(L)
	default:
		problem = "wrong number of arguments to redis.register_function"
	}
	switch {
	case problem != "":
	case !validName(f.Name):
		problem = "Library names can only contain letters, numbers, or underscores(_) and must be at least one character long"
	case slices.ContainsFunc(lib.Functions, func(other *Function) bool { return foldName(other.Name) == foldName(f.Name) }):
		problem = "Function already exists in the library"
	case len(lib.Functions) >= FunctionsMax:
		problem = "too many functions in the library"
	}
	if problem != "" {
		refuse(L, problem)
	}
	lib.Functions = append(lib.Functions, f)
	return 0
}

func (f *Function) readPositional(L *lua.LState) (problem string) {
	name, ok := toText(L.Get(1))
	if !ok {
		return "first argument to redis.register_function must be a string"
	}
	f.Name = name
	if f.callback, ok = L.Get(2).(*lua.LFunction); !ok {
		return "second argument to redis.register_function must be a function"
	}
	return ""
}

func (f *Function) readNamed(L *lua.LState) (problem string) {
	t, ok := L.Get(1).(*lua.LTable)
	if !ok {
		return "calling redis.register_function with a single argument is only applicable to Lua table (representing named arguments)."
	}
	hasName := false
	for k, v := t.Next(lua.LNil); k != lua.LNil; k, v = t.Next(k) {
		key, ok := toText(k)
		if !ok {
			return "named argument key given to redis.register_function is not a string"
		}
		switch strings.ToLower(key) {
		case "function_name":
			if f.Name, hasName = toText(v); !hasName {
				return "function_name argument given to redis.register_function must be a string"
			}
		case "description":
			if f.Description, f.HasDescription = toText(v); !f.HasDescription {
				return "description argument given to redis.register_function must be a string"
			}
		case "callback":
			if f.callback, ok = v.(*lua.LFunction); !ok {
				return "callback argument given to redis.register_function must be a function"
			}
		case "flags":
			if problem := f.readFlags(v); problem != "" {
				return problem
			}
		default:
			return "unknown argument given to redis.register_function"
		}
	}
	if !hasName {
		return "redis.register_function must get a function name argument"
	}
	if f.callback == nil {
		return "redis.register_function must get a callback argument"
	}
	return ""
}

func (f *Function) readFlags(v lua.LValue) (problem string) {
	t, ok := v.(*lua.LTable)
	if !ok {
		return "flags argument to redis.register_function must be a table representing function flags"
	}
	for i := 1; ; i++ {
		v := limits.Get(t, i)
		if v == lua.LNil {
			return ""
		}
		name, _ := toText(v)
		flag, ok := flagNamed(strings.ToLower(name))
		if !ok {
			return "unknown flag given"
		}
		f.Flags |= flag
	}
}

// loadingGlobal is what reading a global calls while a library loads: there is
// nothing but redis.
func (s *sandbox) loadingGlobal(L *lua.LState) int {
	if name, ok := L.Get(2).(lua.LString); ok && (name == "redis" || name == "server") {
		L.Push(s.engine.libraries.loadAPI)
		return 1
	}
	return missingField(L)
}
