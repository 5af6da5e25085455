package limits_test

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate/server/command"

	"github.com/stretchr/testify/require"
)

var (
	waitHistories = flag.Int("wait.histories", 1500, "random histories of calls that wait; make waits takes a million")
	waitSeed      = flag.Int64("wait.seed", 0, "seed of the first of them; 0: by the time")
)

// waitModel says what may become of calls that wait, for a few keys with one limiter each. It has no queues: it keeps everybody in one list, and
// finds out when somebody could pass by letting one ms after the other go by. Times are in ms.
type waitModel struct {
	now     int64
	keys    []*waitKey
	waiting []*waitCall // by arrival
}

// waitKey is a key, with what its limiter has charged.
type waitKey struct {
	kind     string
	policy   int64 // the policy's limit
	window   int64 // of FIXED and LOG, a lease's time, or what a unit costs a rate
	count    int64 // of FIXED
	end      int64
	entries  []int64          // of LOG
	leases   map[string]int64 // of ACQUIRE: when each ends
	tat      int64            // of GCRA and QUEUE
	standing string           // memory for the key's name
}

// waitCall is a call, over one key by the limiter's own command or over several by RL.TAKE.
type waitCall struct {
	client   string
	take     bool
	pairs    []waitPair
	deadline int64
	came     int
	stood    int // the pair for whose key it stood when it was last looked at
}

// waitPair is one key of a call.
type waitPair struct {
	key   *waitKey
	cost  int64
	limit int64 // of its own words; RL.TAKE goes by the policy's
}

func (c *waitCall) limit(p waitPair) int64 {
	if c.take {
		return p.key.policy
	}
	return p.limit
}

// order returns the first order, by arrival as far as possible, in which the limits let calls pass behind others, or one in which they do not.
func (m *waitModel) order(before, calls []*waitCall) []*waitCall {
	if len(calls) == 0 || !m.letAll(append(slices.Clone(before), calls[0])) && len(calls) == 1 {
		return append(slices.Clone(before), calls...)
	}
	for i, c := range calls {
		next := append(slices.Clone(before), c)
		if !m.letAll(next) {
			continue
		}
		if all := m.order(next, slices.Delete(slices.Clone(calls), i, i+1)); m.letAll(all) {
			return all
		}
	}
	return append(slices.Clone(before), calls...)
}

// letAll reports whether calls that have waited can pass one behind the other.
func (m *waitModel) letAll(calls []*waitCall) bool {
	charged := map[*waitKey]*waitKey{}
	for i, c := range calls {
		for _, p := range c.pairs {
			k := charged[p.key]
			if k == nil {
				copied := *p.key
				copied.leases, copied.entries = maps.Clone(p.key.leases), slices.Clone(p.key.entries)
				k = &copied
				charged[p.key] = k
			}
			if !k.lets(m.now, c.limit(p), p.cost, true) {
				return false
			}
			k.charge(m.now, p.cost, fmt.Sprint(i))
		}
	}
	return true
}

// lets reports whether a key lets a call pass at a time; holds: it is one that waits.
func (k *waitKey) lets(at, limit, cost int64, holds bool) bool {
	switch k.kind {
	case "FIXED":
		return k.used(at)+cost <= limit
	case "LOG", "ACQUIRE":
		return k.used(at)+cost <= limit
	case "QUEUE":
		if holds && k.tat > at {
			return false
		}
	}
	return cost <= limit && max(at, k.tat)+cost*k.window-at <= limit*k.window
}

// used is how much of a limit is used at a time, if it is no rate.
func (k *waitKey) used(at int64) (n int64) {
	switch k.kind {
	case "FIXED":
		if at < k.end {
			n = k.count
		}
	case "LOG":
		for _, e := range k.entries {
			if e > at-k.window && e <= at {
				n++
			}
		}
	case "ACQUIRE":
		for _, end := range k.leases {
			if end > at {
				n++
			}
		}
	}
	return n
}

// charge notes that a call has passed.
func (k *waitKey) charge(at, cost int64, id string) {
	switch k.kind {
	case "FIXED":
		if at >= k.end {
			k.count, k.end = 0, at+k.window
		}
		k.count += cost
	case "LOG":
		for range cost {
			k.entries = append(k.entries, at)
		}
	case "ACQUIRE":
		if cost > 0 {
			k.leases[id] = at + k.window
		}
	default:
		k.tat = max(at, k.tat) + cost*k.window
	}
}

