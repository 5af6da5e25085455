package server

import (
	"math"
	"slices"

	"headgate/internal/number"
	"headgate/server/config"
	"headgate/store"
)

var (
	sideArg   = oneOf("where", tok("LEFT"), tok("RIGHT"))
	fromTo    = []Arg{key("source"), key("destination"), oneOf("wherefrom", tok("LEFT"), tok("RIGHT")), oneOf("whereto", tok("LEFT"), tok("RIGHT"))}
	movedKeys = slices.Concat(keys("RW ACCESS DELETE", 1, 1, 1), keys("RW INSERT", 2, 2, 1))
)

// listCommands: lists, with the handlers of list_pop.go.
var listCommands = []*Command{
	{
		Name: "blmove", Group: GroupList, Since: "6.2.0", Complexity: "O(1)",
		Summary: "Do as LMOVE, but wait until the source has an element.",
		Arity:   6, Flags: Write | DenyOOM | NoScript | Blocking, Keys: movedKeys,
		Args: append(slices.Clone(fromTo), double("timeout")), Reply: ReplyBulk | ReplyNull, Handler: blmove,
	},
	{
		Name: "blmpop", Group: GroupList, Since: "7.0.0", Complexity: "O(k + n) in the numbers of keys and of elements removed",
		Summary: "Do as LMPOP, but wait until one of the lists has an element.",
		Arity:   -5, Flags: Write | Blocking, Keys: []KeySpec{{Access: "RW ACCESS DELETE", Begin: 2, KeyNum: true, Step: 1}},
		Args:  []Arg{double("timeout"), integer("numkeys"), key("key").multi(), sideArg, integer("count").after("COUNT").opt()},
		Reply: ReplyArray | ReplyNull, Handler: blmpop,
	},
	{
		Name: "blpop", Group: GroupList, Since: "2.0.0", Complexity: "O(n) in the number of keys",
		Summary: "Remove the first element of the first list that is there, and wait until there is one.",
		Arity:   -3, Flags: Write | NoScript | Blocking, Keys: keys("RW ACCESS DELETE", 1, -2, 1),
		Args: []Arg{key("key").multi(), double("timeout")}, Reply: ReplyArray | ReplyNull, Handler: blpop,
	},
	{
		Name: "brpop", Group: GroupList, Since: "2.0.0", Complexity: "O(n) in the number of keys",
		Summary: "Remove the last element of the first list that is there, and wait until there is one.",
		Arity:   -3, Flags: Write | NoScript | Blocking, Keys: keys("RW ACCESS DELETE", 1, -2, 1),
		Args: []Arg{key("key").multi(), double("timeout")}, Reply: ReplyArray | ReplyNull, Handler: brpop,
	},
	{
		Name: "brpoplpush", Group: GroupList, Since: "2.2.0", Complexity: "O(1)",
		Summary: "Do as RPOPLPUSH, but wait until the source has an element.",
		Arity:   4, Flags: Write | DenyOOM | NoScript | Blocking, Keys: movedKeys,
		Args: []Arg{key("source"), key("destination"), double("timeout")}, Reply: ReplyBulk | ReplyNull, Handler: brpopLPush,
	},
	{
		Name: "lindex", Group: GroupList, Since: "1.0.0", Complexity: "O(n) in the distance to the nearer end",
		Summary: "Return the element at a position, negative ones counted from the end.",
		Arity:   3, Flags: ReadOnly, Keys: keys("RO ACCESS", 1, 1, 1),
		Args: []Arg{key("key"), integer("index")}, Reply: ReplyBulk | ReplyNull, Handler: lindex,
	},
	{
		Name: "linsert", Group: GroupList, Since: "2.2.0", Complexity: "O(n) in the distance to the pivot",
		Summary: "Insert an element before or after the first one that equals the pivot.",
		Arity:   5, Flags: Write | DenyOOM, Keys: keys("RW INSERT", 1, 1, 1),
		Args:  []Arg{key("key"), oneOf("where", tok("BEFORE"), tok("AFTER")), str("pivot"), str("element")},
		Reply: ReplyInteger, Handler: linsert,
	},
	{
		Name: "llen", Group: GroupList, Since: "1.0.0", Complexity: "O(1)",
		Summary: "Count the elements of a list.",
		Arity:   2, Flags: ReadOnly | Fast, Keys: keys("RO", 1, 1, 1),
		Args: []Arg{key("key")}, Reply: ReplyInteger, Handler: llen,
	},
	{
		Name: "lmove", Group: GroupList, Since: "6.2.0", Complexity: "O(1)",
		Summary: "Take an element from an end of one list to an end of another, and return it.",
		Arity:   5, Flags: Write | DenyOOM, Keys: movedKeys,
		Args: fromTo, Reply: ReplyBulk | ReplyNull, Handler: lmove,
	},
	{
		Name: "lmpop", Group: GroupList, Since: "7.0.0", Complexity: "O(k + n) in the numbers of keys and of elements removed",
		Summary: "Remove elements from an end of the first list that is there, and return them with its key.",
		Arity:   -4, Flags: Write, Keys: []KeySpec{{Access: "RW ACCESS DELETE", Begin: 1, KeyNum: true, Step: 1}},
		Args:  []Arg{integer("numkeys"), key("key").multi(), sideArg, integer("count").after("COUNT").opt()},
		Reply: ReplyArray | ReplyNull, Handler: lmpop,
	},
	{
		Name: "lpop", Group: GroupList, Since: "1.0.0", Complexity: "O(n) in the number of elements removed",
		Summary: "Remove the first element of a list, or the first so many, and return them.",
		Arity:   -2, Flags: Write | Fast, Keys: keys("RW ACCESS DELETE", 1, 1, 1),
		Args: []Arg{key("key"), integer("count").opt()}, Reply: ReplyBulk | ReplyArray | ReplyNull, Handler: lpop,
	},
	{
		Name: "lpos", Group: GroupList, Since: "6.0.6", Complexity: "O(n) in the number of elements looked at",
		Summary: "Return the position of an element, of its k-th match, or of several.",
		Arity:   -3, Flags: ReadOnly, Keys: keys("RO ACCESS", 1, 1, 1),
		Args: []Arg{
			key("key"), str("element"), integer("rank").after("RANK").opt(), integer("num-matches").after("COUNT").opt(),
			integer("len").after("MAXLEN").opt(),
		},
		Reply: ReplyInteger | ReplyArray | ReplyNull, Handler: lpos,
	},
	{
		Name: "lpush", Group: GroupList, Since: "1.0.0", Complexity: "O(n) in the number of elements given",
		Summary: "Put elements before the first of a list, one after another, and return its length.",
		Arity:   -3, Flags: Write | DenyOOM | Fast, Keys: keys("RW INSERT", 1, 1, 1),
		Args: []Arg{key("key"), str("element").multi()}, Reply: ReplyInteger, Handler: lpush,
	},
	{
		Name: "lpushx", Group: GroupList, Since: "2.2.0", Complexity: "O(n) in the number of elements given",
		Summary: "Do as LPUSH, but only on a list that is there.",
		Arity:   -3, Flags: Write | DenyOOM | Fast, Keys: keys("RW INSERT", 1, 1, 1),
		Args: []Arg{key("key"), str("element").multi()}, Reply: ReplyInteger, Handler: lpushX,
	},
	{
		Name: "lrange", Group: GroupList, Since: "1.0.0", Complexity: "O(s + n) in the distance to the range and its length",
		Summary: "Return the elements between two positions, both included.",
		Arity:   4, Flags: ReadOnly, Keys: keys("RO ACCESS", 1, 1, 1),
		Args: []Arg{key("key"), integer("start"), integer("stop")}, Reply: ReplyArray, Handler: lrange,
	},
	{
		Name: "lrem", Group: GroupList, Since: "1.0.0", Complexity: "O(n) in the length of the list",
		Summary: "Remove elements that equal a value: the first so many, the last so many if negative, all if 0.",
		Arity:   4, Flags: Write, Keys: keys("RW DELETE", 1, 1, 1),
		Args: []Arg{key("key"), integer("count"), str("element")}, Reply: ReplyInteger, Handler: lrem,
	},
	{
		Name: "lset", Group: GroupList, Since: "1.0.0", Complexity: "O(n) in the distance to the nearer end",
		Summary: "Give the element at a position another value.",
		Arity:   4, Flags: Write | DenyOOM, Keys: keys("RW UPDATE", 1, 1, 1),
		Args: []Arg{key("key"), integer("index"), str("element")}, Reply: ReplySimple, Handler: lset,
	},
	{
		Name: "ltrim", Group: GroupList, Since: "1.0.0", Complexity: "O(n) in the number of elements removed",
		Summary: "Remove all elements but those between two positions.",
		Arity:   4, Flags: Write, Keys: keys("RW DELETE", 1, 1, 1),
		Args: []Arg{key("key"), integer("start"), integer("stop")}, Reply: ReplySimple, Handler: ltrim,
	},
	{
		Name: "rpop", Group: GroupList, Since: "1.0.0", Complexity: "O(n) in the number of elements removed",
		Summary: "Remove the last element of a list, or the last so many, and return them.",
		Arity:   -2, Flags: Write | Fast, Keys: keys("RW ACCESS DELETE", 1, 1, 1),
		Args: []Arg{key("key"), integer("count").opt()}, Reply: ReplyBulk | ReplyArray | ReplyNull, Handler: rpop,
	},
	{
		Name: "rpoplpush", Group: GroupList, Since: "1.2.0", Complexity: "O(1)",
		Summary: "Take the last element of one list to the front of another, and return it.",
		Arity:   3, Flags: Write | DenyOOM, Keys: movedKeys,
		Args: []Arg{key("source"), key("destination")}, Reply: ReplyBulk | ReplyNull, Handler: rpopLPush,
	},
	{
		Name: "rpush", Group: GroupList, Since: "1.0.0", Complexity: "O(n) in the number of elements given",
		Summary: "Put elements behind the last of a list, one after another, and return its length.",
		Arity:   -3, Flags: Write | DenyOOM | Fast, Keys: keys("RW INSERT", 1, 1, 1),
		Args: []Arg{key("key"), str("element").multi()}, Reply: ReplyInteger, Handler: rpush,
	},
	{
		Name: "rpushx", Group: GroupList, Since: "2.2.0", Complexity: "O(n) in the number of elements given",
		Summary: "Do as RPUSH, but only on a list that is there.",
		Arity:   -3, Flags: Write | DenyOOM | Fast, Keys: keys("RW INSERT", 1, 1, 1),
		Args: []Arg{key("key"), str("element").multi()}, Reply: ReplyInteger, Handler: rpushX,
	},
}

