package linear

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/anishathalye/porcupine"
)

// The limits of the limiters, none of which gives anything back by itself during a test: windows last an hour.
const (
	gcraLimit    = 12
	fixedLimit   = 9
	slidingLimit = 7
	logLimit     = 6
	leaseLimit   = 3

	fields  = 3 // of the hash
	members = 4 // of the sorted set
	holders = 5 // who ask for leases
)

// state is what one group of keys holds, one key of each kind. It is a plain value, so two states compare by ==.
type state struct {
	text      int64
	hasText   bool
	hash      [fields]int64
	hasField  [fields]bool
	score     [members]int64
	hasMember [members]bool

	gcra, fixed, sliding, log int64 // units used
	leases                    [holders]bool
}

// operation is one step: what is asked, of which group, with what numbers.
type operation struct {
	kind string
	a, b int64
}

// input is what one client sends at once: one operation, or several in a transaction.
type input struct {
	group int
	steps []operation
	multi bool
}

func (in input) String() string {
	parts := make([]string, len(in.steps))
	for i, op := range in.steps {
		parts[i] = fmt.Sprintf("%s(%d,%d)", op.kind, op.a, op.b)
	}
	return fmt.Sprintf("%d: %s", in.group, strings.Join(parts, "; "))
}

// kinds are the operations, with how the model answers each of them.
var kinds = map[string]func(s *state, a, b int64) string{
	"SET":    func(s *state, a, _ int64) string { s.text, s.hasText = a, true; return "OK" },
	"GET":    func(s *state, _, _ int64) string { return optional(s.text, s.hasText) },
	"DEL":    func(s *state, _, _ int64) string { had := s.hasText; s.text, s.hasText = 0, false; return truth(had) },
	"INCRBY": func(s *state, a, _ int64) string { s.text += a; s.hasText = true; return number(s.text) },
	"INCREX": increx,
	"GETSET": func(s *state, a, _ int64) string {
		was := optional(s.text, s.hasText)
		s.text, s.hasText = a, true
		return was
	},
	"HSET": func(s *state, a, b int64) string {
		had := s.hasField[a]
		s.hash[a], s.hasField[a] = b, true
		return truth(!had)
	},
	"HGET":    func(s *state, a, _ int64) string { return optional(s.hash[a], s.hasField[a]) },
	"HINCRBY": func(s *state, a, b int64) string { s.hash[a] += b; s.hasField[a] = true; return number(s.hash[a]) },
	"HDEL": func(s *state, a, _ int64) string {
		had := s.hasField[a]
		s.hash[a], s.hasField[a] = 0, false
		return truth(had)
	},
	"ZADD": func(s *state, a, b int64) string {
		had := s.hasMember[a]
		s.score[a], s.hasMember[a] = b, true
		return truth(!had)
	},
	"ZSCORE": func(s *state, a, _ int64) string { return optional(s.score[a], s.hasMember[a]) },
	"ZREM": func(s *state, a, _ int64) string {
		had := s.hasMember[a]
		s.score[a], s.hasMember[a] = 0, false
		return truth(had)
	},
	"ZCARD":  func(s *state, _, _ int64) string { return number(int64(count(s.hasMember[:]))) },
	"ZRANGE": zrange,
	"EVAL": func(s *state, a, _ int64) string { // adds to the counter, and puts the sum into the hash
		s.text, s.hasText = s.text+a, true
		s.hash[0], s.hasField[0] = s.text, true
		return number(s.text)
	},
	"CL.THROTTLE": func(s *state, a, _ int64) string { return limited(&s.gcra, gcraLimit, a) },
	"RL.GCRA":     func(s *state, a, _ int64) string { return limited(&s.gcra, gcraLimit, a) },
	"RL.FIXED":    func(s *state, a, _ int64) string { return limited(&s.fixed, fixedLimit, a) },
	"RL.SLIDING":  func(s *state, a, _ int64) string { return limited(&s.sliding, slidingLimit, a) },
	"RL.LOG":      func(s *state, a, _ int64) string { return limited(&s.log, logLimit, a) },
	"RL.TAKE":     take,
	"RL.ACQUIRE":  acquire,
	"RL.RELEASE":  func(s *state, a, _ int64) string { had := s.leases[a]; s.leases[a] = false; return truth(had) },
	"RESET": func(s *state, _, _ int64) string { // deletes the limiters' keys
		gone := int64(0)
		for _, used := range []*int64{&s.gcra, &s.sliding, &s.log} {
			if *used > 0 {
				gone++
			}
			*used = 0
		}
		return number(gone)
	},
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

func optional(n int64, there bool) string {
	if !there {
		return "nil"
	}
	return number(n)
}

func truth(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

func count(flags []bool) int {
	n := 0
	for _, flag := range flags {
		if flag {
			n++
		}
	}
	return n
}

// increx adds unless the sum would pass b.
func increx(s *state, a, b int64) string {
	if s.text+a > b {
		return fmt.Sprintf("%d 0", s.text)
	}
	s.text, s.hasText = s.text+a, true
	return fmt.Sprintf("%d %d", s.text, a)
}

func zrange(s *state, _, _ int64) string {
	var entries [][2]int64
	for m := range members {
		if s.hasMember[m] {
			entries = append(entries, [2]int64{s.score[m], int64(m)})
		}
	}
	slices.SortFunc(entries, func(a, b [2]int64) int { return slices.Compare(a[:], b[:]) })
	return fmt.Sprint(entries)
}

// charge is what all limiters do, and tells whether the call was limited.
func charge(used *int64, limit, cost int64) bool {
	if cost >= 0 && *used+cost > limit {
		return true
	}
	*used = max(*used+cost, 0)
	return false
}

// limited is the answer of a limiter: limited or not, and what remains.
func limited(used *int64, limit, cost int64) string {
	refused := charge(used, limit, cost)
	return fmt.Sprintf("%s %d", truth(refused), limit-*used)
}

// take charges two limiters, a units and b units, or none of them.
func take(s *state, a, b int64) string {
	gcra, fixed := s.gcra, s.fixed
	first, second := charge(&gcra, gcraLimit, a), charge(&fixed, fixedLimit, b)
	index := -1
	switch {
	case first:
		index = 0
	case second:
		index = 1
	default:
		s.gcra, s.fixed = gcra, fixed
	}
	return fmt.Sprintf("%d %d %d", index, gcraLimit-s.gcra, fixedLimit-s.fixed)
}

func acquire(s *state, a, _ int64) string {
	held := count(s.leases[:])
	if !s.leases[a] && held >= leaseLimit {
		return fmt.Sprintf("1 %d", leaseLimit-held)
	}
	s.leases[a] = true
	return fmt.Sprintf("0 %d", leaseLimit-count(s.leases[:]))
}

// model is the whole server: groups of keys that nothing connects, so each may be checked by itself.
var model = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		groups := map[int][]porcupine.Operation{}
		for _, op := range history {
			group := op.Input.(input).group
			groups[group] = append(groups[group], op)
		}
		var parts [][]porcupine.Operation
		for _, part := range groups {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return state{} },
	Step: func(before, in, out any) (bool, any) {
		s := before.(state)
		answers := make([]string, len(in.(input).steps))
		for i, op := range in.(input).steps {
			answers[i] = kinds[op.kind](&s, op.a, op.b)
		}
		return out.(string) == unknown || strings.Join(answers, "; ") == out.(string), s
	},
	DescribeOperation: func(in, out any) string { return fmt.Sprintf("%v -> %v", in, out) },
}
