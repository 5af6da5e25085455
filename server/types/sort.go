package types

import (
	"bytes"
	"cmp"
	"slices"

	"headgate/internal/ascii"
	"headgate/internal/number"
	"headgate/server/acl"
	"headgate/server/command"
	"headgate/server/config"
	"headgate/store"
)

const errSortNumber = "ERR One or more scores can't be converted into double"

// sortCategories are the types that can be sorted; and it may take long.
const sortCategories = acl.List | acl.Set | acl.SortedSet | acl.Dangerous

// sortCommands: lists, sets and sorted sets in another order.
var sortCommands = []*command.Command{
	{
		Name: "sort", Group: command.GroupGeneric, Since: "1.0.0", Complexity: "O(n + m log m) for m elements returned of n",
		Summary: "Return the elements of a list, set or sorted set in order, or keep them as a list at another key.",
		Arity:   -2, Flags: command.Write | command.DenyOOM | command.NotKeyspace | command.ReadsOtherKeys, Categories: sortCategories,
		Keys: append(sortKeys(), command.KeySpec{Access: "OW UPDATE", Begin: 1, Step: 1, Other: sortStoreKey}),
		Args: append(sortArgs(), command.Key("destination").After("STORE").Opt()), Reply: command.ReplyArray | command.ReplyInteger, Handler: sortWrite,
	},
	{
		Name: "sort_ro", Group: command.GroupGeneric, Since: "7.0.0", Complexity: "O(n + m log m) for m elements returned of n",
		Summary: "Return the elements of a list, set or sorted set in order.",
		Arity:   -2, Flags: command.ReadOnly | command.NotKeyspace | command.ReadsOtherKeys, Categories: sortCategories, Keys: sortKeys(),
		Args: sortArgs(), Reply: command.ReplyArray, Handler: sortRO,
	},
}

func sortArgs() []command.Arg {
	return []command.Arg{
		command.Key("key"), command.Pattern("by_pattern").After("BY").Opt(), command.Block("offset_count", command.Integer("offset"), command.Integer("count")).After("LIMIT").Opt(),
		command.Pattern("get_pattern").After("GET").Opt().Multi().EachWithToken(), command.OneOf("order", command.Tok("ASC"), command.Tok("DESC")).Opt(),
		command.Arg{Name: "sorting", Type: "pure-token", Token: "ALPHA"}.Opt(),
	}
}

// sortKeys declares the key that is sorted, and those that BY and GET make up.
func sortKeys() []command.KeySpec {
	nobodyKnows := func(indexes []int, _ [][]byte) []int { return indexes }
	return append(command.Keys("RO ACCESS", 1, 1, 1), command.KeySpec{Access: "RO ACCESS", Begin: 1, Step: 1, Other: nobodyKnows})
}

// sortWord is a word of SORT's options.
type sortWord uint8

const (
	sortNoWord sortWord = iota
	sortAsc
	sortDesc
	sortAlpha
	sortLimit
	sortStore
	sortBy
	sortGet
)

// sortWordAt returns the word at args[i], whose values follow it, and where the next one stands. It is the only one that knows what in
// a SORT is a word and what a value: both the handler and the search for keys take their steps from it.
func sortWordAt(args [][]byte, i int, stores bool) (word sortWord, next int) {
	more := len(args) - i - 1
	switch a := args[i]; {
	case ascii.EqualFold(a, "ASC"):
		return sortAsc, i + 1
	case ascii.EqualFold(a, "DESC"):
		return sortDesc, i + 1
	case ascii.EqualFold(a, "ALPHA"):
		return sortAlpha, i + 1
	case more > 1 && ascii.EqualFold(a, "LIMIT"):
		return sortLimit, i + 3
	case stores && more > 0 && ascii.EqualFold(a, "STORE"):
		return sortStore, i + 2
	case more > 0 && ascii.EqualFold(a, "BY"):
		return sortBy, i + 2
	case more > 0 && ascii.EqualFold(a, "GET"):
		return sortGet, i + 2
	}
	return sortNoWord, i + 1
}

