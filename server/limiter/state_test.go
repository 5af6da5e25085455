package limiter

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"headgate/throttle"
)

// farState keeps limiters' state elsewhere than a keyspace: it finds what a call wants, and not a rank more, when it comes to it, and does
// as it is told. What it has sent does not change any more, whatever becomes of the key.
type farState struct {
	t       *rapid.T
	keys    map[string]*farKey
	waiting []farCall
}

type farKey struct {
	exists     bool
	number     int64
	expireAtMs int64
	slices     map[int64]int64
	entries    []farEntry // in the order of their times
	next       int        // of the entries without an id
}

type farEntry struct {
	id string
	at int64
}

type farCall struct {
	key  string
	call *Call
}

// at returns a key as it is at a time.
func (s *farState) at(key string, nowMs int64) *farKey {
	k := s.keys[key]
	if k == nil || k.exists && k.expireAtMs != 0 && k.expireAtMs < nowMs {
		k = &farKey{slices: map[int64]int64{}}
		s.keys[key] = k
	}
	return k
}

func (s *farState) load(key string, c *Call) {
	k, f := s.at(key, c.NowMs), &c.Found
	*f = Found{Exists: k.exists, Number: k.number, ExpireAtMs: k.expireAtMs}
	for _, start := range slices.Sorted(maps.Keys(k.slices)) {
		f.Slices = append(f.Slices, Slice{Start: start, Count: k.slices[start]})
	}
	var counting []int64
	for _, e := range k.entries {
		switch {
		case e.at <= c.Want.After:
			f.Expired++
		case e.at <= c.Want.Until:
			counting = append(counting, e.at)
		}
		if c.Want.HasMember && e.id == string(c.Want.Member) {
			f.MemberHeld, f.MemberAt = true, e.at
		}
	}
	f.Used = int64(len(counting))
	wanted := c.Want.Ranks
	f.At = func(rank int64) int64 {
		if !slices.Contains(wanted[:], rank) {
			s.t.Fatalf("rank %d was not wanted: %+v", rank, c.Want)
		}
		return counting[len(counting)-1-int(rank)]
	}
}

func (s *farState) keep(key string, c *Call) {
	k, ch := s.at(key, c.NowMs), &c.Change
	if ch.Write == throttle.Delete {
		delete(s.keys, key)
	}
	if ch.Write != throttle.Set {
		return
	}
	k.exists, k.number = true, ch.Number
	if ch.ExpireAtMs != 0 {
		k.expireAtMs = ch.ExpireAtMs
	}
	if c.Want.Kind == Slices {
		k.keepSlices(ch)
	}
	if c.Want.Kind == Entries {
		k.keepEntries(c)
	}
}

func (k *farKey) keepSlices(ch *Change) {
	if ch.Replace {
		clear(k.slices)
	}
	for _, s := range ch.Slices {
		if k.slices[s.Start] = s.Count; s.Count == 0 {
			delete(k.slices, s.Start)
		}
	}
}

func (k *farKey) keepEntries(c *Call) {
	ch := &c.Change
	last := slices.IndexFunc(k.entries, func(e farEntry) bool { return e.at > c.Want.Until })
	if last < 0 {
		last = len(k.entries)
	}
	k.entries = slices.Delete(k.entries, last-ch.RemoveNewest, last)
	remove := func(id string) {
		k.entries = slices.DeleteFunc(k.entries, func(e farEntry) bool { return e.id == id })
	}
	if ch.Remove != nil {
		remove(string(ch.Remove))
	}
	if ch.Trim {
		k.entries = slices.DeleteFunc(k.entries, func(e farEntry) bool { return e.at <= c.Want.After })
	}
	if ch.Member != nil {
		remove(string(ch.Member))
		k.entries = append(k.entries, farEntry{string(ch.Member), ch.AddAt})
	}
	for range ch.Add {
		k.next++
		k.entries = append(k.entries, farEntry{fmt.Sprint("#", k.next), ch.AddAt})
	}
	slices.SortStableFunc(k.entries, func(a, b farEntry) int { return int(a.at - b.at) })
}

