package server

import "headgate/server/script"

// declarations: scripts, with the functions of cmd_function.go.
func (h *Scripts) declarations() []*Command {
	return []*Command{
		{
			Name: "eval", Group: GroupScripting, Since: "2.6.0", Complexity: "depends on the script",
			Summary: "Run a Lua script as one atomic unit.",
			Arity:   -3, Flags: NoScript | SkipMonitor | MayReplicate | NoMandatoryKeys | Stale, Keys: scriptKeys("RW ACCESS UPDATE"),
			Args: scriptArgs("script"), Runs: ScriptText, Reply: anyReply, Handler: h.eval,
		},
		{
			Name: "eval_ro", Group: GroupScripting, Since: "7.0.0", Complexity: "depends on the script",
			Summary: "Run a Lua script that may not write.",
			Arity:   -3, Flags: NoScript | SkipMonitor | NoMandatoryKeys | Stale | ReadOnly, Keys: scriptKeys("RO ACCESS"),
			Args: scriptArgs("script"), Runs: ScriptText, Reply: anyReply, Handler: h.evalRO,
		},
		{
			Name: "evalsha", Group: GroupScripting, Since: "2.6.0", Complexity: "depends on the script",
			Summary: "Run a script that the server knows by the SHA-1 of its text.",
			Arity:   -3, Flags: NoScript | SkipMonitor | MayReplicate | NoMandatoryKeys | Stale, Keys: scriptKeys("RW ACCESS UPDATE"),
			Args: scriptArgs("sha1"), Runs: ScriptSHA, Reply: anyReply, Handler: h.evalSHA,
		},
		{
			Name: "evalsha_ro", Group: GroupScripting, Since: "7.0.0", Complexity: "depends on the script",
			Summary: "Run a script that the server knows by the SHA-1 of its text, and that may not write.",
			Arity:   -3, Flags: NoScript | SkipMonitor | NoMandatoryKeys | Stale | ReadOnly, Keys: scriptKeys("RO ACCESS"),
			Args: scriptArgs("sha1"), Runs: ScriptSHA, Reply: anyReply, Handler: h.evalSHARO,
		},
		{
			Name: "fcall", Group: GroupScripting, Since: "7.0.0", Complexity: "depends on the function",
			Summary: "Run a function of a loaded library as one atomic unit.",
			Arity:   -3, Flags: NoScript | SkipMonitor | MayReplicate | NoMandatoryKeys | Stale, Keys: scriptKeys("RW ACCESS UPDATE"),
			Args: scriptArgs("function"), Runs: FunctionName, Reply: anyReply, Handler: h.fcall,
		},
		{
			Name: "fcall_ro", Group: GroupScripting, Since: "7.0.0", Complexity: "depends on the function",
			Summary: "Run a function of a loaded library that may not write.",
			Arity:   -3, Flags: NoScript | SkipMonitor | NoMandatoryKeys | Stale | ReadOnly, Keys: scriptKeys("RO ACCESS"),
			Args: scriptArgs("function"), Runs: FunctionName, Reply: anyReply, Handler: h.fcallRO,
		},
		h.functionCommand(),
		h.scriptCommand(),
	}
}

// anyReply is what a script can answer with.
const anyReply = ReplySimple | ReplyInteger | ReplyBulk | ReplyNull | ReplyArray | ReplyMap | ReplySet | ReplyDouble | ReplyBool | ReplyVerbatim

// scriptKeys declares a script's keys: as many as the second argument says, after it.
func scriptKeys(access string) []KeySpec { return countedKeys(access, 2) }

// scriptArgs declares the arguments of a command that runs what its first one names.
func scriptArgs(what string) []Arg {
	return []Arg{str(what), integer("numkeys"), key("key").multi().opt(), str("arg").multi().opt()}
}

// scriptCommand is the SCRIPT family: the scripts that the server knows.
func (h *Scripts) scriptCommand() *Command {
	return &Command{
		Name: "script", Group: GroupScripting, Since: "2.6.0", Complexity: "depends on the sub-command",
		Summary: "Look after the scripts that the server knows.",
		Arity:   -2,
		Sub: []*Command{
			{
				Name: "debug", Since: "3.2.0", Complexity: "O(1)",
				Summary: "Accept NO, and refuse YES and SYNC: there is no debugger for scripts.",
				Arity:   3, Flags: NoScript,
				Args: []Arg{oneOf("mode", tok("YES"), tok("SYNC"), tok("NO"))}, Reply: ReplySimple, Handler: scriptDebug,
			},
			{
				Name: "exists", Since: "2.6.0", Complexity: "O(n) in the number of SHA-1s",
				Summary: "Tell for each SHA-1 whether the server knows a script of that name.",
				Arity:   -3, Flags: NoScript,
				Tips: "request_policy:all_shards response_policy:agg_logical_and",
				Args: []Arg{str("sha1").multi()}, Reply: ReplyArray, Handler: h.scriptExists,
			},
			{
				Name: "flush", Since: "2.6.0", Complexity: "O(n) in the number of scripts",
				Summary: "Forget all scripts.",
				Arity:   -2, Flags: NoScript,
				Tips: tipAllNodes,
				Args: []Arg{oneOf("flush-type", tok("ASYNC"), tok("SYNC")).opt()}, Reply: ReplySimple, Handler: h.scriptFlush,
			},
			helpCommand("5.0.0"),
			{
				Name: "kill", Since: "2.6.0", Complexity: "O(1)",
				Summary: "End the running script, unless it has written.",
				Arity:   2, Flags: NoScript | AllowBusy, Reply: ReplySimple, Handler: h.scriptKill,
				Tips: "request_policy:all_shards response_policy:one_succeeded",
			},
			{
				Name: "load", Since: "2.6.0", Complexity: "O(n) in the length of the script",
				Summary: "Compile a script without running it, and return the SHA-1 by which EVALSHA runs it.",
				Arity:   3, Flags: NoScript | Stale,
				Tips: tipAllNodes,
				Args: []Arg{str("script")}, Reply: ReplyBulk, Handler: h.scriptLoad,
			},
		},
	}
}

