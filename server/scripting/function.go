package scripting

import (
	"headgate/internal/glob"
	"headgate/server/command"
	"headgate/server/script"
)

// functionCommand is the FUNCTION family: the libraries of functions that FCALL runs.
func (h *Scripts) functionCommand() *command.Command {
	return &command.Command{
		Name: "function", Group: command.GroupScripting, Since: "7.0.0", Complexity: "depends on the sub-command",
		Summary: "Look after the libraries of functions.",
		Arity:   -2,
		Sub: []*command.Command{
			{
				Name: "delete", Since: "7.0.0", Complexity: "O(1)",
				Summary: "Delete a library with its functions.",
				Arity:   3, Flags: command.Write | command.NoScript,
				Tips: command.TipAllShards,
				Args: []command.Arg{command.Str("library-name")}, Reply: command.ReplySimple, Handler: h.functionDelete,
			},
			{
				Name: "dump", Since: "7.0.0", Complexity: "O(n) in the size of the libraries",
				Summary: "Return all libraries as a payload for FUNCTION RESTORE.",
				Arity:   2, Flags: command.NoScript, Reply: command.ReplyBulk, Handler: h.functionDump,
			},
			{
				Name: "flush", Since: "7.0.0", Complexity: "O(n) in the number of functions",
				Summary: "Delete all libraries.",
				Arity:   -2, Flags: command.Write | command.NoScript,
				Tips: command.TipAllShards,
				Args: []command.Arg{command.OneOf("flush-type", command.Tok("ASYNC"), command.Tok("SYNC")).Opt()}, Reply: command.ReplySimple, Handler: h.functionFlush,
			},
			command.HelpCommand("7.0.0"),
			{
				Name: "kill", Since: "7.0.0", Complexity: "O(1)",
				Summary: "End the running function, unless it has written.",
				Arity:   2, Flags: command.NoScript | command.AllowBusy, Reply: command.ReplySimple, Handler: h.functionKill,
				Tips: "request_policy:all_shards response_policy:one_succeeded",
			},
			{
				Name: "list", Since: "7.0.0", Complexity: "O(n) in the number of functions",
				Summary: "Describe the libraries and their functions.",
				Arity:   -2, Flags: command.NoScript,
				Tips: command.TipUnordered,
				Args: []command.Arg{command.Str("library-name-pattern").After("LIBRARYNAME").Opt(), command.Tok("WITHCODE").Opt()}, Reply: command.ReplyArray, Handler: h.functionList,
			},
			{
				Name: "load", Since: "7.0.0", Complexity: "O(n) in the length of the library",
				Summary: "Load a library, and return its name. What the library does while it is loaded may take 500 ms.",
				Arity:   -3, Flags: command.Write | command.DenyOOM | command.NoScript,
				Tips: command.TipAllShards,
				Args: []command.Arg{command.Tok("REPLACE").Opt(), command.Str("function-code")}, Reply: command.ReplyBulk, Handler: h.functionLoad,
			},
			{
				Name: "restore", Since: "7.0.0", Complexity: "O(n) in the size of the libraries",
				Summary: "Load the libraries in a payload of FUNCTION DUMP.",
				Arity:   -3, Flags: command.Write | command.DenyOOM | command.NoScript,
				Tips:  command.TipAllShards,
				Args:  []command.Arg{command.Str("serialized-value"), command.OneOf("policy", command.Tok("FLUSH"), command.Tok("APPEND"), command.Tok("REPLACE")).Opt()},
				Reply: command.ReplySimple, Handler: h.functionRestore,
			},
			{
				Name: "stats", Since: "7.0.0", Complexity: "O(1)",
				Summary: "Return the running function, and the number of libraries and functions.",
				Arity:   2, Flags: command.NoScript | command.AllowBusy, Reply: command.ReplyMap, Handler: h.functionStats,
				Tips: "nondeterministic_output request_policy:all_shards response_policy:special",
			},
		},
	}
}

const (
	errNoFunction    = "ERR Function not found"
	errNoLibrary     = "ERR Library not found"
	errFunctionFlush = "ERR FUNCTION FLUSH only supports SYNC|ASYNC option"
	errNoLibraryName = "ERR library name argument was not given"
)

// functionEngine is the one language that functions may be written in.
const functionEngine = "LUA"

func (h *Scripts) fcall(c *command.Ctx)   { h.runFunction(c, false) }
func (h *Scripts) fcallRO(c *command.Ctx) { h.runFunction(c, true) }

