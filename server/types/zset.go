package types

import (
	"math"
	"slices"

	"headgate/internal/number"
	"headgate/server/command"
	"headgate/server/config"
	"headgate/server/resp"
	"headgate/store"
)

// zsetCommands: sorted sets.
var zsetCommands = []*command.Command{
	{
		Name: "bzmpop", Group: command.GroupSortedSet, Since: "7.0.0", Complexity: "O(k + m log n) for k keys and m members removed of n",
		Summary: "Remove members from one end of the first sorted set that has any, return its key and them, and wait for some if need be.",
		Arity:   -5, Flags: command.Write | command.Blocking, Keys: command.CountedKeys("RW ACCESS DELETE", 2),
		Args: []command.Arg{
			command.Double("timeout"), command.Integer("numkeys"), command.Key("key").Multi(), command.OneOf("where", command.Tok("MIN"), command.Tok("MAX")), command.Integer("count").After("COUNT").Opt(),
		},
		Reply: command.ReplyArray | command.ReplyNull, Handler: bzmpop,
	},
	{
		Name: "bzpopmax", Group: command.GroupSortedSet, Since: "5.0.0", Complexity: "O(k + log n) for k keys and a set of n members",
		Summary: "Remove the member with the highest score from the first sorted set that has any, and wait for one if need be.",
		Arity:   -3, Flags: command.Write | command.Fast | command.Blocking | command.NoScript, Keys: command.Keys("RW ACCESS DELETE", 1, -2, 1),
		Args: []command.Arg{command.Key("key").Multi(), command.Double("timeout")}, Reply: command.ReplyArray | command.ReplyNull, Handler: bzpopMax,
	},
	{
		Name: "bzpopmin", Group: command.GroupSortedSet, Since: "5.0.0", Complexity: "O(k + log n) for k keys and a set of n members",
		Summary: "Remove the member with the lowest score from the first sorted set that has any, and wait for one if need be.",
		Arity:   -3, Flags: command.Write | command.Fast | command.Blocking | command.NoScript, Keys: command.Keys("RW ACCESS DELETE", 1, -2, 1),
		Args: []command.Arg{command.Key("key").Multi(), command.Double("timeout")}, Reply: command.ReplyArray | command.ReplyNull, Handler: bzpopMin,
	},
	{
		Name: "zadd", Group: command.GroupSortedSet, Since: "1.2.0", Complexity: "O(log n) per member named",
		Summary: "Add members to a sorted set, or update their scores, with optional conditions.",
		Arity:   -4, Flags: command.Write | command.DenyOOM | command.Fast, Keys: command.Keys("RW UPDATE", 1, 1, 1),
		Args: []command.Arg{
			command.Key("key"), command.OneOf("condition", command.Tok("NX"), command.Tok("XX")).Opt(), command.OneOf("comparison", command.Tok("GT"), command.Tok("LT")).Opt(),
			command.Tok("CH").Opt(), command.Tok("INCR").Opt(), command.Block("score_member", command.Double("score"), command.Str("member")).Multi(),
		},
		Reply: command.ReplyInteger | command.ReplyDouble | command.ReplyNull, Handler: zadd,
	},
	{
		Name: "zcard", Group: command.GroupSortedSet, Since: "1.2.0", Complexity: "O(1)",
		Summary: "Count the members of a sorted set.",
		Arity:   2, Flags: command.ReadOnly | command.Fast, Keys: command.Keys("RO", 1, 1, 1),
		Args: []command.Arg{command.Key("key")}, Reply: command.ReplyInteger, Handler: zcard,
	},
	{
		Name: "zcount", Group: command.GroupSortedSet, Since: "2.0.0", Complexity: "O(log n)",
		Summary: "Count the members whose scores lie in a range.",
		Arity:   4, Flags: command.ReadOnly | command.Fast, Keys: command.Keys("RO ACCESS", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Double("min"), command.Double("max")}, Reply: command.ReplyInteger, Handler: zcount,
	},
	{
		Name: "zdiff", Group: command.GroupSortedSet, Since: "6.2.0", Complexity: "O(l + (n - k) log n) for l members in all sets, n in the first and k in the result",
		Summary: "Return the difference of sorted sets.",
		Arity:   -3, Flags: command.ReadOnly, Keys: command.CountedKeys("RO ACCESS", 1),
		Args:  []command.Arg{command.Integer("numkeys"), command.Key("key").Multi(), command.Tok("WITHSCORES").Opt()},
		Reply: command.ReplyArray, Handler: combine(difference),
	},
	{
		Name: "zdiffstore", Group: command.GroupSortedSet, Since: "6.2.0", Complexity: "O(l + (n - k) log n) for l members in all sets, n in the first and k in the result",
		Summary: "Store the difference of sorted sets at a key, and return the number of its members.",
		Arity:   -4, Flags: command.Write | command.DenyOOM, Keys: slices.Concat(command.Keys("OW UPDATE", 1, 1, 1), command.CountedKeys("RO ACCESS", 2)),
		Args:  []command.Arg{command.Key("destination"), command.Integer("numkeys"), command.Key("key").Multi()},
		Reply: command.ReplyInteger, Handler: combineStore(difference),
	},
	{
		Name: "zincrby", Group: command.GroupSortedSet, Since: "1.2.0", Complexity: "O(log n)",
		Summary: "Add to a member's score and return the sum; a missing member counts as 0.",
		Arity:   4, Flags: command.Write | command.DenyOOM | command.Fast, Keys: command.Keys("RW ACCESS UPDATE", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Double("increment"), command.Str("member")}, Reply: command.ReplyDouble, Handler: zincrBy,
	},
	{
		Name: "zinter", Group: command.GroupSortedSet, Since: "6.2.0", Complexity: "O(n k + m log m) for n members in the smallest of k sets and m in the result",
		Summary: "Return the intersection of sorted sets.",
		Arity:   -3, Flags: command.ReadOnly, Keys: command.CountedKeys("RO ACCESS", 1),
		Args:  []command.Arg{command.Integer("numkeys"), command.Key("key").Multi(), weightsArg, aggregateArg, command.Tok("WITHSCORES").Opt()},
		Reply: command.ReplyArray, Handler: combine(intersection),
	},
	{
		Name: "zintercard", Group: command.GroupSortedSet, Since: "7.0.0", Complexity: "O(n k) for n members in the smallest of k sets",
		Summary: "Count the members of the intersection of sorted sets, up to an optional limit.",
		Arity:   -3, Flags: command.ReadOnly, Keys: command.CountedKeys("RO ACCESS", 1),
		Args:  []command.Arg{command.Integer("numkeys"), command.Key("key").Multi(), command.Integer("limit").After("LIMIT").Opt()},
		Reply: command.ReplyInteger, Handler: zinterCard,
	},
	{
		Name: "zinterstore", Group: command.GroupSortedSet, Since: "2.0.0", Complexity: "O(n k + m log m) for n members in the smallest of k sets and m in the result",
		Summary: "Store the intersection of sorted sets at a key, and return the number of its members.",
		Arity:   -4, Flags: command.Write | command.DenyOOM, Keys: slices.Concat(command.Keys("OW UPDATE", 1, 1, 1), command.CountedKeys("RO ACCESS", 2)),
		Args:  []command.Arg{command.Key("destination"), command.Integer("numkeys"), command.Key("key").Multi(), weightsArg, aggregateArg},
		Reply: command.ReplyInteger, Handler: combineStore(intersection),
	},
	{
		Name: "zlexcount", Group: command.GroupSortedSet, Since: "2.8.9", Complexity: "O(log n)",
		Summary: "Count the members in a lexicographical range, where all scores are the same.",
		Arity:   4, Flags: command.ReadOnly | command.Fast, Keys: command.Keys("RO ACCESS", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Str("min"), command.Str("max")}, Reply: command.ReplyInteger, Handler: zlexCount,
	},
	{
		Name: "zmpop", Group: command.GroupSortedSet, Since: "7.0.0", Complexity: "O(k + m log n) for k keys and m members removed of n",
		Summary: "Remove members from the lower or the higher end of the first sorted set that has any, and return its key and them.",
		Arity:   -4, Flags: command.Write, Keys: command.CountedKeys("RW ACCESS DELETE", 1),
		Args:  []command.Arg{command.Integer("numkeys"), command.Key("key").Multi(), command.OneOf("where", command.Tok("MIN"), command.Tok("MAX")), command.Integer("count").After("COUNT").Opt()},
		Reply: command.ReplyArray | command.ReplyNull, Handler: zmpop,
	},
	{
		Name: "zmscore", Group: command.GroupSortedSet, Since: "6.2.0", Complexity: "O(1) per member named",
		Summary: "Return the scores of several members, null for each that does not exist.",
		Arity:   -3, Flags: command.ReadOnly | command.Fast, Keys: command.Keys("RO ACCESS", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Str("member").Multi()}, Reply: command.ReplyArray, Handler: zmscore,
	},
	{
		Name: "zpopmax", Group: command.GroupSortedSet, Since: "5.0.0", Complexity: "O(m log n) for m members of n",
		Summary: "Remove the members with the highest scores and return them.",
		Arity:   -2, Flags: command.Write | command.Fast, Keys: command.Keys("RW ACCESS DELETE", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Integer("count").Opt()}, Reply: command.ReplyArray, Handler: zpopMax,
	},
	{
		Name: "zpopmin", Group: command.GroupSortedSet, Since: "5.0.0", Complexity: "O(m log n) for m members of n",
		Summary: "Remove the members with the lowest scores and return them.",
		Arity:   -2, Flags: command.Write | command.Fast, Keys: command.Keys("RW ACCESS DELETE", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Integer("count").Opt()}, Reply: command.ReplyArray, Handler: zpopMin,
	},
	{
		Name: "zrandmember", Group: command.GroupSortedSet, Since: "6.2.0", Complexity: "O(m log n) for m members returned of n",
		Summary: "Return members drawn at random: different ones, or with repeats for a negative count.",
		Arity:   -2, Flags: command.ReadOnly, Keys: command.Keys("RO ACCESS", 1, 1, 1),
		Tips:  command.TipVaries,
		Args:  []command.Arg{command.Key("key"), command.Block("options", command.Integer("count"), command.Tok("WITHSCORES").Opt()).Opt()},
		Reply: command.ReplyBulk | command.ReplyArray | command.ReplyNull, Handler: zrandMember,
	},
	{
		Name: "zrange", Group: command.GroupSortedSet, Since: "1.2.0", Complexity: "O(log n + m) for m members returned of n",
		Summary: "Return a range of members by rank, by score or lexicographically, in either direction.",
		Arity:   -4, Flags: command.ReadOnly, Keys: command.Keys("RO ACCESS", 1, 1, 1),
		Args: []command.Arg{
			command.Key("key"), command.Str("start"), command.Str("stop"), command.OneOf("sortby", command.Tok("BYSCORE"), command.Tok("BYLEX")).Opt(), command.Tok("REV").Opt(),
			limitArg, command.Tok("WITHSCORES").Opt(),
		},
		Reply: command.ReplyArray, Handler: zrangeBy(zrangeForm{first: 1}),
	},
	{
		Name: "zrangebylex", Group: command.GroupSortedSet, Since: "2.8.9", Complexity: "O(log n + m) for m members returned of n",
		Summary: "Return the members in a lexicographical range, where all scores are the same.",
		Arity:   -4, Flags: command.ReadOnly, Keys: command.Keys("RO ACCESS", 1, 1, 1),
		Args:  []command.Arg{command.Key("key"), command.Str("min"), command.Str("max"), limitArg},
		Reply: command.ReplyArray, Handler: zrangeBy(zrangeForm{first: 1, by: byLex, byFixed: true, oneWay: true}),
	},
	{
		Name: "zrangebyscore", Group: command.GroupSortedSet, Since: "1.0.5", Complexity: "O(log n + m) for m members returned of n",
		Summary: "Return the members whose scores lie in a range.",
		Arity:   -4, Flags: command.ReadOnly, Keys: command.Keys("RO ACCESS", 1, 1, 1),
		Args:  []command.Arg{command.Key("key"), command.Double("min"), command.Double("max"), command.Tok("WITHSCORES").Opt(), limitArg},
		Reply: command.ReplyArray, Handler: zrangeBy(zrangeForm{first: 1, by: byScore, byFixed: true, oneWay: true}),
	},
	{
		Name: "zrangestore", Group: command.GroupSortedSet, Since: "6.2.0", Complexity: "O(log n + m log m) for m members stored of n",
		Summary: "Store a range of members at another key, replacing its value, and return their number.",
		Arity:   -5, Flags: command.Write | command.DenyOOM, Keys: slices.Concat(command.Keys("OW UPDATE", 1, 1, 1), command.Keys("RO ACCESS", 2, 2, 1)),
		Args: []command.Arg{
			command.Key("dst"), command.Key("src"), command.Str("min"), command.Str("max"), command.OneOf("sortby", command.Tok("BYSCORE"), command.Tok("BYLEX")).Opt(), command.Tok("REV").Opt(),
			limitArg,
		},
		Reply: command.ReplyInteger, Handler: zrangeStore,
	},
	{
		Name: "zrank", Group: command.GroupSortedSet, Since: "2.0.0", Complexity: "O(log n)",
		Summary: "Return a member's rank, counted from 0 at the lowest score, and its score if asked to.",
		Arity:   -3, Flags: command.ReadOnly | command.Fast, Keys: command.Keys("RO ACCESS", 1, 1, 1),
		Args:  []command.Arg{command.Key("key"), command.Str("member"), command.Tok("WITHSCORE").Opt()},
		Reply: command.ReplyInteger | command.ReplyArray | command.ReplyNull, Handler: zrank,
	},
	{
		Name: "zrem", Group: command.GroupSortedSet, Since: "1.2.0", Complexity: "O(log n) per member named",
		Summary: "Remove members and return how many there were; a sorted set without members is gone.",
		Arity:   -3, Flags: command.Write | command.Fast, Keys: command.Keys("RW DELETE", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Str("member").Multi()}, Reply: command.ReplyInteger, Handler: zrem,
	},
	{
		Name: "zremrangebylex", Group: command.GroupSortedSet, Since: "2.8.9", Complexity: "O(log n + m) for m members removed of n",
		Summary: "Remove the members in a lexicographical range, where all scores are the same.",
		Arity:   4, Flags: command.Write, Keys: command.Keys("RW DELETE", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Str("min"), command.Str("max")}, Reply: command.ReplyInteger, Handler: zremRangeByLex,
	},
	{
		Name: "zremrangebyrank", Group: command.GroupSortedSet, Since: "2.0.0", Complexity: "O(log n + m) for m members removed of n",
		Summary: "Remove the members whose ranks lie in a range.",
		Arity:   4, Flags: command.Write, Keys: command.Keys("RW DELETE", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Integer("start"), command.Integer("stop")}, Reply: command.ReplyInteger, Handler: zremRangeByRank,
	},
	{
		Name: "zremrangebyscore", Group: command.GroupSortedSet, Since: "1.2.0", Complexity: "O(log n + m) for m members removed of n",
		Summary: "Remove the members whose scores lie in a range.",
		Arity:   4, Flags: command.Write, Keys: command.Keys("RW DELETE", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Double("min"), command.Double("max")}, Reply: command.ReplyInteger, Handler: zremRangeByScore,
	},
	{
		Name: "zrevrange", Group: command.GroupSortedSet, Since: "1.2.0", Complexity: "O(log n + m) for m members returned of n",
		Summary: "Return the members whose ranks lie in a range, counted from the highest score down.",
		Arity:   -4, Flags: command.ReadOnly, Keys: command.Keys("RO ACCESS", 1, 1, 1),
		Args:  []command.Arg{command.Key("key"), command.Integer("start"), command.Integer("stop"), command.Tok("WITHSCORES").Opt()},
		Reply: command.ReplyArray, Handler: zrangeBy(zrangeForm{first: 1, by: byRank, byFixed: true, reverse: true, oneWay: true}),
	},
	{
		Name: "zrevrangebylex", Group: command.GroupSortedSet, Since: "2.8.9", Complexity: "O(log n + m) for m members returned of n",
		Summary: "Return the members in a lexicographical range, in reverse order, where all scores are the same.",
		Arity:   -4, Flags: command.ReadOnly, Keys: command.Keys("RO ACCESS", 1, 1, 1),
		Args:  []command.Arg{command.Key("key"), command.Str("max"), command.Str("min"), limitArg},
		Reply: command.ReplyArray, Handler: zrangeBy(zrangeForm{first: 1, by: byLex, byFixed: true, reverse: true, oneWay: true}),
	},
	{
		Name: "zrevrangebyscore", Group: command.GroupSortedSet, Since: "2.2.0", Complexity: "O(log n + m) for m members returned of n",
		Summary: "Return the members whose scores lie in a range, from the highest score down.",
		Arity:   -4, Flags: command.ReadOnly, Keys: command.Keys("RO ACCESS", 1, 1, 1),
		Args:  []command.Arg{command.Key("key"), command.Double("max"), command.Double("min"), command.Tok("WITHSCORES").Opt(), limitArg},
		Reply: command.ReplyArray, Handler: zrangeBy(zrangeForm{first: 1, by: byScore, byFixed: true, reverse: true, oneWay: true}),
	},
	{
		Name: "zrevrank", Group: command.GroupSortedSet, Since: "2.0.0", Complexity: "O(log n)",
		Summary: "Return a member's rank, counted from 0 at the highest score, and its score if asked to.",
		Arity:   -3, Flags: command.ReadOnly | command.Fast, Keys: command.Keys("RO ACCESS", 1, 1, 1),
		Args:  []command.Arg{command.Key("key"), command.Str("member"), command.Tok("WITHSCORE").Opt()},
		Reply: command.ReplyInteger | command.ReplyArray | command.ReplyNull, Handler: zrevRank,
	},
	{
		Name: "zscan", Group: command.GroupSortedSet, Since: "2.8.0", Complexity: "O(1) per call, O(n) in the number of members for a full iteration",
		Summary: "Iterate over the members of a sorted set and their scores.",
		Arity:   -3, Flags: command.ReadOnly, Keys: command.Keys("RO ACCESS", 1, 1, 1),
		Tips: command.TipVaries,
		Args: []command.Arg{
			command.Key("key"), command.Integer("cursor"), command.Pattern("pattern").After("MATCH").Opt(), command.Integer("count").After("COUNT").Opt(),
		},
		Reply: command.ReplyArray, Handler: zscan,
	},
	{
		Name: "zscore", Group: command.GroupSortedSet, Since: "1.2.0", Complexity: "O(1)",
		Summary: "Return a member's score.",
		Arity:   3, Flags: command.ReadOnly | command.Fast, Keys: command.Keys("RO ACCESS", 1, 1, 1),
		Args: []command.Arg{command.Key("key"), command.Str("member")}, Reply: command.ReplyDouble | command.ReplyNull, Handler: zscore,
	},
	{
		Name: "zunion", Group: command.GroupSortedSet, Since: "6.2.0", Complexity: "O(n + m log m) for n members in all sets and m in the result",
		Summary: "Return the union of sorted sets.",
		Arity:   -3, Flags: command.ReadOnly, Keys: command.CountedKeys("RO ACCESS", 1),
		Args:  []command.Arg{command.Integer("numkeys"), command.Key("key").Multi(), weightsArg, aggregateArg, command.Tok("WITHSCORES").Opt()},
		Reply: command.ReplyArray, Handler: combine(union),
	},
	{
		Name: "zunionstore", Group: command.GroupSortedSet, Since: "2.0.0", Complexity: "O(n + m log m) for n members in all sets and m in the result",
		Summary: "Store the union of sorted sets at a key, and return the number of its members.",
		Arity:   -4, Flags: command.Write | command.DenyOOM, Keys: slices.Concat(command.Keys("OW UPDATE", 1, 1, 1), command.CountedKeys("RO ACCESS", 2)),
		Args:  []command.Arg{command.Key("destination"), command.Integer("numkeys"), command.Key("key").Multi(), weightsArg, aggregateArg},
		Reply: command.ReplyInteger, Handler: combineStore(union),
	},
}

