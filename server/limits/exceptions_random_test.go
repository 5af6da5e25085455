package limits_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"headgate/persistence/crashfs"
	"headgate/server/config"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

var (
	exceptionHistories = flag.Int("exceptions.histories", 1200, "random histories of each kind of exception of policies; make limits takes a million")
	exceptionSeed      = flag.Uint64("exceptions.seed", 0, "repeats a run; 0: a new one")
)

// modelWords is what a policy or an override says, in the model.
type modelWords struct {
	unlimited   bool
	limit       int64
	shadow      bool
	length, max int64 // of blocks, in ms; 0: there are none, or they do not double
}

func (w modelWords) clauses() (text string) {
	if w.shadow {
		text += " SHADOW"
	}
	if w.length > 0 {
		text += fmt.Sprintf(" BLOCK %d", w.length)
		if w.max > 0 {
			text += fmt.Sprintf(" DOUBLE %d", w.max)
		}
	}
	return text
}

// modelPolicy is a policy of the model. Overrides change the limit, and leave the window as it is.
type modelPolicy struct {
	modelWords
	algorithm string // FIXED or LOG
	window    int64
	overrides map[string]modelOverride // by key
	blocks    map[string]modelBlock
}

type modelOverride struct {
	modelWords
	until int64 // ms; 0: for good
}

type modelBlock struct {
	until, length, forgotten int64 // ms; length 0: it is a ban, or does not double
}

func (p *modelPolicy) text(w modelWords) string {
	if w.unlimited {
		return "UNLIMITED"
	}
	return fmt.Sprintf("%s %d %d", p.algorithm, w.limit, p.window) + w.clauses()
}

// wordsFor is what holds for a key now.
func (p *modelPolicy) wordsFor(key string, now int64) modelWords {
	o, found := p.overrides[key]
	if !found || o.until != 0 && now > o.until {
		return p.modelWords
	}
	w := o.modelWords
	w.shadow = w.shadow || p.shadow
	if w.length == 0 {
		w.length, w.max = p.length, p.max
	}
	return w
}

// exceptionModel answers RL.TAKE by lists of everything that was charged, and by what the documentation says of overrides, blocks and the shadow.
type exceptionModel struct {
	policies map[string]*modelPolicy
	lists    map[string]*listModel // by key
}

func (m *exceptionModel) list(p *modelPolicy, key string) *listModel {
	l := m.lists[key]
	if l == nil {
		l = &listModel{window: p.window, used: logUsed}
		if p.algorithm == "FIXED" {
			l.used, l.fixed = fixedUsed, true
		}
		m.lists[key] = l
	}
	return l
}

// modelPair is what one pair of a call comes to.
type modelPair struct {
	policy            *modelPolicy
	key               string
	words             modelWords
	cost              int64
	limited, shadowed bool
	retry             int64
	begins            int64 // how long a block of its own this would begin
}

// judge decides about one pair without charging it.
func (m *exceptionModel) judge(p *modelPair, now int64) {
	p.words = p.policy.wordsFor(p.key, now)
	l := m.list(p.policy, p.key)
	p.retry = -1
	own := !p.words.unlimited && p.cost >= 0 && l.used(l, now)+p.cost > p.words.limit
	if own {
		p.limited = true
		for d := int64(1); p.cost <= p.words.limit && p.retry < 0; d++ {
			if l.used(l, now+d)+p.cost <= p.words.limit {
				p.retry = d
			}
		}
	}
	b := p.policy.blocks[p.key]
	switch {
	case now < b.until && p.cost >= 0:
		if !own {
			p.retry = 0
		}
		p.limited = true
		if p.retry >= 0 {
			p.retry = max(p.retry, b.until-now)
		}
	case own && p.cost > 0 && p.cost <= p.words.limit && p.words.length > 0:
		p.begins = p.words.length
		if p.words.max > 0 && b.length > 0 && now < b.forgotten {
			p.begins = min(max(2*b.length, p.words.length), p.words.max)
		}
		p.retry = max(p.retry, p.begins)
	}
	if p.limited && p.words.shadow {
		p.limited, p.shadowed, p.retry = false, true, -1
	}
}

// five are the numbers of a pair, whose list is as it is after the call.
func (m *exceptionModel) five(p *modelPair, now int64) string {
	if p.words.unlimited {
		limited := 0
		if p.limited {
			limited = 1
		}
		return fmt.Sprintf("[%d -1 -1 %d 0]", limited, p.retry)
	}
	l := m.list(p.policy, p.key)
	limited, reset := 0, int64(0)
	if p.limited {
		limited = 1
	}
	for l.used(l, now+reset) > 0 {
		reset++
	}
	return fmt.Sprintf("[%d %d %d %d %d]", limited, p.words.limit, max(p.words.limit-l.used(l, now), 0), p.retry, reset)
}

