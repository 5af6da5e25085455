package report_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"headgate/server/command"
	"headgate/server/front"
	"headgate/server/journal"
	"headgate/server/limiter"
	"headgate/server/observe"
	"headgate/server/page"
	"headgate/server/report"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// askPage asks a handler of the page and reads its JSON.
func askPage(t *testing.T, handler http.HandlerFunc, query url.Values, reply any) (status int) {
	t.Helper()
	w := httptest.NewRecorder()
	handler(w, httptest.NewRequest("GET", "/?"+query.Encode(), nil))
	require.Equal(t, "application/json", w.Header().Get("Content-Type"))
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), reply))
	return w.Code
}

// pageReply is what the page finds in /data.
type pageReply struct {
	Now         int64                    `json:"now"` // ms
	Version     string                   `json:"version"`
	RunID       string                   `json:"run"`
	Uptime      int64                    `json:"uptime"` // s
	Ready       string                   `json:"ready"`  // why not, or nothing
	Clients     int                      `json:"clients"`
	Keys        int                      `json:"keys"`
	Memory      uint64                   `json:"memory"`
	Commands    uint64                   `json:"commands"`
	Decisions   report.PageCounts        `json:"decisions"`
	Samples     [][]float64              `json:"samples"`
	TopSeconds  int64                    `json:"topSeconds"`
	Limited     *report.PageList         `json:"limited"`
	Hot         *report.PageList         `json:"hot"`
	Algorithms  []report.PageCounts      `json:"algorithms"`
	Policies    []report.PageCounts      `json:"policies"`
	Blocked     []report.PageBlocked     `json:"blocked"`
	Others      int                      `json:"others"`
	Slow        []report.PageSlowCommand `json:"slow"`
	SlowFrom    int64                    `json:"slowFrom"` // µs from which commands are; below 0: none is kept
	Certificate *report.PageCertificate  `json:"certificate"`
	MemoryLimit pageMemory               `json:"memoryLimit"`
	Disk        pageDisk                 `json:"disk"`
}

type pageMemory struct {
	Max     uint64 `json:"max"` // bytes; 0: no limit
	Policy  string `json:"policy"`
	Evicted uint64 `json:"evicted"` // keys
}

type pageDisk struct {
	Unwritable string       `json:"unwritable"` // what writes are answered with
	Log        *pageLog     `json:"log"`        // not there: appendonly is no
	Snapshot   pageSnapshot `json:"snapshot"`
}

type pageLog struct {
	Sync      string `json:"sync"` // appendfsync
	Bytes     int64  `json:"bytes"`
	LagMs     int64  `json:"lag"`       // age of the oldest change that no sync has begun for
	Failed    string `json:"failed"`    // why the last write did
	Rewrite   string `json:"rewrite"`   // why the last rewrite failed
	Rewriting bool   `json:"rewriting"` // now
}

type pageSnapshot struct {
	Points  bool   `json:"points"` // there are save points
	At      int64  `json:"at"`     // ms; 0: none since the start
	Changes uint64 `json:"changes"`
	Failed  bool   `json:"failed"`
	Saving  bool   `json:"saving"` // now
}

func TestPageData(t *testing.T) {
	w, clock := servertest.NewHandClockClient(t, servertest.Unsaved())
	s := w.Srv
	s.Samples.On = true
	sample := func() {
		s.Lock()
		defer s.Unlock()
		s.TakeSample(s.Clock.Read())
	}
	sample()
	w.Ask("RL.POLICY", "SET", "login", "FIXED", "2", "1h")
	for range 10 {
		w.Ask("CL.THROTTLE", "user:\xff", "3", "1", "3600")
		w.Ask("RL.TAKE", "1", "login", "<b>")
	}
	clock.Ns += int64(2 * time.Second)
	sample()
	sample() // not time yet
	var d pageReply
	require.Equal(t, 200, askPage(t, s.PageData, nil, &d))
	require.Equal(t, report.PageCounts{Allowed: 6, Near: 2, Limited: 14}, d.Decisions)
	require.Equal(t, []report.PageCounts{{Name: "gcra", Allowed: 4, Near: 1, Limited: 6}, {Name: "fixed", Allowed: 2, Near: 1, Limited: 8}}, d.Algorithms)
	require.Equal(t, []report.PageCounts{{Name: "login", Text: "FIXED 2 1h", Allowed: 2, Near: 1, Limited: 8}}, d.Policies)
	require.Len(t, d.Samples, 1)
	require.Equal(t, []float64{float64(d.Now), 3, 7, 10.5}, d.Samples[0][:4])
	require.Equal(t, 1.0, d.Samples[0][9], "near")
	require.Positive(t, d.Samples[0][4])
	require.LessOrEqual(t, d.Samples[0][4], d.Samples[0][6])
	require.Equal(t, 3, d.Keys)
	require.Equal(t, report.PageKey{Text: "<b>", Hex: "3c623e"}, d.Limited.Keys[0].Key)
	require.Equal(t, report.PageTopKey{Key: report.PageKey{Text: `"user:\xff"`, Hex: "757365723aff"}, Calls: 6}, d.Limited.Keys[1])
	require.EqualValues(t, 20, d.Hot.Calls)

	var none pageReply
	askPage(t, s.PageData, url.Values{"since": {fmt.Sprint(d.Now)}}, &none)
	require.Empty(t, none.Samples)
	w.Ask("CONFIG", "SET", "top-keys", "0")
	askPage(t, s.PageData, url.Values{"since": {"nonsense"}}, &none)
	require.Nil(t, none.Hot)
	require.Len(t, none.Samples, 1)
}