// limitArg declares how a range is cut.
var limitArg = command.Block("offset_count", command.Integer("offset"), command.Integer("count")).After("LIMIT").Opt()

// weightsArg and aggregateArg declare how the scores of several sorted sets become one.
var (
	weightsArg   = command.Integer("weight").After("WEIGHTS").Opt().Multi()
	aggregateArg = command.OneOf("aggregate", command.Tok("SUM"), command.Tok("MIN"), command.Tok("MAX")).After("AGGREGATE").Opt()
)

func zadd(c *command.Ctx)    { addScores(c, zaddOptions{}) }
func zincrBy(c *command.Ctx) { addScores(c, zaddOptions{incr: true}) }

// scoresAtHand is how many scores of a ZADD are kept without an allocation.
const scoresAtHand = 16

// addScores carries out ZADD with options that are given beside those among its arguments. All scores are parsed before the first
// is used.
func addScores(c *command.Ctx, o zaddOptions) {
	first, ok := zaddArgs(c, &o)
	if !ok {
		return
	}
	var room [scoresAtHand]float64
	scores, ok := scores(c, room[:0], first)
	if !ok {
		return
	}
	z, ok := c.ChangeZSet(1)
	if !ok {
		return
	}
	var after float64
	var done zaddOutcome
	added, changed := int64(0), int64(0)
	for i, score := range scores {
		after, done = o.apply(&z, score, c.Args[first+1+2*i])
		switch done {
		case zaddNaN:
			c.Err(command.ErrScoreNaN)
			return
		case zaddAdded:
			added++
		case zaddChanged:
			changed++
		}
	}
	if added+changed > 0 {
		event := "zadd"
		if o.incr {
			event = "zincr"
		}
		c.Notify(config.EventZSet, event, c.Args[1])
	}
	switch {
	case o.incr && done == zaddRefused:
		c.Reply.Null()
	case o.incr:
		c.Reply.Double(after)
	case o.ch:
		c.Reply.Int(added + changed)
	default:
		c.Reply.Int(added)
	}
}