// forget has the key be as new.
func (k *waitKey) forget() {
	k.count, k.end, k.tat, k.entries = 0, 0, 0, nil
	clear(k.leases)
}

// words are the key's name and what its limiter is called with.
func (k *waitKey) words(limit int64) string {
	switch k.kind {
	case "GCRA", "QUEUE":
		return fmt.Sprintf("%s %d 1 %d", k.kind, limit, k.window)
	}
	return fmt.Sprintf("%s %d %d", k.kind, limit, k.window)
}

// never is later than any deadline.
const never = math.MaxInt64

// passesAt is when calls pass that stand for a key one behind the other, the last of them, by then at the latest: never if it is later. Of a limit
// that is no rate nobody knows what those before leave: the first one's time is the last one's.
func (m *waitModel) passesAt(k *waitKey, queue []*waitCall, latest int64) int64 {
	rate := k.kind == "GCRA" || k.kind == "QUEUE"
	copied := *k
	at := m.now
	for i, c := range queue {
		if !rate && i > 0 {
			break
		}
		p := c.pairOf(k)
		if p.cost > c.limit(p) {
			return never
		}
		for !copied.lets(at, c.limit(p), p.cost, true) {
			if at++; at > latest {
				return never
			}
		}
		if rate {
			copied.charge(at, p.cost, "")
		}
	}
	return at
}

// pairOf is the call's pair of a key.
func (c *waitCall) pairOf(k *waitKey) waitPair {
	return c.pairs[slices.IndexFunc(c.pairs, func(p waitPair) bool { return p.key == k })]
}

// standsFor are the calls that stood in a key's queue, of those that have come before a call, and that call.
func standsFor(k *waitKey, waiting []*waitCall, last *waitCall) (queue []*waitCall) {
	for _, c := range waiting {
		if c.came < last.came && c.pairs[c.stood].key == k {
			queue = append(queue, c)
		}
	}
	return append(queue, last)
}

// waitRun is one history.
type waitRun struct {
	*crowd
	*waitModel
	r    *rand.Rand
	came int
	log  []string
	held map[string]*waitKey // leases, by their ids
}

// millis is the model's time.
func (h *waitRun) millis() int64 { return h.crowd.Now / 1e6 }

func (h *waitRun) fail(format string, a ...any) {
	h.T.Fatalf("%s\n%s", fmt.Sprintf(format, a...), strings.Join(h.log, "\n"))
}

// TestWaitHistories has clients come, wait, go, be killed and unblocked while keys are charged by others, given back, deleted, and their policies
// changed. Nobody passes who may not, nobody waits who could pass or cannot pass in time, nobody is turned away who could, those who wait for
// one key pass in their order, everybody is answered, and in the end the keys have what was charged to those who have passed and no more.
func TestWaitHistories(t *testing.T) {
	seed := *waitSeed
	if seed == 0 {
		seed = time.Now().UnixNano()
	}
	w := newCrowd(t)
	w.crowdQuiet()
	answered := 0
	for i := range int64(*waitHistories) {
		h := &waitRun{crowd: w, waitModel: &waitModel{}, r: rand.New(rand.NewSource(seed + i)), held: map[string]*waitKey{}}
		h.log = append(h.log[:0], fmt.Sprintf("-wait.seed %d -wait.histories 1", seed+i))
		h.run()
		answered += h.came
	}
	counts := w.Srv.Waits.Total()
	t.Logf("%d histories, %d calls, %d of them passed after waiting, %d were limited after waiting, %d gave up", *waitHistories, answered, counts.Passed, counts.Limited, counts.GivenUp)
	require.NotZero(t, counts.Passed)
	require.NotZero(t, counts.Limited)
	require.NotZero(t, counts.GivenUp)
}

// crowdQuiet has background work that is of no interest cost little.
func (w *crowd) crowdQuiet() { w.Call("CONFIG SET top-keys 0") }