const (
	errRankZero = "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the " +
		"end of the list"
	errCountNegative  = "ERR COUNT can't be negative"
	errMaxLenNegative = "ERR MAXLEN can't be negative"
)

func lpush(c *Ctx)  { c.push(true, false) }
func rpush(c *Ctx)  { c.push(false, false) }
func lpushX(c *Ctx) { c.push(true, true) }
func rpushX(c *Ctx) { c.push(false, true) }

// push adds elements at an end of a list; present has it do nothing for a missing key.
func (c *Ctx) push(front, present bool) {
	l, found, ok := c.changeList(1)
	switch {
	case !ok:
	case present && !found:
		c.reply.Zero()
	default:
		for _, v := range c.args[2:] {
			l.Push(front, v)
		}
		c.notify(config.EventList, pushEvent(front), c.args[1])
		c.reply.Int(int64(l.Len()))
	}
}

// pushEvent names the event of elements added at an end.
func pushEvent(front bool) string {
	if front {
		return "lpush"
	}
	return "rpush"
}

// popEvent names the event of elements removed from an end.
func popEvent(front bool) string {
	if front {
		return "lpop"
	}
	return "rpop"
}

// notifyCut tells that elements were removed from the list at a key, and that it is gone if there are no more.
func (c *Ctx) notifyCut(l *store.List, event string, name []byte) {
	c.notify(config.EventList, event, name)
	c.notifyDeleted(l.Len() == 0, name)
}

