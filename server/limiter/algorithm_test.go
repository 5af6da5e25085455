package limiter

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWrongDeclarationsPanic: a declaration that contradicts itself is found when the table is made, and not by a client.
func TestWrongDeclarationsPanic(t *testing.T) {
	right := *Standard.Find("FIXED")
	require.NotPanics(t, func() { NewTable(right) })
	for what, spoil := range map[string]func(a *Algorithm){
		"name":           func(a *Algorithm) { a.Name = "fixed" },
		"no name":        func(a *Algorithm) { a.Name = "" },
		"summary":        func(a *Algorithm) { a.Summary = "No full stop" },
		"complexity":     func(a *Algorithm) { a.Complexity = "" },
		"since":          func(a *Algorithm) { a.Since = "" },
		"guarantee":      func(a *Algorithm) { a.Guarantee = "" },
		"example":        func(a *Algorithm) { a.Example = "" },
		"cost's error":   func(a *Algorithm) { a.Costs = "ERR no check" },
		"no read":        func(a *Algorithm) { a.Read = nil },
		"no decision":    func(a *Algorithm) { a.Decide = nil },
		"prepares":       func(a *Algorithm) { a.Prepare = func(*Call) {} },
		"options":        func(a *Algorithm) { a.Options = make([]Option, maxOptions+1) },
		"too many words": func(a *Algorithm) { a.Words = len(a.Args) + 1 },
	} {
		wrong := right
		spoil(&wrong)
		require.Panics(t, func() { NewTable(wrong) }, what)
	}
	require.Panics(t, func() { NewTable(right, right) }, "declared twice")
	most := right
	most.Options = make([]Option, maxOptions)
	require.NotPanics(t, func() { NewTable(most) }, "as many options as there may be")
}

// TestSyntaxErrorOfPolicies says how a policy of the algorithm is written.
func TestSyntaxErrorOfPolicies(t *testing.T) {
	require.Equal(t, Error("ERR syntax error, try "+PolicyCall+"FIXED"), Standard.Find("FIXED").PolicySyntaxError()[:len("ERR syntax error, try "+PolicyCall+"FIXED")])
}

// TestTableOfOneMore has an algorithm more than the table that it was made from, which stays as it is.
func TestTableOfOneMore(t *testing.T) {
	mine := *Standard.Find("FIXED")
	mine.Name, mine.Label = "MINE", ""
	known := len(Standard.All())
	more := Standard.With(mine)
	require.Len(t, more.All(), known+1)
	require.Equal(t, known, more.Find("MINE").Index())
	require.NotNil(t, more.Find("FIXED"))
	require.Len(t, Standard.All(), known)
	require.Nil(t, Standard.Find("MINE"))
}
