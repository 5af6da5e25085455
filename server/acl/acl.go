// Package acl has users, the rules that define them, and the decision whether a command line is within a user's rights.
//
// It is pure: no network, no clock, no RESP. The server describes its commands once, in a [Table], and each command line that is to be
// judged as a [Call]. Nothing here is safe for concurrent use; the executor's lock guards it.
//
// A user has passwords and one or more selectors: the root, which rules outside of parentheses change, and one for each rule in
// parentheses. A call is allowed if one of them allows all of it. A selector allows commands, keys and channels.
package acl

import (
	"math/bits"
	"slices"
	"strings"
)

// Categories is a set of categories of commands.
type Categories uint32

// The categories, in the order in which Redis lists them, and the one that only this server has.
const (
	Keyspace Categories = 1 << iota
	Read
	Write
	Set
	SortedSet
	List
	Hash
	String
	Bitmap
	HyperLogLog
	Geo
	Stream
	PubSub
	Admin
	Fast
	Slow
	Blocking
	Dangerous
	Connection
	Transaction
	Scripting
	Throttle
)

var categoryNames = []string{
	"keyspace", "read", "write", "set", "sortedset", "list", "hash", "string", "bitmap", "hyperloglog", "geo", "stream", "pubsub",
	"admin", "fast", "slow", "blocking", "dangerous", "connection", "transaction", "scripting", "throttle",
}

// CategoryNames returns the names of all categories.
func CategoryNames() []string { return slices.Clone(categoryNames) }

// Names returns the names of the categories in the set.
func (c Categories) Names() []string {
	var names []string
	for i, name := range categoryNames {
		if c&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// CategoryByName returns the category of a name in any case, or none.
func CategoryByName(name string) Categories {
	for i, n := range categoryNames {
		if strings.EqualFold(name, n) {
			return 1 << i
		}
	}
	return 0
}

// Command is what rules have to know of a command.
type Command struct {
	Name       string // in full and in lower case, as "config|get"
	Parent     int    // index of the container that it is a sub-command of, or -1
	Categories Categories
	Always     bool // everybody may run it, since it serves to authenticate
}

// Table is the set of commands that rules speak of. It does not change.
type Table struct {
	commands   []Command
	subs       [][]int // of containers: their sub-commands
	byName     map[string]int
	members    []bitmap // of each category
	sizes      []int    // of each category
	containers []bool
}

// NewTable returns a table of commands that are known by their indexes. A container stands before its sub-commands.
func NewTable(commands []Command) *Table {
	t := &Table{
		commands: commands, subs: make([][]int, len(commands)), byName: map[string]int{},
		members: make([]bitmap, len(categoryNames)), sizes: make([]int, len(categoryNames)), containers: make([]bool, len(commands)),
	}
	for i := range t.members {
		t.members[i] = t.newBitmap()
	}
	for id, c := range commands {
		t.byName[c.Name] = id
		if c.Parent >= 0 {
			t.subs[c.Parent] = append(t.subs[c.Parent], id)
			t.containers[c.Parent] = true
		}
		for i := range categoryNames {
			if c.Categories&(1<<i) != 0 {
				t.members[i].set(id, true)
				t.sizes[i]++
			}
		}
	}
	return t
}

// lookup finds a command by its full name in any case.
func (t *Table) lookup(name string) (id int, ok bool) {
	id, ok = t.byName[strings.ToLower(name)]
	return id, ok
}

// Members returns the full names of the commands of a category.
func (t *Table) Members(c Categories) []string {
	var names []string
	for _, cmd := range t.commands {
		if cmd.Categories&c != 0 {
			names = append(names, cmd.Name)
		}
	}
	return names
}

// bitmap has a bit for each command of a table.
type bitmap []uint64

func (t *Table) newBitmap() bitmap { return make(bitmap, (len(t.commands)+63)/64) }

func (b bitmap) has(id int) bool { return b[id/64]&(1<<(id%64)) != 0 }

func (b bitmap) set(id int, on bool) {
	if on {
		b[id/64] |= 1 << (id % 64)
	} else {
		b[id/64] &^= 1 << (id % 64)
	}
}

// common returns how many bits are set in both.
func (b bitmap) common(other bitmap) (n int) {
	for i := range b {
		n += bits.OnesCount64(b[i] & other[i])
	}
	return n
}

// cut ends text where C's reading of it would: rules are compared as such text, though passwords and patterns may hold any byte.
func cut(s string) string {
	if i := strings.IndexByte(s, 0); i >= 0 {
		return s[:i]
	}
	return s
}
