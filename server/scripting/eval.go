package scripting

import (
	"headgate/server/command"
	"headgate/server/script"
)

// Declarations are the commands of scripts and, in function.go, of functions.
func (h *Scripts) Declarations() []*command.Command {
	return []*command.Command{
		{
			Name: "eval", Group: command.GroupScripting, Since: "2.6.0", Complexity: "depends on the script",
			Summary: "Run a Lua script as one atomic unit.",
			Arity:   -3, Flags: command.NoScript | command.SkipMonitor | command.MayReplicate | command.NoMandatoryKeys | command.Stale, Keys: scriptKeys("RW ACCESS UPDATE"),
			Args: scriptArgs("script"), Runs: command.ScriptText, Reply: anyReply, Handler: h.eval,
		},
		{
			Name: "eval_ro", Group: command.GroupScripting, Since: "7.0.0", Complexity: "depends on the script",
			Summary: "Run a Lua script that may not write.",
			Arity:   -3, Flags: command.NoScript | command.SkipMonitor | command.NoMandatoryKeys | command.Stale | command.ReadOnly, Keys: scriptKeys("RO ACCESS"),
			Args: scriptArgs("script"), Runs: command.ScriptText, Reply: anyReply, Handler: h.evalRO,
		},
		{
			Name: "evalsha", Group: command.GroupScripting, Since: "2.6.0", Complexity: "depends on the script",
			Summary: "Run a cached script by its SHA-1.",
			Arity:   -3, Flags: command.NoScript | command.SkipMonitor | command.MayReplicate | command.NoMandatoryKeys | command.Stale, Keys: scriptKeys("RW ACCESS UPDATE"),
			Args: scriptArgs("sha1"), Runs: command.ScriptSHA, Reply: anyReply, Handler: h.evalSHA,
		},
		{
			Name: "evalsha_ro", Group: command.GroupScripting, Since: "7.0.0", Complexity: "depends on the script",
			Summary: "Run a cached script, by its SHA-1, that may not write.",
			Arity:   -3, Flags: command.NoScript | command.SkipMonitor | command.NoMandatoryKeys | command.Stale | command.ReadOnly, Keys: scriptKeys("RO ACCESS"),
			Args: scriptArgs("sha1"), Runs: command.ScriptSHA, Reply: anyReply, Handler: h.evalSHARO,
		},
		{
			Name: "fcall", Group: command.GroupScripting, Since: "7.0.0", Complexity: "depends on the function",
			Summary: "Run a function of a loaded library as one atomic unit.",
			Arity:   -3, Flags: command.NoScript | command.SkipMonitor | command.MayReplicate | command.NoMandatoryKeys | command.Stale, Keys: scriptKeys("RW ACCESS UPDATE"),
			Args: scriptArgs("function"), Runs: command.FunctionName, Reply: anyReply, Handler: h.fcall,
		},
		{
			Name: "fcall_ro", Group: command.GroupScripting, Since: "7.0.0", Complexity: "depends on the function",
			Summary: "Run a function of a loaded library that may not write.",
			Arity:   -3, Flags: command.NoScript | command.SkipMonitor | command.NoMandatoryKeys | command.Stale | command.ReadOnly, Keys: scriptKeys("RO ACCESS"),
			Args: scriptArgs("function"), Runs: command.FunctionName, Reply: anyReply, Handler: h.fcallRO,
		},
		h.functionCommand(),
		h.scriptCommand(),
	}
}

// anyReply is what a script can answer with.
const anyReply = command.ReplySimple | command.ReplyInteger | command.ReplyBulk | command.ReplyNull | command.ReplyArray | command.ReplyMap | command.ReplySet | command.ReplyDouble | command.ReplyBool | command.ReplyVerbatim

// scriptKeys declares a script's keys: as many as the second argument says, after it.
func scriptKeys(access string) []command.KeySpec { return command.CountedKeys(access, 2) }

// scriptArgs declares the arguments of a command that runs what its first one names.
func scriptArgs(what string) []command.Arg {
	return []command.Arg{command.Str(what), command.Integer("numkeys"), command.Key("key").Multi().Opt(), command.Str("arg").Multi().Opt()}
}

