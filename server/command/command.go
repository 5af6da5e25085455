package command

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"headgate/internal/ascii"
	"headgate/internal/number"
	"headgate/server/acl"
	"headgate/server/config"
	"headgate/server/resp"
)

// Command declares one command. Everything that is said about a command anywhere (the COMMAND family, arity errors, key
// extraction, rights, admission to transactions and to unauthenticated clients, what the slow log and MONITOR hide, INFO
// commandstats, docs/commands.md, the tests' coverage) derives from this one declaration; nothing decides by a command's name.
type Command struct {
	Name       string         // lower case; a sub-command's own name, without its container's
	Group      Group          // the data type or subject, as in Redis's documentation
	Since      string         // Redis version that brought it; "headgate" for those that Redis has not
	Complexity string         // in big-O, in terms of what the arguments name
	Summary    string         // one sentence
	Arity      int            // number of arguments, the name included; negative: at least
	Flags      Flags          // how the dispatcher admits it
	Categories acl.Categories // the ACL categories that neither its flags nor its group imply; its sub-commands are in them, too
	Tips       string         // what COMMAND INFO tells clients of clusters
	Keys       []KeySpec      // where its keys stand
	Channels   ChannelSpec    // where its channels stand
	Args       []Arg          // its syntax
	Secret     Secret         // which of its arguments are shown to nobody; nil: none
	Runs       Program        // what it runs that a client has written
	Reply      Reply          // the reply types it can answer with
	Errors     []string       // of limiters: its errors besides those for single arguments, in the order of the checks
	Handler    Handler        // nil exactly for containers
	Sub        []*Command     // a container's sub-commands

	ID       int // index into Registry.All and Statistics.Commands
	Parent   *Command
	FullName string // "config|get"
	Upper    string // the name that clients call it by, in upper case, for comparing
	renamed  bool   // that is not its own name
	Gone     bool   // rename-command has taken it away

	ArityError string // the error for a wrong number of arguments
	FirstKey   int    // argument index of the first key when fixed, else 0
}

// Handler runs one command: it sends exactly one reply.
type Handler func(c *Ctx)

// Secret reports whether args[i] of a command line is shown to nobody, neither by the slow log nor by MONITOR.
type Secret func(c *Ctx, args [][]byte, i int) bool

// SecretFrom hides all arguments from an index on.
func SecretFrom(first int) Secret {
	return func(_ *Ctx, _ [][]byte, i int) bool { return i >= first }
}

// secretWords are those that an argument's name has if it is one to hide.
var secretWords = []string{"password", "passwd", "passphrase", "pass", "secret", "token", "credential", "credentials"}

// TakeSecrets reports whether an argument, or one within another, is one to hide by its name.
func TakeSecrets(args []Arg) bool {
	return slices.ContainsFunc(args, func(a Arg) bool { return a.IsSecret() || TakeSecrets(a.Args) })
}

// IsSecret reports whether a password or the like stands there, as the argument's name has it.
func (a Arg) IsSecret() bool {
	words := strings.FieldsFunc(strings.ToLower(a.Name), func(r rune) bool { return r < 'a' || r > 'z' })
	return len(a.Args) == 0 && a.Type != "pure-token" && slices.ContainsFunc(words, func(word string) bool { return slices.Contains(secretWords, word) })
}

// Program is what a command runs that a client has written.
type Program uint8

// The programs, by what the first argument says of them.
const (
	NoProgram    Program = iota
	ScriptText           // a script's text
	ScriptSHA            // the SHA-1 of a script that the server knows
	FunctionName         // the name of a loaded library's function
)

// Tips that several commands give to clients of clusters, under Redis's names.
const (
	TipVaries    = "nondeterministic_output"
	TipUnordered = "nondeterministic_output_order"
	TipAllShards = "request_policy:all_shards response_policy:all_succeeded"
	TipAllNodes  = "request_policy:all_nodes response_policy:all_succeeded"
)

// Tipped gives a declaration that a function has made its tips.
func (c *Command) Tipped(tips string) *Command {
	c.Tips = tips
	return c
}

// Group is the subject that a command belongs to.
type Group string

// The groups of commands, under Redis's names.
const (
	GroupConnection   Group = "connection"
	GroupGeneric      Group = "generic"
	GroupString       Group = "string"
	GroupBitmap       Group = "bitmap"
	GroupHash         Group = "hash"
	GroupList         Group = "list"
	GroupSet          Group = "set"
	GroupSortedSet    Group = "sorted-set"
	GroupHyperLogLog  Group = "hyperloglog"
	GroupStream       Group = "stream"
	GroupTransactions Group = "transactions"
	GroupScripting    Group = "scripting"
	GroupPubSub       Group = "pubsub"
	GroupServer       Group = "server"
	GroupThrottle     Group = "throttle"
)

