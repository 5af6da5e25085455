package script

import (
	"runtime/debug"
	"sync/atomic"
	"time"

	lua "github.com/yuin/gopher-lua"

	"headgate/server/resp"
	"headgate/server/script/limits"
	"headgate/server/script/lualib/cjson"
	"headgate/server/script/lualib/mathlib"
)

// Host is the server as scripts see it. Its methods are called while a script
// runs, on the goroutine that called Run.
type Host interface {
	// Call runs one command as the client that runs the script, with all the
	// checks that commands of scripts are subject to. args belong to the engine
	// and are valid until Call returns; they must not be changed. resp3 says
	// which protocol version the reply is wanted in. The reply is one RESP
	// value, valid until the next Call; a refusal is a RESP error such as
	// "-ERR Unknown Redis command called from script\r\n".
	Call(args [][]byte, resp3 bool) (reply []byte)
	// Log writes one line at one of the levels LogDebug to LogWarning.
	Log(level int, text string)
	// ACLCheck reports whether the script's caller may run a command with its
	// arguments; known is false when there is no such command.
	ACLCheck(args [][]byte) (allowed, known bool)
	// SetReplication says what becomes of the effects of the commands that
	// follow: a combination of ReplicateAOF and ReplicateReplicas.
	SetReplication(flags int)
}

// Levels of redis.log, from the most talkative.
const (
	LogDebug = iota
	LogVerbose
	LogNotice
	LogWarning
)

// What redis.set_repl takes; a script starts with both.
const (
	ReplicateAOF      = 1
	ReplicateReplicas = 2
)

// Action is what becomes of a script that has been running for a while.
type Action int

// Actions that Options.OnSlice chooses from.
const (
	// Continue lets the script go on.
	Continue Action = iota
	// Kill ends it with the error of SCRIPT KILL.
	Kill
	// TimeLimit ends it with the error of script-time-limit.
	TimeLimit
)

// Options of an Engine. The zero value is usable.
type Options struct {
	// OnSlice is called about every millisecond while a script runs, first
	// about a millisecond after it started. elapsed counts from the first call.
	// It may run other clients' commands, but no other script. nil lets every
	// script go on.
	OnSlice func(elapsed time.Duration) Action
	// OnGrowth is called now and then while a script runs that makes much: when
	// some more growthTold bytes have been allocated, most of which may be garbage.
	// nil leaves the collector to itself.
	OnGrowth func()
	// Version and VersionNum are redis.REDIS_VERSION and
	// redis.REDIS_VERSION_NUM.
	Version    string
	VersionNum int
	// MaxScripts and MaxCacheBytes bound the scripts that are kept; 0 stands for
	// the default. See Load.
	MaxScripts    int
	MaxCacheBytes int
	// MaxHeapBytes is how much memory a script's values may take; 0 stands for
	// the default.
	MaxHeapBytes uint64
}

// Defaults and limits.
const (
	// MaxScriptBytes is the longest script or library, in bytes.
	MaxScriptBytes = 1 << 20
	// MaxScripts is how many scripts are kept.
	MaxScripts = 10000
	// MaxCacheBytes is how much all kept scripts may occupy, as text and
	// compiled, and as much again all libraries. Compiled, a text can take fifty
	// times its length.
	MaxCacheBytes = 64 << 20
	// MaxHeapBytes is how much memory a script's values may take. What it stores
	// is not among them.
	MaxHeapBytes = 60 << 20
)

// Engine compiles, keeps and runs scripts and libraries of functions. There is
// one per server. It is not safe for concurrent use: every method is called
// under the executor's lock.
type Engine struct {
	host      Host
	options   Options
	budget    *limits.Budget
	cache     cache
	eval      *sandbox
	library   *sandbox
	libraries libraries
	run       run
	arguments arguments
	calls     calls
	random    *mathlib.Random
	releasing atomic.Bool // release is at work
}

// run is what is known of the script that runs.
type run struct {
	active bool
	// name is its SHA-1, or the function's name: what the tail of an error calls it.
	name  string
	resp3 bool
	// started is when the first slice ended, and sliced when the last one did, or when the clock was first looked at.
	started, sliced time.Time
	calls           int    // of commands
	stopped         string // why it was ended, or ""
	broken          bool   // the Lua state must not be used again
	looked          bool   // it took long enough, or enough, for its memory to be looked at
	keys            *lua.LTable
	argv            *lua.LTable
	sandbox         *sandbox
	heap            *heap
	library         *Library           // whose function, or text, it is; nil for a script
	given           [2][][]byte        // its keys and arguments
	proto           *lua.FunctionProto // its compiled text, or its library's
	reply           *resp.Writer       // where its result goes, once it goes there
	replyStart      int                // and from where on
	// loading is the library that the text that runs belongs to, or nil.
	loading *Library
	// sources are the full names of the chunks that it compiled, by how
	// messages call them.
	sources map[string]string
}

