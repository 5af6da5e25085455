package script

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLongDigitsAreCounted: so does each number that is written with more digits than a double has.
func TestLongDigitsAreCounted(t *testing.T) {
	const count, each = 5000, 200 // steps
	head := fmt.Sprintf("local t, n = {} for i = 1, %d do t[i] = 1.7e308 end ", count)
	idle := stepsOf(t, head)
	for _, conversion := range []string{"%.99e", "%f", "%.20g"} {
		require.Greater(t, stepsOf(t, head+fmt.Sprintf("n = string.format(string.rep('%s', #t), unpack(t))", conversion))-idle, count*each, conversion)
	}
}

// TestFarNumbersAreCounted: so does what has to be worked out by long numbers, or in many rounds.
func TestFarNumbersAreCounted(t *testing.T) {
	const count, each = 5000, 50 // steps
	head := "local x, y, n = 1.7e308, 5e-324 "
	for _, call := range []string{"math.fmod(x, y)", "math.mod(x, y)", "math.sin(x)", "math.cos(-x)", "math.tan(x)"} {
		steps := stepsOf(t, fmt.Sprintf("%sfor i = 1, %d do n = %s end", head, count, call))
		require.Greater(t, steps, count*each, call)
	}
}

// TestConversionsAreCounted: each string that is read as a number counts what that takes, however many are in one call or statement.
func TestConversionsAreCounted(t *testing.T) {
	const count, each = 7000, 50 // steps
	head := fmt.Sprintf("local a, n, t = '1.' .. string.rep('7', 245) .. 'e-310', 0, {} for i = 1, %d do t[i] = a end ", count)
	idle := stepsOf(t, head)
	sum := "(" + strings.TrimSuffix(strings.Repeat("a + ", 140), " + ") + ")"
	for name, body := range map[string]string{
		"math.max":     "n = math.max(unpack(t))",
		"string.char":  "n = string.char(unpack(t))",
		"bit.bor":      "n = bit.bor(unpack(t))",
		"struct.pack":  "n = struct.pack(string.rep('d', #t), unpack(t))",
		"statement":    "n = " + strings.TrimSuffix(strings.Repeat(sum+" + ", count/140), " + "),
		"power":        "n = " + strings.TrimSuffix(strings.Repeat("a ^ 1 + ", count), " + "),
		"modulo":       "n = " + strings.TrimSuffix(strings.Repeat("a % 1 + ", count), " + "),
		"tonumber":     "for i = 1, #t do n = tonumber(a) end",
		"loop":         "for i = 1, #t do for j = a, a do n = j end end",
		"cjson.decode": "n = cjson.decode('[' .. table.concat(t, ',') .. ']')",
	} {
		require.Greater(t, stepsOf(t, head+body)-idle, count*each, name)
	}
}