// Flags say how the dispatcher treats a command.
type Flags uint64

// The flags of commands, under Redis's names.
const (
	Write           Flags = 1 << iota // may change the keyspace
	ReadOnly                          // reads keys, changes none
	DenyOOM                           // refused when memory is full
	Admin                             // for operators
	PubSub                            // part of publish and subscribe
	NoScript                          // refused in scripts
	Blocking                          // may block the client
	Loading                           // allowed while the dataset is loading
	Stale                             // allowed on stale data; kept for COMMAND INFO
	SkipMonitor                       // not shown by MONITOR
	SkipSlowlog                       // not entered into the slow log
	Fast                              // takes constant or logarithmic time
	NoAuth                            // allowed before authentication
	NoMandatoryKeys                   // its keys are optional
	AllowBusy                         // allowed while a script overruns
	NoMulti                           // refused in transactions
	MayReplicate                      // may write although it is not a write command (not shown)
	NoAsyncLoading                    // kept for COMMAND INFO
	RunsInMulti                       // runs at once in a transaction instead of being queued (not shown)
	Sampled                           // timed by sampling like the fast ones, though Redis does not call it fast (not shown)
	DecidesFirst                      // writes or not as it decides: admitted while nothing can be written, it asks by itself (not shown)
	MovableKeys                       // some keys have no fixed place; derived from Keys
	NotKeyspace                       // of the generic group, but not in the ACL category that goes with it (not shown)
	ForSubscribers                    // allowed to a client that takes all replies but a few for messages (not shown)
	DropsQueue                        // forgets what its client has queued, and so is let through though memory is full (not shown)
	RunsQueue                         // does what its client has queued, which decides how it is admitted (not shown)
	HealthCheck                       // refused like a write while data cannot be kept, since health checks use it (not shown)
	CountsUses                        // counts as a use of its keys even for a client that has chosen NO-TOUCH (not shown)
	KeepsCaching                      // what CLIENT CACHING has said holds for the command behind it, too (not shown)
	TellsTime                         // sees the time move on while a script runs (not shown)
)

// ClientFlags are those of the commands of the CLIENT family.
const ClientFlags = NoScript | Loading | Stale

var flagNames = []struct {
	flag Flags
	name string
}{
	{Write, "write"}, {ReadOnly, "readonly"}, {DenyOOM, "denyoom"}, {Admin, "admin"}, {PubSub, "pubsub"},
	{NoScript, "noscript"}, {Blocking, "blocking"}, {Loading, "loading"}, {Stale, "stale"},
	{SkipMonitor, "skip_monitor"}, {SkipSlowlog, "skip_slowlog"}, {Fast, "fast"}, {NoAuth, "no_auth"},
	{NoMandatoryKeys, "no_mandatory_keys"}, {NoAsyncLoading, "no_async_loading"},
	{NoMulti, "no_multi"}, {MovableKeys, "movablekeys"}, {AllowBusy, "allow_busy"},
}

// Names returns the flags' names as COMMAND INFO shows them.
func (f Flags) Names() []string {
	var names []string
	for _, n := range flagNames {
		if f&n.flag != 0 {
			names = append(names, n.name)
		}
	}
	return names
}

// AllCategories derives the ACL categories of a command from its flags and its group.
func (c *Command) AllCategories() (all acl.Categories) {
	if c.Handler == nil { // a container: its sub-commands have the rest
		return acl.Slow
	}
	f := c.Flags
	admin := f&Admin != 0
	all = c.Categories
	add := func(when bool, category acl.Categories) {
		if when {
			all |= category
		}
	}
	add((c.Group == GroupGeneric && f&NotKeyspace == 0) || (c.Group == GroupServer && f&Write != 0), acl.Keyspace)
	add(f&ReadOnly != 0 && c.Group != GroupScripting, acl.Read)
	add(f&Write != 0, acl.Write)
	add(c.Group == GroupSortedSet, acl.SortedSet)
	add(c.Group == GroupList, acl.List)
	add(c.Group == GroupSet, acl.Set)
	add(c.Group == GroupHash, acl.Hash)
	add(c.Group == GroupString, acl.String)
	add(c.Group == GroupBitmap, acl.Bitmap)
	add(c.Group == GroupHyperLogLog, acl.HyperLogLog)
	add(c.Group == GroupStream, acl.Stream)
	add(f&PubSub != 0, acl.PubSub)
	add(admin, acl.Admin|acl.Dangerous)
	add(f&Fast != 0, acl.Fast)
	add(f&Fast == 0, acl.Slow)
	add(f&Blocking != 0, acl.Blocking)
	add(c.Group == GroupConnection, acl.Connection)
	add(c.Group == GroupTransactions, acl.Transaction)
	add(c.Group == GroupScripting, acl.Scripting)
	add(c.Group == GroupThrottle && !admin, acl.Throttle)
	return all
}

