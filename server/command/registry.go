package command

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"headgate/internal/ascii"
	"headgate/server/config"
	"headgate/server/resp"
)

// Registry is the table of all commands. It does not change once the server listens.
type Registry struct {
	slots [nameSlots]*Command // top level, hashed by name, with linear probing
	All   []*Command          // with sub-commands; index = Command.ID
	Top   []*Command          // top level, sorted by name
	own   map[string]*Command // once some are renamed: the top level by the names of the table

	Described, Documented Rendered // replies to COMMAND and to COMMAND DOCS; guarded by the executor's lock
}

const (
	maxNameLength = 32   // no command's name is longer
	nameSlots     = 1024 // several times the number of commands, so that probes stay short
)

// NewRegistry builds the table from the groups' declarations, and panics on a declaration that cannot be right: such a
// mistake must not ship.
func NewRegistry(groups ...[]*Command) *Registry {
	r := &Registry{}
	for _, group := range groups {
		for i, declared := range group {
			cmd := declared.clone()
			if i > 0 && group[i-1].Name >= cmd.Name {
				panic(fmt.Sprintf("command: commands of a group must be sorted and unique: %s after %s", cmd.Name, group[i-1].Name))
			}
			if r.Lookup([]byte(cmd.Name)) != nil {
				panic("command: declared twice: " + cmd.Name)
			}
			if len(r.Top) == nameSlots/2 {
				panic("command: nameSlots is too small for so many commands")
			}
			r.register(cmd, nil)
			r.insert(cmd)
			r.Top = append(r.Top, cmd)
		}
	}
	slices.SortFunc(r.Top, func(a, b *Command) int { return strings.Compare(a.Name, b.Name) })
	r.number()
	return r
}

// ownSince is how Since begins for commands that Redis has not.
const ownSince = "headgate "

func (r *Registry) register(cmd, parent *Command) {
	cmd.Parent, cmd.FullName, cmd.Upper = parent, cmd.Name, strings.ToUpper(cmd.Name)
	if parent != nil {
		cmd.FullName = parent.Name + "|" + cmd.Name
		cmd.Group = parent.Group
		cmd.Categories |= parent.Categories
	}
	cmd.ArityError = fmt.Sprintf("ERR wrong number of arguments for '%s' command", cmd.FullName)
	if strings.HasPrefix(cmd.Since, ownSince) && cmd.Handler != nil {
		cmd.ArityError += ", try " + cmd.Syntax() // clients cannot look it up in Redis's documentation
	}
	cmd.check()
	for _, k := range cmd.Keys {
		if k.movable() {
			cmd.Flags |= MovableKeys
		}
	}
	cmd.FirstKey, cmd.SeveralKeys = cmd.places()
	for _, sub := range cmd.Sub {
		r.register(sub, cmd)
	}
}

// clone copies a declaration, so that several servers of one process share nothing that is written.
func (c *Command) clone() *Command {
	own := *c
	own.Sub = slices.Clone(c.Sub)
	for i, sub := range own.Sub {
		own.Sub[i] = sub.clone()
	}
	return &own
}

// check panics when the declaration contradicts itself.
func (c *Command) check() {
	fail := func(what string) { panic("command: " + c.FullName + ": " + what) }
	switch {
	case c.Name == "" || c.Name != strings.ToLower(c.Name) || len(c.Name) > maxNameLength:
		fail("name must be 1 to 32 characters in lower case")
	case c.Summary == "" || !strings.HasSuffix(c.Summary, "."):
		fail("summary must be a sentence")
	case c.Since == "" || c.Group == "":
		fail("since or group missing")
	case c.Arity == 0:
		fail("arity 0")
	case (c.Handler == nil) != (len(c.Sub) > 0) && c.Handler == nil:
		fail("handler missing")
	case c.Handler != nil && c.Reply == 0:
		fail("reply missing")
	case c.Flags&Write != 0 && c.Flags&ReadOnly != 0:
		fail("both write and readonly")
	case c.Secret == nil && TakeSecrets(c.Args):
		fail("takes a secret and does not hide it: Secret is missing")
	case c.Channels.First > 0 && c.Flags&PubSub == 0:
		fail("channels without the flag PubSub")
	}
	for i, k := range c.Keys {
		more := i > 0 && k.Last < 0 // keys behind others, of which there may be none
		if k.Access == NotKey {
			continue
		}
		if k.Begin < 1 || k.Step < 1 || (k.Begin >= max(c.Arity, -c.Arity) && !more && c.Flags&NoMandatoryKeys == 0 && k.Keyword == "" && c.Group != GroupThrottle) {
			fail("key position outside the arguments")
		}
		if (k.Keyword != "") != (k.Behind != nil) {
			fail("keyword without the way to it")
		}
	}
}

