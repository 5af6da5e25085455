package script

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/server/resp"
	"headgate/server/script/syntax"
)

// TestREADMESaysTheBounds: what a script may have is written there.
func TestREADMESaysTheBounds(t *testing.T) {
	raw, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	text := strings.Join(strings.Fields(string(raw)), " ")
	for _, bound := range []struct {
		most int
		what string
	}{
		{syntax.NodesMax, " statements, operands and operators"},
		{syntax.FunctionsMax, " functions"},
		{syntax.ConstantsMax, " different constants"},
		{syntax.BranchesMax, " loops, conditions and comparisons"},
		{syntax.ElseifsMax, " `elseif` in a row"},
		{instructionsMax, " instructions (some 20,000 calls)"},
	} {
		digits := strconv.Itoa(bound.most)
		require.Contains(t, text, digits[:len(digits)-3]+","+digits[len(digits)-3:]+bound.what)
	}
	require.Contains(t, text, fmt.Sprintf("counts the variables of all functions around it, %d,000,000 in all", passedMax/1_000_000))
	require.Contains(t, text, "tables of "+strconv.Itoa(syntax.LiteralMin)+" literals or more")
	e := New(newFakeHost(), Options{})
	require.Equal(t, "$-1\r\n", eval(e, strings.Repeat("redis.call('SET', 'k', '1') ", 20_000), resp.RESP2, nil, nil))
}
