package tablelib

import (
	"cmp"
	"math"
	"slices"

	lua "github.com/yuin/gopher-lua"

	"headgate/server/script/limits"
	"headgate/server/script/lualib/luacall"
)

// sorter sorts a table as Lua 5.1 does: a quicksort with the median of three as
// pivot that works in place. Which of two equal elements comes first, and what
// a comparison function that contradicts itself leads to, depends on the exact
// order of comparisons and swaps, so it is the same here.
type sorter struct {
	L      *lua.LState
	budget *limits.Budget
	t      *lua.LTable
	less   *lua.LFunction // nil for the operator <
}

func (lib *library) sort(L *lua.LState) int {
	t := luacall.Table(L, 1)
	n := lib.budget.Len(t)
	s := sorter{L: L, budget: lib.budget, t: t}
	if L.Get(2) != lua.LNil {
		s.less = luacall.Function(L, 2)
	}
	if s.less != nil || !s.sortApart(n) {
		s.sort(1, n)
	}
	return 0
}

// apartMax is how many elements are sorted outside of their table, and so how much
// memory that takes for a moment: 16 bytes each.
const apartMax = 1 << 20

// sortApart sorts n elements outside of their table, where each is reached much
// sooner, if their order leaves nothing open: that is so of strings, and of numbers
// that are all ordered and differ if they are not equal. It reports whether it has.
func (s *sorter) sortApart(n int) bool {
	if n > apartMax {
		return false
	}
	s.budget.Spend(int64(n))
	list := make([]lua.LValue, n)
	numbers, texts := 0, 0
	for i := range list {
		list[i] = s.get(i + 1)
		switch v := list[i].(type) {
		case lua.LNumber:
			if f := float64(v); f == f && (f != 0 || !math.Signbit(f)) {
				numbers++
			}
		case lua.LString:
			texts++
		}
	}
	switch n {
	case numbers:
		slices.SortFunc(list, func(a, b lua.LValue) int {
			s.budget.Spend(1)
			return cmp.Compare(a.(lua.LNumber), b.(lua.LNumber))
		})
	case texts:
		slices.SortFunc(list, func(a, b lua.LValue) int {
			a2, b2 := a.(lua.LString), b.(lua.LString)
			s.budget.Spend(1 + int64(min(len(a2), len(b2))>>3))
			return cmp.Compare(a2, b2)
		})
	default:
		return false
	}
	s.budget.Spend(int64(n))
	for i, v := range list {
		s.t.RawSetInt(i+1, v)
	}
	return true
}

// sort sorts the elements from low to high. It calls itself for the smaller
// part only, so it is never deeper than the number of bits of n.
func (s *sorter) sort(low, high int) {
	for low < high {
		if s.order(low, high); high-low == 1 {
			return
		}
		middle := low + (high-low)/2
		if s.isLess(s.get(middle), s.get(low)) {
			s.swap(middle, low)
		} else {
			s.order(middle, high)
		}
		if high-low == 2 {
			return
		}
		pivot := s.get(middle)
		s.swap(middle, high-1)
		s.budget.Hold(pivot)
		middle = s.partition(low, high, pivot)
		s.budget.Release()
		if middle-low < high-middle {
			s.sort(low, middle-1)
			low = middle + 1
		} else {
			s.sort(middle+1, high)
			high = middle - 1
		}
	}
}

// partition puts what is less than pivot before it and what is greater behind,
// and returns where pivot is then. It stands at high-1 before; the elements at
// low and high are on the right side already.
func (s *sorter) partition(low, high int, pivot lua.LValue) int {
	i, j := low, high-1
	for {
		for i++; s.isLess(s.get(i), pivot); i++ {
			if i > high {
				s.invalidOrder()
			}
		}
		for j--; s.isLess(pivot, s.get(j)); j-- {
			if j < low {
				s.invalidOrder()
			}
		}
		if j < i {
			s.swap(high-1, i)
			return i
		}
		s.swap(i, j)
	}
}

func (s *sorter) invalidOrder() {
	luacall.Error(s.L, "invalid order function for sorting")
}

func (s *sorter) get(i int) lua.LValue { return limits.Get(s.t, i) }

func (s *sorter) swap(i, j int) {
	a, b := s.get(i), s.get(j)
	s.t.RawSetInt(i, b)
	s.t.RawSetInt(j, a)
}

// order swaps the elements at low and high if they are the wrong way round.
func (s *sorter) order(low, high int) {
	if s.isLess(s.get(high), s.get(low)) {
		s.swap(low, high)
	}
}

func (s *sorter) isLess(a, b lua.LValue) bool {
	s.budget.Spend(1)
	if s.less == nil {
		return s.operatorLess(a, b)
	}
	return s.call(s.less, a, b)
}

func (s *sorter) call(f, a, b lua.LValue) bool {
	s.L.Push(f)
	s.L.Push(a)
	s.L.Push(b)
	s.budget.Call(s.L, 2, 1)
	result := lua.LVAsBool(s.L.Get(-1))
	s.L.Pop(1)
	return result
}

// operatorLess is a < b, with Lua 5.1's complaints.
func (s *sorter) operatorLess(a, b lua.LValue) bool {
	switch a := a.(type) {
	case lua.LNumber:
		if b, ok := b.(lua.LNumber); ok {
			return a < b
		}
	case lua.LString:
		if b, ok := b.(lua.LString); ok {
			s.budget.Spend(int64(min(len(a), len(b)) >> 3))
			return a < b
		}
	}
	if f := lessMethod(a); f != lua.LNil && a.Type() == b.Type() && f == lessMethod(b) {
		return s.call(f, a, b)
	}
	luacall.RawError(s.L, luacall.CannotCompare(a.Type().String(), b.Type().String()))
	return false
}

// lessMethod returns the metamethod for < of v, nil if it has none.
func lessMethod(v lua.LValue) lua.LValue {
	var meta lua.LValue
	switch v := v.(type) {
	case *lua.LTable:
		meta = v.Metatable
	case *lua.LUserData:
		meta = v.Metatable
	}
	if t, ok := meta.(*lua.LTable); ok {
		return t.RawGetString("__lt")
	}
	return lua.LNil
}