func llen(c *Ctx) {
	if l, _, ok := c.readList(1); ok {
		c.reply.Int(int64(l.Len()))
	}
}

// listIndex parses args[i] as a position in a list of n elements, or sends the error and returns ok false. inside is false for one that
// the list has not.
func (c *Ctx) listIndex(i, n int) (index int, inside, ok bool) {
	at, ok := c.integer(i)
	if !ok {
		return 0, false, false
	}
	if at < 0 {
		at += int64(n)
	}
	return int(at), at >= 0 && at < int64(n), true
}

func lindex(c *Ctx) {
	l, found, ok := c.readList(1)
	if !ok {
		return
	}
	if !found {
		c.reply.Null()
		return
	}
	i, inside, ok := c.listIndex(2, l.Len())
	switch {
	case !ok:
	case !inside:
		c.reply.Null()
	default:
		c.reply.Bulk(l.At(i))
	}
}

func lset(c *Ctx) {
	l, found, ok := c.changeList(1)
	if !ok {
		return
	}
	if !found {
		c.err(errNoSuchKey)
		return
	}
	i, inside, ok := c.listIndex(2, l.Len())
	switch {
	case !ok:
	case !inside:
		c.err(errIndexRange)
	default:
		l.Set(i, c.args[3])
		c.notify(config.EventList, "lset", c.args[1])
		c.ok()
	}
}

