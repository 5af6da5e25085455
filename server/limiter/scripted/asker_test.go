package scripted_test

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"headgate/server/limiter"
	"headgate/server/limiter/scripted"
	"headgate/server/resp"
	"headgate/server/servertest"
	"headgate/throttle"

	"github.com/stretchr/testify/require"
)

// asker asks limiters whose state lies on another server, as a gateway does, and answers as a server at home would.
type asker struct {
	t        testing.TB
	send     func(request []byte) []byte
	policies map[string]string

	q      scripted.Question
	writer scripted.PlainWriter
	take   scripted.Take
	out    resp.Writer
	buf    []byte
	trips  int // commands that were sent for the last call

	// between is called before each command, unless it is nil.
	between func(trip int)
}

// Ask answers a command in RESP2.
func (a *asker) Ask(words ...string) string {
	a.t.Helper()
	a.trips = 0
	a.out.Reset()
	if err := a.answer(words); err != nil {
		a.out.Error(err.Error())
	}
	return string(a.out.Bytes())
}

// exchange sends a request and all that it leads to.
func (a *asker) exchange(request []byte, answer func([]byte) (scripted.Outcome, error), next func([]byte) []byte, disagrees func() bool) error {
	a.t.Helper()
	for {
		var reply []byte
		if len(request) > 0 {
			if a.between != nil {
				a.between(a.trips)
			}
			a.trips++
			reply = a.send(request)
		}
		outcome, err := answer(reply)
		require.NotErrorIs(a.t, err, scripted.ErrMalformed, "%q leads to %q", request, reply)
		require.False(a.t, disagrees(), "%q leads to %q", request, reply)
		if err != nil || outcome == scripted.Done {
			return err
		}
		request = next(request[:0])
	}
}

func (a *asker) ask(request []byte) error {
	a.t.Helper()
	a.buf = request
	return a.exchange(request, a.q.Answer, a.q.Next, a.q.Disagrees)
}

func parse(t testing.TB, word string) int64 {
	n, err := strconv.ParseInt(word, 10, 64)
	require.NoError(t, err)
	return n
}

func bytesOf(words []string) (list [][]byte) {
	for _, word := range words {
		list = append(list, []byte(word))
	}
	return list
}

func (a *asker) answer(words []string) error {
	name, key := strings.ToUpper(words[0]), []byte(words[1])
	switch name {
	case "CL.THROTTLE", "RL.THROTTLE":
		quantity := int64(1)
		if len(words) > 5 {
			quantity = parse(a.t, words[5])
		}
		g, err := throttle.NewGCRA(throttle.Quota{MaxBurst: parse(a.t, words[2]), Count: parse(a.t, words[3]), Period: parse(a.t, words[4])})
		if err != nil {
			return limiter.ErrNotInteger
		}
		return a.cell(key, g, quantity, throttle.RetrySeconds, throttle.Seconds)
	case "GCRA":
		quantity := int64(1)
		if len(words) > 6 {
			quantity = parse(a.t, words[6])
		}
		period, err := strconv.ParseFloat(words[4], 64)
		require.NoError(a.t, err)
		g, err := throttle.NewIntervalGCRA(parse(a.t, words[2]), 1000*int64(max(1, math.Floor(period*1e6/float64(parse(a.t, words[3]))+0.5))))
		if err != nil {
			return limiter.ErrNotInteger
		}
		retry := func(d int64) int64 {
			if d < 0 {
				return -1
			}
			return max(1, throttle.SecondsOfMicros(d))
		}
		return a.cell(key, g, quantity, retry, throttle.SecondsOfMicros)
	case "RL.RELEASE":
		return a.lease(a.q.AskRelease(a.buf[:0], key, []byte(words[2])))
	case "RL.RENEW":
		ttl, err := limiter.ParseDuration([]byte(words[3]))
		require.NoError(a.t, err)
		return a.lease(a.q.AskRenew(a.buf[:0], key, []byte(words[2]), ttl))
	case "RL.RESET":
		err := a.ask(a.q.AskReset(a.buf[:0], bytesOf(words[1:])))
		if err == nil {
			a.out.Int(a.q.Forgotten)
		}
		return err
	case "RL.TAKE":
		return a.takes(words)
	case "INCREX":
		return a.increx(words)
	}
	var p limiter.Policy
	var r limiter.Request
	algorithm := limiter.Standard.Find(strings.TrimPrefix(name, "RL."))
	require.NotNil(a.t, algorithm, name)
	if err := algorithm.ReadCall(&p, &r, bytesOf(words[2:])); err != nil {
		return err
	}
	if err := a.ask(a.q.Ask(a.buf[:0], key, &p, &r)); err != nil {
		return err
	}
	v := &a.q.Call.Verdict
	switch algorithm.Beyond {
	case limiter.Nothing:
		a.out.Array(5)
		a.numbers(&v.Verdict)
	case limiter.WaitTime:
		a.out.Array(6)
		a.numbers(&v.Verdict)
		a.out.Int(v.WaitMs)
	case limiter.LeaseID:
		a.out.Array(6)
		a.numbers(&v.Verdict)
		a.id(v.ID)
	}
	return nil
}

