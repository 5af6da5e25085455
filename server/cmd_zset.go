package server

import (
	"math"
	"slices"

	"headgate/internal/number"
	"headgate/server/config"
	"headgate/server/resp"
	"headgate/store"
)

// zsetCommands: sorted sets.
var zsetCommands = []*Command{
	{
		Name: "bzmpop", Group: GroupSortedSet, Since: "7.0.0", Complexity: "O(k + m log n) for k keys and m members removed of n",
		Summary: "Remove members from one end of the first sorted set that has any, return its key and them, and wait for some if need be.",
		Arity:   -5, Flags: Write | Blocking, Keys: countedKeys("RW ACCESS DELETE", 2),
		Args: []Arg{
			double("timeout"), integer("numkeys"), key("key").multi(), oneOf("where", tok("MIN"), tok("MAX")), integer("count").after("COUNT").opt(),
		},
		Reply: ReplyArray | ReplyNull, Handler: bzmpop,
	},
	{
		Name: "bzpopmax", Group: GroupSortedSet, Since: "5.0.0", Complexity: "O(k + log n) for k keys and a set of n members",
		Summary: "Remove the member with the highest score from the first sorted set that has any, and wait for one if need be.",
		Arity:   -3, Flags: Write | Fast | Blocking | NoScript, Keys: keys("RW ACCESS DELETE", 1, -2, 1),
		Args: []Arg{key("key").multi(), double("timeout")}, Reply: ReplyArray | ReplyNull, Handler: bzpopMax,
	},
	{
		Name: "bzpopmin", Group: GroupSortedSet, Since: "5.0.0", Complexity: "O(k + log n) for k keys and a set of n members",
		Summary: "Remove the member with the lowest score from the first sorted set that has any, and wait for one if need be.",
		Arity:   -3, Flags: Write | Fast | Blocking | NoScript, Keys: keys("RW ACCESS DELETE", 1, -2, 1),
		Args: []Arg{key("key").multi(), double("timeout")}, Reply: ReplyArray | ReplyNull, Handler: bzpopMin,
	},
	{
		Name: "zadd", Group: GroupSortedSet, Since: "1.2.0", Complexity: "O(log n) per member named",
		Summary: "Add members with their scores, or give members new scores, on conditions if asked to.",
		Arity:   -4, Flags: Write | DenyOOM | Fast, Keys: keys("RW UPDATE", 1, 1, 1),
		Args: []Arg{
			key("key"), oneOf("condition", tok("NX"), tok("XX")).opt(), oneOf("comparison", tok("GT"), tok("LT")).opt(),
			tok("CH").opt(), tok("INCR").opt(), block("score_member", double("score"), str("member")).multi(),
		},
		Reply: ReplyInteger | ReplyDouble | ReplyNull, Handler: zadd,
	},
	{
		Name: "zcard", Group: GroupSortedSet, Since: "1.2.0", Complexity: "O(1)",
		Summary: "Count the members of a sorted set.",
		Arity:   2, Flags: ReadOnly | Fast, Keys: keys("RO", 1, 1, 1),
		Args: []Arg{key("key")}, Reply: ReplyInteger, Handler: zcard,
	},
	{
		Name: "zcount", Group: GroupSortedSet, Since: "2.0.0", Complexity: "O(log n)",
		Summary: "Count the members whose scores lie in a range.",
		Arity:   4, Flags: ReadOnly | Fast, Keys: keys("RO ACCESS", 1, 1, 1),
		Args: []Arg{key("key"), double("min"), double("max")}, Reply: ReplyInteger, Handler: zcount,
	},
	{
		Name: "zdiff", Group: GroupSortedSet, Since: "6.2.0", Complexity: "O(l + (n - k) log n) for l members in all sets, n in the first and k in the result",
		Summary: "Return the members of the first sorted set that none of the others has.",
		Arity:   -3, Flags: ReadOnly, Keys: countedKeys("RO ACCESS", 1),
		Args:  []Arg{integer("numkeys"), key("key").multi(), tok("WITHSCORES").opt()},
		Reply: ReplyArray, Handler: combine(difference),
	},
	{
		Name: "zdiffstore", Group: GroupSortedSet, Since: "6.2.0", Complexity: "O(l + (n - k) log n) for l members in all sets, n in the first and k in the result",
		Summary: "Keep the members of the first sorted set that none of the others has at another key, and return their number.",
		Arity:   -4, Flags: Write | DenyOOM, Keys: slices.Concat(keys("OW UPDATE", 1, 1, 1), countedKeys("RO ACCESS", 2)),
		Args:  []Arg{key("destination"), integer("numkeys"), key("key").multi()},
		Reply: ReplyInteger, Handler: combineStore(difference),
	},
	{
		Name: "zincrby", Group: GroupSortedSet, Since: "1.2.0", Complexity: "O(log n)",
		Summary: "Add to a member's score and return the sum; a missing member counts as 0.",
		Arity:   4, Flags: Write | DenyOOM | Fast, Keys: keys("RW ACCESS UPDATE", 1, 1, 1),
		Args: []Arg{key("key"), double("increment"), str("member")}, Reply: ReplyDouble, Handler: zincrBy,
	},
	{
		Name: "zinter", Group: GroupSortedSet, Since: "6.2.0", Complexity: "O(n k + m log m) for n members in the smallest of k sets and m in the result",
		Summary: "Return the members that all sorted sets have.",
		Arity:   -3, Flags: ReadOnly, Keys: countedKeys("RO ACCESS", 1),
		Args:  []Arg{integer("numkeys"), key("key").multi(), weightsArg, aggregateArg, tok("WITHSCORES").opt()},
		Reply: ReplyArray, Handler: combine(intersection),
	},
	{
		Name: "zintercard", Group: GroupSortedSet, Since: "7.0.0", Complexity: "O(n k) for n members in the smallest of k sets",
		Summary: "Count the members that all sorted sets have, up to a limit if one is given.",
		Arity:   -3, Flags: ReadOnly, Keys: countedKeys("RO ACCESS", 1),
		Args:  []Arg{integer("numkeys"), key("key").multi(), integer("limit").after("LIMIT").opt()},
		Reply: ReplyInteger, Handler: zinterCard,
	},
	{
		Name: "zinterstore", Group: GroupSortedSet, Since: "2.0.0", Complexity: "O(n k + m log m) for n members in the smallest of k sets and m in the result",
		Summary: "Keep the members that all sorted sets have at another key, and return their number.",
		Arity:   -4, Flags: Write | DenyOOM, Keys: slices.Concat(keys("OW UPDATE", 1, 1, 1), countedKeys("RO ACCESS", 2)),
		Args:  []Arg{key("destination"), integer("numkeys"), key("key").multi(), weightsArg, aggregateArg},
		Reply: ReplyInteger, Handler: combineStore(intersection),
	},
	{
		Name: "zlexcount", Group: GroupSortedSet, Since: "2.8.9", Complexity: "O(log n)",
		Summary: "Count the members that lie in a range of the alphabet, where all scores are the same.",
		Arity:   4, Flags: ReadOnly | Fast, Keys: keys("RO ACCESS", 1, 1, 1),
		Args: []Arg{key("key"), str("min"), str("max")}, Reply: ReplyInteger, Handler: zlexCount,
	},
	{
		Name: "zmpop", Group: GroupSortedSet, Since: "7.0.0", Complexity: "O(k + m log n) for k keys and m members removed of n",
		Summary: "Remove members from the lower or the higher end of the first sorted set that has any, and return its key and them.",
		Arity:   -4, Flags: Write, Keys: countedKeys("RW ACCESS DELETE", 1),
		Args:  []Arg{integer("numkeys"), key("key").multi(), oneOf("where", tok("MIN"), tok("MAX")), integer("count").after("COUNT").opt()},
		Reply: ReplyArray | ReplyNull, Handler: zmpop,
	},
	{
		Name: "zmscore", Group: GroupSortedSet, Since: "6.2.0", Complexity: "O(1) per member named",
		Summary: "Return the scores of several members, null for each that is not there.",
		Arity:   -3, Flags: ReadOnly | Fast, Keys: keys("RO ACCESS", 1, 1, 1),
		Args: []Arg{key("key"), str("member").multi()}, Reply: ReplyArray, Handler: zmscore,
	},
	{
		Name: "zpopmax", Group: GroupSortedSet, Since: "5.0.0", Complexity: "O(m log n) for m members of n",
		Summary: "Remove the members with the highest scores and return them.",
		Arity:   -2, Flags: Write | Fast, Keys: keys("RW ACCESS DELETE", 1, 1, 1),
		Args: []Arg{key("key"), integer("count").opt()}, Reply: ReplyArray, Handler: zpopMax,
	},
	{
		Name: "zpopmin", Group: GroupSortedSet, Since: "5.0.0", Complexity: "O(m log n) for m members of n",
		Summary: "Remove the members with the lowest scores and return them.",
		Arity:   -2, Flags: Write | Fast, Keys: keys("RW ACCESS DELETE", 1, 1, 1),
		Args: []Arg{key("key"), integer("count").opt()}, Reply: ReplyArray, Handler: zpopMin,
	},
	{
		Name: "zrandmember", Group: GroupSortedSet, Since: "6.2.0", Complexity: "O(m log n) for m members returned of n",
		Summary: "Return members drawn at random: different ones, or with repeats for a negative count.",
		Arity:   -2, Flags: ReadOnly, Keys: keys("RO ACCESS", 1, 1, 1),
		Tips:  tipVaries,
		Args:  []Arg{key("key"), block("options", integer("count"), tok("WITHSCORES").opt()).opt()},
		Reply: ReplyBulk | ReplyArray | ReplyNull, Handler: zrandMember,
	},
	{
		Name: "zrange", Group: GroupSortedSet, Since: "1.2.0", Complexity: "O(log n + m) for m members returned of n",
		Summary: "Return a range of members, by rank, score or alphabet, in either direction.",
		Arity:   -4, Flags: ReadOnly, Keys: keys("RO ACCESS", 1, 1, 1),
		Args: []Arg{
			key("key"), str("start"), str("stop"), oneOf("sortby", tok("BYSCORE"), tok("BYLEX")).opt(), tok("REV").opt(),
			limitArg, tok("WITHSCORES").opt(),
		},
		Reply: ReplyArray, Handler: zrangeBy(zrangeForm{first: 1}),
	},
	{
		Name: "zrangebylex", Group: GroupSortedSet, Since: "2.8.9", Complexity: "O(log n + m) for m members returned of n",
		Summary: "Return the members in a range of the alphabet, where all scores are the same.",
		Arity:   -4, Flags: ReadOnly, Keys: keys("RO ACCESS", 1, 1, 1),
		Args:  []Arg{key("key"), str("min"), str("max"), limitArg},
		Reply: ReplyArray, Handler: zrangeBy(zrangeForm{first: 1, by: byLex, byFixed: true, oneWay: true}),
	},
	{
		Name: "zrangebyscore", Group: GroupSortedSet, Since: "1.0.5", Complexity: "O(log n + m) for m members returned of n",
		Summary: "Return the members whose scores lie in a range.",
		Arity:   -4, Flags: ReadOnly, Keys: keys("RO ACCESS", 1, 1, 1),
		Args:  []Arg{key("key"), double("min"), double("max"), tok("WITHSCORES").opt(), limitArg},
		Reply: ReplyArray, Handler: zrangeBy(zrangeForm{first: 1, by: byScore, byFixed: true, oneWay: true}),
	},
	{
		Name: "zrangestore", Group: GroupSortedSet, Since: "6.2.0", Complexity: "O(log n + m log m) for m members stored of n",
		Summary: "Keep a range of members at another key, replacing what is there, and return their number.",
		Arity:   -5, Flags: Write | DenyOOM, Keys: slices.Concat(keys("OW UPDATE", 1, 1, 1), keys("RO ACCESS", 2, 2, 1)),
		Args: []Arg{
			key("dst"), key("src"), str("min"), str("max"), oneOf("sortby", tok("BYSCORE"), tok("BYLEX")).opt(), tok("REV").opt(),
			limitArg,
		},
		Reply: ReplyInteger, Handler: zrangeStore,
	},
	{
		Name: "zrank", Group: GroupSortedSet, Since: "2.0.0", Complexity: "O(log n)",
		Summary: "Return a member's rank, counted from 0 at the lowest score, and its score if asked to.",
		Arity:   -3, Flags: ReadOnly | Fast, Keys: keys("RO ACCESS", 1, 1, 1),
		Args:  []Arg{key("key"), str("member"), tok("WITHSCORE").opt()},
		Reply: ReplyInteger | ReplyArray | ReplyNull, Handler: zrank,
	},
	{
		Name: "zrem", Group: GroupSortedSet, Since: "1.2.0", Complexity: "O(log n) per member named",
		Summary: "Remove members and return how many there were; a sorted set without members is gone.",
		Arity:   -3, Flags: Write | Fast, Keys: keys("RW DELETE", 1, 1, 1),
		Args: []Arg{key("key"), str("member").multi()}, Reply: ReplyInteger, Handler: zrem,
	},
	{
		Name: "zremrangebylex", Group: GroupSortedSet, Since: "2.8.9", Complexity: "O(log n + m) for m members removed of n",
		Summary: "Remove the members in a range of the alphabet, where all scores are the same.",
		Arity:   4, Flags: Write, Keys: keys("RW DELETE", 1, 1, 1),
		Args: []Arg{key("key"), str("min"), str("max")}, Reply: ReplyInteger, Handler: zremRangeByLex,
	},
	{
		Name: "zremrangebyrank", Group: GroupSortedSet, Since: "2.0.0", Complexity: "O(log n + m) for m members removed of n",
		Summary: "Remove the members whose ranks lie in a range.",
		Arity:   4, Flags: Write, Keys: keys("RW DELETE", 1, 1, 1),
		Args: []Arg{key("key"), integer("start"), integer("stop")}, Reply: ReplyInteger, Handler: zremRangeByRank,
	},
	{
		Name: "zremrangebyscore", Group: GroupSortedSet, Since: "1.2.0", Complexity: "O(log n + m) for m members removed of n",
		Summary: "Remove the members whose scores lie in a range.",
		Arity:   4, Flags: Write, Keys: keys("RW DELETE", 1, 1, 1),
		Args: []Arg{key("key"), double("min"), double("max")}, Reply: ReplyInteger, Handler: zremRangeByScore,
	},
	{
		Name: "zrevrange", Group: GroupSortedSet, Since: "1.2.0", Complexity: "O(log n + m) for m members returned of n",
		Summary: "Return the members whose ranks lie in a range, counted from the highest score down.",
		Arity:   -4, Flags: ReadOnly, Keys: keys("RO ACCESS", 1, 1, 1),
		Args:  []Arg{key("key"), integer("start"), integer("stop"), tok("WITHSCORES").opt()},
		Reply: ReplyArray, Handler: zrangeBy(zrangeForm{first: 1, by: byRank, byFixed: true, reverse: true, oneWay: true}),
	},
	{
		Name: "zrevrangebylex", Group: GroupSortedSet, Since: "2.8.9", Complexity: "O(log n + m) for m members returned of n",
		Summary: "Return the members in a range of the alphabet from its end to its start, where all scores are the same.",
		Arity:   -4, Flags: ReadOnly, Keys: keys("RO ACCESS", 1, 1, 1),
		Args:  []Arg{key("key"), str("max"), str("min"), limitArg},
		Reply: ReplyArray, Handler: zrangeBy(zrangeForm{first: 1, by: byLex, byFixed: true, reverse: true, oneWay: true}),
	},
	{
		Name: "zrevrangebyscore", Group: GroupSortedSet, Since: "2.2.0", Complexity: "O(log n + m) for m members returned of n",
		Summary: "Return the members whose scores lie in a range, from the highest score down.",
		Arity:   -4, Flags: ReadOnly, Keys: keys("RO ACCESS", 1, 1, 1),
		Args:  []Arg{key("key"), double("max"), double("min"), tok("WITHSCORES").opt(), limitArg},
		Reply: ReplyArray, Handler: zrangeBy(zrangeForm{first: 1, by: byScore, byFixed: true, reverse: true, oneWay: true}),
	},
	{
		Name: "zrevrank", Group: GroupSortedSet, Since: "2.0.0", Complexity: "O(log n)",
		Summary: "Return a member's rank, counted from 0 at the highest score, and its score if asked to.",
		Arity:   -3, Flags: ReadOnly | Fast, Keys: keys("RO ACCESS", 1, 1, 1),
		Args:  []Arg{key("key"), str("member"), tok("WITHSCORE").opt()},
		Reply: ReplyInteger | ReplyArray | ReplyNull, Handler: zrevRank,
	},
	{
		Name: "zscan", Group: GroupSortedSet, Since: "2.8.0", Complexity: "O(1) per call, O(n) in the number of members for a full iteration",
		Summary: "Go through the members of a sorted set with their scores, a part with each call.",
		Arity:   -3, Flags: ReadOnly, Keys: keys("RO ACCESS", 1, 1, 1),
		Tips: tipVaries,
		Args: []Arg{
			key("key"), integer("cursor"), pattern("pattern").after("MATCH").opt(), integer("count").after("COUNT").opt(),
		},
		Reply: ReplyArray, Handler: zscan,
	},
	{
		Name: "zscore", Group: GroupSortedSet, Since: "1.2.0", Complexity: "O(1)",
		Summary: "Return a member's score.",
		Arity:   3, Flags: ReadOnly | Fast, Keys: keys("RO ACCESS", 1, 1, 1),
		Args: []Arg{key("key"), str("member")}, Reply: ReplyDouble | ReplyNull, Handler: zscore,
	},
	{
		Name: "zunion", Group: GroupSortedSet, Since: "6.2.0", Complexity: "O(n + m log m) for n members in all sets and m in the result",
		Summary: "Return the members that any of the sorted sets has.",
		Arity:   -3, Flags: ReadOnly, Keys: countedKeys("RO ACCESS", 1),
		Args:  []Arg{integer("numkeys"), key("key").multi(), weightsArg, aggregateArg, tok("WITHSCORES").opt()},
		Reply: ReplyArray, Handler: combine(union),
	},
	{
		Name: "zunionstore", Group: GroupSortedSet, Since: "2.0.0", Complexity: "O(n + m log m) for n members in all sets and m in the result",
		Summary: "Keep the members that any of the sorted sets has at another key, and return their number.",
		Arity:   -4, Flags: Write | DenyOOM, Keys: slices.Concat(keys("OW UPDATE", 1, 1, 1), countedKeys("RO ACCESS", 2)),
		Args:  []Arg{key("destination"), integer("numkeys"), key("key").multi(), weightsArg, aggregateArg},
		Reply: ReplyInteger, Handler: combineStore(union),
	},
}