// listRange parses args[2] and args[3] as the first and the last of a range of positions, or sends the error and returns false.
func (c *Ctx) listRange() (start, stop int64, ok bool) {
	if start, ok = c.integer(2); !ok {
		return 0, 0, false
	}
	stop, ok = c.integer(3)
	return start, stop, ok
}

// clampRange turns a range of positions, negative ones counted from the end, into the first one and a count within n elements.
func clampRange(start, stop int64, n int) (first, count int) {
	size := int64(n)
	if start < 0 {
		start = max(start+size, 0)
	}
	if stop < 0 {
		stop += size
	}
	stop = min(stop, size-1)
	if start > stop {
		return 0, 0
	}
	return int(start), int(stop - start + 1)
}

func lrange(c *Ctx) {
	start, stop, ok := c.listRange()
	if !ok {
		return
	}
	l, _, ok := c.readList(1)
	if !ok {
		return
	}
	first, count := clampRange(start, stop, l.Len())
	c.sendElements(&l, first, count, false)
}

// sendElements sends n elements of a list from element i on, upward or downward in reverse.
func (c *Ctx) sendElements(l *store.List, i, n int, reverse bool) {
	c.reply.Array(n)
	l.Walk(i, n, reverse, func(_ int, v []byte) bool {
		c.reply.Bulk(v)
		return true
	})
}

func ltrim(c *Ctx) {
	start, stop, ok := c.listRange()
	if !ok {
		return
	}
	l, found, ok := c.changeList(1)
	if !ok {
		return
	}
	if found {
		n := l.Len()
		first, count := clampRange(start, stop, n)
		l.Cut(first+count, n-first-count)
		if count > 0 {
			l.Cut(0, first)
		}
		c.notifyCut(&l, "ltrim", c.args[1])
	}
	c.ok()
}

func lrem(c *Ctx) {
	count, ok := c.integer(2)
	if !ok {
		return
	}
	l, _, ok := c.changeList(1)
	if !ok {
		return
	}
	limit := count
	if count < 0 {
		limit = -count // which the smallest stays: then all go
	}
	if limit <= 0 {
		limit = math.MaxInt64
	}
	removed := l.Remove(c.args[3], int(limit), count >= 0)
	if removed > 0 {
		c.notifyCut(&l, "lrem", c.args[1])
	}
	c.reply.Int(int64(removed))
}

