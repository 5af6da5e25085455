package bench

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"

	"headgate/server/limiter"
)

// Load is one kind of operation.
type Load struct {
	Name string
	Help string
	// Commands are sent together. Their placeholders are those that placeholders lists.
	Commands [][]string
	// Scripts are loaded into the server first; EVALSHA takes __sha__ for the name of the first.
	Scripts []string
	// Setup are commands that are sent once to each server, before the load.
	Setup [][]string
	verdict
	// Without is the name of what is sent to a server that does not know the first command; empty means nothing can be.
	Without string
}

// verdict says which integer of the replies tells whether an operation was limited. The zero value means that none does.
type verdict struct {
	known    bool
	reply    int   // of which command of the operation, from 0
	element  int   // of that reply, an array; -1: the reply itself
	min, max int64 // limited if within
}

const slidingWindow = `redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[1])
local used = redis.call('ZCARD', KEYS[1])
if used >= tonumber(ARGV[4]) then
  return 0
end
redis.call('ZADD', KEYS[1], ARGV[2], ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[5])
return 1`

const tokenBucket = `local rate, burst, now = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local held = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens, at = tonumber(held[1]) or burst, tonumber(held[2]) or now
tokens = math.min(burst, tokens + math.max(0, now - at) * rate / 1000)
local allowed = tokens >= 1
if allowed then
  tokens = tokens - 1
end
redis.call('HSET', KEYS[1], 'tokens', tokens, 'at', now)
redis.call('PEXPIRE', KEYS[1], math.ceil(burst / rate * 1000))
return allowed and 1 or 0`

const gcraScript = `local now, rate, burst = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local interval = 1000 / rate
local tat = math.max(tonumber(redis.call('GET', KEYS[1])) or now, now) + interval
if tat - now > burst * interval then
  return 0
end
redis.call('SET', KEYS[1], tat, 'PX', math.ceil(tat - now))
return 1`

var (
	native       = verdict{known: true, element: 0, min: 1, max: math.MaxInt64}
	scripted     = verdict{known: true, element: -1, min: 0, max: 0}
	fixedCounter = verdict{known: true, element: -1, min: 101, max: math.MaxInt64}
)

// Loads are the loads with a name, in the order in which help lists them.
var Loads = LoadsOf(limiter.Standard)

// LoadsOf are the loads for limiters of a table, and those that are always there.
func LoadsOf(table *limiter.Table) []Load {
	loads := []Load{{Name: "throttle", Help: "CL.THROTTLE, 1,000 per minute", Commands: words("CL.THROTTLE bench:th:__key__ 999 1000 60 1"), verdict: native, Without: "setpx"}}
	for _, a := range table.All() {
		if !a.PolicyOnly {
			name := strings.ToLower(a.Name)
			loads = append(loads, Load{
				Name: name, Help: "RL." + a.Name + ", " + a.Says, verdict: native, Without: scriptsInstead[name],
				Commands: words("RL." + a.Name + " bench:" + name[:min(len(name), 2)] + ":__key__ " + a.Example),
			})
		}
	}
	return append(loads, otherLoads...)
}

// scriptsInstead are the loads for servers that have no such limiter.
var scriptsInstead = map[string]string{"gcra": "setpx", "bucket": "bucket-script", "queue": "bucket-script", "fixed": "window", "sliding": "script", "log": "script"}

// otherLoads are not of one limiter.
var otherLoads = []Load{
	{Name: "window", Help: "a fixed window as a counter: INCR and PEXPIRE NX, 100 per 10 s", Commands: words("INCR bench:wi:__key__ ; PEXPIRE bench:wi:__key__ 10000 NX"), verdict: fixedCounter},
	{Name: "script", Help: "a sliding window as a Lua script, 10 per second", Commands: words("EVALSHA __sha__ 1 bench:sc:__key__ __ago__ __now__ __id__ 10 1000"), Scripts: []string{slidingWindow}, verdict: scripted},
	{Name: "bucket-script", Help: "a token bucket as a Lua script, 100 tokens, 100 per second", Commands: words("EVALSHA __sha__ 1 bench:bs:__key__ 100 100 __now__"), Scripts: []string{tokenBucket}, verdict: scripted},
	{Name: "gcra-script", Help: "GCRA as a Lua script, bursts of 100, then 1 per second", Commands: words("EVALSHA __sha__ 1 bench:gs:__key__ __now__ 1 100"), Scripts: []string{gcraScript}, verdict: scripted},
	{Name: "take", Help: "RL.TAKE of three policies, 1,000 per minute each", Commands: words("RL.TAKE 3 bench:a bench:ta:__key__ bench:b bench:tb:__key__ bench:c bench:tc:__key__"),
		Setup: words("RL.POLICY SET bench:a GCRA 1000 1000 1m ; RL.POLICY SET bench:b GCRA 1000 1000 1m ; RL.POLICY SET bench:c GCRA 1000 1000 1m"), verdict: native, Without: "setpx"},
	{Name: "multi", Help: "a sliding window as a MULTI block, 10 per second", Commands: words("MULTI ; ZREMRANGEBYSCORE bench:mu:__key__ -inf __ago__ ; ZCARD bench:mu:__key__ ; ZADD bench:mu:__key__ __now__ __id__ ; PEXPIRE bench:mu:__key__ 1000 ; EXEC"),
		verdict: verdict{known: true, reply: 5, element: 1, min: 10, max: math.MaxInt64}},
	{Name: "ping", Help: "PING", Commands: words("PING")},
	{Name: "set", Help: "SET of 16 bytes", Commands: words("SET bench:st:__key__ __id__")},
	{Name: "setpx", Help: "SET with a TTL, the write that every limiter needs", Commands: words("SET bench:sx:__key__ 1700000000000000000 PX 100000")},
	{Name: "get", Help: "GET of the keys that the load set has written", Commands: words("GET bench:st:__key__")},
	{Name: "incr", Help: "INCR", Commands: words("INCR bench:in:__key__")},
	{Name: "zadd", Help: "ZADD into one sorted set", Commands: words("ZADD bench:zs __now__ member:__key__")},
}