// KeySpec says where keys stand among a command's arguments.
type KeySpec struct {
	Access  string // flags of Redis's key specs: "RW UPDATE ACCESS", "RO ACCESS", "OW UPDATE", …
	Begin   int    // argument index of the first key, or of the count that precedes the keys
	Keyword string // when set, keys begin after this word, which clients are told to search from argument Begin on
	Last    int    // index of the last key relative to the first; negative: counted from the end, -1 the last argument
	Step    int    // distance between keys
	Limit   int    // with Last -1: 2 means that only the first half of the arguments are keys, and so on
	KeyNum  bool   // argument Begin holds the number of keys, which follow it

	// Behind returns, with Keyword, the argument index behind that word, or 0 if it is not there. The word may be the value of another
	// option, too, so nothing but the handler's own steps through its options can tell.
	Behind func(args [][]byte) int

	// Other finds keys that none of this can tell of, and appends their indexes; COMMAND shows them as unknown. Like Behind, it goes
	// through the options by the handler's own steps.
	Other func(indexes []int, args [][]byte) []int
	Skip  int // with KeyNum: how many arguments stand between the number and the first key

	// Vary tells the access of one command line, where Access, which then ends in VARIABLE_FLAGS, is only the most that there can be.
	Vary func(args [][]byte) string
}

// NotKey is the access to what stands in a key's place for the sake of clusters, but is none.
const NotKey = "not_key"

// Keys declares keys at fixed places: the first, the last (negative: from the end) and the step between them.
func Keys(access string, first, last, step int) []KeySpec {
	if last > 0 {
		last -= first
	}
	return []KeySpec{{Access: access, Begin: first, Last: last, Step: step}}
}

// Varying declares the access of the first specification to depend on the command line.
func Varying(specs []KeySpec, vary func(args [][]byte) string) []KeySpec {
	specs[0].Access += " VARIABLE_FLAGS"
	specs[0].Vary = vary
	return specs
}

// Find appends the argument indexes of the keys in args. Arguments that make no sense yield none.
func (k KeySpec) Find(indexes []int, args [][]byte) []int {
	if k.Other != nil {
		return k.Other(indexes, args)
	}
	first := k.Begin
	if k.Keyword != "" {
		if first = k.Behind(args); first == 0 {
			return indexes
		}
	}
	if k.KeyNum {
		if first >= len(args) {
			return indexes
		}
		n, ok := number.ParseInt(args[first])
		first += 1 + k.Skip
		if !ok || n < 0 || n > int64((len(args)-first+k.Step-1)/k.Step) {
			return indexes
		}
		for i := range int(n) {
			indexes = append(indexes, first+i*k.Step)
		}
		return indexes
	}
	last := first + k.Last
	if k.Last < 0 {
		last = len(args) + k.Last
		if k.Limit > 1 {
			last = first + (len(args)-first)/k.Limit - 1
		}
	}
	for i := first; i <= last && i < len(args); i += k.Step {
		indexes = append(indexes, i)
	}
	return indexes
}

// AccessOf returns the access flags that hold for a command line.
func (k KeySpec) AccessOf(args [][]byte) string {
	if k.Vary != nil {
		return k.Vary(args)
	}
	return k.Access
}

// ChannelSpec says where the channels stand that a command asks for the right to. Subscriptions end without any.
type ChannelSpec struct {
	First   int  // argument index of the first channel; 0: there are none
	Rest    bool // all arguments behind it are channels, too
	Pattern bool // they are patterns of channels
}

// Find appends the channels of a command line with so many arguments.
func (s ChannelSpec) Find(list []acl.Channel, args int) []acl.Channel {
	if s.First == 0 {
		return list
	}
	end := s.First + 1
	if s.Rest {
		end = args
	}
	for i := s.First; i < min(end, args); i++ {
		list = append(list, acl.Channel{Arg: i, Pattern: s.Pattern})
	}
	return list
}