func linsert(c *Ctx) {
	behind := 0
	switch {
	case c.is(2, "AFTER"):
		behind = 1
	case !c.is(2, "BEFORE"):
		c.err(errSyntax)
		return
	}
	l, found, ok := c.changeList(1)
	if !ok {
		return
	}
	if !found {
		c.reply.Zero()
		return
	}
	pivot := -1
	l.Walk(0, l.Len(), false, func(i int, v []byte) bool {
		if string(v) == string(c.args[3]) {
			pivot = i
		}
		return pivot < 0
	})
	if pivot < 0 {
		c.reply.Int(-1)
		return
	}
	l.Insert(pivot+behind, c.args[4])
	c.notify(config.EventList, "linsert", c.args[1])
	c.reply.Int(int64(l.Len()))
}

// lposOptions are what LPOS is told.
type lposOptions struct {
	rank    int64 // which match is the first that counts; negative: from the end
	count   int64 // of matches, 0 for all
	counted bool
	maxLen  int64 // elements to look at, 0 for all
}

// parseLposOptions parses LPOS's options, or sends the error and returns false.
func (c *Ctx) parseLposOptions() (o lposOptions, ok bool) {
	o.rank, o.count = 1, 1
	for i := 3; i < len(c.args); i += 2 {
		if i+1 == len(c.args) {
			c.err(errSyntax)
			return o, false
		}
		switch {
		case c.is(i, "RANK"):
			if o.rank, ok = c.integer(i + 1); !ok {
				return o, false
			}
			if o.rank == 0 {
				c.err(errRankZero)
				return o, false
			}
		case c.is(i, "COUNT"):
			o.counted = true
			if o.count, ok = c.integerOr(i+1, 0, errCountNegative); !ok {
				return o, false
			}
		case c.is(i, "MAXLEN"):
			if o.maxLen, ok = c.integerOr(i+1, 0, errMaxLenNegative); !ok {
				return o, false
			}
		default:
			c.err(errSyntax)
			return o, false
		}
	}
	if o.rank == math.MinInt64 { // which Redis cannot negate: nothing is left out then
		o.rank, o.count = -1, 0
	}
	return o, true
}

// integerOr parses args[i] as a whole number of at least least, or sends the given error for anything else and returns false.
func (c *Ctx) integerOr(i int, least int64, refusal string) (int64, bool) {
	n, ok := number.ParseInt(c.args[i])
	if !ok || n < least {
		c.err(refusal)
		return 0, false
	}
	return n, true
}

func lpos(c *Ctx) {
	o, ok := c.parseLposOptions()
	if !ok {
		return
	}
	l, found, ok := c.readList(1)
	if !ok {
		return
	}
	matches := []int{}
	if found {
		matches = o.matches(&l, c.args[2])
	}
	switch {
	case o.counted:
		c.reply.Array(len(matches))
		for _, i := range matches {
			c.reply.Int(int64(i))
		}
	case len(matches) == 0:
		c.reply.Null()
	default:
		c.reply.Int(int64(matches[0]))
	}
}

// matches finds the positions that LPOS asks for, in the order in which it looks.
func (o *lposOptions) matches(l *store.List, element []byte) []int {
	n, from, reverse, skip := l.Len(), 0, o.rank < 0, o.rank-1
	if reverse {
		from, skip = n-1, -(o.rank + 1)
	}
	if o.maxLen > 0 {
		n = int(min(int64(n), o.maxLen))
	}
	var found []int
	l.Walk(from, n, reverse, func(i int, v []byte) bool {
		switch {
		case string(v) != string(element):
		case skip > 0:
			skip--
		default:
			found = append(found, i)
		}
		return o.count == 0 || int64(len(found)) < o.count
	})
	return found
}
