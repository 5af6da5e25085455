package server

import (
	"bytes"
	"cmp"
	"slices"

	"headgate/internal/ascii"
	"headgate/internal/number"
	"headgate/server/acl"
	"headgate/server/config"
	"headgate/store"
)

const errSortNumber = "ERR One or more scores can't be converted into double"

// sortCategories are the types that can be sorted; and it may take long.
const sortCategories = acl.List | acl.Set | acl.SortedSet | acl.Dangerous

// sortCommands: lists, sets and sorted sets in another order.
var sortCommands = []*Command{
	{
		Name: "sort", Group: GroupGeneric, Since: "1.0.0", Complexity: "O(n + m log m) for m elements returned of n",
		Summary: "Return the elements of a list, set or sorted set in order, or keep them as a list at another key.",
		Arity:   -2, Flags: Write | DenyOOM | NotKeyspace, Categories: sortCategories,
		Keys: append(sortKeys(), KeySpec{Access: "OW UPDATE", Begin: 1, Step: 1, Other: sortStoreKey}),
		Args: append(sortArgs(), key("destination").after("STORE").opt()), Reply: ReplyArray | ReplyInteger, Handler: sortWrite,
	},
	{
		Name: "sort_ro", Group: GroupGeneric, Since: "7.0.0", Complexity: "O(n + m log m) for m elements returned of n",
		Summary: "Return the elements of a list, set or sorted set in order.",
		Arity:   -2, Flags: ReadOnly | NotKeyspace, Categories: sortCategories, Keys: sortKeys(),
		Args: sortArgs(), Reply: ReplyArray, Handler: sortRO,
	},
}

func sortArgs() []Arg {
	return []Arg{
		key("key"), pattern("by_pattern").after("BY").opt(), block("offset_count", integer("offset"), integer("count")).after("LIMIT").opt(),
		pattern("get_pattern").after("GET").opt().multi().eachWithToken(), oneOf("order", tok("ASC"), tok("DESC")).opt(),
		Arg{Name: "sorting", Type: "pure-token", Token: "ALPHA"}.opt(),
	}
}