// sortStoreKey finds the key behind the last STORE, which is the one that counts.
func sortStoreKey(indexes []int, args [][]byte) []int {
	found := 0
	for i := 2; i < len(args); {
		word, next := sortWordAt(args, i, true)
		if word == sortStore {
			found = i + 1
		}
		i = next
	}
	if found > 0 {
		indexes = append(indexes, found)
	}
	return indexes
}

// sorting is what SORT is told.
type sorting struct {
	by      []byte // pattern of the keys whose values are compared; nil: the elements themselves
	get     [][]byte
	start   int64
	count   int64 // negative: all
	reverse bool
	alpha   bool
	as      bool // nothing is compared: the elements stay as they come
	store   int  // argument index of the key to store at, 0 for none
}

// sortOptions parses the options, or sends the error and returns false.
func sortOptions(c *command.Ctx, stores bool) (o sorting, ok bool) {
	o.count = -1
	for i := 2; i < len(c.Args); {
		word, next := sortWordAt(c.Args, i, stores)
		switch word {
		case sortAsc:
			o.reverse = false
		case sortDesc:
			o.reverse = true
		case sortAlpha:
			o.alpha = true
		case sortLimit:
			if o.start, ok = c.Integer(i + 1); !ok {
				return o, false
			}
			if o.count, ok = c.Integer(i + 2); !ok {
				return o, false
			}
		case sortStore:
			o.store = i + 1
		case sortBy:
			o.by = c.Args[i+1]
			if bytes.IndexByte(command.CutAtNUL(o.by), '*') < 0 {
				o.as = true
			} else if !c.MayReadEveryKey() {
				c.Err("ERR BY option of SORT denied due to insufficient ACL permissions.")
				return o, false
			}
		case sortGet:
			if !c.MayReadEveryKey() {
				c.Err("ERR GET option of SORT denied due to insufficient ACL permissions.")
				return o, false
			}
			o.get = append(o.get, c.Args[i+1])
		default:
			c.Err(command.ErrSyntax)
			return o, false
		}
		i = next
	}
	return o, true
}

// MaySort reports whether the context's SORT is one that its client may run, whoever runs it, or sends the error and returns false.
func MaySort(c *command.Ctx) bool {
	_, ok := sortOptions(c, c.Cmd.Flags&command.Write != 0)
	return ok
}

// sortable is an element with what it is compared by.
type sortable struct {
	element []byte
	number  float64
}

func sortWrite(c *command.Ctx) { sort(c, true) }
func sortRO(c *command.Ctx)    { sort(c, false) }

func sort(c *command.Ctx, stores bool) {
	o, ok := sortOptions(c, stores)
	if !ok {
		return
	}
	elements, ok := sortElements(c, 1, &o)
	if !ok {
		return
	}
	if !o.as {
		if elements, ok = inOrder(c, elements, &o); !ok {
			return
		}
	}
	if o.store > 0 {
		storeSorted(c, elements, &o)
		return
	}
	c.Reply.Array(len(elements) * max(len(o.get), 1))
	eachSorted(c, elements, &o, func(v []byte, there bool) {
		if there {
			c.Reply.Bulk(v)
		} else {
			c.Reply.Null()
		}
	})
}

