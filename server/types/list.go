package types

import (
	"math"
	"slices"

	"headgate/server/command"
	"headgate/server/config"
	"headgate/store"
)

var (
	sideArg   = command.OneOf("where", command.Tok("LEFT"), command.Tok("RIGHT"))
	fromTo    = []command.Arg{command.Key("source"), command.Key("destination"), command.OneOf("wherefrom", command.Tok("LEFT"), command.Tok("RIGHT")), command.OneOf("whereto", command.Tok("LEFT"), command.Tok("RIGHT"))}
	movedKeys = slices.Concat(command.Keys("RW ACCESS DELETE", 1, 1, 1), command.Keys("RW INSERT", 2, 2, 1))
)

// listCommands: lists, with the handlers of list_pop.go.
var listCommands = []*command.Command{
	{
		Name: "blmove", Group: command.GroupList, Since: "6.2.0", Complexity: "O(1)",
		Summary: "Do as LMOVE, but wait until the source has an element.",
		Arity:   6, Flags: command.Write | command.DenyOOM | command.NoScript | command.Blocking, Keys: movedKeys,
		Args: append(slices.Clone(fromTo), command.Double("timeout")), Reply: command.ReplyBulk | command.ReplyNull, Handler: blmove,
	},
	{
		Name: "blmpop", Group: command.GroupList, Since: "7.0.0", Complexity: "O(k + n) in the numbers of keys and of elements removed",
		Summary: "Do as LMPOP, but wait until one of the lists has an element.",
		Arity:   -5, Flags: command.Write | command.Blocking, Keys: []command.KeySpec{{Access: "RW ACCESS DELETE", Begin: 2, KeyNum: true, Step: 1}},
		Args:  []command.Arg{command.Double("timeout"), command.Integer("numkeys"), command.Key("key").Multi(), sideArg, command.Integer("count").After("COUNT").Opt()},
		Reply: command.ReplyArray | command.ReplyNull, Handler: blmpop,
	},
	{
		Name: "blpop", Group: command.GroupList, Since: "2.0.0", Complexity: "O(n) in the number of keys",
		Summary: "Remove the first element of the first list that is there, and wait until there is one.",
		Arity:   -3, Flags: command.Write | command.NoScript | command.Blocking, Keys: command.Keys("RW ACCESS DELETE", 1, -2, 1),
		Args: []command.Arg{command.Key("key").Multi(), command.Double("timeout")}, Reply: command.ReplyArray | command.ReplyNull, Handler: blpop,
	},
	{
		Name: "brpop", Group: command.GroupList, Since: "2.0.0", Complexity: "O(n) in the number of keys",
		Summary: "Remove the last element of the first list that is there, and wait until there is one.",
		Arity:   -3, Flags: command.Write | command.NoScript | command.Blocking, Keys: command.Keys("RW ACCESS DELETE", 1, -2, 1),
		Args: []command.Arg{command.Key("key").Multi(), command.Double("timeout")}, Reply: command.ReplyArray | command.ReplyNull, Handler: brpop,
	},
	{
		Name: "brpoplpush", Group: command.GroupList, Since: "2.2.0", Complexity: "O(1)",
		Summary: "Do as RPOPLPUSH, but wait until the source has an element.",
		Arity:   4, Flags: command.Write | command.DenyOOM | command.NoScript | command.Blocking, Keys: movedKeys,
		Args: []command.Arg{command.Key("source"), command.Key("destination"), command.Double("timeout")}, Reply: command.ReplyBulk | command.ReplyNull, Handler: brpopLPush,
	},
	{
		Name: "lindex", Group: command.GroupList, Since: "1.0.0", Complexity: "O(n) in the distance to the nearer end",
		Summary: "Return the element at a position, negative ones counted from the end.",
		Arity:   3, Flags: command.ReadOnly, Keys: command.Keys("RO ACCESS", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Integer("index")}, Reply: command.ReplyBulk | command.ReplyNull, Handler: lindex,
	},
	{
		Name: "linsert", Group: command.GroupList, Since: "2.2.0", Complexity: "O(n) in the distance to the pivot",
		Summary: "Insert an element before or after the first one that equals the pivot.",
		Arity:   5, Flags: command.Write | command.DenyOOM, Keys: command.Keys("RW INSERT", 1, 1, 1),
		Args:  []command.Arg{command.Key("key"), command.OneOf("where", command.Tok("BEFORE"), command.Tok("AFTER")), command.Str("pivot"), command.Str("element")},
		Reply: command.ReplyInteger, Handler: linsert,
	},
	{
		Name: "llen", Group: command.GroupList, Since: "1.0.0", Complexity: "O(1)",
		Summary: "Count the elements of a list.",
		Arity:   2, Flags: command.ReadOnly | command.Fast, Keys: command.Keys("RO", 1, 1, 1),
		Args: []command.Arg{command.Key("key")}, Reply: command.ReplyInteger, Handler: llen,
	},
	{
		Name: "lmove", Group: command.GroupList, Since: "6.2.0", Complexity: "O(1)",
		Summary: "Move an element from an end of one list to an end of another, and return it.",
		Arity:   5, Flags: command.Write | command.DenyOOM, Keys: movedKeys,
		Args: fromTo, Reply: command.ReplyBulk | command.ReplyNull, Handler: lmove,
	},
	{
		Name: "lmpop", Group: command.GroupList, Since: "7.0.0", Complexity: "O(k + n) in the numbers of keys and of elements removed",
		Summary: "Remove elements from an end of the first non-empty list, and return them with its key.",
		Arity:   -4, Flags: command.Write, Keys: []command.KeySpec{{Access: "RW ACCESS DELETE", Begin: 1, KeyNum: true, Step: 1}},
		Args:  []command.Arg{command.Integer("numkeys"), command.Key("key").Multi(), sideArg, command.Integer("count").After("COUNT").Opt()},
		Reply: command.ReplyArray | command.ReplyNull, Handler: lmpop,
	},
	{
		Name: "lpop", Group: command.GroupList, Since: "1.0.0", Complexity: "O(n) in the number of elements removed",
		Summary: "Remove the first element of a list, or the first so many, and return them.",
		Arity:   -2, Flags: command.Write | command.Fast, Keys: command.Keys("RW ACCESS DELETE", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Integer("count").Opt()}, Reply: command.ReplyBulk | command.ReplyArray | command.ReplyNull, Handler: lpop,
	},
	{
		Name: "lpos", Group: command.GroupList, Since: "6.0.6", Complexity: "O(n) in the number of elements looked at",
		Summary: "Return the position of an element, of its k-th match, or of several.",
		Arity:   -3, Flags: command.ReadOnly, Keys: command.Keys("RO ACCESS", 1, 1, 1),
		Args: []command.Arg{
			command.Key("key"), command.Str("element"), command.Integer("rank").After("RANK").Opt(), command.Integer("num-matches").After("COUNT").Opt(),
			command.Integer("len").After("MAXLEN").Opt(),
		},
		Reply: command.ReplyInteger | command.ReplyArray | command.ReplyNull, Handler: lpos,
	},
	{
		Name: "lpush", Group: command.GroupList, Since: "1.0.0", Complexity: "O(n) in the number of elements given",
		Summary: "Insert elements at the head of a list, one after another, and return its length.",
		Arity:   -3, Flags: command.Write | command.DenyOOM | command.Fast, Keys: command.Keys("RW INSERT", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Str("element").Multi()}, Reply: command.ReplyInteger, Handler: lpush,
	},
	{
		Name: "lpushx", Group: command.GroupList, Since: "2.2.0", Complexity: "O(n) in the number of elements given",
		Summary: "Do as LPUSH, but only on a list that is there.",
		Arity:   -3, Flags: command.Write | command.DenyOOM | command.Fast, Keys: command.Keys("RW INSERT", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Str("element").Multi()}, Reply: command.ReplyInteger, Handler: lpushX,
	},
	{
		Name: "lrange", Group: command.GroupList, Since: "1.0.0", Complexity: "O(s + n) in the distance to the range and its length",
		Summary: "Return the elements between two positions, both included.",
		Arity:   4, Flags: command.ReadOnly, Keys: command.Keys("RO ACCESS", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Integer("start"), command.Integer("stop")}, Reply: command.ReplyArray, Handler: lrange,
	},
	{
		Name: "lrem", Group: command.GroupList, Since: "1.0.0", Complexity: "O(n) in the length of the list",
		Summary: "Remove elements that equal a value: the first so many, the last so many if negative, all if 0.",
		Arity:   4, Flags: command.Write, Keys: command.Keys("RW DELETE", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Integer("count"), command.Str("element")}, Reply: command.ReplyInteger, Handler: lrem,
	},
	{
		Name: "lset", Group: command.GroupList, Since: "1.0.0", Complexity: "O(n) in the distance to the nearer end",
		Summary: "Set the element at a position.",
		Arity:   4, Flags: command.Write | command.DenyOOM, Keys: command.Keys("RW UPDATE", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Integer("index"), command.Str("element")}, Reply: command.ReplySimple, Handler: lset,
	},
	{
		Name: "ltrim", Group: command.GroupList, Since: "1.0.0", Complexity: "O(n) in the number of elements removed",
		Summary: "Remove all elements but those between two positions.",
		Arity:   4, Flags: command.Write, Keys: command.Keys("RW DELETE", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Integer("start"), command.Integer("stop")}, Reply: command.ReplySimple, Handler: ltrim,
	},
	{
		Name: "rpop", Group: command.GroupList, Since: "1.0.0", Complexity: "O(n) in the number of elements removed",
		Summary: "Remove the last element of a list, or the last so many, and return them.",
		Arity:   -2, Flags: command.Write | command.Fast, Keys: command.Keys("RW ACCESS DELETE", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Integer("count").Opt()}, Reply: command.ReplyBulk | command.ReplyArray | command.ReplyNull, Handler: rpop,
	},
	{
		Name: "rpoplpush", Group: command.GroupList, Since: "1.2.0", Complexity: "O(1)",
		Summary: "Move the last element of one list to the head of another, and return it.",
		Arity:   3, Flags: command.Write | command.DenyOOM, Keys: movedKeys,
		Args: []command.Arg{command.Key("source"), command.Key("destination")}, Reply: command.ReplyBulk | command.ReplyNull, Handler: rpopLPush,
	},
	{
		Name: "rpush", Group: command.GroupList, Since: "1.0.0", Complexity: "O(n) in the number of elements given",
		Summary: "Append elements to the tail of a list, one after another, and return its length.",
		Arity:   -3, Flags: command.Write | command.DenyOOM | command.Fast, Keys: command.Keys("RW INSERT", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Str("element").Multi()}, Reply: command.ReplyInteger, Handler: rpush,
	},
	{
		Name: "rpushx", Group: command.GroupList, Since: "2.2.0", Complexity: "O(n) in the number of elements given",
		Summary: "Do as RPUSH, but only on a list that is there.",
		Arity:   -3, Flags: command.Write | command.DenyOOM | command.Fast, Keys: command.Keys("RW INSERT", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Str("element").Multi()}, Reply: command.ReplyInteger, Handler: rpushX,
	},
}

