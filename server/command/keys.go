package command

import (
	"headgate/internal/number"
	"headgate/server/acl"
)

// KeySpec says where keys stand among a command's arguments.
type KeySpec struct {
	Access  string // flags of Redis's key specs: "RW UPDATE ACCESS", "RO ACCESS", "OW UPDATE", …
	Begin   int    // argument index of the first key, or of the count that precedes the keys
	Keyword string // when set, keys begin after this word, which clients are told to search from argument Begin on
	Last    int    // index of the last key relative to the first; negative: counted from the end, -1 the last argument
	Step    int    // distance between keys
	Limit   int    // with Last -1: 2 means that only the first half of the arguments are keys, and so on
	KeyNum  bool   // argument Begin holds the number of keys, which follow it

	// Behind returns, with Keyword, the argument index behind that word, or 0 if it is not there. The word may be the value of another
	// option, too, so only the handler's own steps through its options can find it.
	Behind func(args [][]byte) int

	// Other finds keys that none of the above can describe, and appends their indexes; COMMAND shows them as unknown. Like Behind, it goes
	// through the options by the handler's own steps.
	Other func(indexes []int, args [][]byte) []int
	Skip  int // with KeyNum: how many arguments stand between the number and the first key

	// Vary returns the access of one command line, where Access, which then ends in VARIABLE_FLAGS, is only the most that there can be.
	Vary func(args [][]byte) string
}

// NotKey is the access to what stands in a key's place for the sake of clusters, but is none.
const NotKey = "not_key"

// Keys declares keys at fixed places: the first, the last (negative: from the end) and the step between them.
func Keys(access string, first, last, step int) []KeySpec {
	if last > 0 {
		last -= first
	}
	return []KeySpec{{Access: access, Begin: first, Last: last, Step: step}}
}

// CountedKeys declares keys whose number stands before them, at an argument index.
func CountedKeys(access string, numKeys int) []KeySpec {
	return []KeySpec{{Access: access, Begin: numKeys, KeyNum: true, Step: 1}}
}

// Varying declares the access of the first specification to depend on the command line.
func Varying(specs []KeySpec, vary func(args [][]byte) string) []KeySpec {
	specs[0].Access += " VARIABLE_FLAGS"
	specs[0].Vary = vary
	return specs
}

// Find appends the argument indexes of the keys in args. Arguments that make no sense yield none.
func (k KeySpec) Find(indexes []int, args [][]byte) []int {
	if k.Other != nil {
		return k.Other(indexes, args)
	}
	first := k.Begin
	if k.Keyword != "" {
		if first = k.Behind(args); first == 0 {
			return indexes
		}
	}
	if k.KeyNum {
		if first >= len(args) {
			return indexes
		}
		n, ok := number.ParseInt(args[first])
		first += 1 + k.Skip
		if !ok || n < 0 || n > int64((len(args)-first+k.Step-1)/k.Step) {
			return indexes
		}
		for i := range int(n) {
			indexes = append(indexes, first+i*k.Step)
		}
		return indexes
	}
	last := first + k.Last
	if k.Last < 0 {
		last = len(args) + k.Last
		if k.Limit > 1 {
			last = first + (len(args)-first)/k.Limit - 1
		}
	}
	for i := first; i <= last && i < len(args); i += k.Step {
		indexes = append(indexes, i)
	}
	return indexes
}

// AccessOf returns the access flags that hold for a command line.
func (k KeySpec) AccessOf(args [][]byte) string {
	if k.Vary != nil {
		return k.Vary(args)
	}
	return k.Access
}

// movable reports whether the keys' places depend on the arguments.
func (k KeySpec) movable() bool { return k.KeyNum || k.Keyword != "" || k.Other != nil }

// places returns the argument index of the first key, or 0 if it depends on the command line, and whether its specification may find more.
func (c *Command) places() (first int, several bool) {
	switch {
	case len(c.Keys) == 0 || c.Keys[0].Keyword != "" || c.Keys[0].Other != nil:
		return 0, false
	case c.Keys[0].KeyNum:
		return c.Keys[0].Begin + 1 + c.Keys[0].Skip, true
	}
	return c.Keys[0].Begin, c.Keys[0].Last != 0
}

// KeyRange returns the places of the keys as one range, for clients that know no key specifications: the first key's index,
// the last one's (negative: from the end) and the step. Keys of movable specifications are left out, and so are
// those that would leave a gap.
func (c *Command) KeyRange() (first, last, step int) {
	for _, k := range c.Keys {
		if k.movable() || (first > 0 && (k.Step != 1 || k.Begin != last+1)) {
			continue
		}
		if first == 0 {
			first, step = k.Begin, k.Step
		}
		last = k.Last
		if last >= 0 {
			last += k.Begin
		}
	}
	return first, last, step
}

// ChannelSpec says where the channels stand that a command asks for the right to. Subscriptions end without any.
type ChannelSpec struct {
	First   int  // argument index of the first channel; 0: there are none
	Rest    bool // all arguments behind it are channels, too
	Pattern bool // they are patterns of channels
}

// Find appends the channels of a command line with so many arguments.
func (s ChannelSpec) Find(list []acl.Channel, args int) []acl.Channel {
	if s.First == 0 {
		return list
	}
	end := s.First + 1
	if s.Rest {
		end = args
	}
	for i := s.First; i < min(end, args); i++ {
		list = append(list, acl.Channel{Arg: i, Pattern: s.Pattern})
	}
	return list
}
