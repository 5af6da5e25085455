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
	text    []byte // with ALPHA; nil if its key is not there
	number  float64
}

func sortWrite(c *command.Ctx) { sort(c, true) }
func sortRO(c *command.Ctx)    { sort(c, false) }

func sort(c *command.Ctx, stores bool) {
	o, ok := sortOptions(c, stores)
	if !ok {
		return
	}
	elements, kind, ok := sortElements(c, 1)
	if !ok {
		return
	}
	if o.as && kind == store.KindSet && (o.store > 0 || c.Script != nil) {
		// A set has no order of its own that a replay or a script could rely on.
		o.as, o.alpha, o.by = false, true, nil
	}
	if o.as && o.reverse && kind != store.KindSet {
		slices.Reverse(elements)
	}
	if !o.as && !orderBy(c, elements, &o) {
		return
	}
	elements = o.page(elements)
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

// sortElements copies the elements of the value at args[i], or sends the error for another kind and returns false. A missing key
// has none.
func sortElements(c *command.Ctx, i int) (elements []sortable, kind store.Kind, ok bool) {
	e, found := c.Find(i)
	if !found {
		return nil, store.KindNone, true
	}
	add := func(v []byte) { elements = append(elements, sortable{element: slices.Clone(v)}) }
	k := c.Key(i)
	switch kind = e.Kind(); kind {
	case store.KindList:
		l, _, _ := c.DB.List(k, c.Now)
		l.Walk(0, l.Len(), false, func(_ int, v []byte) bool { add(v); return true })
	case store.KindSet:
		s, _, _ := c.DB.Set(k, c.Now)
		s.Each(func(v []byte) bool { add(v); return true })
	case store.KindZSet:
		z, _, _ := c.DB.ZSet(k, c.Now)
		z.Range(0, z.Len()-1, false, func(v []byte, _ float64) bool { add(v); return true })
	default:
		c.Err(command.ErrWrongType)
		return nil, kind, false
	}
	return elements, kind, true
}

// orderBy puts the elements in order, or sends the error and returns false.
func orderBy(c *command.Ctx, elements []sortable, o *sorting) bool {
	numeric := true
	for i := range elements {
		el := &elements[i]
		v, there := el.element, true
		if o.by != nil {
			v, there = patternValue(c, o.by, el.element)
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
		c.Err(errSortNumber)
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
	return bytes.Compare(command.CutAtNUL(a.text), command.CutAtNUL(b.text))
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