const (
	errNoScript    = "NOSCRIPT No matching script. Please use EVAL."
	errManyKeys    = "ERR Number of keys can't be greater than number of args"
	errFewKeys     = "ERR Number of keys can't be negative"
	errScriptFlush = "ERR SCRIPT FLUSH only support SYNC|ASYNC option"
	errScriptDebug = "ERR Use SCRIPT DEBUG YES/SYNC/NO"
	errNoDebugger  = "ERR SCRIPT DEBUG is not supported: headgate has no debugger for scripts"
)

// shaDigits is the length of a script's name.
const shaDigits = 40

func (h *Scripts) eval(c *Ctx)      { h.runText(c, false) }
func (h *Scripts) evalRO(c *Ctx)    { h.runText(c, true) }
func (h *Scripts) evalSHA(c *Ctx)   { h.runKnown(c, false) }
func (h *Scripts) evalSHARO(c *Ctx) { h.runKnown(c, true) }

// runText runs the script whose text is args[1].
func (h *Scripts) runText(c *Ctx, readOnly bool) {
	keys, ok := c.integer(2)
	if !ok || !c.keyCountOK(keys) {
		return
	}
	s, err := h.engine.Load(c.args[1], false)
	if err != nil {
		c.err(err.Error())
		return
	}
	h.runScript(c, program{script: s}, int(keys), readOnly)
}

// runKnown runs the script whose name is args[1].
func (h *Scripts) runKnown(c *Ctx, readOnly bool) {
	if len(c.args[1]) != shaDigits {
		c.err(errNoScript)
		return
	}
	keys, ok := c.integer(2)
	if !ok || !c.keyCountOK(keys) {
		return
	}
	s := h.engine.Get(c.args[1])
	if s == nil {
		c.err(errNoScript)
		return
	}
	h.runScript(c, program{script: s}, int(keys), readOnly)
}

// keyCountOK checks a number of keys that follow it, or sends the error.
func (c *Ctx) keyCountOK(n int64) bool {
	switch {
	case n > int64(len(c.args)-3):
		c.err(errManyKeys)
	case n < 0:
		c.err(errFewKeys)
	default:
		return true
	}
	return false
}

func (h *Scripts) scriptLoad(c *Ctx) {
	s, err := h.engine.Load(c.args[2], true)
	if err != nil {
		c.err(err.Error())
		return
	}
	c.reply.BulkString(s.SHA)
}

func (h *Scripts) scriptExists(c *Ctx) {
	c.reply.Array(len(c.args) - 2)
	for _, sha := range c.args[2:] {
		if len(sha) == shaDigits && h.engine.Get(sha) != nil {
			c.reply.One()
		} else {
			c.reply.Zero()
		}
	}
}

func (h *Scripts) scriptFlush(c *Ctx) {
	if len(c.args) > 3 || (len(c.args) == 3 && !c.is(2, "ASYNC") && !c.is(2, "SYNC")) {
		c.err(errScriptFlush)
		return
	}
	h.engine.Flush()
	c.ok()
}

func (h *Scripts) scriptKill(c *Ctx) { h.kill(c, true) }

func scriptDebug(c *Ctx) {
	switch {
	case c.is(2, "NO"):
		c.ok()
	case c.is(2, "YES"), c.is(2, "SYNC"):
		c.err(errNoDebugger)
	default:
		c.err(errScriptDebug)
	}
}

// scriptMemory is what scripts and functions take up and how many there are.
type scriptMemory struct {
	scripts, functions, libraries int
	evalBytes, functionBytes      int
}

func (h *Scripts) memory() scriptMemory {
	m := scriptMemory{scripts: h.engine.Len(), evalBytes: h.engine.CacheBytes(), functionBytes: h.engine.LibraryBytes()}
	for _, l := range h.engine.ListLibraries() {
		m.libraries++
		m.functions += len(l.Functions)
	}
	return m
}

var _ script.Host = (*Scripts)(nil)