// zaddOutcome is what ZADD has done for one member.
type zaddOutcome uint8

const (
	zaddRefused zaddOutcome = iota // a condition does not hold
	zaddKept                       // the member has this score already
	zaddChanged
	zaddAdded
	zaddNaN // the sum of the scores is no number; only for INCR, which has one member
)

// apply gives one member its score, if the options' conditions hold. after is the member's score then.
func (o *zaddOptions) apply(z *store.ZSet, score float64, member []byte) (after float64, done zaddOutcome) {
	if !o.unconditional() {
		present, held := z.Score(member)
		if (held && o.nx) || (!held && o.xx) {
			return 0, zaddRefused
		}
		if held && o.incr {
			if score += present; math.IsNaN(score) {
				return 0, zaddNaN
			}
		}
		if held && ((o.gt && score <= present) || (o.lt && score >= present)) {
			return 0, zaddRefused
		}
	}
	switch added, changed := z.Add(score, member); {
	case added:
		return score, zaddAdded
	case changed:
		return score, zaddChanged
	}
	return score, zaddKept
}

func zcard(c *command.Ctx) {
	if z, _, ok := c.ReadZSet(1); ok {
		c.Reply.Int(int64(z.Len()))
	}
}

func zcount(c *command.Ctx) {
	r, ok := scoreRange(c, 2, 3)
	if !ok {
		return
	}
	if z, _, ok := c.ReadZSet(1); ok {
		c.Reply.Int(int64(z.CountScore(r)))
	}
}