// number lists all commands in the order of their names, each with its sub-commands behind it: what is shown of them does not depend on
// which part of the server declares them.
func (r *Registry) number() {
	for _, cmd := range r.Top {
		for _, one := range append([]*Command{cmd}, cmd.Sub...) {
			one.ID = len(r.All)
			r.All = append(r.All, one)
		}
	}
}

// nameSlot returns where the probe for a name begins. It folds case by setting bit 5, which is exact for letters; that other
// characters may then look alike costs a probe at most, since lookup compares whole names.
func nameSlot(name []byte) uint {
	word := uint64(len(name))
	for _, b := range name[:min(len(name), 7)] {
		word = word<<8 | uint64(b|0x20)
	}
	return uint(word * 0x9E3779B97F4A7C15 >> (64 - 10))
}

func (r *Registry) insert(cmd *Command) {
	i := nameSlot([]byte(cmd.Upper))
	for r.slots[i] != nil {
		i = (i + 1) % nameSlots
	}
	r.slots[i] = cmd
}

// Rename gives commands the names by which clients are to call them, one after the other.
func (r *Registry) Rename(renames []config.Rename) error {
	if len(renames) == 0 {
		return nil
	}
	r.own = map[string]*Command{}
	for _, cmd := range r.Top {
		r.own[cmd.Name] = cmd
	}
	for _, rename := range renames {
		cmd := r.Lookup([]byte(rename.From))
		if cmd == nil {
			return fmt.Errorf("rename-command: there is no command %q; correct the name", rename.From)
		}
		cmd.Upper, cmd.Gone = ascii.Upper(rename.To), rename.To == ""
		cmd.renamed = cmd.Upper != ascii.Upper(cmd.Name)
		r.slots = [nameSlots]*Command{}
		for _, other := range r.Top {
			if other != cmd && !other.Gone {
				r.insert(other)
			}
		}
		if other := r.Lookup([]byte(rename.To)); other != nil {
			return fmt.Errorf("rename-command: %q is the name of a command already; choose another", rename.To)
		}
		if !cmd.Gone {
			r.insert(cmd)
		}
	}
	isGone := func(cmd *Command) bool { return cmd.Gone || cmd.Parent != nil && cmd.Parent.Gone }
	r.Top = slices.DeleteFunc(r.Top, isGone)
	for _, cmd := range r.All {
		cmd.Gone = isGone(cmd)
	}
	return nil
}

// Lookup finds a command by its name in any case, or returns nil.
func (r *Registry) Lookup(name []byte) *Command {
	for i := nameSlot(name); ; i = (i + 1) % nameSlots {
		cmd := r.slots[i]
		if cmd == nil || ascii.EqualFold(name, cmd.Upper) {
			return cmd
		}
	}
}

// ByFullName finds a command, or a sub-command as "container|name", by its name in any case.
func (r *Registry) ByFullName(name []byte) *Command {
	container, sub, isSub := bytes.Cut(name, []byte("|"))
	cmd := r.Lookup(container)
	if cmd == nil || !isSub {
		return cmd
	}
	return cmd.Subcommand(sub)
}

// ByOwnName finds a command by its name in the table where that is not what clients call it by, or returns nil.
func (r *Registry) ByOwnName(name []byte) *Command {
	if r.own == nil {
		return nil
	}
	return r.own[strings.ToLower(string(name))]
}

// Rendered keeps a reply of hundreds of kB that is the same for everybody, by the protocol's version, while it is asked for: making it costs twenty times as
// much as copying it.
type Rendered struct {
	replies [resp.RESP3 + 1][]byte
	asked   bool // since the last Trim
}

// Send sends the reply, which make makes if it is not kept.
func (r *Rendered) Send(w *resp.Writer, make func()) {
	r.asked = true
	known := &r.replies[w.Proto()]
	if *known != nil {
		w.Raw(*known)
		return
	}
	from := w.Len()
	if make(); !w.Over() {
		*known = bytes.Clone(w.Bytes()[from:])
	}
}

// Trim keeps the reply no longer if nobody has asked for it since the last Trim.
func (r *Rendered) Trim() {
	if !r.asked {
		clear(r.replies[:])
	}
	r.asked = false
}
