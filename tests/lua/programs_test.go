package lua

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// programFrame runs a program that notes values by note, and answers with what it noted, and with what it returned or raised: as notes, and as replies.
// Of a table that is what some of its fields hold. Its functions enter sixty times in all: how deep calls nest through metamethods and iterators is each
// server's own, and a recursion without an end inside a coroutine is none that redis-server can be told to end.
const programFrame = `
local notes, fields = {}, {1, 2, 3, 'a', 'b', 'f', 'n', 'err', 'ok', 'map', 'set', 'double'}
local function shown(v, depth)
  local kind = type(v)
  if kind ~= 'table' then return (kind == 'function' or kind == 'thread') and kind or tostring(v) end
  local out = {'{'}
  for i = 1, depth < 2 and #fields or 0 do
    local x = rawget(v, fields[i])
    if type(x) ~= 'nil' then out[#out + 1] = fields[i] .. '= ' .. shown(x, depth + 1) end
  end
  return table.concat(out, ' ') .. ' }'
end
local function deep(v, depth)
  if type(v) ~= 'table' then return false end
  if depth > 8 then return true end
  for i = 1, #fields do
    if deep(rawget(v, fields[i]), depth + 1) then return true end
  end
  return false
end
local function note(...)
  for i = 1, select('#', ...) do notes[#notes + 1] = shown(select(i, ...), 0) end
  return ...
end
local function many(...) return ... end
local entered = 0
local function enter()
  entered = entered + 1
  if entered > 60 then error('too many calls') end
end
local function program(...)
%s
end
local out = {pcall(program, 3, 'x', nil, {1, 2})}
for i = 2, 6 do
  note(out[i])
  if deep(out[i], 0) then out[i] = 'a table that may hold itself' end
end
return {table.concat(notes, ' ', math.max(1, #notes - 400)), out[2], out[3], out[4]}
`

// TestPrograms runs random programs on both servers: variables of all kinds, closures, loops that are left, assignments and returns of many values,
// constructors, methods and errors.
//
// Each program draws some of what else there is: see themes.
func TestPrograms(t *testing.T) {
	random := *seed
	if random == 0 {
		random = uint64(time.Now().UnixNano())
	}
	t.Logf("%d programs, -lua.seed %d", *calls, random)
	r := &dice{rand.New(rand.NewPCG(random, random))}
	p := startPair(t)
	links, killer := []link{p.dial(t, 2), p.dial(t, 3)}, p.dial(t, 2)
	for _, command := range programKeys {
		_, _, err := killer.exchange(harness.Command(strings.Fields(command)...))
		require.NoError(t, err)
	}
	const most = 10
	differ := 0
	compare := func(text string, subject, reference harness.Value) {
		if overflows(subject.Wire(), reference.Wire()) || alike(subject.Wire()) == alike(reference.Wire()) || storesWithoutKey(text, reference.Wire()) {
			return
		}
		if differ++; differ <= most {
			t.Errorf("%s\n  redis-server: %q\n  headgate:     %q", text, reference.Wire(), subject.Wire())
		}
	}
	var slow []program
	for done := 0; done < *calls && differ < most; done++ {
		// One at a time: the reference replies to none of those sent at once before it has run them all, and several may have no end.
		text := fmt.Sprintf(programFrame, newWriter(r).program())
		stop := every(endlessAfter, func() { _, _, _ = killer.exchange(harness.Command("SCRIPT", "KILL")) })
		subject, reference, err := links[done%2].exchange(harness.Command("EVAL", text, "0"))
		stop()
		require.NoError(t, err, "%s", text)
		if strings.Contains(reference.Wire(), killed) {
			continue // it has no end, or none that one could wait for
		}
		if strings.Contains(subject.Wire(), killed) { // a machine that is busy may take as long for what ends
			slow = append(slow, program{text, reference})
			continue
		}
		compare(text, subject, reference)
	}
	for _, p := range slow {
		require.NoError(t, links[0].subject.Send(harness.Command("EVAL", p.text, "0")))
		kill := time.AfterFunc(endlessFor, func() { killer.subject.Do("SCRIPT", "KILL") })
		subject, err := links[0].subject.Read(2 * endlessFor)
		kill.Stop()
		require.NoError(t, err, "%s", p.text)
		compare(p.text, subject, p.reference)
	}
}

// storesWithoutKey reports whether a program stores an element under nil or NaN in a table with __newindex: Lua refuses before it looks for that,
// and gopher-lua's machine calls it.
func storesWithoutKey(text, reference string) bool {
	return strings.Contains(text, "__newindex") && (strings.Contains(reference, "table index is nil") || strings.Contains(reference, "table index is NaN"))
}

// every calls f again and again until it is stopped: a program may catch the error that is to end it, and go on. No f runs any more when stop returns.
func every(interval time.Duration, f func()) (stop func()) {
	ticker, done, ended := time.NewTicker(interval), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-ticker.C:
				f()
			case <-done:
				return
			}
		}
	}()
	return func() { ticker.Stop(); close(done); <-ended }
}

// program is one that has ended on the reference only.
type program struct {
	text      string
	reference harness.Value
}

// named is how an error names the variable at fault, which has cases of its own, how long a reply is, and where a value is in memory.
var named = regexp.MustCompile(`\$\d+|\b0x[0-9a-f]+|(?:local|upvalue|field|global|method) '[^']*' \((a [a-z]+ value)\)`)

// alike is a reply without what may differ: names, and the sign of a zero, which gopher-lua takes for the 0 that it boxes once, with the sign of what
// is divided by that.
func alike(reply string) string {
	words := strings.Split(strings.ReplaceAll(named.ReplaceAllString(reply, "$1"), "\r\n", " "), " ")
	for i, word := range words {
		if word == "-0" || word == "-inf" {
			words[i] = word[1:]
		}
	}
	return strings.Join(words, " ")
}

// endlessFor is when programs are ended that the reference has ended by itself. There is one open variable for each level of a recursion, and
// gopher-lua looks at all of them for each closure: what takes redis-server half a second may take 20 s.
const endlessFor = 4 * time.Minute

// endlessAfter is when programs are ended that still run. Redis's busy-reply-threshold is 5 s; until then none can be.
const endlessAfter = 8 * time.Second

// killed is in the replies of both servers to a program that was ended so.
const killed = "killed by user"

// overflows reports whether a program recursed so deep that the reference had no stack left, or its handler of errors did, of which it says so in other
// words. How deep that is, and how much memory it takes, is each server's own.
func overflows(subject, reference string) bool {
	return strings.Contains(reference, "stack overflow") || strings.Contains(reference, "chunk has too many syntax levels") ||
		strings.Contains(reference, "error in error handling") && deep.MatchString(subject)
}

var deep = regexp.MustCompile("stack overflow|error in error handling|not enough memory")
