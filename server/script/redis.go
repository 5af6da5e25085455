package script

import (
	"crypto/sha1"
	"encoding/hex"
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"headgate/server/script/lualib/luacall"
)

// calls is what redis.call works with.
type calls struct {
	args    [][]byte
	scratch []byte
	numbers numbers
}

const (
	// argsMax and scratchMax are how much room for arguments is kept between
	// scripts.
	argsMax    = 1024
	scratchMax = 16 << 10
	// commandSteps is what a command counts, besides the bytes of its arguments
	// and its reply.
	commandSteps = 20
)

func (c *calls) init() { c.numbers.init() }

// trim gives up memory that one script needed and few will, and lets go of its
// strings.
func (c *calls) trim() {
	if cap(c.args) > argsMax {
		c.args = nil
	}
	clear(c.args[:cap(c.args)])
	if cap(c.scratch) > scratchMax {
		c.scratch = nil
	}
}

// openRedis makes the global redis, and server, which is the same.
func (s *sandbox) openRedis() {
	t := s.L.NewTable()
	api := map[string]lua.LGFunction{
		"call": s.redisCall, "pcall": s.redisPcall, "log": s.redisLog, "setresp": s.redisSetResp,
		"sha1hex": s.redisSHA1, "error_reply": s.redisErrorReply, "status_reply": redisStatusReply,
		"set_repl": s.redisSetRepl, "acl_check_cmd": s.redisACLCheck,
	}
	if s.purpose == forScripts {
		api["breakpoint"] = func(L *lua.LState) int { return push(L, lua.LFalse) }
		api["debug"] = func(L *lua.LState) int { return 0 }
		api["replicate_commands"] = func(L *lua.LState) int { return push(L, lua.LTrue) }
	}
	for name, fn := range api {
		t.RawSetString(name, s.L.NewFunction(s.notWhileLoading(name, fn)))
	}
	s.setVersion(t)
	for name, flags := range map[string]int{
		"REPL_NONE": 0, "REPL_AOF": ReplicateAOF, "REPL_SLAVE": ReplicateReplicas, "REPL_REPLICA": ReplicateReplicas,
		"REPL_ALL": ReplicateAOF | ReplicateReplicas,
	} {
		t.RawSetString(name, lua.LNumber(flags))
	}
	shown := s.libraryTable("redis", t)
	s.globals.RawSetString("server", shown)
	s.name("server", shown)
	s.nameFields("server", t)
	s.hide("(call without result)", s.notWhileLoading("call", func(L *lua.LState) int {
		return s.command(L, true, false)
	}))
	if s.purpose == forFunctions {
		// While a library loads, redis is another table.
		for name, v := range s.values {
			_, isFunction := v.(*lua.LFunction)
			if (strings.HasPrefix(name, "redis") || strings.HasPrefix(name, "server")) && !isFunction {
				delete(s.names, name)
			}
		}
	}
}

// notWhileLoading makes a function of redis refuse to be called while a library
// loads: it is not there then, but what compiled code holds of it is.
func (s *sandbox) notWhileLoading(name string, fn lua.LGFunction) lua.LGFunction {
	if s.purpose != forFunctions || name == "log" {
		return fn
	}
	return func(L *lua.LState) int {
		if s.engine.run.loading != nil {
			noSuchGlobal(L, name)
		}
		return fn(L)
	}
}

// noSuchGlobal raises Redis's error about an undefined name.
func noSuchGlobal(L *lua.LState, name string) {
	L.RaiseError("Script attempted to access nonexistent global variable '%s'", name)
}

// setVersion sets the fields of redis that are there even while a library loads.
func (s *sandbox) setVersion(t *lua.LTable) {
	t.RawSetString("REDIS_VERSION", lua.LString(s.engine.options.Version))
	t.RawSetString("REDIS_VERSION_NUM", lua.LNumber(s.engine.options.VersionNum))
	for level, name := range []string{"LOG_DEBUG", "LOG_VERBOSE", "LOG_NOTICE", "LOG_WARNING"} {
		t.RawSetString(name, lua.LNumber(level))
	}
	if t.RawGetString("log") == lua.LNil {
		t.RawSetString("log", s.L.NewFunction(s.redisLog))
	}
}