// movable reports whether the keys' places depend on the arguments.
func (k KeySpec) movable() bool { return k.KeyNum || k.Keyword != "" || k.Other != nil }

// KeyRange returns the places of the keys as one range, for clients that know no key specifications: the first key's index,
// the last one's (negative: from the end) and the step. Keys that movable specifications tell of are left out, and so are
// those that would leave a gap.
func (c *Command) KeyRange() (first, last, step int) {
	for _, k := range c.Keys {
		if k.movable() || (first > 0 && (k.Step != 1 || k.Begin != last+1)) {
			continue
		}
		if first == 0 {
			first, step = k.Begin, k.Step
		}
		last = k.Last
		if last >= 0 {
			last += k.Begin
		}
	}
	return first, last, step
}

// Reply is a set of RESP types.
type Reply uint16

// The reply types, after their RESP3 names. In RESP2 they take the forms that Redis gives them.
const (
	ReplySimple Reply = 1 << iota
	ReplyInteger
	ReplyBulk
	ReplyNull
	ReplyArray
	ReplyMap
	ReplySet
	ReplyDouble
	ReplyBool
	ReplyVerbatim
	ReplyPush
	ReplyNone // sends nothing now
)

var replyNames = []string{"simple string", "integer", "bulk string", "null", "array", "map", "set", "double", "boolean", "verbatim string", "push", "none"}

// String lists the types for the documentation.
func (r Reply) String() string {
	var names []string
	for i, n := range replyNames {
		if r&(1<<i) != 0 {
			names = append(names, n)
		}
	}
	return strings.Join(names, ", ")
}

// Arg declares one argument, in the terms of COMMAND DOCS.
type Arg struct {
	Name     string
	Type     string // key, string, integer, double, pattern, unix-time, pure-token, oneof, block
	Token    string // the word before it
	Optional bool
	Multiple bool
	EachTok  bool // Multiple, with the token before each
	Args     []Arg
	Error    string // what a value is answered with that is none; %s stands for the value. Only limiters declare it
}

// Key declares an argument that is a key.
func Key(name string) Arg { return Arg{Name: name, Type: "key"} }

// Str declares an argument that may be any string.
func Str(name string) Arg { return Arg{Name: name, Type: "string"} }

// Integer declares an argument that is a whole number.
func Integer(name string) Arg { return Arg{Name: name, Type: "integer"} }

// Double declares an argument that is a number.
func Double(name string) Arg { return Arg{Name: name, Type: "double"} }

// Pattern declares an argument that is a glob pattern.
func Pattern(name string) Arg { return Arg{Name: name, Type: "pattern"} }

// UnixTime declares an argument that is a time since the Unix epoch.
func UnixTime(name string) Arg { return Arg{Name: name, Type: "unix-time"} }

// Tok declares a word that stands for itself, in upper case.
func Tok(token string) Arg {
	return Arg{Name: strings.ToLower(token), Type: "pure-token", Token: token}
}

// OneOf declares a choice between arguments.
func OneOf(name string, a ...Arg) Arg { return Arg{Name: name, Type: "oneof", Args: a} }

// Block declares arguments that stand together.
func Block(name string, a ...Arg) Arg { return Arg{Name: name, Type: "block", Args: a} }

// Opt returns the argument as one that may be left out.
func (a Arg) Opt() Arg { a.Optional = true; return a }

// Multi returns the argument as one that may be repeated, behind the token if it has one.
func (a Arg) Multi() Arg { a.Multiple = true; return a }

// EachWithToken returns an argument that may be repeated as one that has its token before each.
func (a Arg) EachWithToken() Arg { a.EachTok = true; return a }

// After returns the argument as one that stands behind a word.
func (a Arg) After(token string) Arg { a.Token = token; return a }

// Fails returns the argument with the error for a value that it does not take; %s in it stands for the value.
func (a Arg) Fails(text string) Arg { a.Error = text; return a }

// syntax renders an argument as documentation writes it: `[NX | XX] key value [value …]`.
func (a Arg) syntax() string {
	s := a.Name
	switch a.Type {
	case "pure-token":
		s = a.Token
	case "oneof":
		parts := make([]string, len(a.Args))
		for i, sub := range a.Args {
			parts[i] = sub.syntax()
		}
		s = strings.Join(parts, " | ")
		if !a.Optional || a.Token != "" {
			s = "<" + s + ">"
		}
	case "block":
		parts := make([]string, len(a.Args))
		for i, sub := range a.Args {
			parts[i] = sub.syntax()
		}
		s = strings.Join(parts, " ")
	}
	if a.Token != "" && a.Type != "pure-token" {
		if s == "\"\"" {
			s = a.Token
		} else {
			s = a.Token + " " + s
		}
	}
	if a.Multiple {
		rest := s
		if a.Token != "" && !a.EachTok && a.Type != "pure-token" {
			rest = strings.TrimPrefix(s, a.Token+" ")
		}
		s += " [" + rest + " …]"
	}
	if a.Optional {
		s = "[" + s + "]"
	}
	return s
}

