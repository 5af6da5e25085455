package httpcheck

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"headgate/server/limiter"
	"headgate/server/local"
)

// fieldRoom is how long a field may be, in bytes, for which no memory is taken beside its text's. Few limits fit.
const fieldRoom = 128

// maxInteger is the largest integer that a field of RFC 9651 may have. One with a larger number could not be read at all.
const maxInteger = 999_999_999_999_999

func appendInteger(b []byte, n int64) []byte { return strconv.AppendInt(b, min(n, maxInteger), 10) }

// setFields sets RateLimit and RateLimit-Policy, as draft-ietf-httpapi-ratelimit-headers-11 has them: a member for each limit. A policy without a
// limit has none.
func (s *Server) setFields(h http.Header, pairs []local.Pair, list []local.Verdict) {
	var policyRoom, limitRoom [fieldRoom]byte
	policies, limits := policyRoom[:0], limitRoom[:0]
	for i, v := range list {
		if v.Limit < 0 {
			continue
		}
		if len(limits) > 0 {
			policies, limits = append(policies, ", "...), append(limits, ", "...)
		}
		policies = appendInteger(append(appendQuoted(policies, pairs[i].Policy), ";q="...), v.Limit)
		if w := s.windows.of(pairs[i].Policy, v.Limit); w > 0 {
			policies = appendInteger(append(policies, ";w="...), w)
		}
		remaining, reset := max(0, v.Remaining), max(0, v.ResetAfter)
		blocked := held(&v, pairs[i].Cost)
		if blocked {
			remaining, reset = 0, max(0, v.RetryAfter)
		}
		limits = appendInteger(append(appendQuoted(limits, pairs[i].Policy), ";r="...), remaining)
		if !blocked || v.RetryAfter >= 0 { // else for good, and no time can be told
			limits = appendInteger(append(limits, ";t="...), seconds(reset))
		}
	}
	if len(limits) > 0 {
		text := string(append(policies, limits...)) // of both, to be taken at once, as the lists are
		both := []string{text[:len(policies)], text[len(policies):]}
		h["Ratelimit-Policy"], h["Ratelimit"] = both[:1:1], both[1:]
	}
}

// held reports whether a limit does not let a call pass for which it would have enough left, or for longer than until all of it is back: its key
// is blocked, or others wait for it. Then nothing of it can be had.
func held(v *local.Verdict, cost int64) bool {
	return v.Limited && (v.RetryAfter > v.ResetAfter || cost > 0 && v.Remaining >= cost)
}

// appendQuoted appends a name as a string of RFC 9651. Policies' names have nothing that needs a backslash; what has is left out.
func appendQuoted(b []byte, name string) []byte {
	b = append(b, '"')
	for _, c := range []byte(name) {
		if c >= ' ' && c <= '~' && c != '"' && c != '\\' {
			b = append(b, c)
		}
	}
	return append(b, '"')
}

// longestRetry is the time in seconds after which to try again: the longest of those that limit, or -1 if one never passes.
func longestRetry(list []local.Verdict) (longest int64) {
	for _, v := range list {
		switch {
		case !v.Limited:
		case v.RetryAfter < 0:
			return -1
		default:
			longest = max(longest, seconds(v.RetryAfter), 1)
		}
	}
	return longest
}

// seconds is a time in ms in whole seconds, rounded up.
func seconds(ms int64) int64 { return ms/1000 + min(1, ms%1000) }

// windows knows how long the windows of policies are, as RL.POLICY GET tells, for windowAge.
type windows struct {
	mu     sync.Mutex
	byName map[string]window
	now    func() time.Time // nil: time.Now
}

type window struct {
	limit   int64 // of which it is: a key's own differs
	seconds int64 // 0: it has none, or the user may not know
	learned time.Time
}

const (
	windowAge  = time.Second
	maxWindows = 10_000
)

func (w *windows) time() time.Time {
	if w.now != nil {
		return w.now()
	}
	return time.Now()
}

// unknown lists the names whose windows are to be asked for.
func (w *windows) unknown(pairs []local.Pair) (names []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.time()
	for i := range pairs {
		name := pairs[i].Policy
		if known, ok := w.byName[name]; (!ok || now.Sub(known.learned) > windowAge) && limiter.CheckName([]byte(name)) == nil {
			names = append(names, name)
		}
	}
	return names
}

// learn takes what RL.POLICY GET has answered about a name.
func (w *windows) learn(name, text string) {
	learned := window{learned: w.time()}
	if p, _, err := limiter.Standard.ParseText(limiter.Words(text)); err == nil {
		learned.limit, learned.seconds = p.Limit, seconds(p.WindowMs())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byName == nil || len(w.byName) >= maxWindows {
		w.byName = map[string]window{}
	}
	w.byName[name] = learned
}

// of is the window of a policy in seconds, or 0. A key whose limit is another has an override, which may have another window, too.
func (w *windows) of(name string, limit int64) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if known := w.byName[name]; known.limit == limit {
		return known.seconds
	}
	return 0
}
