package server

import (
	"strings"

	"headgate/internal/glob"
	"headgate/server/acl"
	"headgate/server/resp"
)

// commandCommand is the COMMAND family: what the table of commands says about itself.
var commandCommand = &Command{
	Name: "command", Group: GroupServer, Since: "2.8.13", Complexity: "O(n) in the number of commands",
	Summary: "Describe all commands for clients.",
	Arity:   -1, Flags: Loading | Stale, Categories: acl.Connection, Reply: ReplyArray, Handler: commandAll,
	Tips: tipUnordered,
	Sub: []*Command{
		{
			Name: "count", Since: "2.8.13", Complexity: "O(1)",
			Summary: "Return the number of commands, without their sub-commands.",
			Arity:   2, Flags: Loading | Stale, Reply: ReplyInteger, Handler: commandCount,
		},
		{
			Name: "docs", Since: "7.0.0", Complexity: "O(n) in the number of commands asked for",
			Summary: "Return the documentation of all commands, or of those named.",
			Arity:   -2, Flags: Loading | Stale,
			Tips: tipUnordered,
			Args: []Arg{str("command-name").multi().opt()}, Reply: ReplyMap, Handler: commandDocs,
		},
		{
			Name: "getkeys", Since: "2.8.13", Complexity: "O(n) in the number of arguments",
			Summary: "Return the keys of a command line.",
			Arity:   -4, Flags: Loading | Stale,
			Args: []Arg{str("command"), str("arg").multi()}, Reply: ReplyArray, Handler: commandGetKeys,
		},
		{
			Name: "getkeysandflags", Since: "7.0.0", Complexity: "O(n) in the number of arguments",
			Summary: "Return the keys of a command line, and what the command does with each.",
			Arity:   -4, Flags: Loading | Stale,
			Args: []Arg{str("command"), str("arg").multi()}, Reply: ReplyArray, Handler: commandGetKeysAndFlags,
		},
		helpCommand("5.0.0"),
		{
			Name: "info", Since: "2.8.13", Complexity: "O(n) in the number of commands asked for",
			Summary: "Describe all commands, or those named, for clients.",
			Arity:   -2, Flags: Loading | Stale,
			Tips: tipUnordered,
			Args: []Arg{str("command-name").multi().opt()}, Reply: ReplyArray | ReplyNull, Handler: commandInfo,
		},
		{
			Name: "list", Since: "7.0.0", Complexity: "O(n) in the number of commands",
			Summary: "Return the names of all commands, or of those that the filter lets through.",
			Arity:   -2, Flags: Loading | Stale,
			Tips: tipUnordered,
			Args: []Arg{oneOf("filterby",
				str("module-name").after("MODULE"), str("category").after("ACLCAT"), pattern("pattern").after("PATTERN"),
			).after("FILTERBY").opt()},
			Reply: ReplyArray, Handler: commandList,
		},
	},
}

func commandCount(c *Ctx) { c.reply.Int(int64(len(c.core.commands.top))) }

func commandAll(c *Ctx) {
	c.core.commands.described.send(c.reply, func() {
		c.reply.Array(len(c.core.commands.top))
		for _, cmd := range c.core.commands.top {
			c.sendCommandInfo(cmd)
		}
	})
}

func commandInfo(c *Ctx) {
	if len(c.args) == 2 {
		commandAll(c)
		return
	}
	c.reply.Array(len(c.args) - 2)
	for _, name := range c.args[2:] {
		if cmd := c.core.commands.byFullName(name); cmd != nil {
			c.sendCommandInfo(cmd)
		} else {
			c.reply.Null()
		}
	}
}

