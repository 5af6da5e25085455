package admin

import (
	"strings"

	"headgate/internal/glob"
	"headgate/server/acl"
	"headgate/server/command"
	"headgate/server/resp"
)

// commandCommand is the COMMAND family: what the table of commands says about itself.
var commandCommand = &command.Command{
	Name: "command", Group: command.GroupServer, Since: "2.8.13", Complexity: "O(n) in the number of commands",
	Summary: "Describe all commands for clients.",
	Arity:   -1, Flags: command.Loading | command.Stale, Categories: acl.Connection, Reply: command.ReplyArray, Handler: commandAll,
	Tips: command.TipUnordered,
	Sub: []*command.Command{
		{
			Name: "count", Since: "2.8.13", Complexity: "O(1)",
			Summary: "Return the number of commands, without their sub-commands.",
			Arity:   2, Flags: command.Loading | command.Stale, Reply: command.ReplyInteger, Handler: commandCount,
		},
		{
			Name: "docs", Since: "7.0.0", Complexity: "O(n) in the number of commands asked for",
			Summary: "Return the documentation of all commands, or of those named.",
			Arity:   -2, Flags: command.Loading | command.Stale,
			Tips: command.TipUnordered,
			Args: []command.Arg{command.Str("command-name").Multi().Opt()}, Reply: command.ReplyMap, Handler: commandDocs,
		},
		{
			Name: "getkeys", Since: "2.8.13", Complexity: "O(n) in the number of arguments",
			Summary: "Return the keys of a command line.",
			Arity:   -4, Flags: command.Loading | command.Stale,
			Args: []command.Arg{command.Str("command"), command.Str("arg").Multi()}, Secret: command.SecretFrom(3), Reply: command.ReplyArray, Handler: commandGetKeys,
		},
		{
			Name: "getkeysandflags", Since: "7.0.0", Complexity: "O(n) in the number of arguments",
			Summary: "Return the keys of a command line, and what the command does with each.",
			Arity:   -4, Flags: command.Loading | command.Stale,
			Args: []command.Arg{command.Str("command"), command.Str("arg").Multi()}, Secret: command.SecretFrom(3), Reply: command.ReplyArray, Handler: commandGetKeysAndFlags,
		},
		command.HelpCommand("5.0.0"),
		{
			Name: "info", Since: "2.8.13", Complexity: "O(n) in the number of commands asked for",
			Summary: "Describe all commands, or those named, for clients.",
			Arity:   -2, Flags: command.Loading | command.Stale,
			Tips: command.TipUnordered,
			Args: []command.Arg{command.Str("command-name").Multi().Opt()}, Reply: command.ReplyArray | command.ReplyNull, Handler: commandInfo,
		},
		{
			Name: "list", Since: "7.0.0", Complexity: "O(n) in the number of commands",
			Summary: "Return the names of all commands, or of those that the filter lets through.",
			Arity:   -2, Flags: command.Loading | command.Stale,
			Tips: command.TipUnordered,
			Args: []command.Arg{command.OneOf("filterby",
				command.Str("module-name").After("MODULE"), command.Str("category").After("ACLCAT"), command.Pattern("pattern").After("PATTERN"),
			).After("FILTERBY").Opt()},
			Reply: command.ReplyArray, Handler: commandList,
		},
	},
}

func commandCount(c *command.Ctx) { c.Reply.Int(int64(len(c.Core.Commands.Top))) }

func commandAll(c *command.Ctx) {
	c.Core.Commands.Described.Send(c.Reply, func() {
		c.Reply.Array(len(c.Core.Commands.Top))
		for _, cmd := range c.Core.Commands.Top {
			sendCommandInfo(c, cmd)
		}
	})
}

func commandInfo(c *command.Ctx) {
	if len(c.Args) == 2 {
		commandAll(c)
		return
	}
	c.Reply.Array(len(c.Args) - 2)
	for _, name := range c.Args[2:] {
		if cmd := c.Core.Commands.ByFullName(name); cmd != nil {
			sendCommandInfo(c, cmd)
		} else {
			c.Reply.Null()
		}
	}
}

// sendCommandInfo sends one command's element of COMMAND INFO.
func sendCommandInfo(c *command.Ctx, cmd *command.Command) {
	w := c.Reply
	first, last, step := cmd.KeyRange()
	w.Array(10)
	w.BulkString(cmd.FullName)
	w.Int(int64(cmd.Arity))
	c.SendNames(cmd.Flags.Names())
	w.Int(int64(first))
	w.Int(int64(last))
	w.Int(int64(step))
	sendCategories(c, cmd.AllCategories())
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
		sendCommandInfo(c, sub)
	}
}