// words splits commands at semicolons and their arguments at spaces.
func words(text string) [][]string {
	var commands [][]string
	for command := range strings.SplitSeq(text, " ; ") {
		commands = append(commands, strings.Fields(command))
	}
	return commands
}

// FindLoad returns the load of that name, or the one that runs the commands in it: text that has a space or a capital letter is
// taken for commands.
func FindLoad(text string) (Load, error) {
	if i := slices.IndexFunc(Loads, func(l Load) bool { return l.Name == text }); i >= 0 {
		return Loads[i].named(), nil
	}
	if strings.ToLower(text) == text && !strings.Contains(text, " ") {
		names := make([]string, len(Loads))
		for i, l := range Loads {
			names[i] = l.Name
		}
		return Load{}, fmt.Errorf("there is no load %q: choose among %s, or write a command, such as --load \"GET key:__key__\"", text, strings.Join(names, ", "))
	}
	if len(text) > maxRawLoad {
		return Load{}, fmt.Errorf("the command has %d bytes, and at most %d are taken", len(text), maxRawLoad)
	}
	l := Load{Name: "command", Help: text}
	commands, err := splitCommands(text)
	if err != nil {
		return Load{}, err
	}
	l.Commands = commands
	if isNative(commands[len(commands)-1][0]) {
		l.verdict = native
		l.reply = len(commands) - 1
	}
	return l, nil
}

// isNative reports whether a command's reply begins with 1 when it limits.
func isNative(name string) bool {
	upper := strings.ToUpper(name)
	if algorithm, ours := strings.CutPrefix(upper, "RL."); ours {
		a := limiter.Standard.Find(algorithm)
		return a != nil && !a.PolicyOnly || upper == "RL.TAKE" || upper == "RL.THROTTLE"
	}
	return upper == "CL.THROTTLE" || upper == "GCRA"
}

// named puts the names of the scripts where the commands ask for them.
func (l Load) named() Load {
	if len(l.Scripts) == 0 {
		return l
	}
	sum := sha1.Sum([]byte(l.Scripts[0]))
	commands := make([][]string, len(l.Commands))
	for i, command := range l.Commands {
		commands[i] = slices.Clone(command)
		for j, arg := range command {
			if arg == "__sha__" {
				commands[i][j] = hex.EncodeToString(sum[:])
			}
		}
	}
	l.Commands = commands
	return l
}

// splitCommands reads commands as a person types them: arguments apart by spaces, in quotes if they hold some, and between commands a
// semicolon, by itself or at the end of an argument without quotes.
func splitCommands(text string) ([][]string, error) {
	commands := [][]string{nil}
	count := 0
	for rest := strings.TrimLeft(text, " \t\n"); rest != ""; rest = strings.TrimLeft(rest, " \t\n") {
		last := len(commands) - 1
		if rest[0] == ';' && (len(rest) == 1 || strings.ContainsRune(" \t\n", rune(rest[1]))) {
			commands = append(commands, nil)
			rest = rest[1:]
			continue
		}
		end := strings.IndexAny(rest, " \t\n")
		skip := 0
		arg := rest
		switch quote := rest[0]; {
		case quote == '"' || quote == '\'':
			end = strings.IndexByte(rest[1:], quote)
			if end < 0 {
				return nil, fmt.Errorf("a quote is not closed in the command %q", text)
			}
			arg, skip = rest[1:1+end], end+2
		case end >= 0:
			arg, skip = rest[:end], end
		default:
			skip = len(rest)
		}
		if before, ends := strings.CutSuffix(arg, ";"); ends && skip == len(arg) {
			arg, skip = before, skip-1
		}
		commands[last] = append(commands[last], arg)
		rest = rest[skip:]
		if count++; count > maxArgs {
			return nil, fmt.Errorf("the command has more than %d arguments", maxArgs)
		}
	}
	for _, command := range commands {
		if len(command) == 0 {
			return nil, fmt.Errorf("a command is empty in %q", text)
		}
	}
	return commands, nil
}