func zlexCount(c *command.Ctx) {
	r, ok := lexRange(c, 2, 3)
	if !ok {
		return
	}
	if z, _, ok := c.ReadZSet(1); ok {
		c.Reply.Int(int64(z.CountLex(r)))
	}
}

func zscore(c *command.Ctx) {
	if z, _, ok := c.ReadZSet(1); ok {
		sendScore(c, &z, c.Args[2])
	}
}

func zmscore(c *command.Ctx) {
	z, _, ok := c.ReadZSet(1)
	if !ok {
		return
	}
	c.Reply.Array(len(c.Args) - 2)
	for _, member := range c.Args[2:] {
		sendScore(c, &z, member)
	}
}

// sendScore sends a member's score, or null for a missing one.
func sendScore(c *command.Ctx, z *store.ZSet, member []byte) {
	score, ok := z.Score(member)
	if !ok {
		c.Reply.Null()
		return
	}
	c.Reply.Double(score)
}

func zrank(c *command.Ctx)    { sendRank(c, false) }
func zrevRank(c *command.Ctx) { sendRank(c, true) }

// sendRank sends the rank of the member at args[2], with reverse counted from the end.
func sendRank(c *command.Ctx, reverse bool) {
	withScore := len(c.Args) == 4
	switch {
	case len(c.Args) > 4:
		c.ErrArity()
		return
	case withScore && !c.Is(3, "WITHSCORE"):
		c.Err(command.ErrSyntax)
		return
	}
	z, _, ok := c.ReadZSet(1)
	if !ok {
		return
	}
	rank, held := z.Rank(c.Args[2])
	if reverse {
		rank = z.Len() - 1 - rank
	}
	switch {
	case !held && withScore:
		c.Reply.NullArray()
	case !held:
		c.Reply.Null()
	case withScore:
		c.Reply.Array(2)
		c.Reply.Int(int64(rank))
		sendScore(c, &z, c.Args[2])
	default:
		c.Reply.Int(int64(rank))
	}
}