// sendCommandInfo sends one command's element of COMMAND INFO.
func (c *Ctx) sendCommandInfo(cmd *Command) {
	w := c.reply
	first, last, step := cmd.keyRange()
	w.Array(10)
	w.BulkString(cmd.fullName)
	w.Int(int64(cmd.Arity))
	c.sendNames(cmd.Flags.Names())
	w.Int(int64(first))
	w.Int(int64(last))
	w.Int(int64(step))
	c.sendCategories(cmd.allCategories())
	tips := strings.Fields(cmd.Tips)
	w.Set(len(tips))
	for _, tip := range tips {
		w.BulkString(tip)
	}
	w.Set(len(cmd.Keys))
	for _, k := range cmd.Keys {
		sendKeySpec(w, k)
	}
	if len(cmd.Sub) == 0 {
		w.Set(0)
		return
	}
	w.Array(len(cmd.Sub))
	for _, sub := range cmd.Sub {
		c.sendCommandInfo(sub)
	}
}

// sendCategories sends the names of ACL categories as rules have them.
func (c *Ctx) sendCategories(categories acl.Categories) {
	names := categories.Names()
	c.reply.Set(len(names))
	for _, name := range names {
		c.reply.Simple("@" + name)
	}
}

// accessNames returns a key's access flags as COMMAND shows them: the kind of access in capitals, the rest in lower case.
func accessNames(access string) []string {
	names := strings.Fields(access)
	for i, name := range names {
		if i > 0 {
			names[i] = strings.ToLower(name)
		}
	}
	return names
}

// sendKeySpec sends one element of a command's key specifications: how to find where they begin, and from there the keys.
func sendKeySpec(w *resp.Writer, k KeySpec) {
	search, find := "index", "range"
	if k.Keyword != "" {
		search = "keyword"
	}
	if k.KeyNum {
		find = "keynum"
	}
	w.Map(3)
	w.BulkString("flags")
	names := accessNames(k.Access)
	w.Set(len(names))
	for _, name := range names {
		w.Simple(name)
	}
	w.BulkString("begin_search")
	if k.Other != nil {
		sendSpecPart(w, "unknown")
		w.Map(0)
		w.BulkString("find_keys")
		sendSpecPart(w, "unknown")
		w.Map(0)
		return
	}
	sendSpecPart(w, search)
	if k.Keyword != "" {
		w.Map(2)
		w.BulkString("keyword")
		w.BulkString(k.Keyword)
		sendField(w, "startfrom", k.Begin)
	} else {
		w.Map(1)
		sendField(w, "index", k.Begin)
	}
	w.BulkString("find_keys")
	sendSpecPart(w, find)
	w.Map(3)
	if k.KeyNum {
		sendField(w, "keynumidx", 0)
		sendField(w, "firstkey", 1+k.Skip)
		sendField(w, "keystep", k.Step)
	} else {
		sendField(w, "lastkey", k.Last)
		sendField(w, "keystep", k.Step)
		sendField(w, "limit", k.Limit)
	}
}

// sendSpecPart begins one half of a key specification; its details follow as a map.
func sendSpecPart(w *resp.Writer, kind string) {
	w.Map(2)
	w.BulkString("type")
	w.BulkString(kind)
	w.BulkString("spec")
}

func commandDocs(c *Ctx) {
	if len(c.args) == 2 {
		c.core.commands.documented.send(c.reply, func() { c.sendDocs(c.core.commands.top) })
		return
	}
	var list []*Command
	for _, name := range c.args[2:] {
		if cmd := c.core.commands.byFullName(name); cmd != nil {
			list = append(list, cmd)
		}
	}
	c.sendDocs(list)
}

// sendDocs sends a map from each command's name to its documentation.
func (c *Ctx) sendDocs(list []*Command) {
	w := c.reply
	w.Map(len(list))
	for _, cmd := range list {
		w.BulkString(cmd.fullName)
		fields := 4
		if len(cmd.Args) > 0 {
			fields++
		}
		if len(cmd.Sub) > 0 {
			fields++
		}
		w.Map(fields)
		sendText(w, "summary", strings.TrimSuffix(cmd.Summary, "."))
		sendText(w, "since", cmd.Since)
		sendText(w, "group", string(cmd.Group))
		sendText(w, "complexity", cmd.Complexity)
		if len(cmd.Args) > 0 {
			keys := 0
			w.BulkString("arguments")
			sendArgs(w, cmd.Args, max(len(cmd.Keys)-1, 0), &keys)
		}
		if len(cmd.Sub) > 0 {
			w.BulkString("subcommands")
			c.sendDocs(cmd.Sub)
		}
	}
}