// Syntax renders the whole command line.
func (c *Command) Syntax() string {
	parts := []string{strings.ToUpper(strings.ReplaceAll(c.FullName, "|", " "))}
	for _, a := range c.Args {
		parts = append(parts, a.syntax())
	}
	return strings.Join(parts, " ")
}

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

// OnlyAnswers reports whether a command changes nothing but its reply: neither data nor the server nor its client.
func (c *Command) OnlyAnswers() bool {
	return c.Flags&ReadOnly != 0 || c.Flags&(Write|MayReplicate|Admin|NoScript|PubSub) == 0 && c.Group != GroupConnection
}

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

// clone copies a declaration, so that several servers of one process share nothing that is written.
func (c *Command) clone() *Command {
	own := *c
	own.Sub = slices.Clone(c.Sub)
	for i, sub := range own.Sub {
		own.Sub[i] = sub.clone()
	}
	return &own
}

func (r *Registry) register(cmd, parent *Command) {
	cmd.Parent, cmd.FullName, cmd.Upper = parent, cmd.Name, strings.ToUpper(cmd.Name)
	if parent != nil {
		cmd.FullName = parent.Name + "|" + cmd.Name
		cmd.Group = parent.Group
		cmd.Categories |= parent.Categories
	}
	cmd.ArityError = fmt.Sprintf("ERR wrong number of arguments for '%s' command", cmd.FullName)
	cmd.check()
	for i, k := range cmd.Keys {
		switch {
		case k.movable():
			cmd.Flags |= MovableKeys
		case i == 0:
			cmd.FirstKey = k.Begin
		}
	}
	for _, sub := range cmd.Sub {
		r.register(sub, cmd)
	}
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

// ByOwnName finds a command by its name in the table where that is not what clients call it by, or returns nil.
func (r *Registry) ByOwnName(name []byte) *Command {
	if r.own == nil {
		return nil
	}
	return r.own[strings.ToLower(string(name))]
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

// Subcommand finds a container's sub-command by its name in any case, or nil.
func (c *Command) Subcommand(name []byte) *Command {
	for _, s := range c.Sub {
		if ascii.EqualFold(name, s.Upper) {
			return s
		}
	}
	return nil
}

// ArityOK reports whether a call with n arguments, the name included, can be right.
func (c *Command) ArityOK(n int) bool {
	return n == c.Arity || (c.Arity < 0 && n >= -c.Arity)
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

// Rendered keeps a reply of hundreds of kB that is the same for everybody, by the protocol's version: making it costs twenty times as much as
// copying it.
type Rendered [resp.RESP3 + 1][]byte

// Send sends the reply, which make makes the first time.
func (r *Rendered) Send(w *resp.Writer, make func()) {
	known := &r[w.Proto()]
	if *known != nil {
		w.Raw(*known)
		return
	}
	from := w.Len()
	if make(); !w.Over() {
		*known = bytes.Clone(w.Bytes()[from:])
	}
}

// FlagNames returns an argument's flags as COMMAND DOCS shows them.
func (a Arg) FlagNames() []string {
	var names []string
	if a.Optional {
		names = append(names, "optional")
	}
	if a.Multiple {
		names = append(names, "multiple")
	}
	if a.EachTok {
		names = append(names, "multiple_token")
	}
	return names
}

// WantsDisk reports whether a command is refused while data cannot be kept, before it has decided anything.
func (c *Command) WantsDisk() bool { return c.Flags&(Write|DecidesFirst) == Write }

// WantsMemory reports whether a command is refused while no memory is left, before it has decided anything.
func (c *Command) WantsMemory() bool { return c.Flags&DenyOOM != 0 && !c.AsksForRoom() }

// AsksForRoom reports whether a command is a limiter, which is let through without memory: most calls change in place what is there, and
// those that need more find out when they have decided. Their state then refuses, see package limits.
func (c *Command) AsksForRoom() bool { return c.Flags&DecidesFirst != 0 && c.Group == GroupThrottle }