// callsOfRedis is how many of the calls that may nest are Redis's own: that of a script, and that of what catches its errors.
const callsOfRedis = 2

// New returns an engine without scripts.
func New(h Host, o Options) *Engine {
	if o.MaxScripts == 0 {
		o.MaxScripts = MaxScripts
	}
	if o.MaxCacheBytes == 0 {
		o.MaxCacheBytes = MaxCacheBytes
	}
	if o.MaxHeapBytes == 0 {
		o.MaxHeapBytes = MaxHeapBytes
	}
	e := &Engine{host: h, options: o, budget: limits.NewBudget(), random: mathlib.NewRandom()}
	e.budget.MaxDepth -= callsOfRedis
	e.budget.Check = e.check
	e.calls.init()
	e.eval = newSandbox(e, forScripts)
	e.library = newSandbox(e, forFunctions)
	e.Flush()
	e.FlushLibraries()
	return e
}

// Run runs s and appends exactly one reply to w, in w's protocol version. keys
// and args must stay as they are until Run returns; nothing holds on to them
// afterwards. It may be called again only when it has returned.
func (e *Engine) Run(s *Script, keys, args [][]byte, w *resp.Writer) {
	e.begin(e.eval, s.SHA, &e.eval.heap)
	e.run.given, e.run.proto = [2][][]byte{keys, args}, s.function.Proto
	L := e.eval.L
	e.run.keys, e.run.argv = e.arguments.tables(L, s.keeps, keys, args)
	if s.usesGlobals {
		e.eval.globals.RawSetString("KEYS", e.run.keys)
		e.eval.globals.RawSetString("ARGV", e.run.argv)
	}
	L.Push(s.function)
	L.Push(e.run.keys)
	L.Push(e.run.argv)
	e.finish(e.eval, e.eval.guarded(L, 2, 1, e.eval.outermost), w)
}

// RunFunction runs f as Run runs a script. What it is given is copied, because a
// function may keep it.
func (e *Engine) RunFunction(f *Function, keys, args [][]byte, w *resp.Writer) {
	e.begin(e.library, f.Name, &f.Library.heap)
	f.Library.heap.resume()
	e.run.given, e.run.proto, e.run.library = [2][][]byte{keys, args}, f.Library.proto, f.Library
	L := e.library.L
	if e.heapLimit() > e.options.MaxHeapBytes+largeArguments || f.Library.heap.isFull() {
		L.Push(e.library.countGiven)
		if err := e.library.guarded(L, 0, 0, e.library.outermost); err != nil {
			e.finish(e.library, err, w)
			return
		}
	} else {
		e.budget.Steps -= int64(e.heapLimit()-e.options.MaxHeapBytes) >> 3
	}
	L.Push(f.callback)
	L.Push(copyStrings(L, keys))
	L.Push(copyStrings(L, args))
	e.finish(e.library, e.library.guarded(L, 2, 1, e.library.outermost), w)
}

// largeArguments is from how many bytes on a function's arguments, which it may keep,
// are looked at before it begins. Where its library is full that is done whatever they take: a short function comes to no look of its own.
const largeArguments = 64 << 10

// begin makes everything ready for a script.
func (e *Engine) begin(s *sandbox, name string, h *heap) {
	e.run.active = true
	e.run.sandbox, e.run.name, e.run.heap = s, name, h
	s.handler, s.catching, s.overflowed = s.outermost, 0, false
	e.budget.Steps = h.steps
	e.budget.Want = 0
	e.budget.Return(limits.Mark{})
}

// finish replies with what a script left behind, and cleans up.
func (e *Engine) finish(s *sandbox, err error, w *resp.Writer) {
	if err == nil {
		e.result(s.L.Get(-1), w)
		s.L.Pop(1)
	} else {
		e.failure(err, w)
	}
	e.end(s)
}

// end forgets a script.
func (e *Engine) end(s *sandbox) {
	cjson.Reset(s.json)
	switch {
	case e.run.broken, limits.Registers(s.L) > registryMin:
		s.renew()
	case e.run.looked:
		limits.Forget(s.L)
	}
	if e.run.stopped == memoryText {
		e.release()
	}
	if lib := e.run.library; lib != nil {
		lib.end(e.budget.Steps, e.run.stopped != "")
	} else {
		e.run.heap.reset()
	}
	e.run = run{}
	e.calls.trim()
}

// release gives what a script that took too much memory has left behind back to
// the operating system. Nobody waits for it.
func (e *Engine) release() {
	if e.releasing.CompareAndSwap(false, true) {
		go func() {
			debug.FreeOSMemory()
			e.releasing.Store(false)
		}()
	}
}