// scriptCommand is the SCRIPT family: the scripts that the server knows.
func (h *Scripts) scriptCommand() *command.Command {
	return &command.Command{
		Name: "script", Group: command.GroupScripting, Since: "2.6.0", Complexity: "depends on the sub-command",
		Summary: "Look after the scripts that the server knows.",
		Arity:   -2,
		Sub: []*command.Command{
			{
				Name: "debug", Since: "3.2.0", Complexity: "O(1)",
				Summary: "Accept NO, and refuse YES and SYNC: there is no debugger for scripts.",
				Arity:   3, Flags: command.NoScript | command.HomeOnly,
				Args: []command.Arg{command.OneOf("mode", command.Tok("YES"), command.Tok("SYNC"), command.Tok("NO"))}, Reply: command.ReplySimple, Handler: scriptDebug,
			},
			{
				Name: "exists", Since: "2.6.0", Complexity: "O(n) in the number of SHA-1s",
				Summary: "Return for each SHA-1 whether the script is cached.",
				Arity:   -3, Flags: command.NoScript,
				Tips: "request_policy:all_shards response_policy:agg_logical_and",
				Args: []command.Arg{command.Str("sha1").Multi()}, Reply: command.ReplyArray, Handler: h.scriptExists,
			},
			{
				Name: "flush", Since: "2.6.0", Complexity: "O(n) in the number of scripts",
				Summary: "Remove all scripts from the cache.",
				Arity:   -2, Flags: command.NoScript | command.ForgetsScripts,
				Tips: command.TipAllNodes,
				Args: []command.Arg{command.OneOf("flush-type", command.Tok("ASYNC"), command.Tok("SYNC")).Opt()}, Reply: command.ReplySimple, Handler: h.scriptFlush,
			},
			command.HelpCommand("5.0.0"),
			{
				Name: "kill", Since: "2.6.0", Complexity: "O(1)",
				Summary: "End the running script, unless it has written.",
				Arity:   2, Flags: command.NoScript | command.AllowBusy, Reply: command.ReplySimple, Handler: h.scriptKill,
				Tips: "request_policy:all_shards response_policy:one_succeeded",
			},
			{
				Name: "load", Since: "2.6.0", Complexity: "O(n) in the length of the script",
				Summary: "Compile a script without running it, and return the SHA-1 by which EVALSHA runs it.",
				Arity:   3, Flags: command.NoScript | command.Stale | command.KeepsScript,
				Tips: command.TipAllNodes,
				Args: []command.Arg{command.Str("script")}, Reply: command.ReplyBulk, Handler: h.scriptLoad,
			},
		},
	}
}

const (
	errNoScript    = "NOSCRIPT No matching script. Please use EVAL."
	errScriptFlush = "ERR SCRIPT FLUSH only support SYNC|ASYNC option"
	errScriptDebug = "ERR Use SCRIPT DEBUG YES/SYNC/NO"
	errNoDebugger  = "ERR SCRIPT DEBUG is not supported: headgate has no debugger for scripts"
)

// shaDigits is the length of a script's name.
const shaDigits = 40

func (h *Scripts) eval(c *command.Ctx)      { h.runText(c, false) }
func (h *Scripts) evalRO(c *command.Ctx)    { h.runText(c, true) }
func (h *Scripts) evalSHA(c *command.Ctx)   { h.runKnown(c, false) }
func (h *Scripts) evalSHARO(c *command.Ctx) { h.runKnown(c, true) }

// runText runs the script whose text is args[1].
func (h *Scripts) runText(c *command.Ctx, readOnly bool) {
	keys, ok := c.KeyCount(2, command.ErrNotInteger)
	if !ok {
		return
	}
	s, err := h.Engine.Load(c.Args[1], false)
	if err != nil {
		c.Err(err.Error())
		return
	}
	h.runScript(c, program{script: s}, int(keys), readOnly)
}

// runKnown runs the script whose name is args[1].
func (h *Scripts) runKnown(c *command.Ctx, readOnly bool) {
	if len(c.Args[1]) != shaDigits {
		c.Err(errNoScript)
		return
	}
	keys, ok := c.KeyCount(2, command.ErrNotInteger)
	if !ok {
		return
	}
	s := h.Engine.Get(c.Args[1])
	if s == nil {
		c.Err(errNoScript)
		return
	}
	h.runScript(c, program{script: s}, int(keys), readOnly)
}

func (h *Scripts) scriptLoad(c *command.Ctx) {
	s, err := h.Engine.Load(c.Args[2], true)
	if err != nil {
		c.Err(err.Error())
		return
	}
	c.Reply.BulkString(s.SHA)
}

func (h *Scripts) scriptExists(c *command.Ctx) {
	c.Reply.Array(len(c.Args) - 2)
	for _, sha := range c.Args[2:] {
		if len(sha) == shaDigits && h.Engine.Get(sha) != nil {
			c.Reply.One()
		} else {
			c.Reply.Zero()
		}
	}
}

func (h *Scripts) scriptFlush(c *command.Ctx) {
	if len(c.Args) > 3 || (len(c.Args) == 3 && !c.Is(2, "ASYNC") && !c.Is(2, "SYNC")) {
		c.Err(errScriptFlush)
		return
	}
	h.Engine.Flush()
	c.OK()
}

func (h *Scripts) scriptKill(c *command.Ctx) { h.kill(c, true) }

func scriptDebug(c *command.Ctx) {
	switch {
	case c.Is(2, "NO"):
		c.OK()
	case c.Is(2, "YES"), c.Is(2, "SYNC"):
		c.Err(errNoDebugger)
	default:
		c.Err(errScriptDebug)
	}
}

// Memory is what scripts and functions take up.
type Memory struct {
	Scripts, Functions, Libraries int // how many there are
	EvalBytes, FunctionBytes      int // what the scripts take up, and the libraries
}

// Memory returns what scripts and functions take up now. The caller holds the executor's lock.
func (h *Scripts) Memory() Memory {
	m := Memory{Scripts: h.Engine.Len(), EvalBytes: h.Engine.CacheBytes(), FunctionBytes: h.Engine.LibraryBytes()}
	for _, l := range h.Engine.ListLibraries() {
		m.Libraries++
		m.Functions += len(l.Functions)
	}
	return m
}

var _ script.Host = (*Scripts)(nil)