// take answers a call.
func (m *exceptionModel) take(pairs []modelPair, now int64, peek bool) string {
	index := -1
	for i := range pairs {
		if m.judge(&pairs[i], now); pairs[i].limited && index < 0 {
			index = i
		}
	}
	fives := make([]string, len(pairs))
	for i := range pairs {
		p := &pairs[i]
		if p.limited || p.shadowed {
			if fives[i] = m.five(p, now); p.begins > 0 && !peek {
				b := modelBlock{until: now + p.begins}
				if p.words.max > 0 {
					b.length, b.forgotten = p.begins, b.until+p.begins
				}
				p.policy.blocks[p.key] = b
			}
			continue
		}
		l := m.list(p.policy, p.key)
		before := *l
		before.requests = slices.Clone(l.requests)
		charge(l, p.words, now, p.cost)
		fives[i] = m.five(p, now)
		if peek || index >= 0 {
			*l = before
			fives[i] = m.five(p, now)
		}
	}
	limited := 0
	if index >= 0 {
		limited = 1
	}
	return fmt.Sprintf("[%d %d [%s]]", limited, index, strings.Join(fives, " "))
}

// charge enters a cost that passes, or gives one back, which takes the newest.
func charge(l *listModel, w modelWords, now, cost int64) {
	switch {
	case w.unlimited:
	case cost > 0:
		if now >= l.end {
			l.end = now + l.window
			if l.fixed {
				l.requests = nil
			}
		}
		l.requests = append(l.requests, charged{now, cost})
	case cost < 0:
		for left := -cost; left > 0 && len(l.requests) > 0; {
			last := &l.requests[len(l.requests)-1]
			if last.at <= now-l.window {
				return
			}
			n := min(left, last.units)
			left -= n
			if last.units -= n; last.units == 0 {
				l.requests = l.requests[:len(l.requests)-1]
			}
		}
	}
}

// TestExceptionsAgainstModel makes random calls of RL.TAKE among changes of overrides, bans and the policies themselves, and compares every reply with a model
// that was written from the documentation.
func TestExceptionsAgainstModel(t *testing.T) {
	for _, kind := range []struct {
		name                      string
		overrides, blocks, shadow bool
	}{
		{"overrides", true, false, false}, {"blocks", false, true, false}, {"shadow", false, false, true}, {"mixed", true, true, true},
	} {
		t.Run(kind.name, func(t *testing.T) {
			seed := *exceptionSeed
			if seed == 0 {
				seed = rand.Uint64()
			}
			t.Logf("-exceptions.seed %d", seed)
			w := servertest.NewClockClient(t)
			at := &exceptionServer{call: w.Call, now: &w.Now}
			for i := range *exceptionHistories {
				rnd := rand.New(rand.NewPCG(seed, uint64(i)))
				checkExceptions(t, at, rnd, kind.overrides, kind.blocks, kind.shadow)
			}
		})
	}
}

// TestExceptionsSurviveKills: the same, where the server is killed between calls, and starts from its append-only file, as it was written or as it was
// rewritten.
func TestExceptionsSurviveKills(t *testing.T) {
	seed := *exceptionSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-exceptions.seed %d", seed)
	for i := range *exceptionHistories / 30 {
		rnd := rand.New(rand.NewPCG(seed, uint64(i)))
		disk, now := crashfs.New("/data"), int64(servertest.WallAtStart)
		start := func() *servertest.AOFServer {
			w, err := servertest.StartAOF(disk, config.FsyncAlways, &now, nil)
			require.NoError(t, err)
			return w
		}
		w := start()
		at := &exceptionServer{now: &now}
		at.call = func(line string) string {
			text, _ := servertest.PlainReply(w.Words(strings.Fields(line)...))
			return text
		}
		at.restart = func() {
			if rnd.IntN(3) == 0 {
				require.Contains(t, at.call("BGREWRITEAOF"), "started")
				w.Settle(t)
			}
			w.Kill()
			disk = disk.Clone()
			w = start()
		}
		checkExceptions(t, at, rnd, true, true, true)
		w.Kill()
	}
}

// TestExceptionsAreMoved: the same, where all keys are dumped between calls, and restored on another server.
func TestExceptionsAreMoved(t *testing.T) {
	seed := *exceptionSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-exceptions.seed %d", seed)
	start := func() *servertest.ClockClient {
		w := servertest.NewClockClient(t)
		w.Srv.Config.Get().EnableRestoreCommand = config.AccessYes
		return w
	}
	w, spare := start(), start()
	now := w.Now
	at := &exceptionServer{now: &now}
	at.call = func(line string) string {
		w.Now = *at.now
		return w.Call(line)
	}
	at.restart = func() {
		w.Now, spare.Now = *at.now, *at.now
		spare.Call("FLUSHALL")
		for key := range strings.FieldsSeq(strings.Trim(w.Call("KEYS *"), "[]")) {
			dump := string(w.Run(servertest.EncodeCommand("DUMP", key)))
			if dump == "$-1\r\n" {
				continue // it has expired
			}
			until := w.Call("PEXPIRETIME " + key)
			if until == "-1" {
				until = "0"
			}
			payload, _ := servertest.PlainReply(dump)
			require.Equal(t, "OK", spare.Ask("RESTORE", key, until, payload, "ABSTTL"))
		}
		w, spare = spare, w
	}
	for i := range *exceptionHistories / 60 {
		checkExceptions(t, at, rand.New(rand.NewPCG(seed, uint64(i))), true, true, true)
	}
}