// sendCategories sends the names of ACL categories as rules have them.
func sendCategories(c *command.Ctx, categories acl.Categories) {
	names := categories.Names()
	c.Reply.Set(len(names))
	for _, name := range names {
		c.Reply.Simple("@" + name)
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
func sendKeySpec(w *resp.Writer, k command.KeySpec) {
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
		command.SendField(w, "startfrom", k.Begin)
	} else {
		w.Map(1)
		command.SendField(w, "index", k.Begin)
	}
	w.BulkString("find_keys")
	sendSpecPart(w, find)
	w.Map(3)
	if k.KeyNum {
		command.SendField(w, "keynumidx", 0)
		command.SendField(w, "firstkey", 1+k.Skip)
		command.SendField(w, "keystep", k.Step)
	} else {
		command.SendField(w, "lastkey", k.Last)
		command.SendField(w, "keystep", k.Step)
		command.SendField(w, "limit", k.Limit)
	}
}

// sendSpecPart begins one half of a key specification; its details follow as a map.
func sendSpecPart(w *resp.Writer, kind string) {
	w.Map(2)
	w.BulkString("type")
	w.BulkString(kind)
	w.BulkString("spec")
}

func commandDocs(c *command.Ctx) {
	if len(c.Args) == 2 {
		c.Core.Commands.Documented.Send(c.Reply, func() { sendDocs(c, c.Core.Commands.Top) })
		return
	}
	var list []*command.Command
	for _, name := range c.Args[2:] {
		if cmd := c.Core.Commands.ByFullName(name); cmd != nil {
			list = append(list, cmd)
		}
	}
	sendDocs(c, list)
}

// sendDocs sends a map from each command's name to its documentation.
func sendDocs(c *command.Ctx, list []*command.Command) {
	w := c.Reply
	w.Map(len(list))
	for _, cmd := range list {
		w.BulkString(cmd.FullName)
		fields := 4
		if len(cmd.Args) > 0 {
			fields++
		}
		if len(cmd.Sub) > 0 {
			fields++
		}
		w.Map(fields)
		command.SendText(w, "summary", strings.TrimSuffix(cmd.Summary, "."))
		command.SendText(w, "since", cmd.Since)
		command.SendText(w, "group", string(cmd.Group))
		command.SendText(w, "complexity", cmd.Complexity)
		if len(cmd.Args) > 0 {
			keys := 0
			w.BulkString("arguments")
			sendArgs(w, cmd.Args, max(len(cmd.Keys)-1, 0), &keys)
		}
		if len(cmd.Sub) > 0 {
			w.BulkString("subcommands")
			sendDocs(c, cmd.Sub)
		}
	}
}

// sendArgs sends arguments as COMMAND DOCS does. keys counts the key arguments so far: they belong to the key specifications
// in their order, and those beyond the last one to that.
func sendArgs(w *resp.Writer, args []command.Arg, lastSpec int, keys *int) {
	w.Array(len(args))
	for _, a := range args {
		mark, fields := w.Start(), 2
		command.SendText(w, "name", a.Name)
		command.SendText(w, "type", a.Type)
		if a.Type == "key" {
			command.SendField(w, "key_spec_index", min(*keys, lastSpec))
			*keys++
			fields++
		}
		if a.Token != "" {
			command.SendText(w, "token", a.Token)
			fields++
		}
		if a.Summary != "" {
			command.SendText(w, "summary", a.Summary)
			fields++
		}
		if flags := a.FlagNames(); len(flags) > 0 {
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

func commandList(c *command.Ctx) {
	keep := func(*command.Command) bool { return true }
	if len(c.Args) > 2 {
		if len(c.Args) != 5 || !c.Is(2, "FILTERBY") {
			c.Err(command.ErrSyntax)
			return
		}
		value := c.Args[4]
		switch {
		case c.Is(3, "MODULE"): // there are none
			keep = func(*command.Command) bool { return false }
		case c.Is(3, "ACLCAT"):
			category := acl.CategoryByName(string(command.CutAtNUL(value)))
			keep = func(cmd *command.Command) bool { return cmd.AllCategories()&category != 0 }
		case c.Is(3, "PATTERN"):
			keep = func(cmd *command.Command) bool { return glob.Match(value, []byte(cmd.FullName), true) }
		default:
			c.Err(command.ErrSyntax)
			return
		}
	}
	mark, n := c.Reply.Start(), 0
	for _, cmd := range c.Core.Commands.All {
		if !cmd.Gone && keep(cmd) {
			c.Reply.BulkString(cmd.FullName)
			n++
		}
	}
	c.Reply.EndArray(mark, n)
}

func commandGetKeys(c *command.Ctx) {
	if found, ok := keysOf(c, c.Args[2:]); ok {
		c.Reply.Array(len(found))
		for _, k := range found {
			c.Reply.Bulk(k.name)
		}
	}
}

func commandGetKeysAndFlags(c *command.Ctx) {
	if found, ok := keysOf(c, c.Args[2:]); ok {
		c.Reply.Array(len(found))
		for _, k := range found {
			c.Reply.Array(2)
			c.Reply.Bulk(k.name)
			c.SendNames(accessNames(k.access))
		}
	}
}

// foundKey is a key of a command line.
type foundKey struct {
	name   []byte
	access string
}

// keysOf returns the keys of a command line, or sends the error.
func keysOf(c *command.Ctx, args [][]byte) ([]foundKey, bool) {
	cmd := c.Core.Commands.Lookup(args[0])
	if cmd != nil && cmd.Sub != nil && len(args) > 1 {
		cmd = cmd.Subcommand(args[1])
	}
	switch {
	case cmd == nil:
		c.Err("ERR Invalid command specified")
		return nil, false
	case len(cmd.Keys) == 0 || cmd.Keys[0].Access == command.NotKey:
		c.Err("ERR The command has no key arguments")
		return nil, false
	case !cmd.ArityOK(len(args)):
		c.Err("ERR Invalid number of arguments specified for command")
		return nil, false
	}
	var found []foundKey
	var indexes []int
	for _, k := range cmd.Keys {
		if k.Access == command.NotKey {
			continue
		}
		indexes = k.Find(indexes[:0], args)
		if len(indexes) == 0 && k.Other == nil && cmd.Flags&command.NoMandatoryKeys == 0 {
			c.Err("ERR Invalid arguments specified for command")
			return nil, false
		}
		for _, i := range indexes {
			found = append(found, foundKey{args[i], k.AccessOf(args)})
		}
	}
	return found, true
}
