package script

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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

// TestLongChainsCompileFast: what is at the end of the longest chain is not found through as many blocks.
func TestLongChainsCompileFast(t *testing.T) {
	chain := func(conditions int, behind string) string {
		return "local x = 1 if x == 0 then return 0 " + strings.Repeat("elseif x == 2 then return x ", conditions-1) + "else " + behind + "end return x"
	}
	compile := func(src string) time.Duration {
		best := time.Hour
		for range 3 {
			e := New(newFakeHost(), Options{})
			begin := time.Now()
			_, err := e.Load([]byte(src), true)
			require.NoError(t, err)
			best = min(best, time.Since(begin))
		}
		return best
	}
	names := strings.Repeat("x = x ", 20_000)
	require.Less(t, compile(chain(syntax.ElseifsMax, names)), 4*compile(chain(2, names)))
}
