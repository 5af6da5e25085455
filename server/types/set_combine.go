package types

import (
	"slices"

	"headgate/internal/number"
	"headgate/server/command"
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
func readSets(c *command.Ctx, first, end int) (sets []store.Set, missing, ok bool) {
	for i := first; i < end; i++ { // keys past their time go first, since that would make the views void
		if _, _, ok := c.ReadSet(i); !ok {
			return nil, false, false
		}
	}
	sets = make([]store.Set, 0, end-first)
	for i := first; i < end; i++ {
		s, found, _ := c.ChangeSet(i)
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
func combineSets(kind combination) command.Handler {
	return func(c *command.Ctx) {
		sets, missing, ok := readSets(c, 1, len(c.Args))
		switch {
		case !ok:
		case missing && kind == intersection:
			c.Reply.Set(0)
		default:
			sendCombined(c, combined(kind, sets))
		}
	}
}

func sendCombined(c *command.Ctx, result *store.Members) {
	c.Reply.Set(result.Len())
	if !result.Whole() || result.Len() > c.Cfg.SetMaxIntsetEntries {
		result.Each(func(member []byte) { c.Reply.Bulk(member) })
		return
	}
	numbers := make([]int64, 0, result.Len())
	result.Each(func(member []byte) {
		n, _ := number.ParseInt(member)
		numbers = append(numbers, n)
	})
	slices.Sort(numbers)
	for _, n := range numbers {
		c.Reply.BulkInt(n)
	}
}

// combineSetsStore returns the handler of a command that keeps a combination at the key args[1]. An empty one deletes it.
func combineSetsStore(kind combination, event string) command.Handler {
	return func(c *command.Ctx) {
		sets, missing, ok := readSets(c, 2, len(c.Args))
		if !ok {
			return
		}
		result := store.NewMembers()
		if !missing || kind != intersection {
			result = combined(kind, sets)
		}
		e, found := c.DB.Find(c.Key(1), c.Now)
		if found {
			e.Delete()
		}
		if result.Len() == 0 {
			c.NotifyDeleted(found, c.Args[1])
			c.Reply.Zero()
			return
		}
		storeSet(c, result, found)
		c.Notify(config.EventSet, event, c.Args[1])
		c.Reply.Int(int64(result.Len()))
	}
}

// storeSet makes the key args[1], which is not there, a set. replaces tells that it was there before.
func storeSet(c *command.Ctx, members *store.Members, replaces bool) {
	if replaces {
		defer c.Replacing()()
	}
	to, _, _ := c.ChangeSet(1)
	members.Each(func(member []byte) { to.Add(member) })
}

func sinterCard(c *command.Ctx) {
	numKeys, ok := integerOr(c, 1, 1, errNumKeys)
	if !ok {
		return
	}
	if numKeys > int64(len(c.Args)-2) {
		c.Err("ERR Number of keys can't be greater than number of args")
		return
	}
	end, limit := 2+int(numKeys), int64(0)
	for i := end; i < len(c.Args); i += 2 {
		if !c.Is(i, "LIMIT") || i+1 == len(c.Args) {
			c.Err(command.ErrSyntax)
			return
		}
		if limit, ok = integerOr(c, i+1, 0, errLimitNegative); !ok {
			return
		}
	}
	sets, missing, ok := readSets(c, 2, end)
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
	c.Reply.Int(n)
}