func (a *asker) cell(key []byte, g throttle.GCRA, quantity int64, retry, seconds func(int64) int64) error {
	a.t.Helper()
	request := a.q.AskGCRA(a.buf[:0], key, g, quantity)
	a.buf = request
	var p scripted.Plain
	plain, isPlain := a.writer.Ask(&p, nil, key, &g, quantity)
	if isPlain = isPlain && !a.q.Inline; isPlain { // then both ask the same, and take the answer for the same
		require.Equal(a.t, string(request), string(scripted.PlainScript().Joint().Head)+string(plain))
		require.Equal(a.t, string(key), string(p.Key(plain)))
	}
	hear := func(reply []byte) (scripted.Outcome, error) {
		usual := isPlain && a.trips == 1 && p.Answer(nil, reply)
		outcome, err := a.q.Answer(reply)
		if usual {
			require.Equal(a.t, scripted.Done, outcome, "%q", reply)
			require.NoError(a.t, err)
			require.Equal(a.t, a.q.Decision, p.Decision, "%q", reply)
		}
		return outcome, err
	}
	err := a.exchange(request, hear, a.q.Next, a.q.Disagrees)
	if err == nil {
		d := &a.q.Decision
		a.out.Array(5)
		a.out.Ints(oneIf(d.Limited), d.Limit, d.Remaining, retry(d.RetryAfter), seconds(d.ResetAfter))
	}
	return err
}

func (a *asker) lease(request []byte) error {
	err := a.ask(request)
	if err == nil {
		a.out.Int(oneIf(a.q.Held))
	}
	return err
}