// answerOne answers one of the calls that wait, of each key the first.
func (s *farState) answerOne() (answered farCall) {
	i := rapid.IntRange(0, len(s.waiting)-1).Draw(s.t, "answered")
	i = slices.IndexFunc(s.waiting, func(w farCall) bool { return w.key == s.waiting[i].key })
	answered = s.waiting[i]
	s.waiting = slices.Delete(s.waiting, i, i+1)
	s.load(answered.key, answered.call)
	if err := answered.call.Decide(); err != nil {
		s.t.Fatal(err)
	}
	s.keep(answered.key, answered.call)
	return answered
}

// TestStateMayAnswerLater: calls of all algorithms to several keys are on their way at once, and are answered in any order by a state that is
// elsewhere. Each algorithm asks only for what it said that it wanted, and no key ever has more than its limit.
func TestStateMayAnswerLater(t *testing.T) {
	texts := []string{"GCRA 5 10 100ms", "QUEUE 4 10 100ms", "FIXED 4 50ms", "FIXED 4 40ms ALIGNED", "SLIDING 5 40ms SLICES 4", "LOG 4 50ms", "ACQUIRE 3 60ms"}
	rapid.Check(t, func(t *rapid.T) {
		far := &farState{t: t, keys: map[string]*farKey{}}
		now := int64(1_700_000_000_000)
		for range rapid.IntRange(1, 40).Draw(t, "calls") {
			now += rapid.Int64Range(0, 30).Draw(t, "step")
			text := rapid.SampledFrom(texts).Draw(t, "policy")
			p, _, err := Standard.ParseText(Words(text))
			require.NoError(t, err)
			r := &Request{}
			r.Call.Cost, r.Call.Peek = rapid.Int64Range(-2, 5).Draw(t, "cost"), rapid.IntRange(0, 4).Draw(t, "peek") == 0
			if p.Algorithm.NoCost {
				r.Call.Cost = min(max(r.Call.Cost, 0), 1)
			}
			if p.Algorithm.Kind == Entries && (p.Algorithm.NoCost || rapid.Bool().Draw(t, "named")) {
				r.HasMember, r.Member = true, []byte(rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "member"))
				r.Call.Cost = min(r.Call.Cost, 1)
			}
			c := &Call{}
			c.Prepare(&p, r, now, now*1e6)
			far.waiting = append(far.waiting, farCall{text, c})
			for len(far.waiting) > 0 && rapid.Bool().Draw(t, "answer") {
				checkAnswer(t, far, far.answerOne())
			}
		}
		for len(far.waiting) > 0 {
			checkAnswer(t, far, far.answerOne())
		}
	})
}

// checkAnswer looks at the answer, and asks again what has been left.
func checkAnswer(t *rapid.T, far *farState, answered farCall) {
	v := answered.call.Verdict
	if v.Limited != (v.Limited && answered.call.Request.Call.Cost >= 0) || v.Remaining < 0 || v.Remaining > v.Limit || v.ResetAfter < 0 ||
		v.Limited && answered.call.Change.Write == throttle.Set && answered.call.Want.Kind != Number {
		t.Fatalf("%s %+v: %+v", answered.key, answered.call.Request, v)
	}
	again := &Call{}
	again.Prepare(answered.call.Policy, &Request{Call: throttle.Call{Peek: true}}, answered.call.NowMs, answered.call.NowNs)
	far.load(answered.key, again)
	require.NoError(t, again.Decide())
	if again.Verdict.Remaining != v.Remaining || again.Verdict.ResetAfter != v.ResetAfter {
		t.Fatalf("%s %+v: %+v, and then %+v", answered.key, answered.call.Request, v, again.Verdict)
	}
}