const (
	errRankZero = "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the " +
		"end of the list"
	errCountNegative  = "ERR COUNT can't be negative"
	errMaxLenNegative = "ERR MAXLEN can't be negative"
)

func lpush(c *command.Ctx)  { push(c, true, false) }
func rpush(c *command.Ctx)  { push(c, false, false) }
func lpushX(c *command.Ctx) { push(c, true, true) }
func rpushX(c *command.Ctx) { push(c, false, true) }

// push adds elements at an end of a list; present has it do nothing for a missing key.
func push(c *command.Ctx, front, present bool) {
	l, found, ok := c.ChangeList(1)
	switch {
	case !ok:
	case present && !found:
		c.Reply.Zero()
	default:
		for _, v := range c.Args[2:] {
			l.Push(front, v)
		}
		c.Notify(config.EventList, pushEvent(front), c.Args[1])
		c.Reply.Int(int64(l.Len()))
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
func notifyCut(c *command.Ctx, l *store.List, event string, name []byte) {
	c.Notify(config.EventList, event, name)
	c.NotifyDeleted(l.Len() == 0, name)
}

func llen(c *command.Ctx) {
	if l, _, ok := c.ReadList(1); ok {
		c.Reply.Int(int64(l.Len()))
	}
}

// listIndex parses args[i] as a position in a list of n elements, or sends the error and returns ok false. inside is false for one that
// the list has not.
func listIndex(c *command.Ctx, i, n int) (index int, inside, ok bool) {
	at, ok := c.Integer(i)
	if !ok {
		return 0, false, false
	}
	if at < 0 {
		at += int64(n)
	}
	return int(at), at >= 0 && at < int64(n), true
}

func lindex(c *command.Ctx) {
	l, found, ok := c.ReadList(1)
	if !ok {
		return
	}
	if !found {
		c.Reply.Null()
		return
	}
	i, inside, ok := listIndex(c, 2, l.Len())
	switch {
	case !ok:
	case !inside:
		c.Reply.Null()
	default:
		c.Reply.Bulk(l.At(i))
	}
}

func lset(c *command.Ctx) {
	l, found, ok := c.ChangeList(1)
	if !ok {
		return
	}
	if !found {
		c.Err(command.ErrNoSuchKey)
		return
	}
	i, inside, ok := listIndex(c, 2, l.Len())
	switch {
	case !ok:
	case !inside:
		c.Err(command.ErrIndexRange)
	default:
		l.Set(i, c.Args[3])
		c.Notify(config.EventList, "lset", c.Args[1])
		c.OK()
	}
}

// listRange parses args[2] and args[3] as the first and the last of a range of positions, or sends the error and returns false.
func listRange(c *command.Ctx) (start, stop int64, ok bool) {
	if start, ok = c.Integer(2); !ok {
		return 0, 0, false
	}
	stop, ok = c.Integer(3)
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

func lrange(c *command.Ctx) {
	start, stop, ok := listRange(c)
	if !ok {
		return
	}
	l, _, ok := c.ReadList(1)
	if !ok {
		return
	}
	first, count := clampRange(start, stop, l.Len())
	sendElements(c, &l, first, count, false)
}

// sendElements sends n elements of a list from element i on, upward or downward in reverse.
func sendElements(c *command.Ctx, l *store.List, i, n int, reverse bool) {
	c.Reply.Array(n)
	l.Walk(i, n, reverse, func(_ int, v []byte) bool {
		c.Reply.Bulk(v)
		return true
	})
}

func ltrim(c *command.Ctx) {
	start, stop, ok := listRange(c)
	if !ok {
		return
	}
	l, found, ok := c.ChangeList(1)
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
		notifyCut(c, &l, "ltrim", c.Args[1])
	}
	c.OK()
}

func lrem(c *command.Ctx) {
	count, ok := c.Integer(2)
	if !ok {
		return
	}
	l, _, ok := c.ChangeList(1)
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
	removed := l.Remove(c.Args[3], int(limit), count >= 0)
	if removed > 0 {
		notifyCut(c, &l, "lrem", c.Args[1])
	}
	c.Reply.Int(int64(removed))
}

func linsert(c *command.Ctx) {
	behind := 0
	switch {
	case c.Is(2, "AFTER"):
		behind = 1
	case !c.Is(2, "BEFORE"):
		c.Err(command.ErrSyntax)
		return
	}
	l, found, ok := c.ChangeList(1)
	if !ok {
		return
	}
	if !found {
		c.Reply.Zero()
		return
	}
	pivot := -1
	l.Walk(0, l.Len(), false, func(i int, v []byte) bool {
		if string(v) == string(c.Args[3]) {
			pivot = i
		}
		return pivot < 0
	})
	if pivot < 0 {
		c.Reply.Int(-1)
		return
	}
	l.Insert(pivot+behind, c.Args[4])
	c.Notify(config.EventList, "linsert", c.Args[1])
	c.Reply.Int(int64(l.Len()))
}

// lposOptions are what LPOS is told.
type lposOptions struct {
	rank    int64 // which match is the first that counts; negative: from the end
	count   int64 // of matches, 0 for all
	counted bool
	maxLen  int64 // elements to look at, 0 for all
}

// parseLposOptions parses LPOS's options, or sends the error and returns false.
func parseLposOptions(c *command.Ctx) (o lposOptions, ok bool) {
	o.rank, o.count = 1, 1
	for i := 3; i < len(c.Args); i += 2 {
		if i+1 == len(c.Args) {
			c.Err(command.ErrSyntax)
			return o, false
		}
		switch {
		case c.Is(i, "RANK"):
			if o.rank, ok = c.Integer(i + 1); !ok {
				return o, false
			}
			if o.rank == 0 {
				c.Err(errRankZero)
				return o, false
			}
		case c.Is(i, "COUNT"):
			o.counted = true
			if o.count, ok = integerOr(c, i+1, 0, errCountNegative); !ok {
				return o, false
			}
		case c.Is(i, "MAXLEN"):
			if o.maxLen, ok = integerOr(c, i+1, 0, errMaxLenNegative); !ok {
				return o, false
			}
		default:
			c.Err(command.ErrSyntax)
			return o, false
		}
	}
	if o.rank == math.MinInt64 { // which Redis cannot negate: nothing is left out then
		o.rank, o.count = -1, 0
	}
	return o, true
}

func lpos(c *command.Ctx) {
	o, ok := parseLposOptions(c)
	if !ok {
		return
	}
	l, found, ok := c.ReadList(1)
	if !ok {
		return
	}
	matches := []int{}
	if found {
		matches = o.matches(&l, c.Args[2])
	}
	switch {
	case o.counted:
		c.Reply.Array(len(matches))
		for _, i := range matches {
			c.Reply.Int(int64(i))
		}
	case len(matches) == 0:
		c.Reply.Null()
	default:
		c.Reply.Int(int64(matches[0]))
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