func oneIf(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func (a *asker) numbers(v *throttle.Verdict) {
	a.out.Ints(oneIf(v.Limited), v.Limit, v.Remaining, v.RetryAfter, v.ResetAfter)
}

func (a *asker) id(id []byte) {
	if id == nil {
		a.out.Null()
	} else {
		a.out.Bulk(id)
	}
}

// policy reads one of the asker's policies.
func (a *asker) policy(name string) *limiter.Policy {
	p, _, err := limiter.Standard.ParseText(limiter.Words(a.policies[name]))
	require.NoError(a.t, err, name)
	return &p
}

// takes answers RL.TAKE with COSTS.
func (a *asker) takes(words []string) error {
	n := int(parse(a.t, words[1]))
	pairs := a.take.Pairs(n)
	rest := words[2+2*n:]
	a.take.Peek = slices.Contains(rest, "PEEK")
	leases := false
	for i, p := range pairs {
		p.Policy, p.Key = a.policy(words[2+2*i]), []byte(words[3+2*i])
		p.Request.Call.Cost = parse(a.t, rest[1+i])
		leases = leases || p.Policy.Algorithm.Beyond == limiter.LeaseID
	}
	if err := a.exchange(a.take.Ask(a.buf[:0]), a.take.Answer, a.take.Next, a.take.Disagrees); err != nil {
		return err
	}
	a.out.Array(3 + int(oneIf(leases)))
	a.out.Int(oneIf(a.take.Limiting >= 0))
	a.out.Int(int64(a.take.Limiting))
	a.out.Array(n)
	for _, p := range pairs {
		a.out.Array(5)
		a.numbers(&p.Call.Verdict.Verdict)
	}
	if leases {
		a.out.Array(n)
		for _, p := range pairs {
			a.id(p.Call.Verdict.ID)
		}
	}
	return nil
}

// world is a server with a limiter's state, and a native one beside it, at the same time by a clock that stands.
type world struct {
	asker
	*servertest.HandClock
	there, home *servertest.WorkerClient
	homeClock   *servertest.HandClock
}

// newWorld starts both. Scripts are known to the one.
func newWorld(t *testing.T) *world {
	w := &world{}
	w.there, w.HandClock = servertest.NewHandClockClient(t, servertest.Unsaved())
	w.home, w.homeClock = servertest.NewHandClockClient(t, servertest.Unsaved())
	w.t = t
	w.send = func(request []byte) []byte { return feed(w.there, request) }
	for _, s := range scripted.Scripts() {
		reply := string(feed(w.there, servertest.EncodeCommand("SCRIPT", "LOAD", s.Text())))
		require.Equal(t, "$40\r\n"+s.SHA()+"\r\n", reply, s.Name)
	}
	return w
}

// feed has a server run a command of any length.
func feed(w *servertest.WorkerClient, request []byte) []byte {
	_, _, replies := w.DrainTurns(request)
	return replies
}

// pass lets time pass for both.
func (w *world) pass(ns int64) { w.setNow(w.Ns + ns) }

func (w *world) setNow(ns int64) {
	w.Ns, w.homeClock.Ns = ns, ns
	w.q.NowMs, w.take.NowMs = ns/1e6, ns/1e6
}

var drawnID = regexp.MustCompile(`[0-9a-f]{32}`)

// both makes a call at both, and compares the replies, but for ids that were drawn.
func (w *world) both(words ...string) string {
	w.t.Helper()
	home, there := w.home.Ask(words...), w.Ask(words...)
	require.Equal(w.t, drawnID.ReplaceAllString(home, "id"), drawnID.ReplaceAllString(there, "id"), "%q at %d", words, w.Ns)
	return there
}

// set runs a command of Redis's at both.
func (w *world) set(words ...string) {
	w.t.Helper()
	require.Equal(w.t, w.home.Ask(words...), w.there.Ask(words...), "%q", words)
}

// state is what a server keeps at a key, but for ids that were drawn.
func state(ask func(words ...string) string, key string) string {
	kind := strings.Trim(ask("TYPE", key), "+\r\n")
	read := map[string][]string{"string": {"GET", key}, "hash": {"HGETALL", key}, "zset": {"ZRANGE", key, "0", "-1", "WITHSCORES"}}[kind]
	if read == nil {
		return kind
	}
	words := strings.Split(drawnID.ReplaceAllString(ask(read...), "id"), "\r\n")
	if kind != "string" { // whose elements may be in any order, as far as ids are drawn
		var pairs []string
		for i := 1; i+3 < len(words); i += 4 {
			pairs = append(pairs, strings.Join(words[i:i+4], " "))
		}
		slices.Sort(pairs)
		words = pairs
	}
	return kind + " " + strings.Join(words, " ") + ask("PEXPIRETIME", key)
}

// same compares what is kept at keys.
func (w *world) same(why any, keys ...string) {
	w.t.Helper()
	for _, key := range keys {
		home, there := state(w.home.Ask, key), state(w.there.Ask, key)
		require.Equal(w.t, home, there, "%s after %v", key, why)
	}
}

func line(format string, values ...any) []string {
	return strings.Fields(fmt.Sprintf(format, values...))
}
