package server

import (
	"headgate/internal/glob"
	"headgate/internal/number"
	"headgate/server/script"
)

// functionCommand is the FUNCTION family: the libraries of functions that FCALL runs.
func (h *Scripts) functionCommand() *Command {
	return &Command{
		Name: "function", Group: GroupScripting, Since: "7.0.0", Complexity: "depends on the sub-command",
		Summary: "Look after the libraries of functions.",
		Arity:   -2,
		Sub: []*Command{
			{
				Name: "delete", Since: "7.0.0", Complexity: "O(1)",
				Summary: "Forget a library with its functions.",
				Arity:   3, Flags: Write | NoScript,
				Tips: tipAllShards,
				Args: []Arg{str("library-name")}, Reply: ReplySimple, Handler: h.functionDelete,
			},
			{
				Name: "dump", Since: "7.0.0", Complexity: "O(n) in the size of the libraries",
				Summary: "Return all libraries as a payload for FUNCTION RESTORE.",
				Arity:   2, Flags: NoScript, Reply: ReplyBulk, Handler: h.functionDump,
			},
			{
				Name: "flush", Since: "7.0.0", Complexity: "O(n) in the number of functions",
				Summary: "Forget all libraries.",
				Arity:   -2, Flags: Write | NoScript,
				Tips: tipAllShards,
				Args: []Arg{oneOf("flush-type", tok("ASYNC"), tok("SYNC")).opt()}, Reply: ReplySimple, Handler: h.functionFlush,
			},
			helpCommand("7.0.0"),
			{
				Name: "kill", Since: "7.0.0", Complexity: "O(1)",
				Summary: "End the running function, unless it has written.",
				Arity:   2, Flags: NoScript | AllowBusy, Reply: ReplySimple, Handler: h.functionKill,
				Tips: "request_policy:all_shards response_policy:one_succeeded",
			},
			{
				Name: "list", Since: "7.0.0", Complexity: "O(n) in the number of functions",
				Summary: "Describe the libraries and their functions.",
				Arity:   -2, Flags: NoScript,
				Tips: tipUnordered,
				Args: []Arg{str("library-name-pattern").after("LIBRARYNAME").opt(), tok("WITHCODE").opt()}, Reply: ReplyArray, Handler: h.functionList,
			},
			{
				Name: "load", Since: "7.0.0", Complexity: "O(n) in the length of the library",
				Summary: "Load a library, and return its name.",
				Arity:   -3, Flags: Write | DenyOOM | NoScript,
				Tips: tipAllShards,
				Args: []Arg{tok("REPLACE").opt(), str("function-code")}, Reply: ReplyBulk, Handler: h.functionLoad,
			},
			{
				Name: "restore", Since: "7.0.0", Complexity: "O(n) in the size of the libraries",
				Summary: "Load the libraries in a payload of FUNCTION DUMP.",
				Arity:   -3, Flags: Write | DenyOOM | NoScript,
				Tips:  tipAllShards,
				Args:  []Arg{str("serialized-value"), oneOf("policy", tok("FLUSH"), tok("APPEND"), tok("REPLACE")).opt()},
				Reply: ReplySimple, Handler: h.functionRestore,
			},
			{
				Name: "stats", Since: "7.0.0", Complexity: "O(1)",
				Summary: "Tell what function is running, and how many there are.",
				Arity:   2, Flags: NoScript | AllowBusy, Reply: ReplyMap, Handler: h.functionStats,
				Tips: "nondeterministic_output request_policy:all_shards response_policy:special",
			},
		},
	}
}

const (
	errNoFunction    = "ERR Function not found"
	errNoLibrary     = "ERR Library not found"
	errBadKeyCount   = "ERR Bad number of keys provided"
	errFunctionFlush = "ERR FUNCTION FLUSH only supports SYNC|ASYNC option"
	errNoLibraryName = "ERR library name argument was not given"
)

// functionEngine is the one language that functions may be written in.
const functionEngine = "LUA"

func (h *Scripts) fcall(c *Ctx)   { h.runFunction(c, false) }
func (h *Scripts) fcallRO(c *Ctx) { h.runFunction(c, true) }

