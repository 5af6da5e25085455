package script

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"

	"headgate/server/resp"
	"headgate/server/script/syntax"
)

// TestLongChainsOfElseif: one branch is taken, whichever it is, and conditions behind it are not looked at.
func TestLongChainsOfElseif(t *testing.T) {
	e := New(newFakeHost(), Options{})
	for _, conditions := range []int{elseifsAtOnce - 1, elseifsAtOnce, elseifsAtOnce + 1, 3 * elseifsAtOnce, 3*elseifsAtOnce + 7} {
		for _, last := range []string{"", "else out = out .. 'none' "} {
			for _, taken := range []int{1, 2, elseifsAtOnce, elseifsAtOnce + 1, conditions, conditions + 1} {
				src := "local asked, out, x = 0, '', ... local function is(n) asked = asked + 1 return n == " + fmt.Sprint(taken) + " end for round = 1, 9 do if is(1) then out = out .. 1 "
				for i := 2; i <= conditions; i++ {
					src += fmt.Sprintf("elseif is(%d) then local y = out out = y .. %d if round == 3 then break end ", i, i)
				}
				src += last + "end if asked > 1e3 then break end end return out .. ' ' .. asked"
				rounds, branch := 0, ""
				for asked := 0; rounds < 9; {
					rounds++
					asked += min(taken, conditions)
					switch {
					case taken <= conditions:
						branch += fmt.Sprint(taken)
					case last != "":
						branch += "none"
					}
					if asked > 1e3 || taken > 1 && taken <= conditions && rounds == 3 {
						break
					}
				}
				want := fmt.Sprintf("%s %d", branch, rounds*min(taken, conditions))
				require.Equal(t, fmt.Sprintf("$%d\r\n%s\r\n", len(want), want), eval(e, src, resp.RESP2, nil, nil), "%d of %d", taken, conditions)
			}
		}
	}
}

// TestLongChainsAreDivided: no part of the longest chain has more conditions than are to be within each other, and all parts together have all.
func TestLongChainsAreDivided(t *testing.T) {
	src := "if x == 0 then return 0 " + strings.Repeat("elseif x == 2 then return x ", syntax.ElseifsMax-1) + "else return 1 end"
	chunk, err := parse.Parse(strings.NewReader(src), "chain")
	require.NoError(t, err)
	parts := divide(chunk[0].(*ast.IfStmt)).(*ast.DoBlockStmt).Stmts
	conditions := 0
	for i, part := range parts[1:] { // behind the variable that says whether a branch has been taken
		chain := part.(*ast.IfStmt)
		if i > 0 {
			chain = chain.Then[0].(*ast.IfStmt)
		}
		require.False(t, isLonger(chain, elseifsAtOnce), "part %d", i)
		for ; chain != nil; chain = elseif(chain) {
			conditions++
		}
	}
	require.Equal(t, syntax.ElseifsMax, conditions)
}