// TestPageForgetsWhatHasGone: a key that was unblocked and a policy that was deleted were shown until the next start.
func TestPageForgetsWhatHasGone(t *testing.T) {
	w, clock := servertest.NewHandClockClient(t, servertest.Unsaved())
	shown := func() (keys, policies []string) {
		var d pageReply
		askPage(t, w.Srv.PageData, nil, &d)
		for _, b := range d.Blocked {
			keys = append(keys, strings.TrimRight(b.Key.Text, "x…"))
		}
		for _, p := range d.Policies {
			policies = append(policies, p.Name)
		}
		return keys, policies
	}
	w.Ask("RL.POLICY", "SET", "p", "FIXED", "1", "1m")
	w.Ask("RL.POLICY", "SET", "q", "FIXED", "2", "1m")
	w.Ask("RL.TAKE", "1", "q", "k")
	w.Ask("RL.TAKE", "1", "FIXED 5 1m", "written")
	for _, key := range []string{"by RL.UNBLOCK", "by DEL", "ends", "stays", "long" + strings.Repeat("x", 200)} {
		w.Ask("RL.BLOCK", "p", key, map[bool]string{true: "1s", false: "1h"}[key == "ends"])
	}
	keys, policies := shown()
	require.Equal(t, []string{"long", "stays", "ends", "by DEL", "by RL.UNBLOCK"}, keys)
	require.ElementsMatch(t, []string{"p", "q", "(written)"}, policies)
	w.Ask("RL.UNBLOCK", "p", "by RL.UNBLOCK")
	w.Ask("RL.UNBLOCK", "p", "long"+strings.Repeat("x", 200))
	w.Ask("DEL", "rl:block:{by DEL}:p")
	w.Ask("RL.POLICY", "DEL", "q")
	clock.Ns += int64(2 * time.Second)
	keys, policies = shown()
	require.Equal(t, []string{"stays", "ends"}, keys, "one that ended by itself was blocked all the same")
	require.ElementsMatch(t, []string{"p", "(written)"}, policies)
	w.Ask("FLUSHALL")
	keys, policies = shown()
	require.Equal(t, []string{"ends"}, keys)
	require.Equal(t, []string{"(written)"}, policies)
}