// zrangeBy returns the handler of a command that returns a range.
func zrangeBy(f zrangeForm) command.Handler {
	return func(c *command.Ctx) {
		r, ok := zrangeArgs(c, f)
		if !ok {
			return
		}
		z, _, ok := c.ReadZSet(f.first)
		if !ok {
			return
		}
		n, start := 0, c.Reply.Start()
		r.each(&z, func(member []byte, score float64) bool {
			sendMember(c, member, score, r.withScores)
			n++
			return true
		})
		if r.withScores && c.Reply.Proto() != resp.RESP3 {
			n *= 2
		}
		c.Reply.EndArray(start, n)
	}
}

// sendMember sends a member, and with its score a pair: an array in RESP3, side by side in RESP2.
func sendMember(c *command.Ctx, member []byte, score float64, withScore bool) {
	if withScore && c.Reply.Proto() == resp.RESP3 {
		c.Reply.Array(2)
	}
	c.Reply.Bulk(member)
	if withScore {
		c.Reply.Double(score)
	}
}

// zrangeStore works on a copy of the range, since what it stores may replace the set that the range is of.
func zrangeStore(c *command.Ctx) {
	r, ok := zrangeArgs(c, zrangeForm{first: 2, stores: true})
	if !ok {
		return
	}
	from, _, ok := c.ReadZSet(2)
	if !ok {
		return
	}
	var members []scoredMember
	r.each(&from, func(member []byte, score float64) bool {
		members = append(members, scoredMember{string(member), score})
		return true
	})
	expected := 0 // as in Redis, the number is known beforehand for ranks only
	if r.by == byRank {
		expected = len(members)
	}
	storeMembers(c, 1, members, expected, 0)
}

