package command

import (
	"strings"

	"headgate/internal/ascii"
	"headgate/server/acl"
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
	Returns    []string       // of commands that Redis has not: what each element of its reply is, or each form that the reply may have
	Handler    Handler        // nil exactly for containers
	Sub        []*Command     // a container's sub-commands

	ID       int // index into Registry.All and Statistics.Commands
	Parent   *Command
	FullName string // "config|get"
	Upper    string // the name that clients call it by, in upper case, for comparing
	renamed  bool   // that is not its own name
	Gone     bool   // rename-command has taken it away

	ArityError  string // the error for a wrong number of arguments
	FirstKey    int    // argument index of the first key when fixed, else 0
	SeveralKeys bool   // the specification of the first key may find more of them
}

// Handler runs one command: it sends exactly one reply.
type Handler func(c *Ctx)

// Secret reports whether args[i] of a command line is shown to nobody, neither by the slow log nor by MONITOR.
type Secret func(c *Ctx, args [][]byte, i int) bool

// SecretFrom hides all arguments from an index on.
func SecretFrom(first int) Secret {
	return func(_ *Ctx, _ [][]byte, i int) bool { return i >= first }
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
	DecidesFirst                      // may write or not: it is admitted while nothing can be written, by a replica too, and checks before it writes (not shown)
	MovableKeys                       // some keys have no fixed place; derived from Keys
	NotKeyspace                       // of the generic group, but not in the ACL category that goes with it (not shown)
	ForSubscribers                    // allowed to a client that takes all replies but a few for messages (not shown)
	DropsQueue                        // forgets what its client has queued, and so is let through though memory is full (not shown)
	RunsQueue                         // does what its client has queued, which decides how it is admitted (not shown)
	HealthCheck                       // refused like a write while data cannot be kept, since health checks use it (not shown)
	CountsUses                        // counts as a use of its keys even for a client that has chosen NO-TOUCH (not shown)
	KeepsCaching                      // what CLIENT CACHING has said holds for the command behind it, too (not shown)
	TellsTime                         // sees the time move on while a script runs (not shown)
	HomeOnly                          // makes sense only where the keys are kept: a gateway refuses it (not shown)
	ChoosesDatabase                   // has the client's next commands work on another database (not shown)
	ReadsOtherKeys                    // may read keys that only its running can tell, and asks for the right to that by itself (not shown)
	UnknownUpstream                   // no Redis that an upstream may be has it: a gateway asks by a script (not shown)
	KeepsScript                       // has a script's text, its last argument, be known by its SHA-1 (not shown)
	ForgetsScripts                    // has scripts be known no longer (not shown)
	AddsKeys                          // may add a key though it takes no memory to speak of: refused when the keyspace has no address left (not shown)
	Deferring                         // may be answered later, and so is run behind others that are; a gateway's commands have it (not shown)
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

// Syntax renders the whole command line.
func (c *Command) Syntax() string {
	parts := []string{strings.ToUpper(strings.ReplaceAll(c.FullName, "|", " "))}
	for _, a := range c.Args {
		parts = append(parts, a.syntax())
	}
	return strings.Join(parts, " ")
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

// OnlyAnswers reports whether a command changes nothing but its reply: neither data nor the server nor its client.
func (c *Command) OnlyAnswers() bool {
	return c.Flags&ReadOnly != 0 || c.Flags&(Write|MayReplicate|Admin|NoScript|PubSub) == 0 && c.Group != GroupConnection
}

// WantsDisk reports whether a command is refused while data cannot be kept, before it has decided anything.
func (c *Command) WantsDisk() bool { return c.Flags&(Write|DecidesFirst) == Write }

// MustWrite reports whether a replica refuses a command to clients, before it has decided anything.
func (c *Command) MustWrite() bool { return c.Flags&(Write|DecidesFirst) == Write }

// WantsMemory reports whether a command is refused while no memory is left, before it has decided anything.
func (c *Command) WantsMemory() bool { return c.Flags&DenyOOM != 0 && !c.AsksForRoom() }

// WantsAddresses reports whether a command is refused while the keyspace has no address left for what it may add.
func (c *Command) WantsAddresses() bool { return c.Flags&AddsKeys != 0 || c.WantsMemory() }

// AsksForRoom reports whether a command is a limiter, which is let through without memory: most calls change existing state in place, and
// those that need more find out when they have decided. Their state then refuses, see package limits.
func (c *Command) AsksForRoom() bool { return c.Flags&DecidesFirst != 0 && c.Group == GroupThrottle }

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