// TestPageState: memory's bound, disk and certificate as they are, and slow commands without the secrets that SLOWLOG keeps to itself.
func TestPageState(t *testing.T) {
	w, clock := servertest.NewHandClockClient(t, servertest.Unsaved())
	s := w.Srv
	state := func() (d pageReply) {
		askPage(t, s.PageData, nil, &d)
		return d
	}
	d := state()
	require.Empty(t, d.Disk.Unwritable)
	require.Nil(t, d.Disk.Log)
	require.False(t, d.Disk.Snapshot.Points)
	require.Zero(t, d.Disk.Snapshot.At)
	require.Nil(t, d.Certificate)
	require.EqualValues(t, 10_000, d.SlowFrom)
	require.NotNil(t, d.Slow)

	w.Ask("CONFIG", "SET", "maxmemory", "50mb", "maxmemory-policy", "allkeys-lru", "slowlog-log-slower-than", "0")
	for range 3 * report.PageSlow {
		w.Ask("SET", "k", strings.Repeat("é", observe.SlowArgBytes), "EX", strings.Repeat("9", observe.SlowArgBytes))
	}
	d = state()
	require.Len(t, d.Slow, report.PageSlow)
	require.LessOrEqual(t, len(d.Slow[0].Text), report.PageSlowBytes+len("…"))
	require.True(t, utf8.ValidString(d.Slow[0].Text))
	require.Equal(t, clock.Ns/1e9, d.Slow[0].At)
	require.Equal(t, pageMemory{Max: 50 << 20, Policy: "allkeys-lru"}, d.MemoryLimit)
	w.Ask("SLOWLOG", "RESET")
	w.Ask("ACL", "SETUSER", "somebody", ">hunter2")
	w.Ask("AUTH", "somebody", "hunter2")
	w.Ask("SET", "k", "two words")
	d = state()
	require.Equal(t, "SET k \"two words\"", d.Slow[0].Text)
	require.Equal(t, "ACL SETUSER (redacted) (redacted)", d.Slow[2].Text)
	for _, c := range d.Slow {
		require.NotContains(t, c.Text, "hunter2")
	}
	w.Ask("CONFIG", "SET", "slowlog-log-slower-than", "-1")
	require.Negative(t, state().SlowFrom)

	s.Lock()
	s.AOF.Failed, s.Effects.Logged = errors.New("no space"), true
	s.Saving.Failed, s.Saving.Count, s.Saving.Last = true, 1, clock.Ns
	s.Gate.Refuse(command.GateDisk, journal.ErrDiskWrite+"no space")
	s.Unlock()
	d = state()
	require.Equal(t, journal.ErrDiskWrite+"no space", d.Disk.Unwritable)
	require.Equal(t, "no space", d.Disk.Log.Failed)
	require.Equal(t, "everysec", d.Disk.Log.Sync)
	require.True(t, d.Disk.Snapshot.Failed)
	require.Equal(t, clock.Ns/1e6, d.Disk.Snapshot.At)

	s.TLS.NotAfter.Store(time.Now().Add(front.ExpiryWarning - time.Minute).Unix())
	require.True(t, front.EndsSoon(time.Unix(s.TLS.NotAfter.Load(), 0)))
	s.TLS.NotAfter.Store(time.Now().Add(front.ExpiryWarning + time.Minute).Unix())
	require.False(t, front.EndsSoon(time.Unix(s.TLS.NotAfter.Load(), 0)))
}

// TestSamples: there are never more than the page shows, the oldest go first, and counters that begin anew make no rate negative.
func TestSamples(t *testing.T) {
	w, clock := servertest.NewHandClockClient(t, servertest.Unsaved())
	s := w.Srv
	sample := func() {
		clock.Ns += int64(time.Second)
		s.Lock()
		defer s.Unlock()
		s.TakeSample(s.Clock.Read())
	}
	sample()
	require.Empty(t, s.Samples.Since(0), "nobody has asked for any")
	s.Samples.On = true
	for range report.KeptSamples + 100 {
		w.Ask("PING")
		sample()
	}
	w.Ask("CONFIG", "RESETSTAT")
	w.Ask("PING")
	sample()
	all := s.Samples.Since(0)
	require.Len(t, all, report.KeptSamples)
	require.True(t, slices.IsSortedFunc(all, func(a, b report.PageSample) int { return int(a.At - b.At) }))
	require.Equal(t, clock.Ns/1e6, all[report.KeptSamples-1].At)
	for _, p := range all {
		require.GreaterOrEqual(t, p.Commands, 1.0)
		require.LessOrEqual(t, p.Commands, 2.0)
	}
	require.Len(t, s.Samples.Since(all[report.KeptSamples-3].At), 2)
}