// notifyRemoved tells that members have been removed from a sorted set, if any have.
func notifyRemoved(c *command.Ctx, z *store.ZSet, event string, removed int) {
	if removed > 0 {
		c.Notify(config.EventZSet, event, z.Name())
		c.NotifyDeleted(z.Len() == 0, z.Name())
	}
}

func zrem(c *command.Ctx) {
	z, ok := c.ChangeZSet(1)
	if !ok {
		return
	}
	removed := int64(0)
	for i := 2; i < len(c.Args) && z.Len() > 0; i++ {
		if z.Remove(c.Args[i]) {
			removed++
		}
	}
	notifyRemoved(c, &z, "zrem", int(removed))
	c.Reply.Int(removed)
}

func zremRangeByScore(c *command.Ctx) {
	r, ok := scoreRange(c, 2, 3)
	if !ok {
		return
	}
	if z, ok := c.ChangeZSet(1); ok {
		removed := z.RemoveScore(r)
		notifyRemoved(c, &z, "zremrangebyscore", removed)
		c.Reply.Int(int64(removed))
	}
}

func zremRangeByLex(c *command.Ctx) {
	r, ok := lexRange(c, 2, 3)
	if !ok {
		return
	}
	if z, ok := c.ChangeZSet(1); ok {
		removed := z.RemoveLex(r)
		notifyRemoved(c, &z, "zremrangebylex", removed)
		c.Reply.Int(int64(removed))
	}
}

