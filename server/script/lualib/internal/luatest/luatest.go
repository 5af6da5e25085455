// Package luatest compares a library with the one in the real redis-server:
// both run the same Lua, and what it returns must be the same.
package luatest

import (
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

	"headgate/internal/reference"
	"headgate/server/script/limits"
)

// chunkName is what redis-server calls a script in the errors it raises.
const chunkName = "user_script"

// dumpSource runs a function as pcall does and writes what it returns as text,
// in the way of Dump. It stays on one line, so that the function's first line
// is the script's first.
const dumpSource = `local function dump(v) local t = type(v) ` +
	`if t == 'number' then if v ~= v then return 'nan' end return 'n' .. string.format('%.17g', v) ` +
	`elseif t == 'string' then return 's' .. string.gsub(v, '.', function(c) return string.format('%02x', string.byte(c)) end) ` +
	`elseif t == 'boolean' or t == 'nil' then return tostring(v) ` +
	`elseif t == 'table' then local out = {} for k, x in pairs(v) do out[#out + 1] = dump(k) .. '=' .. dump(x) end table.sort(out) return '{' .. table.concat(out, ',') .. '}' ` +
	`else return t end end ` +
	`local function all(...) local out = {} for i = 1, select('#', ...) do out[i] = dump((select(i, ...))) end return table.concat(out, ' ') end ` +
	`return all(pcall(function(...) `

// Redis is a running redis-server.
type Redis struct{ server *reference.Server }

// Start runs redis-server for the duration of the test.
func Start(t *testing.T) *Redis {
	t.Helper()
	return &Redis{reference.Start(t)}
}

// Run runs the body of a Lua function, in a fresh Lua state, and returns its
// results as text: those of pcall.
func (r *Redis) Run(t *testing.T, body string, args ...string) string {
	t.Helper()
	_, err := r.server.Do("SCRIPT", "FLUSH", "SYNC")
	require.NoError(t, err)
	return r.RunAgain(t, body, args...)
}

// RunAgain is Run in the state that the last script left.
func (r *Redis) RunAgain(t *testing.T, body string, args ...string) string {
	t.Helper()
	call := []string{"EVAL", dumpSource + body + "\nend, unpack(ARGV)))", "0"}
	text, err := r.server.Text(append(call, args...)...)
	require.NoError(t, err, "%s", body)
	return text
}

// VM is a Lua state with gopher-lua's own libraries and those under test.
type VM struct {
	L      *lua.LState
	Budget *limits.Budget
}

// NewVM returns a state for one test or fuzz target.
func NewVM(t testing.TB, name string, open func(*lua.LState, *limits.Budget) *lua.LTable) *VM {
	const registryMax = 64 << 10
	vm := &VM{L: lua.NewState(lua.Options{RegistrySize: 1 << 10, RegistryMaxSize: registryMax}), Budget: limits.NewBudget()}
	t.Cleanup(vm.L.Close)
	vm.Budget.Own(vm.L)
	vm.L.SetGlobal(name, open(vm.L, vm.Budget))
	return vm
}

// Compile returns the Lua function with this body.
func (vm *VM) Compile(t testing.TB, body string) *lua.LFunction {
	t.Helper()
	f, err := vm.L.Load(strings.NewReader(body), chunkName)
	require.NoError(t, err, "%s", body)
	return f
}

// Run is Redis.Run for this state, which keeps what the script changes.
func (vm *VM) Run(t testing.TB, body string, args ...string) string {
	t.Helper()
	values := make([]lua.LValue, len(args))
	for i, arg := range args {
		values[i] = lua.LString(arg)
	}
	results, err := vm.Call(vm.Compile(t, body), values...)
	if err != nil {
		return "false " + Dump(err)
	}
	texts := []string{"true"}
	for _, v := range results {
		texts = append(texts, Dump(v))
	}
	return strings.Join(texts, " ")
}

// Call calls f and returns its results, or the value of the error it raised.
func (vm *VM) Call(f *lua.LFunction, args ...lua.LValue) (results []lua.LValue, raised lua.LValue) {
	top := vm.L.GetTop()
	defer vm.L.SetTop(top)
	vm.L.Push(f)
	for _, arg := range args {
		vm.L.Push(arg)
	}
	if err := vm.L.PCall(len(args), lua.MultRet, nil); err != nil {
		failure, ok := err.(*lua.ApiError) //nolint:errorlint // PCall does not wrap.
		if !ok || failure.Type != lua.ApiErrorRun {
			panic(err)
		}
		return nil, failure.Object
	}
	for i := top + 1; i <= vm.L.GetTop(); i++ {
		results = append(results, vm.L.Get(i))
	}
	return results, nil
}

// Dump writes a value as text. Tables come in the order of their texts.
func Dump(v lua.LValue) string {
	switch v := v.(type) {
	case lua.LNumber:
		if math.IsNaN(float64(v)) {
			return "nan"
		}
		return "n" + strings.ToLower(strings.TrimPrefix(strconv.FormatFloat(float64(v), 'g', 17, 64), "+"))
	case lua.LString:
		return "s" + hex.EncodeToString([]byte(v))
	case lua.LBool, *lua.LNilType:
		return v.String()
	case *lua.LTable:
		var out []string
		v.ForEach(func(key, value lua.LValue) { out = append(out, Dump(key)+"="+Dump(value)) })
		slices.Sort(out)
		return "{" + strings.Join(out, ",") + "}"
	}
	return v.Type().String()
}

// Explain makes a dump readable for the messages of tests.
func Explain(dump string) string {
	words := strings.FieldsFunc(dump, func(r rune) bool { return strings.ContainsRune(" {},=", r) })
	for i, word := range words {
		if text, err := hex.DecodeString(strings.TrimPrefix(word, "s")); word != "" && word[0] == 's' && err == nil {
			words[i] = fmt.Sprintf("%q", text)
		}
	}
	return strings.Join(words, " ")
}

// NewRand returns a random source whose seed is in the test's log.
func NewRand(t testing.TB) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// RandomNumber returns a number of any size as text, often one at the edge of
// an integer type.
func RandomNumber(rng *rand.Rand) string {
	edge := float64(uint64(1) << rng.IntN(64))
	f := 0.0
	switch rng.IntN(6) {
	case 0:
		f = float64(rng.IntN(300))
	case 1:
		f = edge + float64(rng.IntN(5)-2)
	case 2:
		f = edge * rng.Float64()
	case 3:
		f = float64(rng.IntN(1000)) / 8
	case 4:
		f = math.Float64frombits(rng.Uint64())
	default:
		f = float64(rng.Uint64() >> rng.IntN(64))
	}
	if rng.IntN(2) == 0 {
		f = -f
	}
	if math.IsNaN(f) || math.IsInf(f, 0) || f == 0 {
		f = 0 // not -0, which gopher-lua's tonumber does not read
	}
	return strconv.FormatFloat(f, 'g', 17, 64)
}