func (h *waitRun) run() {
	h.waitModel.now = h.millis()
	for i, kind := range []string{"GCRA", "FIXED", "LOG", "ACQUIRE", "QUEUE"} {
		k := &waitKey{kind: kind, policy: 1 + h.r.Int63n(3), window: 1 + h.r.Int63n(12), leases: map[string]int64{}, standing: "k" + fmt.Sprint(i)}
		h.keys = append(h.keys, k)
		h.command("op", "RL.POLICY SET "+kind+" "+k.words(k.policy), "OK")
	}
	h.keys = h.keys[:1+h.r.Intn(5)]
	for range 4 + h.r.Intn(16) {
		h.step()
	}
	for len(h.waiting) > 0 { // nobody waits for longer than his deadline
		h.pass(h.waiting[0].deadline - h.waitModel.now)
	}
	for _, k := range h.keys {
		h.compareKey(k)
		h.command("op", "DEL "+k.standing, "")
	}
}

// command has a client send something whose reply is known, if want is not empty.
func (h *waitRun) command(name, line, want string) string {
	h.log = append(h.log, fmt.Sprintf("%d %s: %s", h.waitModel.now, name, line))
	got := h.send(name, strings.Fields(line)...)
	h.log[len(h.log)-1] += " | " + got
	if want != "" && got != want {
		h.fail("%s: %s instead of %s", line, got, want)
	}
	return got
}

func (h *waitRun) step() {
	k := h.keys[h.r.Intn(len(h.keys))]
	switch n := h.r.Intn(20); {
	case n < 10:
		h.call()
	case n < 14:
		h.pass(h.r.Int63n(10))
		return
	case n == 14:
		k.forget()
		h.command("op", []string{"DEL ", "RL.RESET "}[h.r.Intn(2)]+k.standing, "")
	case n == 15 && len(h.waiting) > 0: // somebody goes, or is made to
		c := h.waiting[h.r.Intn(len(h.waiting))]
		h.waiting = slices.DeleteFunc(h.waiting, func(o *waitCall) bool { return o == c })
		if h.r.Intn(2) == 0 {
			h.log = append(h.log, "hangs up: "+c.client)
			h.hangUp(c.client)
			h.Srv.Cron()
			break
		}
		id := fmt.Sprint(h.conns[c.client].Client.(*command.Client).ID)
		if h.r.Intn(2) == 0 {
			h.command("op", "CLIENT UNBLOCK "+id, "1")
			if got := h.reply(c.client); !limitedReply(got) {
				h.fail("%s was unblocked, and answered %s", c.client, got)
			}
			break
		}
		h.command("op", "CLIENT KILL ID "+id, "1")
		h.Srv.Cron() // it is about to be closed
		h.hangUp(c.client)
		h.Srv.Cron()
	case n == 16 && len(h.held) > 0: // a lease is given back, the first by name so that a seed repeats its history
		ids := make([]string, 0, len(h.held))
		for id := range h.held {
			ids = append(ids, id)
		}
		id := slices.Min(ids)
		k := h.held[id]
		delete(h.held, id)
		want := "0"
		if k.leases[id] > h.waitModel.now {
			want = "1"
		}
		delete(k.leases, id)
		h.command("op", "RL.RELEASE "+k.standing+" "+id, want)
	case n == 17:
		k.policy = 1 + h.r.Int63n(4)
		h.command("op", "RL.POLICY SET "+k.kind+" "+k.words(k.policy), "OK")
	case n >= 18 && k.kind == "GCRA": // what looks at nobody: it charges, or gives back
		cost := h.r.Int63n(6) - 2
		charge := cost * 1000 / 20 // ms, of 20 a second
		if cost < 0 {
			k.tat = max(h.waitModel.now, max(h.waitModel.now, k.tat)+charge)
		} else if max(h.waitModel.now, k.tat)+charge-h.waitModel.now <= 50*100 {
			k.tat = max(h.waitModel.now, k.tat) + charge
		}
		h.command("op", fmt.Sprintf("CL.THROTTLE %s 99 20 1 %d", k.standing, cost), "")
	}
	h.settle()
}

// limitedReply reports whether a reply is that of a call that was limited.
func limitedReply(reply string) bool { return strings.HasPrefix(reply, "[1 ") }

