package server

import (
	"slices"

	"headgate/internal/number"
	"headgate/server/config"
	"headgate/store"
)

// This file: unions, intersections and differences of sets.

// keptMember returns a member that a walk of a set has shown in a form that outlives the walk's next step.
func keptMember(s *store.Set, member []byte) []byte {
	if s.Ordered() {
		return slices.Clone(member) // a number's text is made for the moment
	}
	return member
}

// readSets opens the sets at args[first:end] for reading, or sends the error for a key of another type. missing tells that one of them
// is not there.
func (c *Ctx) readSets(first, end int) (sets []store.Set, missing, ok bool) {
	for i := first; i < end; i++ { // keys past their time go first, since that would make the views void
		if _, _, ok := c.readSet(i); !ok {
			return nil, false, false
		}
	}
	sets = make([]store.Set, 0, end-first)
	for i := first; i < end; i++ {
		s, found, _ := c.changeSet(i)
		missing = missing || !found
		sets = append(sets, s)
	}
	return sets, missing, true
}

// intersect hands each member that all sets have to fn until fn says false. It walks the smallest, and asks the smaller ones first.
func intersect(sets []store.Set, fn func(member []byte) bool) {
	slices.SortStableFunc(sets, func(a, b store.Set) int { return a.Len() - b.Len() })
	sets[0].Each(func(member []byte) bool {
		for i := range sets[1:] {
			if !sets[1+i].Has(member) {
				return true
			}
		}
		return fn(member)
	})
}

// combined puts together what a combination of sets comes to.
func combined(kind combination, sets []store.Set) *store.Members {
	result := store.NewMembers()
	add := func(member []byte) bool {
		result.Add(member)
		return true
	}
	switch kind {
	case union:
		for i := range sets {
			sets[i].Each(add)
		}
	case intersection:
		intersect(sets, add)
	case difference:
		subtract(result, sets[0], sets[1:])
	}
	return result
}

// subtract adds to result the members of a set that none of the others has. It looks each up in the others, or takes theirs out one by
// one, whichever means less work.
func subtract(result *store.Members, from store.Set, others []store.Set) {
	theirs := 0
	for i := range others {
		theirs += others[i].Len()
	}
	lookUp := from.Len()*len(others)/2 <= from.Len()+theirs
	from.Each(func(member []byte) bool {
		if !lookUp || !slices.ContainsFunc(others, func(s store.Set) bool { return s.Has(member) }) {
			result.Add(member)
		}
		return true
	})
	if lookUp {
		return
	}
	for i := range others {
		others[i].Each(func(member []byte) bool {
			result.Remove(member)
			return true
		})
	}
}

// combineSets returns the handler of a command that returns a combination of the sets at its arguments. Whole numbers come in order
// when they are few, as from a set of them.
func combineSets(kind combination) Handler {
	return func(c *Ctx) {
		sets, missing, ok := c.readSets(1, len(c.args))
		switch {
		case !ok:
		case missing && kind == intersection:
			c.reply.Set(0)
		default:
			c.sendCombined(combined(kind, sets))
		}
	}
}

func (c *Ctx) sendCombined(result *store.Members) {
	c.reply.Set(result.Len())
	if !result.Whole() || result.Len() > c.cfg.SetMaxIntsetEntries {
		result.Each(func(member []byte) { c.reply.Bulk(member) })
		return
	}
	numbers := make([]int64, 0, result.Len())
	result.Each(func(member []byte) {
		n, _ := number.ParseInt(member)
		numbers = append(numbers, n)
	})
	slices.Sort(numbers)
	for _, n := range numbers {
		c.reply.BulkInt(n)
	}
}

// combineSetsStore returns the handler of a command that keeps a combination at the key args[1]. An empty one deletes it.
func combineSetsStore(kind combination, event string) Handler {
	return func(c *Ctx) {
		sets, missing, ok := c.readSets(2, len(c.args))
		if !ok {
			return
		}
		result := store.NewMembers()
		if !missing || kind != intersection {
			result = combined(kind, sets)
		}
		e, found := c.db.Find(c.key(1), c.now)
		if found {
			e.Delete()
		}
		if result.Len() == 0 {
			c.notifyDeleted(found, c.args[1])
			c.reply.Zero()
			return
		}
		c.storeSet(result, found)
		c.notify(config.EventSet, event, c.args[1])
		c.reply.Int(int64(result.Len()))
	}
}

// storeSet makes the key args[1], which is not there, a set. replaces tells that it was there before.
func (c *Ctx) storeSet(members *store.Members, replaces bool) {
	if replaces {
		defer c.replacing()()
	}
	to, _, _ := c.changeSet(1)
	members.Each(func(member []byte) { to.Add(member) })
}

func sinterCard(c *Ctx) {
	numKeys, ok := c.integerOr(1, 1, errNumKeys)
	if !ok {
		return
	}
	if numKeys > int64(len(c.args)-2) {
		c.err("ERR Number of keys can't be greater than number of args")
		return
	}
	end, limit := 2+int(numKeys), int64(0)
	for i := end; i < len(c.args); i += 2 {
		if !c.is(i, "LIMIT") || i+1 == len(c.args) {
			c.err(errSyntax)
			return
		}
		if limit, ok = c.integerOr(i+1, 0, errLimitNegative); !ok {
			return
		}
	}
	sets, missing, ok := c.readSets(2, end)
	if !ok {
		return
	}
	n := int64(0)
	if !missing {
		intersect(sets, func([]byte) bool {
			n++
			return n != limit
		})
	}
	c.reply.Int(n)
}