func zremRangeByRank(c *command.Ctx) {
	r, ok := parseRankRange(c, 2, 3)
	if !ok {
		return
	}
	z, ok := c.ChangeZSet(1)
	if !ok {
		return
	}
	removed := 0
	if start, stop, ok := r.within(z.Len()); ok {
		removed = z.RemoveRank(start, stop)
	}
	notifyRemoved(c, &z, "zremrangebyrank", removed)
	c.Reply.Int(int64(removed))
}

func zpopMin(c *command.Ctx) { popMembers(c, false) }
func zpopMax(c *command.Ctx) { popMembers(c, true) }

// popMembers removes members from the lower end of a sorted set, or from the higher, and sends them with their scores. RESP3 has
// them in pairs only when a count was given.
func popMembers(c *command.Ctx, highest bool) {
	count, counted := int64(1), len(c.Args) > 2
	if len(c.Args) > 3 {
		c.Err(command.ErrSyntax)
		return
	}
	if counted {
		var ok bool
		if count, ok = number.ParseInt(c.Args[2]); !ok || count < 0 {
			c.Err(command.ErrNotPositive)
			return
		}
	}
	z, ok := c.ChangeZSet(1)
	if !ok {
		return
	}
	n := int(min(count, int64(z.Len())))
	pairs := counted && c.Reply.Proto() == resp.RESP3
	if pairs {
		c.Reply.Array(n)
	} else {
		c.Reply.Array(2 * n)
	}
	takeMembers(c, &z, n, highest, func(member []byte, score float64) {
		if pairs {
			c.Reply.Array(2)
		}
		c.Reply.Bulk(member)
		c.Reply.Double(score)
	})
}

func zrandMember(c *command.Ctx) {
	count, scores := int64(1), false
	single := len(c.Args) == 2
	if !single {
		var ok bool
		if count, scores, ok = randomArgs(c, "WITHSCORES"); !ok {
			return
		}
	}
	z, found, ok := c.ReadZSet(1)
	switch {
	case !ok:
	case single:
		sendOneRandom(c, &zsetMembers{z}, found)
	default:
		sendRandom(c, &zsetMembers{z}, count, scores)
	}
}

func zscan(c *command.Ctx) {
	cursor, ok := scanCursor(c, 2)
	if !ok {
		return
	}
	z, found, ok := c.ReadZSet(1)
	if !ok {
		return
	}
	o, ok := elementOptions(c, found)
	if !ok {
		return
	}
	var elements [][]byte
	var texts []byte
	next := z.Scan(cursor, o.count, func(member []byte, score float64) {
		if o.matches(member) {
			start := len(texts)
			texts = number.AppendDouble(texts, score)
			elements = append(elements, member, texts[start:])
		}
	})
	sendScan(c, next, elements)
}