// runFunction runs the function whose name is args[1].
func (h *Scripts) runFunction(c *command.Ctx, readOnly bool) {
	f := h.Engine.Function(string(c.Args[1]))
	if f == nil {
		c.Err(errNoFunction)
		return
	}
	if keys, ok := c.KeyCount(2, command.ErrBadKeyCount); ok {
		h.runScript(c, program{function: f}, int(keys), readOnly)
	}
}

func (h *Scripts) functionLoad(c *command.Ctx) {
	replace := false
	last := len(c.Args) - 1
	for i := 2; i < last; i++ {
		if !c.Is(i, "REPLACE") {
			c.Errf("ERR Unknown option given: %s", command.CutAtNUL(c.Args[i]))
			return
		}
		replace = true
	}
	name, err := h.Engine.LoadLibrary(c.Args[last], replace)
	if err != nil {
		c.Err(err.Error())
		return
	}
	c.EffectVerbatim()
	c.Reply.BulkString(name)
}

func (h *Scripts) functionDelete(c *command.Ctx) {
	if !h.Engine.DeleteLibrary(string(c.Args[2])) {
		c.Err(errNoLibrary)
		return
	}
	c.EffectVerbatim()
	c.OK()
}

func (h *Scripts) functionFlush(c *command.Ctx) {
	switch {
	case len(c.Args) > 3:
		c.ErrSubcommandSyntax()
		return
	case len(c.Args) == 3 && !c.Is(2, "ASYNC") && !c.Is(2, "SYNC"):
		c.Err(errFunctionFlush)
		return
	}
	h.Engine.FlushLibraries()
	c.EffectVerbatim()
	c.OK()
}

func (h *Scripts) functionKill(c *command.Ctx) { h.kill(c, false) }

// functionList implements FUNCTION LIST [LIBRARYNAME pattern] [WITHCODE], in either order.
func (h *Scripts) functionList(c *command.Ctx) {
	var pattern []byte
	withCode := false
	for i := 2; i < len(c.Args); i++ {
		switch {
		case !withCode && c.Is(i, "WITHCODE"):
			withCode = true
		case pattern == nil && c.Is(i, "LIBRARYNAME"):
			if i++; i == len(c.Args) {
				c.Err(errNoLibraryName)
				return
			}
			pattern = c.Args[i]
		default:
			c.Errf("ERR Unknown argument %s", command.CutAtNUL(c.Args[i]))
			return
		}
	}
	mark, n := c.Reply.Start(), 0
	for _, l := range h.Engine.ListLibraries() {
		if pattern == nil || glob.Match(pattern, []byte(l.Name), true) {
			sendLibrary(c, l, withCode)
			n++
		}
	}
	c.Reply.EndArray(mark, n)
}

// sendLibrary describes one library for FUNCTION LIST.
func sendLibrary(c *command.Ctx, l *script.Library, withCode bool) {
	w := c.Reply
	if withCode {
		w.Map(4)
	} else {
		w.Map(3)
	}
	command.SendText(w, "library_name", l.Name)
	command.SendText(w, "engine", l.Engine)
	w.BulkString("functions")
	w.Array(len(l.Functions))
	for _, f := range l.Functions {
		w.Map(3)
		command.SendText(w, "name", f.Name)
		w.BulkString("description")
		if f.HasDescription {
			w.BulkString(f.Description)
		} else {
			w.Null()
		}
		w.BulkString("flags")
		c.SendNames(f.Flags.Names())
	}
	if withCode {
		command.SendText(w, "library_code", l.Code)
	}
}

func (h *Scripts) functionStats(c *command.Ctx) {
	w := c.Reply
	if h.ctx != nil && h.isScript {
		c.Err(ErrBusyEval)
		return
	}
	w.Map(2)
	w.BulkString("running_script")
	if h.ctx == nil {
		w.Null()
	} else {
		w.Map(3)
		command.SendText(w, "name", h.name)
		w.BulkString("command")
		w.Array(len(h.line))
		for _, word := range h.line {
			w.Bulk(word)
		}
		command.SendField(w, "duration_ms", int(h.elapsed.Milliseconds()))
	}
	m := h.Memory()
	w.BulkString("engines")
	w.Map(1)
	w.BulkString(functionEngine)
	w.Map(2)
	command.SendField(w, "libraries_count", m.Libraries)
	command.SendField(w, "functions_count", m.Functions)
}