func push(L *lua.LState, v lua.LValue) int {
	L.Push(v)
	return 1
}

// errorTable returns an error as scripts see it. text starts with its code.
func errorTable(L *lua.LState, text string) *lua.LTable {
	t := L.CreateTable(0, 1)
	t.RawSetString("err", lua.LString(text))
	return t
}

// refuse raises one of Redis's own errors.
func refuse(L *lua.LState, text string) { raise(L, errorTable(L, "ERR "+text)) }

// inScript raises an error unless a script or a function runs.
func (s *sandbox) inScript(L *lua.LState, function string) {
	if !s.engine.run.active {
		refuse(L, function+" can only be called inside a script invocation")
	}
}

func (s *sandbox) redisCall(L *lua.LState) int { return s.command(L, true, true) }

func (s *sandbox) redisPcall(L *lua.LState) int { return s.command(L, false, true) }

// command runs a command. raises says whether an error is raised or returned,
// and wanted whether the script looks at the result.
func (s *sandbox) command(L *lua.LState, raises, wanted bool) int {
	e := s.engine
	s.inScript(L, "redis.call/pcall")
	args, size, problem := e.calls.take(L)
	e.budget.Spend(commandSteps + int64(size>>3))
	if problem != "" {
		if raises {
			refuse(L, problem)
		}
		return push(L, errorTable(L, "ERR "+problem))
	}
	reply := e.host.Call(args, e.run.resp3)
	if e.run.calls++; e.run.calls%callsPerLook == 0 {
		e.look()
	}
	e.budget.Spend(int64(len(reply) >> 3))
	if reply[0] == '-' {
		t := replyError(L, reply)
		if raises {
			raise(L, t)
		}
		return push(L, t)
	}
	if !wanted {
		return 0
	}
	v, _ := e.value(L, reply)
	return push(L, v)
}

// take returns the arguments on the stack as those of a command and their size
// in bytes, or what is wrong with them.
func (c *calls) take(L *lua.LState) (args [][]byte, size int, problem string) {
	n := L.GetTop()
	if n == 0 {
		return nil, 0, "Please specify at least one argument for this redis lib call"
	}
	args, scratch := c.args[:0], c.scratch[:0]
	for i := 1; i <= n; i++ {
		switch v := L.Get(i).(type) {
		case lua.LString:
			args = append(args, bytesOf(string(v)))
			size += len(v)
		case lua.LNumber:
			if cap(scratch)-len(scratch) < numberMax {
				scratch = make([]byte, 0, max(2*cap(scratch), 16*numberMax))
			}
			start := len(scratch)
			scratch = appendArgument(scratch, float64(v))
			args = append(args, scratch[start:len(scratch):len(scratch)])
		default:
			return nil, 0, "Lua redis lib command arguments must be strings or integers"
		}
	}
	c.args, c.scratch = args, scratch
	return args, size, ""
}

// appendArgument appends a number as Redis 7.2 hands it to a command: whole
// numbers in full, others with as few digits as tell them apart.
func appendArgument(out []byte, f float64) []byte {
	if f == math.Trunc(f) && f >= -(1<<63) && f < 1<<63 {
		return strconv.AppendInt(out, int64(f), 10)
	}
	if math.IsNaN(f) {
		return append(out, "nan"...)
	}
	if math.IsInf(f, 0) {
		if f < 0 {
			out = append(out, '-')
		}
		return append(out, "inf"...)
	}
	if a := math.Abs(f); a >= 1e-6 && a < 1e21 {
		return strconv.AppendFloat(out, f, 'f', -1, 64)
	}
	start := len(out)
	out = strconv.AppendFloat(out, f, 'e', -1, 64)
	// C's exponents have no leading zero here, Go's have.
	if n := len(out); n-start > 4 && out[n-2] == '0' && (out[n-3] == '-' || out[n-3] == '+') {
		out[n-2] = out[n-1]
		out = out[:n-1]
	}
	return out
}