// sortElements copies the elements of the value at args[i], or sends the error for another kind and returns false. A missing key has none. If they
// stay as they come, there are only those that LIMIT asks for.
func sortElements(c *command.Ctx, i int, o *sorting) (elements []sortable, ok bool) {
	e, found := c.Find(i)
	if !found {
		return nil, true
	}
	var kept texts
	add := func(v []byte) { elements = append(elements, sortable{element: kept.copy(v)}) }
	// wanted is which of n elements are looked at, in their own order.
	wanted := func(n int) (from, to int) {
		from, to = 0, n
		if o.as {
			from, to = o.bounds(n)
		}
		if o.as && o.reverse {
			from, to = n-to, n-from
		}
		elements = make([]sortable, 0, to-from)
		return from, to
	}
	k := c.Key(i)
	switch e.Kind() {
	case store.KindList:
		l, _, _ := c.DB.List(k, c.Now)
		from, to := wanted(l.Len())
		if from < to {
			l.Walk(from, to-from, false, func(_ int, v []byte) bool { add(v); return true })
		}
	case store.KindSet:
		if o.as && (o.store > 0 || c.Script != nil) {
			// A set has no order of its own that a replay or a script could rely on.
			o.as, o.alpha, o.by = false, true, nil
		}
		s, _, _ := c.DB.Set(k, c.Now)
		elements = make([]sortable, 0, s.Len())
		s.Each(func(v []byte) bool { add(v); return true })
		if o.as {
			start, end := o.bounds(len(elements))
			elements = elements[start:end]
		}
		return elements, true
	case store.KindZSet:
		z, _, _ := c.DB.ZSet(k, c.Now)
		from, to := wanted(z.Len())
		if from < to {
			z.Range(from, to-1, false, func(v []byte, _ float64) bool { add(v); return true })
		}
	default:
		c.Err(command.ErrWrongType)
		return nil, false
	}
	if o.as && o.reverse {
		slices.Reverse(elements)
	}
	return elements, true
}

// texts are copies of short texts, many in one piece of memory.
type texts struct{ chunk []byte }

// Bytes of such a piece. Each is twice as large as the one before.
const (
	firstTexts = 64
	mostTexts  = 16 << 10
)

func (t *texts) copy(v []byte) []byte {
	if t.chunk == nil || cap(t.chunk)-len(t.chunk) < len(v) {
		t.chunk = make([]byte, 0, max(len(v), firstTexts, min(mostTexts, 2*cap(t.chunk))))
	}
	begin := len(t.chunk)
	t.chunk = append(t.chunk, v...)
	return t.chunk[begin:len(t.chunk):len(t.chunk)]
}

// inOrder returns those of the elements that LIMIT asks for in their order, or sends the error and returns false.
func inOrder(c *command.Ctx, elements []sortable, o *sorting) (sorted []sortable, ok bool) {
	by := make([][]byte, 0, len(elements)) // what texts are compared by; nil if its key is not there
	numeric := true
	var kept texts
	for i := range elements {
		el := &elements[i]
		v, there := el.element, true
		if o.by != nil {
			v, there = patternValue(c, o.by, el.element)
		}
		switch {
		case o.alpha && there && o.by != nil:
			by = append(by, kept.copy(v))
		case o.alpha && there:
			by = append(by, v)
		case o.alpha:
			by = append(by, nil)
		case there:
			el.number, ok = number.ParseWeight(v)
			numeric = numeric && ok
		}
	}
	if !numeric {
		c.Err(errSortNumber)
		return nil, false
	}
	order := make([]int32, len(elements)) // indexes, which move faster than elements
	for i := range order {
		order[i] = int32(i)
	}
	start, end := o.bounds(len(elements))
	sortFirst(order, end, func(i, j int32) int {
		var c int
		if o.alpha {
			c = o.compareTexts(by[i], by[j])
		} else {
			c = compareNumbers(&elements[i], &elements[j])
		}
		if o.reverse {
			c = -c
		}
		return cmp.Or(c, cmp.Compare(i, j)) // so that pages of one order fit together
	})
	sorted = make([]sortable, 0, end-start)
	for _, i := range order[start:end] {
		sorted = append(sorted, elements[i])
	}
	return sorted, true
}

// allFrom is from which part of the elements on, one in so many, all are put in order where only the first are asked for.
const allFrom = 8

// sortFirst puts the first n of some indexes in order, as if all were sorted. What stands behind them has no order then.
func sortFirst(order []int32, n int, compare func(i, j int32) int) {
	if n <= len(order)/allFrom {
		if n == 0 {
			return
		}
		first := order[:n] // a heap with the last of them on top
		for i := n/2 - 1; i >= 0; i-- {
			sink(first, i, compare)
		}
		for i := n; i < len(order); i++ {
			if compare(order[i], first[0]) < 0 {
				order[i], first[0] = first[0], order[i]
				sink(first, 0, compare)
			}
		}
		order = first
	}
	slices.SortFunc(order, compare)
}