// sortKeys declares the key that is sorted, and those that BY and GET make up.
func sortKeys() []KeySpec {
	nobodyKnows := func(indexes []int, _ [][]byte) []int { return indexes }
	return append(keys("RO ACCESS", 1, 1, 1), KeySpec{Access: "RO ACCESS", Begin: 1, Step: 1, Other: nobodyKnows})
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

// sortArgs parses the options, or sends the error and returns false.
func (c *Ctx) sortOptions(stores bool) (o sorting, ok bool) {
	o.count = -1
	for i := 2; i < len(c.args); {
		word, next := sortWordAt(c.args, i, stores)
		switch word {
		case sortAsc:
			o.reverse = false
		case sortDesc:
			o.reverse = true
		case sortAlpha:
			o.alpha = true
		case sortLimit:
			if o.start, ok = c.integer(i + 1); !ok {
				return o, false
			}
			if o.count, ok = c.integer(i + 2); !ok {
				return o, false
			}
		case sortStore:
			o.store = i + 1
		case sortBy:
			o.by = c.args[i+1]
			if bytes.IndexByte(cutAtNUL(o.by), '*') < 0 {
				o.as = true
			} else if !c.mayReadEveryKey() {
				c.err("ERR BY option of SORT denied due to insufficient ACL permissions.")
				return o, false
			}
		case sortGet:
			if !c.mayReadEveryKey() {
				c.err("ERR GET option of SORT denied due to insufficient ACL permissions.")
				return o, false
			}
			o.get = append(o.get, c.args[i+1])
		default:
			c.err(errSyntax)
			return o, false
		}
		i = next
	}
	return o, true
}

// sortable is an element with what it is compared by.
type sortable struct {
	element []byte
	text    []byte // with ALPHA; nil if its key is not there
	number  float64
}

func sortWrite(c *Ctx) { c.sort(true) }
func sortRO(c *Ctx)    { c.sort(false) }

func (c *Ctx) sort(stores bool) {
	o, ok := c.sortOptions(stores)
	if !ok {
		return
	}
	elements, kind, ok := c.sortElements(1)
	if !ok {
		return
	}
	if o.as && kind == store.KindSet && (o.store > 0 || c.script != nil) {
		// A set has no order of its own that a replay or a script could rely on.
		o.as, o.alpha, o.by = false, true, nil
	}
	if o.as && o.reverse && kind != store.KindSet {
		slices.Reverse(elements)
	}
	if !o.as && !c.orderBy(elements, &o) {
		return
	}
	elements = o.page(elements)
	if o.store > 0 {
		c.storeSorted(elements, &o)
		return
	}
	c.reply.Array(len(elements) * max(len(o.get), 1))
	c.eachSorted(elements, &o, func(v []byte, there bool) {
		if there {
			c.reply.Bulk(v)
		} else {
			c.reply.Null()
		}
	})
}

// sortElements copies the elements of the value at args[i], or sends the error for another kind and returns false. A missing key
// has none.
func (c *Ctx) sortElements(i int) (elements []sortable, kind store.Kind, ok bool) {
	e, found := c.lookupRead(i)
	if !found {
		return nil, store.KindNone, true
	}
	add := func(v []byte) { elements = append(elements, sortable{element: slices.Clone(v)}) }
	k := c.key(i)
	switch kind = e.Kind(); kind {
	case store.KindList:
		l, _, _ := c.db.List(k, c.now)
		l.Walk(0, l.Len(), false, func(_ int, v []byte) bool { add(v); return true })
	case store.KindSet:
		s, _, _ := c.db.Set(k, c.now)
		s.Each(func(v []byte) bool { add(v); return true })
	case store.KindZSet:
		z, _, _ := c.db.ZSet(k, c.now)
		z.Range(0, z.Len()-1, false, func(v []byte, _ float64) bool { add(v); return true })
	default:
		c.err(errWrongType)
		return nil, kind, false
	}
	return elements, kind, true
}

// orderBy puts the elements in order, or sends the error and returns false.
func (c *Ctx) orderBy(elements []sortable, o *sorting) bool {
	numeric := true
	for i := range elements {
		el := &elements[i]
		v, there := el.element, true
		if o.by != nil {
			v, there = c.patternValue(o.by, el.element)
		}
		switch {
		case !there:
		case o.alpha:
			el.text = append(make([]byte, 0, len(v)), v...)
		default:
			var ok bool
			el.number, ok = number.ParseWeight(v)
			numeric = numeric && ok
		}
	}
	if !numeric {
		c.err(errSortNumber)
		return false
	}
	compare := o.compare
	if o.reverse {
		compare = func(a, b sortable) int { return o.compare(b, a) }
	}
	slices.SortStableFunc(elements, compare)
	return true
}

// compare orders two elements. Texts that are only sent, not stored, are compared as C compares its own, which end at a NUL.
func (o *sorting) compare(a, b sortable) int {
	switch {
	case !o.alpha:
		if c := cmp.Compare(a.number, b.number); c != 0 {
			return c
		}
		return bytes.Compare(a.element, b.element)
	case a.text == nil || b.text == nil:
		return cmp.Compare(btoi(a.text != nil), btoi(b.text != nil))
	case o.store > 0:
		return bytes.Compare(a.text, b.text)
	}
	return bytes.Compare(cutAtNUL(a.text), cutAtNUL(b.text))
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// page cuts out what LIMIT asks for.
func (o *sorting) page(elements []sortable) []sortable {
	n := int64(len(elements))
	start := min(max(o.start, 0), n)
	end := n
	if o.count >= 0 {
		end = start + min(o.count, n-start)
	}
	return elements[start:end]
}

// eachSorted hands what is sent or stored of the elements to fn: themselves, or what GET asks for, which may not be there.
func (c *Ctx) eachSorted(elements []sortable, o *sorting, fn func(v []byte, there bool)) {
	for _, el := range elements {
		if o.get == nil {
			fn(el.element, true)
		}
		for _, p := range o.get {
			fn(c.patternValue(p, el.element))
		}
	}
}

// storeSorted keeps the elements as a list at the key of STORE, in place of what was there; without any, it is gone.
func (c *Ctx) storeSorted(elements []sortable, o *sorting) {
	var values [][]byte
	c.eachSorted(elements, o, func(v []byte, _ bool) { values = append(values, append([]byte(nil), v...)) })
	target := c.key(o.store)
	e, found := c.db.Find(target, c.now)
	if found {
		e.Delete()
		c.effect("DEL", target.Name)
	}
	if len(values) == 0 {
		c.notifyDeleted(found, target.Name)
		c.reply.Zero()
		return
	}
	if found {
		defer c.replacing()()
	}
	l, _, _ := c.db.List(target, c.now)
	effect := []any{"RPUSH", target.Name}
	for _, v := range values {
		l.Push(false, v)
		effect = append(effect, v)
	}
	c.effect(effect...)
	c.notify(config.EventList, "sortstore", target.Name)
	c.reply.Int(int64(len(values)))
}

// patternValue is what a pattern of BY or GET means for an element: with # the element, else the string at the key that has the
// element in place of the pattern's first *, or behind -> a field of the hash there. It holds until the next call.
func (c *Ctx) patternValue(pattern, element []byte) (value []byte, ok bool) {
	if string(cutAtNUL(pattern)) == "#" {
		return element, true
	}
	star := bytes.IndexByte(cutAtNUL(pattern), '*')
	if star < 0 {
		return nil, false
	}
	behind, field := pattern[star+1:], []byte(nil)
	if arrow := bytes.Index(cutAtNUL(behind), []byte("->")); arrow >= 0 && len(cutAtNUL(behind)) > arrow+2 {
		behind, field = behind[:arrow], behind[arrow+2:]
	}
	name := append(append(append(c.scratch[:0], pattern[:star]...), element...), behind...)
	c.scratch = name
	e, found := c.db.Find(c.core.keys.Key(name), c.now)
	c.countLookup(found)
	switch {
	case !found:
		c.missed(name)
		return nil, false
	case field == nil && e.Kind() == store.KindString:
		return e.Bytes(nil), true
	case field == nil || e.Kind() != store.KindHash:
		return nil, false
	}
	h, _, _ := c.db.Hash(c.core.keys.Key(name), c.now)
	return h.Get(field)
}