// errorText is how Redis words an error that a script gets: the code, a space
// and the text. text has no leading minus.
func errorText(text string) string {
	code, rest, ok := strings.Cut(text, " ")
	if !ok {
		code, rest = "ERR", text
	}
	return code + " " + strings.Trim(rest, "\r\n")
}

func (s *sandbox) redisErrorReply(L *lua.LState) int {
	message, ok := L.Get(1).(lua.LString)
	if L.GetTop() != 1 || !ok {
		return push(L, errorTable(L, "ERR wrong number or type of arguments"))
	}
	luacall.SpendOn(L, len(message))
	bare := cut(strings.TrimPrefix(string(message), "-"))
	if trimmed := strings.Trim(bare, "\r\n"); trimmed != "" && !strings.ContainsAny(trimmed, " \r\n") {
		// One word stays alone, as before Redis 7: libraries compare it.
		return push(L, errorTable(L, strings.Clone(trimmed))) // not a part of what may be long
	}
	return push(L, errorTable(L, errorText(bare)))
}

func redisStatusReply(L *lua.LState) int {
	message, ok := L.Get(1).(lua.LString)
	if L.GetTop() != 1 || !ok {
		return push(L, errorTable(L, "ERR wrong number or type of arguments"))
	}
	t := L.CreateTable(0, 1)
	t.RawSetString("ok", message)
	return push(L, t)
}

func (s *sandbox) redisSHA1(L *lua.LState) int {
	if L.GetTop() != 1 {
		refuse(L, "wrong number of arguments")
	}
	message, _ := toText(L.Get(1))
	s.engine.budget.Spend(int64(len(message)))
	sum := sha1.Sum(bytesOf(message))
	return push(L, lua.LString(hex.EncodeToString(sum[:])))
}

func (s *sandbox) redisLog(L *lua.LState) int {
	n := L.GetTop()
	if n < 2 {
		refuse(L, "redis.log() requires two arguments or more.")
	}
	number, ok := toNumber(L, L.Get(1))
	if !ok {
		refuse(L, "First argument must be a number (log level).")
	}
	level := int(int32(truncate(number)))
	if level < LogDebug || level > LogWarning {
		refuse(L, "Invalid debug level.")
	}
	var line strings.Builder
	for i := 2; i <= n; i++ {
		word, ok := toText(L.Get(i))
		if !ok {
			continue
		}
		if i > 2 {
			line.WriteByte(' ')
		}
		if line.Len()+len(word) > logMax {
			break
		}
		line.WriteString(word)
	}
	s.engine.budget.Spend(int64(line.Len()))
	s.engine.host.Log(level, line.String())
	return 0
}

// logMax is the longest line that redis.log writes, in bytes.
const logMax = 64 << 10

func (s *sandbox) redisSetResp(L *lua.LState) int {
	s.inScript(L, "redis.setresp")
	if L.GetTop() != 1 {
		refuse(L, "redis.setresp() requires one argument.")
	}
	number, _ := toNumber(L, L.Get(1))
	version := truncate(number)
	if version != 2 && version != 3 {
		refuse(L, "RESP version must be 2 or 3.")
	}
	s.engine.run.resp3 = version == 3
	return 0
}

func (s *sandbox) redisSetRepl(L *lua.LState) int {
	s.inScript(L, "redis.set_repl")
	if L.GetTop() != 1 {
		refuse(L, "redis.set_repl() requires two arguments.")
	}
	number, _ := toNumber(L, L.Get(1))
	flags := int(int32(truncate(number)))
	if flags&^(ReplicateAOF|ReplicateReplicas) != 0 {
		refuse(L, "Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.")
	}
	s.engine.host.SetReplication(flags)
	return 0
}

func (s *sandbox) redisACLCheck(L *lua.LState) int {
	s.inScript(L, "redis.acl_check_cmd")
	args, _, problem := s.engine.calls.take(L)
	if problem != "" {
		refuse(L, problem)
	}
	allowed, known := s.engine.host.ACLCheck(args)
	if !known {
		refuse(L, "Invalid command passed to redis.acl_check_cmd()")
	}
	return push(L, lua.LBool(allowed))
}