// call has a client that does not wait call a limiter.
func (h *waitRun) call() {
	name := ""
	for i := range 7 {
		name = fmt.Sprintf("c%d", i)
		if !slices.ContainsFunc(h.waiting, func(c *waitCall) bool { return c.client == name }) {
			break
		}
		name = ""
	}
	if name == "" {
		return
	}
	c := &waitCall{client: name, take: h.r.Intn(2) == 0, came: h.came, deadline: h.waitModel.now}
	h.came++
	wait := ""
	if h.r.Intn(5) > 0 {
		ms := 1 + h.r.Int63n(40)
		c.deadline += ms
		wait = fmt.Sprintf(" WAIT %d", ms)
	}
	var line string
	if c.take {
		keys := h.r.Perm(len(h.keys))[:1+h.r.Intn(min(3, len(h.keys)))]
		line = fmt.Sprintf("RL.TAKE %d", len(keys))
		costs := " COSTS"
		for _, i := range keys {
			k := h.keys[i]
			p := waitPair{key: k, cost: 1 + h.r.Int63n(2)}
			if k.kind == "ACQUIRE" {
				p.cost = 1
			}
			c.pairs = append(c.pairs, p)
			line += " " + k.kind + " " + k.standing
			costs += fmt.Sprintf(" %d", p.cost)
		}
		line += costs + wait
	} else {
		k := h.keys[h.r.Intn(len(h.keys))]
		p := waitPair{key: k, cost: 1 + h.r.Int63n(2), limit: k.policy}
		words := strings.Fields(k.words(k.policy))
		line = "RL." + words[0] + " " + k.standing + " " + strings.Join(words[1:], " ")
		if k.kind == "ACQUIRE" {
			p.cost = 1
		} else {
			line += fmt.Sprintf(" COST %d", p.cost)
		}
		c.pairs, line = []waitPair{p}, line+wait
	}
	before := slices.Clone(h.waiting)
	got := h.command(name, line, "")
	switch {
	case got == "-":
		h.waiting = append(h.waiting, c)
	case limitedReply(got):
		h.refused(c, before, wait == "")
	default:
		for _, p := range c.pairs {
			for _, o := range before {
				if !c.take && !o.take && o.pairs[0].key == p.key {
					h.fail("%s has overtaken %s", c.client, o.client)
				}
				if o.pairs[o.stood].key == p.key && slices.Contains(h.waiting, o) {
					h.fail("%s has overtaken %s, who stands for %s", c.client, o.client, p.key.standing)
				}
			}
		}
		h.passed(c, got, wait != "")
	}
}

// pass lets time pass, and looks at what has become of everybody whenever something is due.
func (h *waitRun) pass(ms int64) {
	for range ms {
		h.crowd.Now += 1e6
		h.waitModel.now = h.millis()
		h.Srv.Cron()
		h.settle()
	}
}

// settle has those be served who can be, and looks at everybody.
func (h *waitRun) settle() {
	for h.Srv.Cron() == 0 {
	}
	before := slices.Clone(h.waiting)
	var refused, passed []*waitCall
	replies := map[*waitCall]string{}
	for _, c := range before {
		got := h.reply(c.client)
		if got == "-" {
			continue
		}
		h.log = append(h.log, fmt.Sprintf("%d %s: %s", h.waitModel.now, c.client, got))
		h.waiting = slices.DeleteFunc(h.waiting, func(o *waitCall) bool { return o == c })
		if limitedReply(got) {
			refused = append(refused, c)
		} else {
			passed, replies[c] = append(passed, c), got
		}
	}
	// Which of several keys had its turn first at this instant is not for the model to say; the order matters where calls of one key have
	// different limits.
	for _, c := range h.order(nil, passed) {
		h.passed(c, replies[c], true)
	}
	for _, c := range h.waiting { // where they stand now
		w, waits := h.conns[c.client].Client.(*command.Client).Blocked.(command.Waiter)
		if !waits {
			h.fail("%s waits for nothing", c.client)
		}
		key, _ := w.Awaits()
		c.stood = slices.IndexFunc(c.pairs, func(p waitPair) bool { return p.key.standing == key })
	}
	for _, c := range before {
		if slices.Contains(h.waiting, c) {
			continue
		}
		for _, o := range h.waiting {
			if !slices.Contains(refused, c) && !c.take && !o.take && o.came < c.came && o.pairs[0].key == c.pairs[0].key {
				h.fail("%s has passed before %s, who came first", c.client, o.client)
			}
		}
	}
	stayed := slices.DeleteFunc(before, func(c *waitCall) bool { return !slices.Contains(h.waiting, c) && !slices.Contains(refused, c) })
	for _, c := range refused {
		h.refused(c, stayed, false)
	}
	for _, c := range h.waiting {
		h.mayWait(c)
	}
}

