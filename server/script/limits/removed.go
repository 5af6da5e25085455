package limits

import (
	"maps"
	"unsafe"

	lua "github.com/yuin/gopher-lua"
)

// Removed is what tables have dropped: keys whose elements are gone, at which
// somebody may be who goes through the table. Lua lets them remove elements on
// the way, also where they go on much later, with a key that they have kept or
// in a coroutine. Only storing under a new key ends that, so a table's are
// forgotten when it has got keys since.
type Removed map[*lua.LTable]removed

// removed is what one table has dropped.
type removed struct {
	// places are those that the keys have among the table's: where the next one is.
	places map[lua.LValue]int
	// keys is how many keys the table had without them.
	keys int
}

// isPast reports whether a table that has so many keys now has got some since, so that nobody goes on where a key was.
func (r removed) isPast(keys int) bool { return keys > r.keys }

// Next is the function Next for a key that t has dropped.
func (all Removed) Next(t *lua.LTable, key lua.LValue) (k, v lua.LValue, passed int, ok bool) {
	place, ok := all[t].places[key]
	if !ok {
		return lua.LNil, lua.LNil, 0, false
	}
	keys := *(*[]lua.LValue)(unsafe.Add(unsafe.Pointer(t), keysOffset))
	for i := place; i < len(keys); i++ {
		if v := t.RawGetH(keys[i]); v != lua.LNil {
			return keys[i], v, i - place, true
		}
	}
	return lua.LNil, lua.LNil, max(0, len(keys)-place), true
}

// goneLeast is how many keys a table may always have whose elements are gone: to keep them apart would take more.
const goneLeast = 16

// compact has t drop the keys whose elements are gone if they are the most. Those that it dropped before it forgets when it has got others since. What
// it has dropped in the end it notes, and returns, if there is anything.
func (s *Scale) compact(t *lua.LTable, before removed) (after removed, has bool) {
	keys := *(*[]lua.LValue)(unsafe.Add(unsafe.Pointer(t), keysOffset))
	if before.isPast(len(keys)) {
		before = removed{}
	}
	if gone := len(keys) - keyed(t); gone >= goneLeast && gone > len(keys)/2 {
		before = drop(t, before)
	}
	if len(before.places) == 0 {
		return removed{}, false
	}
	return before, true
}

// leave notes what stays of a table's.
func (s *Scale) leave(t *lua.LTable, of removed) {
	if s.Left == nil {
		s.Left = make(Removed)
	}
	s.Left[t] = of
}

// drop has t drop the keys whose elements are gone, and keep the order of the others. It returns those keys with the ones that it dropped before.
func drop(t *lua.LTable, before removed) (after removed) {
	at := unsafe.Pointer(t)
	keys, places := (*[]lua.LValue)(unsafe.Add(at, keysOffset)), (*map[lua.LValue]int)(unsafe.Add(at, placesOffset))
	dict, texts := (*map[lua.LValue]lua.LValue)(unsafe.Add(at, dictOffset)), (*map[string]lua.LValue)(unsafe.Add(at, stringsOffset))
	left := keyed(t)
	live, found := make([]lua.LValue, 0, left), make(map[lua.LValue]int, left)
	after = removed{make(map[lua.LValue]int, len(before.places)+len(*keys)-left), left}
	moved := make([]int, 0, len(*keys)+1) // to where each place has moved
	for _, key := range *keys {
		moved = append(moved, len(live))
		if t.RawGetH(key) != lua.LNil {
			found[key] = len(live)
			live = append(live, key)
		} else {
			after.places[key] = len(live)
		}
	}
	moved = append(moved, len(live))
	for key, place := range before.places {
		after.places[key] = moved[place]
	}
	*keys, *places = live, found
	*dict, *texts = smaller(*dict), smaller(*texts)
	return after
}

// smaller returns a map with no more room than its elements need; Go's keep all that
// they ever had.
func smaller[K comparable](m map[K]lua.LValue) map[K]lua.LValue {
	if m == nil {
		return nil
	}
	out := make(map[K]lua.LValue, len(m))
	maps.Copy(out, m)
	return out
}
