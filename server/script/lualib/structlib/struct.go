package structlib

import (
	"math"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"headgate/server/script/limits"
	"headgate/server/script/lualib/internal/output"
	"headgate/server/script/lualib/luacall"
)

// stackMax is how many values C Lua lets a C function keep on its stack, and
// with that how many one call may return.
const stackMax = 8000

type library struct {
	budget *limits.Budget
	out    []byte // reused by pack
}

// Open returns the library's table. Its functions count what they read and
// write as steps of b and obey its limits. It is used by one goroutine at a
// time, as L is.
func Open(L *lua.LState, b *limits.Budget) *lua.LTable {
	l := &library{budget: b}
	lib := L.CreateTable(0, 3)
	lib.RawSetString("pack", L.NewFunction(l.pack))
	lib.RawSetString("unpack", L.NewFunction(l.unpack))
	lib.RawSetString("size", L.NewFunction(l.size))
	return lib
}

// valueMax is how long a value that is no string gets with the padding before it,
// in bytes.
const valueMax = 64

// packing is the state of one call of pack.
type packing struct {
	format
	budget *limits.Budget
	out    []byte
	arg    int // the next argument
}

// pack(format, ...) returns the values as a string.
func (l *library) pack(L *lua.LState) int {
	p := packing{format: newFormat(L, "pack"), budget: l.budget, out: l.out[:0], arg: 2}
	for p.text != "" {
		l.budget.Spend(1)
		option, size := p.next()
		p.out = l.budget.Grow(L, p.out, valueMax)
		for range p.padding(uint64(len(p.out)), option, size) {
			p.out = append(p.out, 0)
		}
		p.value(option, size)
	}
	var packed lua.LString
	packed, l.out = output.String(L, l.budget, p.out)
	L.Push(packed)
	return 1
}

func (p *packing) value(option byte, size uint64) {
	if integer, _ := isInteger(option); integer {
		p.out = appendInteger(p.out, integerOf(p.nextNumber()), int(size), p.bigEndian)
		return
	}
	switch option {
	case 'x':
		p.out = append(p.out, 0)
	case 'f':
		bits := math.Float32bits(float32(p.nextNumber()))
		p.out = appendInteger(p.out, uint64(bits), int(size), p.bigEndian)
	case 'd':
		p.out = appendInteger(p.out, math.Float64bits(p.nextNumber()), int(size), p.bigEndian)
	case 's', 'c':
		p.nextString(option, size)
	default:
		p.mode(option)
	}
}

// nextNumber takes an argument that is a number.
func (p *packing) nextNumber() float64 {
	n, ok := luacall.ToNumber(p.L, p.L.Get(p.arg))
	if !ok {
		p.typeError("number")
	}
	p.arg++
	return float64(n)
}

// nextString takes an argument that is a string and packs size bytes of it, or
// all when size is 0.
func (p *packing) nextString(option byte, size uint64) {
	s, ok := luacall.ToString(p.L.Get(p.arg))
	if !ok {
		p.typeError("string")
	}
	p.arg++
	if size == 0 {
		size = uint64(len(s))
	}
	if uint64(len(s)) < size {
		// Redis names the argument after the one that is too short.
		luacall.ArgError(p.L, p.arg, "string too short")
	}
	p.out = p.budget.Grow(p.L, p.out, int(size)+1)
	p.budget.Spend(int64(size) / 8)
	p.out = append(p.out, s[:size]...)
	if option == 's' {
		p.out = append(p.out, 0)
	}
}

// typeError complains of the next argument. One that is missing counts as nil,
// because Redis keeps a nil behind the arguments while it packs.
func (p *packing) typeError(want string) {
	got := p.L.Get(p.arg).Type().String()
	luacall.ArgError(p.L, p.arg, want+" expected, got "+got)
}

// unpacking is the state of one call of unpack.
type unpacking struct {
	format
	budget *limits.Budget
	data   string
	offset uint64
	args   int // how many arguments the call has
	count  int // of results so far
}

// unpack(format, data, [position]) returns the values and the position after
// them.
func (l *library) unpack(L *lua.LState) int {
	u := unpacking{format: newFormat(L, "unpack"), budget: l.budget, args: L.GetTop()}
	u.data = luacall.String(L, 2)
	position := uint64(luacall.OptInteger(L, 3, 1))
	if position == 0 {
		luacall.ArgError(L, 3, "offset must be 1 or greater")
	}
	u.offset = position - 1
	for u.text != "" {
		u.budget.Spend(1)
		option, size := u.next()
		u.offset += u.padding(u.offset, option, size)
		u.need(size)
		if u.args+u.count+2 > stackMax {
			luacall.Errorf(L, "stack overflow (too many results)")
		}
		u.value(option, size)
	}
	L.Push(lua.LNumber(int64(u.offset + 1)))
	return u.count + 1
}

// need raises an error unless size bytes are left.
func (u *unpacking) need(size uint64) {
	length := uint64(len(u.data))
	if size > length || u.offset > length-size {
		luacall.ArgError(u.L, 2, "data string too short")
	}
}

func (u *unpacking) value(option byte, size uint64) {
	if option == 'c' && size == 0 {
		size = u.previous()
		u.need(size)
	}
	field := u.data[u.offset : u.offset+size]
	integer, signed := isInteger(option)
	switch {
	case integer:
		u.push(lua.LNumber(readInteger(field, signed, u.bigEndian)))
	case option == 'x':
	case option == 'f':
		u.push(lua.LNumber(math.Float32frombits(uint32(readBits(field, u.bigEndian)))))
	case option == 'd':
		u.push(lua.LNumber(math.Float64frombits(readBits(field, u.bigEndian))))
	case option == 'c':
		u.push(lua.LString(strings.Clone(field)))
	case option == 's':
		size = u.terminated()
	default:
		u.mode(option)
	}
	u.offset += size
}

// previous takes back the last result, which is the size of a c0.
func (u *unpacking) previous() uint64 {
	n, ok := lua.LNumber(0), false
	if u.count > 0 {
		n, ok = luacall.ToNumber(u.L, u.L.Get(-1))
	}
	if !ok {
		luacall.Errorf(u.L, "format 'c0' needs a previous size")
	}
	u.L.Pop(1)
	u.count--
	return integerOf(float64(n))
}

// terminated pushes the bytes before the next NUL and returns how many were
// read with it.
func (u *unpacking) terminated() uint64 {
	length := strings.IndexByte(u.data[u.offset:], 0)
	if length < 0 {
		u.budget.Spend(int64(len(u.data)) / 8)
		luacall.Errorf(u.L, "unfinished string in data")
	}
	u.budget.CheckString(u.L, int(length))
	u.push(lua.LString(strings.Clone(u.data[u.offset:][:length])))
	return uint64(length) + 1
}

func (u *unpacking) push(v lua.LValue) {
	if s, ok := v.(lua.LString); ok {
		u.budget.Spend(int64(len(s)) / 8)
	}
	u.L.Push(v)
	u.count++
}

// size(format) returns the size of what pack would return.
func (l *library) size(L *lua.LState) int {
	f := newFormat(L, "size")
	total := uint64(0)
	for f.text != "" {
		l.budget.Spend(1)
		option, size := f.next()
		total += f.padding(total, option, size)
		switch {
		case option == 's':
			luacall.ArgError(L, 1, "option 's' has no fixed size")
		case option == 'c' && size == 0:
			luacall.ArgError(L, 1, "option 'c0' has no fixed size")
		case !isAlphanumeric(option):
			f.mode(option)
		}
		total += size
	}
	L.Push(lua.LNumber(total))
	return 1
}

func isAlphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}
