package store

// Range hands the entries of ranks start to stop, both included, to fn until fn says
// false. With reverse, ranks count from the highest entry down. Both ranks must be 0 or
// more; what lies past the last entry is left out. fn must not change the set.
func (z *ZSet) Range(start, stop int, reverse bool, fn func(member []byte, score float64) bool) {
	n := min(stop, z.Len()-1) - start + 1
	if reverse {
		start = z.Len() - 1 - start
	}
	z.walk(start, n, reverse, fn)
}

// CountScore counts the entries within r.
func (z *ZSet) CountScore(r ScoreRange) int { return z.countBetween(r.bounds()) }

// CountLex counts the entries within r.
func (z *ZSet) CountLex(r LexRange) int { return z.countBetween(r.bounds()) }

// EachScore hands the entries within r to fn until fn says false, in order or with
// reverse in the opposite one, after leaving out the first offset of them. A negative
// limit is none, a negative offset selects nothing. fn must not change the set.
func (z *ZSet) EachScore(r ScoreRange, reverse bool, offset, limit int, fn func(member []byte, score float64) bool) {
	from, to := r.bounds()
	z.eachBetween(from, to, reverse, offset, limit, fn)
}

// EachLex is EachScore for a range of members.
func (z *ZSet) EachLex(r LexRange, reverse bool, offset, limit int, fn func(member []byte, score float64) bool) {
	from, to := r.bounds()
	z.eachBetween(from, to, reverse, offset, limit, fn)
}

// RemoveScore takes out the entries within r and returns how many they were.
func (z *ZSet) RemoveScore(r ScoreRange) int { return z.removeBetween(r.bounds()) }

// RemoveLex takes out the entries within r and returns how many they were.
func (z *ZSet) RemoveLex(r LexRange) int { return z.removeBetween(r.bounds()) }

// RemoveRank takes out the entries of ranks start to stop, both included and 0 or
// more, and returns how many they were.
func (z *ZSet) RemoveRank(start, stop int) int {
	n := min(stop, z.Len()-1) - start + 1
	if n <= 0 {
		return 0
	}
	if z.tree != nil || z.log != nil {
		z.removeBig(start, n)
		return n
	}
	p := z.packed()
	at := p.skip(0, start)
	z.cut(at, p.skip(at, n), n)
	return n
}

// span returns the rank of the first entry between two bounds, and their number.
func (z *ZSet) span(from, to zsetBound) (rank, n int) {
	if z.tree != nil {
		rank = z.tree.before(&from)
		return rank, max(z.tree.before(&to)-rank, 0)
	}
	if z.log != nil {
		rank = z.log.before(&from)
		return rank, max(z.log.before(&to)-rank, 0)
	}
	at, rank := z.packed().before(from, 0, 0)
	_, end := z.packed().before(to, at, rank)
	return rank, end - rank
}

func (z *ZSet) countBetween(from, to zsetBound) int {
	_, n := z.span(from, to)
	return n
}

func (z *ZSet) eachBetween(from, to zsetBound, reverse bool, offset, limit int, fn func(member []byte, score float64) bool) {
	rank, n := z.span(from, to)
	if offset < 0 || offset >= n {
		return
	}
	if reverse {
		rank += n - 1 - offset
	} else {
		rank += offset
	}
	n -= offset
	if limit >= 0 {
		n = min(n, limit)
	}
	z.walk(rank, n, reverse, fn)
}

// walk hands n entries from rank on, upward or downward, to fn until fn says false.
func (z *ZSet) walk(rank, n int, reverse bool, fn func(member []byte, score float64) bool) {
	switch {
	case n <= 0:
	case z.tree != nil:
		z.tree.walk(rank, n, reverse, fn)
	case z.log != nil:
		z.log.walk(rank, n, reverse, &z.db.ks.stamps, fn)
	case reverse:
		z.packed().walkBack(rank, n, fn)
	default:
		z.packed().walk(rank, n, fn)
	}
}

// removeBetween takes out the entries between two bounds. Out of a packed set they go
// in one move of what follows them.
func (z *ZSet) removeBetween(from, to zsetBound) int {
	if z.tree != nil || z.log != nil {
		rank, n := z.span(from, to)
		if n > 0 {
			z.removeBig(rank, n)
		}
		return n
	}
	at, rank := z.packed().before(from, 0, 0)
	end, last := z.packed().before(to, at, rank)
	if last > rank {
		z.cut(at, end, last-rank)
	}
	return last - rank
}

// removeBig takes n entries from rank on out of a tree or a log.
func (z *ZSet) removeBig(rank, n int) {
	if n == z.Len() {
		z.vanish()
		return
	}
	z.entry.mutate()
	if z.log != nil {
		z.log.removeRanks(rank, n)
		z.settleLog()
		return
	}
	z.tree.removeRanks(rank, n)
}