func TestPageLookup(t *testing.T) {
	w, _ := servertest.NewHandClockClient(t, servertest.Unsaved())
	ask := func(query string) (l report.LookedUp, status int) {
		values, err := url.ParseQuery(query)
		require.NoError(t, err)
		status = askPage(t, w.Srv.PageLookup, values, &l)
		return l, status
	}
	w.Ask("RL.POLICY", "SET", "login", "FIXED", "5", "1h")
	w.Ask("RL.TAKE", "1", "login", "f")
	w.Ask("RL.GCRA", "g", "5", "1", "1m", "COST", "3")
	w.Ask("RL.SLIDING", "s", "5", "1h", "COST", "2")
	w.Ask("RL.LOG", "l", "5", "1h", "COST", "4")
	w.Ask("RL.ACQUIRE", "lease", "5", "1h")
	w.Ask("SET", "text", "hello")
	w.Ask("SELECT", "2")
	w.Ask("RL.FIXED", "\xff\x00", "1", "1m")
	dirty := w.Srv.Keys.Dirty()

	for _, tt := range []struct {
		query                  string
		kind, algorithm        string
		used, limit, remaining int64 // -1: not told
		reset                  int64
	}{
		{"key=f", "string", "fixed", 1, -1, -1, 3600_000},
		{"key=f&limit=login", "string", "fixed", 1, 5, 4, 3600_000},
		{"key=g", "string", "gcra", -1, -1, -1, 180_000},
		{"key=g&limit=GCRA+5+1+1m", "string", "gcra", 3, 5, 2, 180_000},
		{"key=s", "hash", "sliding", 2, -1, -1, -2},
		{"key=s&limit=SLIDING+5+1h", "hash", "sliding", 2, 5, 3, -2},
		{"key=l&limit=log+5+1h", "zset", "log", 4, 5, 1, 3600_000},
		{"key=l", "zset", "log", 4, -1, -1, 3600_000},
		{"key=lease", "zset", "lease", 1, -1, -1, 3600_000},
		{"key=none&limit=login", "", "fixed", 0, 5, 5, 0},
		{"hex=ff00&db=2", "string", "fixed", 1, -1, -1, 60_000},
	} {
		t.Run(tt.query, func(t *testing.T) {
			l, status := ask(tt.query)
			require.Equal(t, 200, status)
			require.Empty(t, l.Error)
			require.Equal(t, tt.kind, l.Kind)
			require.Equal(t, tt.kind != "", l.Found)
			require.Equal(t, tt.algorithm, l.Algorithm)
			told := func(p *int64) int64 {
				if p == nil {
					return -1
				}
				return *p
			}
			require.Equal(t, tt.used, told(l.Used), "used")
			require.Equal(t, tt.limit, told(l.Limit), "limit")
			require.Equal(t, tt.remaining, told(l.Remaining), "remaining")
			if tt.reset != -2 {
				require.Equal(t, tt.reset, told(l.ResetMs), "reset")
			}
		})
	}
	l, _ := ask("key=l&limit=LOG+4+1h")
	require.True(t, *l.Limited)
	require.EqualValues(t, 3600_000, *l.RetryMs)
	require.Equal(t, dirty, w.Srv.Keys.Dirty(), "looking changes nothing")

	for query, want := range map[string]string{
		"key=text&limit=login": strings.TrimPrefix(string(limiter.ErrForeign), "ERR "), "key=l&limit=login": command.ErrWrongType, "key=f&limit=nosuch": "no such policy 'nosuch'", "key=f&limit=NOSUCH+5+1m": strings.TrimPrefix(fmt.Sprintf(limiter.Standard.UnknownAlgorithm(), "NOSUCH"), "ERR "),
		"key=f&limit=GCRA": "syntax error, try GCRA capacity count period [SHADOW] [WHEN-UNWRITABLE <ERROR | MEMORY>] [FAILURE <ERROR | OPEN | CLOSED | LOCAL>] [<LEASE | NOLEASE>] [NAME name]",
	} {
		l, status := ask(query)
		require.Equal(t, 200, status)
		require.Equal(t, want, l.Error, query)
	}
	for _, query := range []string{"", "limit=login", "key=f&db=99", "key=f&db=-1", "key=f&db=x", "hex=xyz", "key=" + string(make([]byte, report.MaxLookedUp+1))} {
		_, status := ask(query)
		require.Equal(t, http.StatusBadRequest, status, query)
	}
	w.Srv.Gate.Refuse(command.GateLoading, journal.ErrLoading)
	l, _ = ask("key=f")
	require.NotEmpty(t, l.Error)
}

// TestPagePolicy: what the page may do is said by a policy that names its script and its style, and allows nothing else to run.
func TestPagePolicy(t *testing.T) {
	require.NotContains(t, page.Policy, "unsafe")
	require.Contains(t, page.Policy, "default-src 'none'")
	for _, dangerous := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "https://", " style=", "onclick"} {
		require.NotContains(t, string(page.HTML), dangerous)
	}
}
