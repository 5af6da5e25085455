package limits

import lua "github.com/yuin/gopher-lua"

// leastStrings is for how many string constants gopher-lua makes room in each function, and it keeps that.
const leastStrings = 32

// Compiled returns about how many bytes a compiled function takes, with those
// in it and the constants of all. What the engine has put in the place of
// constants is not its own.
func Compiled(p *lua.FunctionProto) int {
	n := ownBytes(p)
	for _, c := range p.Constants {
		switch c := c.(type) {
		case lua.LString:
			n += valueBytes + len(c) + len(c)/8
		case lua.LNumber:
			n += wordBytes
		}
	}
	for _, inner := range p.FunctionPrototypes {
		n += Compiled(inner)
	}
	return n
}

// ownBytes is what a compiled function takes by itself.
func ownBytes(p *lua.FunctionProto) int {
	strings := max(leastStrings, len(p.Constants)+len(p.Constants)/2)
	return protoBytes + 4*cap(p.Code) + valueBytes*(cap(p.Constants)+strings) + wordBytes*(cap(p.DbgSourcePositions)+cap(p.FunctionPrototypes)) +
		localBytes*(cap(p.DbgLocals)+cap(p.DbgCalls)) + valueBytes*cap(p.DbgUpvalues)
}
