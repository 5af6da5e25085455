package script

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/server/resp"
)

// TestVariablesEndWithTheirBlocks: an error names the variable that is there, as redis-server does, and none that has gone.
func TestVariablesEndWithTheirBlocks(t *testing.T) {
	e := New(newFakeHost(), Options{})
	for _, c := range [][2]string{
		{`function() do local u=1 end foo.bar.baz=1 end`, "attempt to index field 'bar' (a nil value)"},
		{`function() do local u=1 end local r = foo.bar.baz end`, "attempt to index field 'bar' (a nil value)"},
		{`function() do local u={} u=foo.bar u.baz=1 end end`, "attempt to index local 'u' (a nil value)"},
		{`function() while true do local u={} if u then break end end foo.bar.baz=1 end`, "attempt to index field 'bar' (a nil value)"},
		{`function() for i=1,2 do local u={} end foo.bar() end`, "attempt to call field 'bar' (a nil value)"},
		{`function() for i=1,2 do local u=nil u() end end`, "attempt to call local 'u' (a nil value)"},
		{`function() for k,v in pairs{1} do local u=k v.x.y=1 end end`, "attempt to index local 'v' (a number value)"},
		{`function() for k,v in pairs{1} do local u=k end foo.bar:baz() end`, "attempt to index field 'bar' (a nil value)"},
		{`function() repeat local u=nil until u.x end`, "attempt to index local 'u' (a nil value)"},
		{`function() repeat local u=nil until false or u.x.z end`, "attempt to index local 'u' (a nil value)"},
		{`function() repeat local u=1 local f=function() return u end until f() local z z.x=1 end`, "attempt to index local 'z' (a nil value)"},
		{`function(a,b,...) local c=... do local d=c end return c.x end`, "attempt to index local 'c' (a nil value)"},
		{`function() if foo then local u=1 elseif foo.bar then local v=1 else local w=nil w.x=1 end local z z() end`, "attempt to call local 'z' (a nil value)"},
		{`function() if nil then local u=1 elseif foo.bar then local v=1 else local w=nil w.x=1 end local z z() end`, "attempt to index local 'w' (a nil value)"},
		{`function() if nil then local u=1 end foo.x.y.z=1 end`, "attempt to index field 'x' (a nil value)"},
		{`function() local function f() local g=nil return g.x end f() end`, "attempt to index local 'g' (a nil value)"},
		{`function() local a=1 do local b=2 do local c=3 end b.x.y=1 end end`, "attempt to index local 'b' (a number value)"},
		{`function() local a=1 do local b=2 do local c=3 end local d d.x.y=1 end end`, "attempt to index local 'd' (a nil value)"},
		{`function() local a,b=1 do local c=1 end b() end`, "attempt to call local 'b' (a nil value)"},
		{`function() local a,b=1 do local c,d=1 local e = d+1 end b() end`, "attempt to perform arithmetic on local 'd' (a nil value)"},
		{`function() local a,b=1 do local c,d=1 end local e = b+1 end`, "attempt to perform arithmetic on local 'b' (a nil value)"},
		{`function() local a,b=1 do local c,d=1 end local e = b..'x' end`, "attempt to concatenate local 'b' (a nil value)"},
		{`function() local a,b=1 do local c,d=1 end local e = #b end`, "attempt to get length of local 'b' (a nil value)"},
		{`function() local a={} function a.f() do local q=1 end local z=nil return z.y end a.f() end`, "attempt to index local 'z' (a nil value)"},
		{`function() local a={} function a:f(x) do local q=1 end local z=nil return x.y end a:f() end`, "attempt to index local 'x' (a nil value)"},
		{`function() local a={} function a:f(x) do local q=1 end local z=nil return self.zz.y end a:f() end`, "attempt to index field 'zz' (a nil value)"},
		{`function() return (function(...) do local q end local w return w.x end)() end`, "attempt to index local 'w' (a nil value)"},
		{`function() while not foo.x.y do local u=1 end end`, "attempt to index field 'x' (a nil value)"},
		{`function() for i=foo.x.y,1 do end end`, "attempt to index field 'x' (a nil value)"},
		{`function() do local u=1 end for i=1,foo.x.y do end end`, "attempt to index field 'x' (a nil value)"},
		{`function() do local u=1 end for i in foo.x do end end`, "attempt to call a nil value"},
		{`function() do local u=1 end for i=1,2 do do local w=1 end local q q.x=1 end end`, "attempt to index local 'q' (a nil value)"},
		{`function() do local u,v,w=1 end local a = {b=1, c={foo.x.y}} end`, "attempt to index field 'x' (a nil value)"},
		{`function() do local u,v,w=1 end return tostring(foo.x.y) end`, "attempt to index field 'x' (a nil value)"},
		{`function() do local u,v,w=1 end string.rep(foo.x) end`, "bad argument #1 to 'rep' (string expected, got nil)"},
		{`function() local s = {f=string.rep} do local u,v,w=1 end s.f(foo.x) end`, "bad argument #1 to 'f' (string expected, got nil)"},
		{`function() local u=1 while true do local u=1 local z=nil z.q=1 if u==1 then break end end end`, "attempt to index local 'z' (a nil value)"},
		{`function(p) do local u=1 end local z=nil z.q=1 end`, "attempt to index local 'z' (a nil value)"},
		{`function(p) while p do local u=2 break end local z=nil z.q=1 end`, "attempt to index local 'z' (a nil value)"},
		{`function(p) for i=1,2 do local u=2 if p then break end end local z=nil z.q=1 end`, "attempt to index local 'z' (a nil value)"},
		{`function(p) repeat local u=2 until u==2 local z=nil z.q=1 end`, "attempt to index local 'z' (a nil value)"},
		{`function(p) repeat local u=2 local f=function() return u end until u==2 local z=nil z.q=1 end`, "attempt to index local 'z' (a nil value)"},
		{`function(p) while not p do local u=2 local f=function() return u end if u==2 then break end end local z=nil z.q=1 end`, "attempt to index local 'z' (a nil value)"},
		{`function(p) local function f(p,...) local q=p return q,... end f(1,2) local z=nil z.q=1 end`, "attempt to index local 'z' (a nil value)"},
		{`function(p) do local co=coroutine.create(function(a,...) return a end) end local z=nil z.q=1 end`, "attempt to index local 'z' (a nil value)"},
		{`function(p) pcall(function() local u=1 end) local z=nil z.q=1 end`, "attempt to index local 'z' (a nil value)"},
		{`function(p) if p then local u=1 else local w=1 end local z=nil z.q=1 end`, "attempt to index local 'z' (a nil value)"},
		{`function(p) for i=1,2 do local w=i end local z=nil z.q=1 end`, "attempt to index local 'z' (a nil value)"},
	} {
		reply := eval(e, "local foo = {} local ok, e = pcall("+c[0]+") return tostring(e)", resp.RESP2, nil, nil)
		_, text, _ := strings.Cut(strings.TrimSuffix(reply, "\r\n"), "\r\n")
		require.Equal(t, c[1], strings.TrimPrefix(text, "user_script:1: "), c[0])
	}
}