// limitArg declares how a range is cut.
var limitArg = block("offset_count", integer("offset"), integer("count")).after("LIMIT").opt()

// countedKeys declares keys whose number stands before them, at an argument index.
func countedKeys(access string, numKeys int) []KeySpec {
	return []KeySpec{{Access: access, Begin: numKeys, KeyNum: true, Step: 1}}
}

// weightsArg and aggregateArg declare how the scores of several sorted sets become one.
var (
	weightsArg   = integer("weight").after("WEIGHTS").opt().multi()
	aggregateArg = oneOf("aggregate", tok("SUM"), tok("MIN"), tok("MAX")).after("AGGREGATE").opt()
)

func zadd(c *Ctx)    { c.addScores(zaddOptions{}) }
func zincrBy(c *Ctx) { c.addScores(zaddOptions{incr: true}) }

// scoresAtHand is how many scores of a ZADD are kept without an allocation.
const scoresAtHand = 16

// addScores carries out ZADD with options that are given beside those among its arguments. All scores are parsed before the first
// is used.
func (c *Ctx) addScores(o zaddOptions) {
	first, ok := c.zaddArgs(&o)
	if !ok {
		return
	}
	var room [scoresAtHand]float64
	scores, ok := c.scores(room[:0], first)
	if !ok {
		return
	}
	z, ok := c.changeZSet(1)
	if !ok {
		return
	}
	var after float64
	var done zaddOutcome
	added, changed := int64(0), int64(0)
	for i, score := range scores {
		after, done = o.apply(&z, score, c.args[first+1+2*i])
		switch done {
		case zaddNaN:
			c.err(errScoreNaN)
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
		c.notify(config.EventZSet, event, c.args[1])
	}
	switch {
	case o.incr && done == zaddRefused:
		c.reply.Null()
	case o.incr:
		c.reply.Double(after)
	case o.ch:
		c.reply.Int(added + changed)
	default:
		c.reply.Int(added)
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

func zcard(c *Ctx) {
	if z, _, ok := c.readZSet(1); ok {
		c.reply.Int(int64(z.Len()))
	}
}

func zcount(c *Ctx) {
	r, ok := c.scoreRange(2, 3)
	if !ok {
		return
	}
	if z, _, ok := c.readZSet(1); ok {
		c.reply.Int(int64(z.CountScore(r)))
	}
}

func zlexCount(c *Ctx) {
	r, ok := c.lexRange(2, 3)
	if !ok {
		return
	}
	if z, _, ok := c.readZSet(1); ok {
		c.reply.Int(int64(z.CountLex(r)))
	}
}

func zscore(c *Ctx) {
	if z, _, ok := c.readZSet(1); ok {
		c.sendScore(&z, c.args[2])
	}
}

func zmscore(c *Ctx) {
	z, _, ok := c.readZSet(1)
	if !ok {
		return
	}
	c.reply.Array(len(c.args) - 2)
	for _, member := range c.args[2:] {
		c.sendScore(&z, member)
	}
}

// sendScore sends a member's score, or null for a missing one.
func (c *Ctx) sendScore(z *store.ZSet, member []byte) {
	score, ok := z.Score(member)
	if !ok {
		c.reply.Null()
		return
	}
	c.reply.Double(score)
}

func zrank(c *Ctx)    { c.sendRank(false) }
func zrevRank(c *Ctx) { c.sendRank(true) }

// sendRank sends the rank of the member at args[2], with reverse counted from the end.
func (c *Ctx) sendRank(reverse bool) {
	withScore := len(c.args) == 4
	switch {
	case len(c.args) > 4:
		c.errArity()
		return
	case withScore && !c.is(3, "WITHSCORE"):
		c.err(errSyntax)
		return
	}
	z, _, ok := c.readZSet(1)
	if !ok {
		return
	}
	rank, held := z.Rank(c.args[2])
	if reverse {
		rank = z.Len() - 1 - rank
	}
	switch {
	case !held && withScore:
		c.reply.NullArray()
	case !held:
		c.reply.Null()
	case withScore:
		c.reply.Array(2)
		c.reply.Int(int64(rank))
		c.sendScore(&z, c.args[2])
	default:
		c.reply.Int(int64(rank))
	}
}

// zrangeBy returns the handler of a command that returns a range.
func zrangeBy(f zrangeForm) Handler {
	return func(c *Ctx) {
		r, ok := c.zrangeArgs(f)
		if !ok {
			return
		}
		z, _, ok := c.readZSet(f.first)
		if !ok {
			return
		}
		n, start := 0, c.reply.Start()
		r.each(&z, func(member []byte, score float64) bool {
			c.sendMember(member, score, r.withScores)
			n++
			return true
		})
		if r.withScores && c.reply.Proto() != resp.RESP3 {
			n *= 2
		}
		c.reply.EndArray(start, n)
	}
}

// sendMember sends a member, and with its score a pair: an array in RESP3, side by side in RESP2.
func (c *Ctx) sendMember(member []byte, score float64, withScore bool) {
	if withScore && c.reply.Proto() == resp.RESP3 {
		c.reply.Array(2)
	}
	c.reply.Bulk(member)
	if withScore {
		c.reply.Double(score)
	}
}

// zrangeStore works on a copy of the range, since what it stores may replace the set that the range is of.
func zrangeStore(c *Ctx) {
	r, ok := c.zrangeArgs(zrangeForm{first: 2, stores: true})
	if !ok {
		return
	}
	from, _, ok := c.readZSet(2)
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
	c.storeMembers(1, members, expected, 0)
}

// notifyRemoved tells that members have been removed from a sorted set, if any have.
func (c *Ctx) notifyRemoved(z *store.ZSet, event string, removed int) {
	if removed > 0 {
		c.notify(config.EventZSet, event, z.Name())
		c.notifyDeleted(z.Len() == 0, z.Name())
	}
}

func zrem(c *Ctx) {
	z, ok := c.changeZSet(1)
	if !ok {
		return
	}
	removed := int64(0)
	for i := 2; i < len(c.args) && z.Len() > 0; i++ {
		if z.Remove(c.args[i]) {
			removed++
		}
	}
	c.notifyRemoved(&z, "zrem", int(removed))
	c.reply.Int(removed)
}

func zremRangeByScore(c *Ctx) {
	r, ok := c.scoreRange(2, 3)
	if !ok {
		return
	}
	if z, ok := c.changeZSet(1); ok {
		removed := z.RemoveScore(r)
		c.notifyRemoved(&z, "zremrangebyscore", removed)
		c.reply.Int(int64(removed))
	}
}

func zremRangeByLex(c *Ctx) {
	r, ok := c.lexRange(2, 3)
	if !ok {
		return
	}
	if z, ok := c.changeZSet(1); ok {
		removed := z.RemoveLex(r)
		c.notifyRemoved(&z, "zremrangebylex", removed)
		c.reply.Int(int64(removed))
	}
}

func zremRangeByRank(c *Ctx) {
	r, ok := c.parseRankRange(2, 3)
	if !ok {
		return
	}
	z, ok := c.changeZSet(1)
	if !ok {
		return
	}
	removed := 0
	if start, stop, ok := r.within(z.Len()); ok {
		removed = z.RemoveRank(start, stop)
	}
	c.notifyRemoved(&z, "zremrangebyrank", removed)
	c.reply.Int(int64(removed))
}

func zpopMin(c *Ctx) { c.popMembers(false) }
func zpopMax(c *Ctx) { c.popMembers(true) }

// popMembers removes members from the lower end of a sorted set, or from the higher, and sends them with their scores. RESP3 has
// them in pairs only when a count was given.
func (c *Ctx) popMembers(highest bool) {
	count, counted := int64(1), len(c.args) > 2
	if len(c.args) > 3 {
		c.err(errSyntax)
		return
	}
	if counted {
		var ok bool
		if count, ok = number.ParseInt(c.args[2]); !ok || count < 0 {
			c.err(errNotPositive)
			return
		}
	}
	z, ok := c.changeZSet(1)
	if !ok {
		return
	}
	n := int(min(count, int64(z.Len())))
	pairs := counted && c.reply.Proto() == resp.RESP3
	if pairs {
		c.reply.Array(n)
	} else {
		c.reply.Array(2 * n)
	}
	c.takeMembers(&z, n, highest, func(member []byte, score float64) {
		if pairs {
			c.reply.Array(2)
		}
		c.reply.Bulk(member)
		c.reply.Double(score)
	})
}

func zrandMember(c *Ctx) {
	count, scores := int64(1), false
	single := len(c.args) == 2
	if !single {
		var ok bool
		if count, scores, ok = c.randomArgs("WITHSCORES"); !ok {
			return
		}
	}
	z, found, ok := c.readZSet(1)
	switch {
	case !ok:
	case single:
		c.sendOneRandom(&zsetMembers{z}, found)
	default:
		c.sendRandom(&zsetMembers{z}, count, scores)
	}
}

func zscan(c *Ctx) {
	cursor, ok := c.scanCursor(2)
	if !ok {
		return
	}
	z, found, ok := c.readZSet(1)
	if !ok {
		return
	}
	o, ok := c.elementOptions(found)
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
	c.sendScan(next, elements)
}