// runFunction runs the function whose name is args[1].
func (h *Scripts) runFunction(c *Ctx, readOnly bool) {
	f := h.engine.Function(string(c.args[1]))
	if f == nil {
		c.err(errNoFunction)
		return
	}
	keys, ok := number.ParseInt(c.args[2])
	if !ok {
		c.err(errBadKeyCount)
		return
	}
	if c.keyCountOK(keys) {
		h.runScript(c, program{function: f}, int(keys), readOnly)
	}
}

func (h *Scripts) functionLoad(c *Ctx) {
	replace := false
	last := len(c.args) - 1
	for i := 2; i < last; i++ {
		if !c.is(i, "REPLACE") {
			c.errf("ERR Unknown option given: %s", cutAtNUL(c.args[i]))
			return
		}
		replace = true
	}
	name, err := h.engine.LoadLibrary(c.args[last], replace)
	if err != nil {
		c.err(err.Error())
		return
	}
	c.effectVerbatim()
	c.reply.BulkString(name)
}

func (h *Scripts) functionDelete(c *Ctx) {
	if !h.engine.DeleteLibrary(string(c.args[2])) {
		c.err(errNoLibrary)
		return
	}
	c.effectVerbatim()
	c.ok()
}

func (h *Scripts) functionFlush(c *Ctx) {
	switch {
	case len(c.args) > 3:
		c.errSubcommandSyntax()
		return
	case len(c.args) == 3 && !c.is(2, "ASYNC") && !c.is(2, "SYNC"):
		c.err(errFunctionFlush)
		return
	}
	h.engine.FlushLibraries()
	c.effectVerbatim()
	c.ok()
}

func (h *Scripts) functionKill(c *Ctx) { h.kill(c, false) }

// functionList implements FUNCTION LIST [LIBRARYNAME pattern] [WITHCODE], in either order.
func (h *Scripts) functionList(c *Ctx) {
	var pattern []byte
	withCode := false
	for i := 2; i < len(c.args); i++ {
		switch {
		case !withCode && c.is(i, "WITHCODE"):
			withCode = true
		case pattern == nil && c.is(i, "LIBRARYNAME"):
			if i++; i == len(c.args) {
				c.err(errNoLibraryName)
				return
			}
			pattern = c.args[i]
		default:
			c.errf("ERR Unknown argument %s", cutAtNUL(c.args[i]))
			return
		}
	}
	mark, n := c.reply.Start(), 0
	for _, l := range h.engine.ListLibraries() {
		if pattern == nil || glob.Match(pattern, []byte(l.Name), true) {
			c.sendLibrary(l, withCode)
			n++
		}
	}
	c.reply.EndArray(mark, n)
}

// sendLibrary describes one library for FUNCTION LIST.
func (c *Ctx) sendLibrary(l *script.Library, withCode bool) {
	w := c.reply
	if withCode {
		w.Map(4)
	} else {
		w.Map(3)
	}
	sendText(w, "library_name", l.Name)
	sendText(w, "engine", l.Engine)
	w.BulkString("functions")
	w.Array(len(l.Functions))
	for _, f := range l.Functions {
		w.Map(3)
		sendText(w, "name", f.Name)
		w.BulkString("description")
		if f.HasDescription {
			w.BulkString(f.Description)
		} else {
			w.Null()
		}
		w.BulkString("flags")
		c.sendNames(f.Flags.Names())
	}
	if withCode {
		sendText(w, "library_code", l.Code)
	}
}

func (h *Scripts) functionStats(c *Ctx) {
	w := c.reply
	if h.ctx != nil && h.isScript {
		c.err(errBusyEval)
		return
	}
	w.Map(2)
	w.BulkString("running_script")
	if h.ctx == nil {
		w.Null()
	} else {
		w.Map(3)
		sendText(w, "name", h.name)
		w.BulkString("command")
		w.Array(len(h.line))
		for _, word := range h.line {
			w.Bulk(word)
		}
		sendField(w, "duration_ms", int(h.elapsed.Milliseconds()))
	}
	m := h.memory()
	w.BulkString("engines")
	w.Map(1)
	w.BulkString(functionEngine)
	w.Map(2)
	sendField(w, "libraries_count", m.libraries)
	sendField(w, "functions_count", m.functions)
}