// sendArgs sends arguments as COMMAND DOCS does. keys counts the key arguments so far: they belong to the key specifications
// in their order, and those beyond the last one to that.
func sendArgs(w *resp.Writer, args []Arg, lastSpec int, keys *int) {
	w.Array(len(args))
	for _, a := range args {
		mark, fields := w.Start(), 2
		sendText(w, "name", a.Name)
		sendText(w, "type", a.Type)
		if a.Type == "key" {
			sendField(w, "key_spec_index", min(*keys, lastSpec))
			*keys++
			fields++
		}
		if a.Token != "" {
			sendText(w, "token", a.Token)
			fields++
		}
		if flags := a.flagNames(); len(flags) > 0 {
			w.BulkString("flags")
			w.Set(len(flags))
			for _, flag := range flags {
				w.Simple(flag)
			}
			fields++
		}
		if len(a.Args) > 0 {
			w.BulkString("arguments")
			sendArgs(w, a.Args, lastSpec, keys)
			fields++
		}
		w.EndMap(mark, fields)
	}
}

func commandList(c *Ctx) {
	keep := func(*Command) bool { return true }
	if len(c.args) > 2 {
		if len(c.args) != 5 || !c.is(2, "FILTERBY") {
			c.err(errSyntax)
			return
		}
		value := c.args[4]
		switch {
		case c.is(3, "MODULE"): // there are none
			keep = func(*Command) bool { return false }
		case c.is(3, "ACLCAT"):
			category := acl.CategoryByName(string(cutAtNUL(value)))
			keep = func(cmd *Command) bool { return cmd.allCategories()&category != 0 }
		case c.is(3, "PATTERN"):
			keep = func(cmd *Command) bool { return glob.Match(value, []byte(cmd.fullName), true) }
		default:
			c.err(errSyntax)
			return
		}
	}
	mark, n := c.reply.Start(), 0
	for _, cmd := range c.core.commands.all {
		if !cmd.gone && keep(cmd) {
			c.reply.BulkString(cmd.fullName)
			n++
		}
	}
	c.reply.EndArray(mark, n)
}

func commandGetKeys(c *Ctx) {
	if found, ok := c.keysOf(c.args[2:]); ok {
		c.reply.Array(len(found))
		for _, k := range found {
			c.reply.Bulk(k.name)
		}
	}
}

func commandGetKeysAndFlags(c *Ctx) {
	if found, ok := c.keysOf(c.args[2:]); ok {
		c.reply.Array(len(found))
		for _, k := range found {
			c.reply.Array(2)
			c.reply.Bulk(k.name)
			c.sendNames(accessNames(k.access))
		}
	}
}

// foundKey is a key of a command line.
type foundKey struct {
	name   []byte
	access string
}

// keysOf returns the keys of a command line, or sends the error.
func (c *Ctx) keysOf(args [][]byte) ([]foundKey, bool) {
	cmd := c.core.commands.lookup(args[0])
	if cmd != nil && cmd.Sub != nil && len(args) > 1 {
		cmd = cmd.subcommand(args[1])
	}
	switch {
	case cmd == nil:
		c.err("ERR Invalid command specified")
		return nil, false
	case len(cmd.Keys) == 0 || cmd.Keys[0].Access == notKey:
		c.err("ERR The command has no key arguments")
		return nil, false
	case !cmd.arityOK(len(args)):
		c.err("ERR Invalid number of arguments specified for command")
		return nil, false
	}
	var found []foundKey
	var indexes []int
	for _, k := range cmd.Keys {
		if k.Access == notKey {
			continue
		}
		indexes = k.find(indexes[:0], args)
		if len(indexes) == 0 && k.Other == nil && cmd.Flags&NoMandatoryKeys == 0 {
			c.err("ERR Invalid arguments specified for command")
			return nil, false
		}
		for _, i := range indexes {
			found = append(found, foundKey{args[i], k.accessOf(args)})
		}
	}
	return found, true
}
