package cmsgpack

import (
	"encoding/binary"
	"math"

	lua "github.com/yuin/gopher-lua"

	"headgate/server/script/limits"
	"headgate/server/script/lualib/internal/tables"
	"headgate/server/script/lualib/luanum"
)

// packer is the state of one call of pack.
type packer struct {
	L      *lua.LState
	budget *limits.Budget
	out    []byte
}

// value appends v, which lies in level tables.
func (p *packer) value(v lua.LValue, level int) {
	p.budget.Spend(1)
	p.room(9)
	switch v := v.(type) {
	case lua.LString:
		p.text(string(v))
	case lua.LNumber:
		p.number(float64(v))
	case lua.LBool:
		if v {
			p.out = append(p.out, codeTrue)
		} else {
			p.out = append(p.out, codeFalse)
		}
	case *lua.LTable:
		if level == nestingMax {
			p.out = append(p.out, codeNil)
			return
		}
		p.table(v, level)
	default:
		p.out = append(p.out, codeNil)
	}
}

// room has the result grow by n bytes, or raises an error.
func (p *packer) room(n int) { p.out = p.budget.Grow(p.L, p.out, n) }

func (p *packer) text(s string) {
	n := len(s)
	p.room(n + 5)
	p.budget.Spend(int64(n) / 8)
	switch {
	case n < 32:
		p.out = append(p.out, fixText|byte(n))
	case n <= math.MaxUint8:
		p.out = append(p.out, codeText8, byte(n))
	case n <= math.MaxUint16:
		p.out = binary.BigEndian.AppendUint16(append(p.out, codeText16), uint16(n))
	default:
		p.out = binary.BigEndian.AppendUint32(append(p.out, codeText32), uint32(n))
	}
	p.out = append(p.out, s...)
}

func (p *packer) number(f float64) {
	if n := luanum.TruncateInt(f); float64(n) == f && f < 1<<63 {
		p.integer(n)
		return
	}
	if single := float32(f); float64(single) == f {
		p.out = binary.BigEndian.AppendUint32(append(p.out, codeFloat32), math.Float32bits(single))
		return
	}
	p.out = binary.BigEndian.AppendUint64(append(p.out, codeFloat64), math.Float64bits(f))
}

func (p *packer) integer(n int64) {
	switch {
	case n >= -32 && n <= math.MaxInt8:
		p.out = append(p.out, byte(n))
	case n >= 0 && n <= math.MaxUint8:
		p.out = append(p.out, codeUint8, byte(n))
	case n >= 0 && n <= math.MaxUint16:
		p.out = binary.BigEndian.AppendUint16(append(p.out, codeUint16), uint16(n))
	case n >= 0 && n <= math.MaxUint32:
		p.out = binary.BigEndian.AppendUint32(append(p.out, codeUint32), uint32(n))
	case n >= 0:
		p.out = binary.BigEndian.AppendUint64(append(p.out, codeUint64), uint64(n))
	case n >= math.MinInt8:
		p.out = append(p.out, codeInt8, byte(n))
	case n >= math.MinInt16:
		p.out = binary.BigEndian.AppendUint16(append(p.out, codeInt16), uint16(n))
	case n >= math.MinInt32:
		p.out = binary.BigEndian.AppendUint32(append(p.out, codeInt32), uint32(n))
	default:
		p.out = binary.BigEndian.AppendUint64(append(p.out, codeInt64), uint64(n))
	}
}

func (p *packer) table(t *lua.LTable, level int) {
	count, isArray := p.shape(t)
	if isArray {
		p.length(count, fixArray, codeArray16, codeArray32)
		for i := 1; i <= count; i++ {
			p.value(limits.Get(t, i), level+1)
		}
		return
	}
	p.length(count, fixMap, codeMap16, codeMap32)
	n := t.Len()
	for i := 1; i <= n; i++ {
		if v := limits.Get(t, i); v != lua.LNil {
			p.room(9)
			p.integer(int64(i))
			p.value(v, level+1)
		}
	}
	for key, v := tables.FirstKeyed(t, n); key != lua.LNil; key, v = t.Next(key) {
		p.value(key, level+1)
		p.value(v, level+1)
	}
}

// shape returns how many elements t has, and whether their keys are 1 to that
// count.
func (p *packer) shape(t *lua.LTable) (count int, isArray bool) {
	n := t.Len()
	p.budget.Spend(int64(n) / 8)
	p.budget.SpendGone(t)
	for i := 1; i <= n; i++ {
		if limits.Get(t, i) != lua.LNil {
			count++
		}
	}
	isArray = true
	largest := n
	for key, _ := tables.FirstKeyed(t, n); key != lua.LNil; key, _ = t.Next(key) {
		p.budget.Spend(1)
		count++
		k, ok := key.(lua.LNumber)
		if !ok || k <= 0 || k > math.MaxInt32 || k != lua.LNumber(int(k)) {
			isArray = false
			continue
		}
		largest = max(largest, int(k))
	}
	return count, isArray && largest == count
}

// length appends how many elements follow, in the shortest of three forms.
func (p *packer) length(n int, fix, code16, code32 byte) {
	switch {
	case n <= 15:
		p.out = append(p.out, fix|byte(n))
	case n <= math.MaxUint16:
		p.out = binary.BigEndian.AppendUint16(append(p.out, code16), uint16(n))
	default:
		p.out = binary.BigEndian.AppendUint32(append(p.out, code32), uint32(n))
	}
}