// sink moves an element of a heap down to its place.
func sink(heap []int32, i int, compare func(i, j int32) int) {
	for {
		last := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(heap); child++ {
			if compare(heap[child], heap[last]) > 0 {
				last = child
			}
		}
		if last == i {
			return
		}
		heap[i], heap[last] = heap[last], heap[i]
		i = last
	}
}

// compareNumbers orders two elements by their numbers, and by themselves where these are the same.
func compareNumbers(a, b *sortable) int {
	if c := cmp.Compare(a.number, b.number); c != 0 {
		return c
	}
	return bytes.Compare(a.element, b.element)
}

// compareTexts orders two texts. Those that are only sent, not stored, are compared as C compares its own, which end at a NUL.
func (o *sorting) compareTexts(a, b []byte) int {
	switch {
	case a == nil || b == nil:
		return cmp.Compare(btoi(a != nil), btoi(b != nil))
	case o.store > 0:
		return bytes.Compare(a, b)
	}
	return bytes.Compare(command.CutAtNUL(a), command.CutAtNUL(b))
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// bounds says which of n elements LIMIT asks for.
func (o *sorting) bounds(n int) (start, end int) {
	start, end = int(min(max(o.start, 0), int64(n))), n
	if o.count >= 0 {
		end = start + int(min(o.count, int64(n-start)))
	}
	return start, end
}

// eachSorted hands what is sent or stored of the elements to fn: themselves, or what GET asks for, which may not be there.
func eachSorted(c *command.Ctx, elements []sortable, o *sorting, fn func(v []byte, there bool)) {
	for _, el := range elements {
		if o.get == nil {
			fn(el.element, true)
		}
		for _, p := range o.get {
			fn(patternValue(c, p, el.element))
		}
	}
}

// storeSorted keeps the elements as a list at the key of STORE, in place of what was there; without any, it is gone.
func storeSorted(c *command.Ctx, elements []sortable, o *sorting) {
	var values [][]byte
	eachSorted(c, elements, o, func(v []byte, _ bool) { values = append(values, append([]byte(nil), v...)) })
	target := c.Key(o.store)
	e, found := c.DB.Find(target, c.Now)
	if found {
		e.Delete()
		c.Effect("DEL", target.Name)
	}
	if len(values) == 0 {
		c.NotifyDeleted(found, target.Name)
		c.Reply.Zero()
		return
	}
	if found {
		defer c.Replacing()()
	}
	l, _, _ := c.DB.List(target, c.Now)
	effect := []any{"RPUSH", target.Name}
	for _, v := range values {
		l.Push(false, v)
		effect = append(effect, v)
	}
	c.Effect(effect...)
	c.Notify(config.EventList, "sortstore", target.Name)
	c.Reply.Int(int64(len(values)))
}

// patternValue is what a pattern of BY or GET means for an element: with # the element, else the string at the key that has the
// element in place of the pattern's first *, or behind -> a field of the hash there. It holds until the next call.
func patternValue(c *command.Ctx, pattern, element []byte) (value []byte, ok bool) {
	if string(command.CutAtNUL(pattern)) == "#" {
		return element, true
	}
	star := bytes.IndexByte(command.CutAtNUL(pattern), '*')
	if star < 0 {
		return nil, false
	}
	behind, field := pattern[star+1:], []byte(nil)
	if arrow := bytes.Index(command.CutAtNUL(behind), []byte("->")); arrow >= 0 && len(command.CutAtNUL(behind)) > arrow+2 {
		behind, field = behind[:arrow], behind[arrow+2:]
	}
	name := append(append(append(c.Scratch[:0], pattern[:star]...), element...), behind...)
	c.Scratch = name
	e, found := c.DB.Find(c.Core.Keys.Key(name), c.Now)
	c.CountLookup(found)
	switch {
	case !found:
		c.Missed(name)
		return nil, false
	case field == nil && e.Kind() == store.KindString:
		return e.Bytes(nil), true
	case field == nil || e.Kind() != store.KindHash:
		return nil, false
	}
	h, _, _ := c.DB.Hash(c.Core.Keys.Key(name), c.Now)
	return h.Get(field)
}
