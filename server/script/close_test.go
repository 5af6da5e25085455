package script

import (
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/server/resp"
)

// TestVariablesOutliveErrorsOfCatchers: what pcall, xpcall or load itself raises leaves the variables of those who called it to their closures.
func TestVariablesOutliveErrorsOfCatchers(t *testing.T) {
	e := New(newFakeHost(), Options{})
	for _, raises := range []string{
		"load(5)", "xpcall(tostring)", "local function deep() pcall(deep) error('x') end deep()",
		"pcall(load, 5) load(5)", "load(function() load(5) end) load(5)", "coroutine.wrap(function() pcall(load, 5) load(5) end)()",
	} {
		src := "local f pcall(function() local v = 7 f = function() v = v + 1 return v end " + raises + " end) local a, b, c = 1, 2, 3 return {f(), f(), a}"
		require.Equal(t, "*3\r\n:8\r\n:9\r\n:1\r\n", eval(e, src, resp.RESP2, nil, nil), raises)
	}
}