// passed looks at a call that has passed, and charges its limits.
func (h *waitRun) passed(c *waitCall, reply string, holds bool) {
	ids := strings.Fields(strings.NewReplacer("[", " ", "]", " ").Replace(reply))
	for i, p := range c.pairs {
		if !p.key.lets(h.waitModel.now, c.limit(p), p.cost, holds) {
			h.fail("%s has passed, though %s limits it", c.client, p.key.standing)
		}
		id := ids[len(ids)-1]
		if c.take {
			id = ids[len(ids)-len(c.pairs)+i]
		}
		if p.key.kind == "ACQUIRE" {
			h.held[id] = p.key
		}
		p.key.charge(h.waitModel.now, p.cost, id)
	}
}

// refused looks at a call that was limited: it could not have passed in time, by the limits alone or since others stood before it.
func (h *waitRun) refused(c *waitCall, before []*waitCall, atOnce bool) {
	if h.waitModel.now >= c.deadline && !atOnce {
		return
	}
	for _, p := range c.pairs {
		if p.cost > c.limit(p) {
			return
		}
		alone := h.passesAt(p.key, []*waitCall{c}, c.deadline+1)
		if atOnce && (!p.key.lets(h.waitModel.now, c.limit(p), p.cost, false) || len(standsFor(p.key, before, c)) > 1) {
			return
		}
		if p.key.kind == "ACQUIRE" {
			continue
		}
		if alone > c.deadline || h.passesAt(p.key, standsFor(p.key, before, c), c.deadline+1) > c.deadline {
			return
		}
		// One who was limited at the same instant, by another of his keys, keeps nobody, and those behind him who stay do; or he had come to this key
		// in between, and a refusal stays even if one ahead leaves later.
		if h.passesAt(p.key, standsFor(p.key, h.waiting, c), c.deadline+1) > c.deadline || h.passesAt(p.key, h.mayHaveStood(p.key, before, c), c.deadline+1) > c.deadline {
			return
		}
	}
	h.fail("%s was limited, though it could pass by %d", c.client, c.deadline)
}

// mayHaveStood is standsFor, with those who were limited at this instant and may have moved to the key before.
func (h *waitRun) mayHaveStood(k *waitKey, before []*waitCall, last *waitCall) (queue []*waitCall) {
	for _, c := range before {
		asks := slices.ContainsFunc(c.pairs, func(p waitPair) bool { return p.key == k })
		if c.came < last.came && asks && (c.pairs[c.stood].key == k || !slices.Contains(h.waiting, c)) {
			queue = append(queue, c)
		}
	}
	return append(queue, last)
}

// mayWait looks at a call that waits.
func (h *waitRun) mayWait(c *waitCall) {
	p := c.pairs[c.stood]
	queue := standsFor(p.key, h.waiting, c)
	switch {
	case h.waitModel.now >= c.deadline:
		h.fail("%s still waits, though its deadline was at %d", c.client, c.deadline)
	case len(queue) == 1 && p.key.lets(h.waitModel.now, c.limit(p), p.cost, true):
		h.fail("%s waits for %s, which lets it pass", c.client, p.key.standing)
	case p.key.kind != "ACQUIRE" && h.passesAt(p.key, queue, c.deadline+1) > c.deadline:
		h.fail("%s still waits for %s, though it cannot pass by %d", c.client, p.key.standing, c.deadline)
	}
	for _, p := range c.pairs {
		if p.cost > c.limit(p) {
			h.fail("%s still waits, though %s can never let it pass", c.client, p.key.standing)
		}
	}
}

// compareKey compares what a key has with what was charged to those who have passed.
func (h *waitRun) compareKey(k *waitKey) {
	now := h.waitModel.now
	var used int64
	if k.kind == "GCRA" || k.kind == "QUEUE" {
		used = max(k.tat-now, 0)
	} else {
		used = k.used(now)
	}
	words := strings.Fields(k.words(100))
	line := "RL." + words[0] + " " + k.standing + " " + strings.Join(words[1:], " ") + " PEEK"
	got := strings.Fields(strings.Trim(h.command("op", line, ""), "[]"))
	want := fmt.Sprint(100 - used)
	at := 2
	if k.kind == "GCRA" || k.kind == "QUEUE" {
		want, at = fmt.Sprint(used), 4
	}
	if got[at] != want {
		h.fail("%s has %s, and not %s", k.standing, got[at], want)
	}
}