// exceptionServer is where a history runs.
type exceptionServer struct {
	call    func(line string) string
	now     *int64 // ns
	restart func() // ends it at once, and starts it from what it has kept; nil: not at all
}

// checkExceptions is one history.
func checkExceptions(t *testing.T, w *exceptionServer, rnd *rand.Rand, overrides, blocks, shadow bool) {
	*w.now += rnd.Int64N(1000) * 1e6
	w.call("SET stays x") // what an empty keyspace has to make anew would take up a third of the time
	for key := range strings.FieldsSeq(strings.Trim(w.call("KEYS *"), "[]")) {
		if key != "stays" {
			w.call("DEL " + key)
		}
	}
	m := &exceptionModel{policies: map[string]*modelPolicy{}, lists: map[string]*listModel{}}
	words := func() (words modelWords) {
		words.limit = rnd.Int64N(4)
		words.shadow = shadow && rnd.IntN(3) == 0
		if blocks && rnd.IntN(3) > 0 {
			words.length = 1 + rnd.Int64N(30)
			if rnd.IntN(2) == 0 {
				words.max = words.length + rnd.Int64N(100)
			}
		}
		return words
	}
	var history []string
	call := func(line string) string {
		history = append(history, strconv.FormatInt(*w.now/1e6, 10), line)
		reply := w.call(line)
		history = append(history, reply)
		return reply
	}
	for name, algorithm := range map[string]string{"a": "FIXED", "b:c": "LOG", "d": "FIXED"} {
		p := &modelPolicy{algorithm: algorithm, window: 1 + rnd.Int64N(30), modelWords: words(), overrides: map[string]modelOverride{}, blocks: map[string]modelBlock{}}
		m.policies[name] = p
		call("RL.POLICY SET " + name + " " + p.text(p.modelWords))
	}
	names := slices.Sorted(maps.Keys(m.policies))
	keyOf := func(name string) string { return []string{"user:", "{1}:", "x}"}[rnd.IntN(3)] + name }
	for range 1 + rnd.IntN(25) {
		step := []int64{0, rnd.Int64N(3), rnd.Int64N(40), rnd.Int64N(200)}[rnd.IntN(4)]
		if overrides && rnd.IntN(20) == 0 {
			step = rnd.Int64N(1500)
		}
		*w.now += step * 1e6
		if w.restart != nil && rnd.IntN(4) == 0 {
			w.restart()
			history = append(history, "killed")
		}
		now := *w.now / 1e6
		name := names[rnd.IntN(len(names))]
		p, key := m.policies[name], keyOf(name)
		got, want := "", "OK"
		switch n := rnd.IntN(20); {
		case n == 0:
			p.modelWords = words()
			got = call("RL.POLICY SET " + name + " " + p.text(p.modelWords))
		case n == 1 && overrides:
			o := modelOverride{modelWords: words()}
			o.unlimited = rnd.IntN(4) == 0
			line := "RL.POLICY OVERRIDE SET " + name + " " + key + " " + p.text(o.modelWords)
			if o.unlimited {
				o.modelWords = modelWords{unlimited: true}
			}
			if rnd.IntN(3) == 0 {
				o.until = now + 1000
				line += " EX 1"
			}
			p.overrides[key] = o
			got = call(line)
		case n == 2 && overrides:
			want = "0"
			if o, found := p.overrides[key]; found && (o.until == 0 || now <= o.until) {
				want = "1"
			}
			delete(p.overrides, key)
			got = call("RL.POLICY OVERRIDE DEL " + name + " " + key)
		case n == 3 && blocks:
			length := 1 + rnd.Int64N(60)
			p.blocks[key] = modelBlock{until: now + length}
			got = call(fmt.Sprintf("RL.BLOCK %s %s %d", name, key, length))
		case n == 4 && blocks:
			want = "0"
			if now < p.blocks[key].until {
				want = "1"
			}
			delete(p.blocks, key)
			got = call("RL.UNBLOCK " + name + " " + key)
		default:
			var pairs []modelPair
			line, costs := "", ""
			for _, i := range rnd.Perm(len(names))[:1+rnd.IntN(len(names))] {
				pair := modelPair{policy: m.policies[names[i]], key: keyOf(names[i]), cost: rnd.Int64N(4)}
				if pair.policy.algorithm == "LOG" && rnd.IntN(8) == 0 {
					pair.cost = -1 - rnd.Int64N(2)
				}
				line += " " + names[i] + " " + pair.key
				costs += fmt.Sprintf(" %d", pair.cost)
				pairs = append(pairs, pair)
			}
			peek := rnd.IntN(6) == 0
			line = fmt.Sprintf("RL.TAKE %d%s COSTS%s", len(pairs), line, costs)
			if peek {
				line += " PEEK"
			}
			want, got = m.take(pairs, now, peek), call(line)
		}
		if want != got {
			t.Fatalf("%s\nmodel: %s", strings.Join(history, "\n"), want)
		}
	}
}
