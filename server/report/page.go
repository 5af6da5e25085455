package report

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"headgate/internal/number"
	"headgate/server/command"
	"headgate/server/limiter"
	"headgate/server/limits"
	"headgate/server/page"
	"headgate/server/top"
	"headgate/server/web"
	"headgate/store"
	"headgate/throttle"
)

// The page is one document (package page) that asks for /data every second, and for /lookup when somebody looks a key up. Both answer
// with JSON, change nothing and take the executor's lock in slices, as /metrics does.

const (
	pageTop      = 20   // keys of each list that the page shows
	pagePolicies = 50   // policies that it shows: those with the most calls
	maxLookedUp  = 1024 // bytes of a key that can be looked up
)

// addPage has the HTTP port answer with the page.
func (r *Reports) addPage(port *web.Server) {
	r.Samples.On = true
	port.Page("/", web.Private, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", page.Policy)
		_, _ = w.Write(page.HTML) // a peer that has gone wants nothing
	}))
	port.Page("/data", web.Private, http.HandlerFunc(r.pageData))
	port.Page("/lookup", web.Private, http.HandlerFunc(r.pageLookup))
}

// pageKey is a key for people to read, and for the page to ask with.
type pageKey struct {
	Text string `json:"text"`
	Hex  string `json:"hex"`
	DB   int    `json:"db"`
}

func keyForPage(name []byte, long bool, db int) pageKey {
	k := pageKey{Text: readable(name), Hex: hex.EncodeToString(name), DB: db}
	if long {
		k.Text, k.Hex = k.Text+"…", "" // not the whole name, so nothing can be asked with it
	}
	return k
}

// readable is a key's name as it is, or quoted if it does not consist of characters that can be seen.
func readable(name []byte) string {
	text := string(name)
	plain := utf8.ValidString(text) && text != "" && text[0] != '"'
	for _, r := range text {
		plain = plain && unicode.IsPrint(r)
	}
	if plain {
		return text
	}
	return strconv.QuoteToASCII(text)
}

type pageTopKey struct {
	Key    pageKey `json:"key"`
	Calls  uint64  `json:"calls"`
	Error  uint64  `json:"error"`
	Policy string  `json:"policy,omitempty"`
}

type pageList struct {
	Calls uint64       `json:"calls"`
	Error uint64       `json:"error"`
	Keys  []pageTopKey `json:"keys"`
}

type pageCounts struct {
	Name    string `json:"name"`
	Text    string `json:"text,omitempty"`
	Allowed uint64 `json:"allowed"`
	Near    uint64 `json:"near"`
	Limited uint64 `json:"limited"`
	Shadow  uint64 `json:"shadow,omitempty"`

	Blocked    int `json:"blocked,omitempty"`    // keys
	Overridden int `json:"overridden,omitempty"` // keys
}

func countsForPage(name string, d *limits.Decisions) pageCounts {
	return pageCounts{Name: name, Allowed: d.Allowed, Near: d.Near, Limited: d.Limited, Shadow: d.Shadow}
}

// pageData answers /data?since=<ms>: all figures that have a place there, and these:
//
//	decisions    of all algorithms together
//	algorithms   of each that has decided anything
//	policies     of those with the most calls; others is how many are not shown
//	samples      after the given time: at, allowed, limited, commands, the percentiles in µs, memory, keys, near
//	blocked      the keys that were blocked last, the last one first
//	limited, hot the lists of RL.TOP; null: top-keys is 0. topSeconds is how far they look back
//	certificate  null: tls-port is 0
//	slow         commands, the newest first
//	nodes        of a gateway's upstream; absent: keys are kept here
func (r *Reports) pageData(w http.ResponseWriter, req *http.Request) {
	since, err := strconv.ParseInt(req.FormValue("since"), 10, 64)
	if err != nil {
		since = 0
	}
	var reply map[string]any
	var recent []pageSample
	var algorithms []limits.Decisions
	r.locked(func() {
		reply = r.read(r.Clock.Read()).forPage()
		recent, algorithms = r.Samples.Since(since), slices.Clone(r.Limits.Counts)
		r.Limits.Top.GoOn(r.Clock.Mono())
		reply["topSeconds"] = (r.Clock.Mono() - r.Limits.Top.Began) / int64(time.Second)
	})
	reply["decisions"], reply["algorithms"] = r.decisionsForPage(algorithms)
	reply["samples"] = samplesForPage(recent)
	reply["blocked"] = r.lastBlocked()
	reply["limited"], reply["hot"] = r.topList(limits.ListLimited), r.topList(limits.ListHot)
	reply["policies"], reply["others"] = r.policyCounts()
	reply["slow"] = r.slowForPage()
	reply["certificate"] = r.certificateForPage()
	if r.Gateway != nil {
		reply["nodes"] = r.nodesForPage()
	}
	sendJSON(w, http.StatusOK, reply)
}

// decisionsForPage are those of all algorithms together, and of each that has decided anything.
func (r *Reports) decisionsForPage(counts []limits.Decisions) (all pageCounts, each []pageCounts) {
	var sum limits.Decisions
	for i, a := range r.Limits.Algorithms.All() {
		sum.Sum(&counts[i])
		if counts[i] != (limits.Decisions{}) {
			each = append(each, countsForPage(a.Label, &counts[i]))
		}
	}
	return countsForPage("", &sum), each
}

// samplesForPage are samples as lists of numbers.
func samplesForPage(recent []pageSample) [][]float64 {
	list := make([][]float64, len(recent))
	for i, p := range recent {
		list[i] = []float64{float64(p.At), p.allowed, p.limited, p.Commands, p.usec[0], p.usec[1], p.usec[2], float64(p.memory), float64(p.keys), p.near}
	}
	return list
}

// topList reads one list of keys.
func (r *Reports) topList(name string) (l *pageList) {
	var keys []top.Key
	r.locked(func() {
		if r.Limits.Top.Keys > 0 {
			window := r.Limits.Top.Window(name)
			l = &pageList{Calls: window.Sum(), Error: window.Bound(), Keys: []pageTopKey{}}
			keys = window.Top(pageTop)
			for _, k := range keys {
				l.Keys = append(l.Keys, pageTopKey{Calls: k.Count, Error: k.Error, Policy: r.Limits.Policies.Counts.Labelled(k.Label)})
			}
		}
	})
	for i, k := range keys {
		l.Keys[i].Key = keyForPage(k.Name, k.Long, k.DB)
	}
	return l
}

// policyCounts reads what is counted of policies, those with the most calls first. It leaves out those that are gone.
func (r *Reports) policyCounts() (list []pageCounts, others int) {
	list = []pageCounts{}
	for begin, more := 0, true; more; begin += policiesPerScrapeSlice {
		r.locked(func() {
			all := r.Limits.Policies.Counts.List
			end := min(begin+policiesPerScrapeSlice, len(all))
			for _, counted := range all[min(begin, end):end] {
				if r.mayExist(counted.Name) {
					list = append(list, countsForPage(counted.Name, &counted.Decisions))
				}
			}
			more = end < len(all)
		})
	}
	slices.SortStableFunc(list, func(a, b pageCounts) int {
		return cmp.Compare(b.Allowed+b.Limited+b.Shadow, a.Allowed+a.Limited+a.Shadow)
	})
	others = max(0, len(list)-pagePolicies)
	list = list[:len(list)-others]
	keys := r.exceptions()
	for i := range list {
		list[i].Blocked, list[i].Overridden = keys.blocked[list[i].Name], keys.overridden[list[i].Name]
	}
	r.locked(func() {
		for i := range list {
			list[i].Text = r.policyText(list[i].Name)
		}
	})
	return list, others
}

// mayExist reports whether there is a policy of a name that has been counted, or may be. The names that stand for several are none of a policy's, and
// count as existing. The caller holds the executor's lock.
func (r *Reports) mayExist(name string) bool {
	if r.Limits.Policies.Fixed[name] != nil || limiter.CheckName([]byte(name)) != nil {
		return true
	}
	if r.Gateway != nil || r.Gate.Has(command.GateLoading|command.GateBusy) { // they are elsewhere, or not yet there
		return true
	}
	h, found, err := r.Keys.DB(0).Hash(r.Keys.Key([]byte(limits.PoliciesKey)), r.Clock.Now/1e6)
	if err != nil || !found {
		return false
	}
	_, kept := h.Get([]byte(name))
	return kept
}

// policyText is what a policy says, or nothing if there is none of that name or data are being loaded. The caller holds the executor's
// lock.
func (r *Reports) policyText(name string) string {
	if fixed := r.Limits.Policies.Fixed[name]; fixed != nil {
		return fixed.Text
	}
	if r.Gate.Has(command.GateLoading | command.GateBusy) {
		return ""
	}
	h, _, err := r.Keys.DB(0).Hash(r.Keys.Key([]byte(limits.PoliciesKey)), r.Clock.Now/1e6)
	if err != nil {
		return ""
	}
	kept, _ := h.Get([]byte(name))
	_, text, err := r.Limits.Algorithms.ParseText(limiter.Words(string(kept)))
	if err != nil {
		return ""
	}
	return text
}

// lookedUp is what /lookup answers with.
type lookedUp struct {
	Error     string  `json:"error,omitempty"`
	Key       pageKey `json:"key"`
	Found     bool    `json:"found"`
	Kind      string  `json:"kind,omitempty"`
	Algorithm string  `json:"algorithm,omitempty"` // what the state looks like, or what was asked with
	Used      *int64  `json:"used,omitempty"`
	Limit     *int64  `json:"limit,omitempty"`
	Remaining *int64  `json:"remaining,omitempty"`
	Limited   *bool   `json:"limited,omitempty"` // a call would be
	RetryMs   *int64  `json:"retry,omitempty"`
	ResetMs   *int64  `json:"reset,omitempty"`
	ExpiresMs *int64  `json:"expires,omitempty"`
}

// pageLookup answers /lookup?key=<key>&db=<n>&limit=<policy, or an algorithm and its words>. The key may be given in hexadecimal as
// hex instead.
func (r *Reports) pageLookup(w http.ResponseWriter, req *http.Request) {
	name := []byte(req.FormValue("key"))
	if encoded := req.FormValue("hex"); encoded != "" {
		var err error
		if name, err = hex.DecodeString(encoded); err != nil {
			sendJSON(w, http.StatusBadRequest, lookedUp{Error: "the key in hex is not hexadecimal"})
			return
		}
	}
	if len(name) == 0 && !req.Form.Has("key") {
		sendJSON(w, http.StatusBadRequest, lookedUp{Error: "key is missing: /lookup?key=<key>"})
		return
	}
	number := cmp.Or(req.FormValue("db"), "0")
	db, err := strconv.Atoi(number)
	if err != nil || db < 0 || db >= r.Keys.Databases() {
		sendJSON(w, http.StatusBadRequest, lookedUp{Error: fmt.Sprintf("there is no such database: they are 0 to %d", r.Keys.Databases()-1)})
		return
	}
	if len(name) > maxLookedUp {
		sendJSON(w, http.StatusBadRequest, lookedUp{Error: fmt.Sprintf("the key is longer than %d bytes: look it up with PEEK", maxLookedUp)})
		return
	}
	l := lookedUp{Key: keyForPage(name, false, db)}
	if err := r.lookUp(&l, name, db, req.FormValue("limit")); err != nil {
		l.Error = strings.TrimPrefix(err.Error(), "ERR ")
		sendJSON(w, http.StatusOK, l)
		return
	}
	sendJSON(w, http.StatusOK, l)
}

// lookUp reads the state of a key, as PEEK would with the limit that is given, if one is.
func (r *Reports) lookUp(l *lookedUp, name []byte, db int, limit string) error {
	r.Lock()
	defer r.Unlock()
	switch {
	case r.Gateway != nil:
		return errors.New("this is a gateway, and the key is stored upstream: look it up there, or use PEEK")
	case r.Gate.Has(command.GateLoading):
		return errors.New("data are being loaded: try again")
	case r.Gate.Has(command.GateBusy):
		return errors.New("a script is running: try again")
	}
	now := r.Clock.Read()
	c := &command.Ctx{Core: r.Core, Cfg: r.Config.Get(), DB: r.Keys.DB(db), Now: now / 1e6, NowNs: now}
	k := r.Keys.Key(name)
	e, found := c.DB.Look(k, c.Now)
	if l.Found = found; found {
		l.Kind = e.Kind().String()
		if at := e.ExpireAt(); at > 0 {
			l.ExpiresMs = ptr(max(0, at-c.Now))
		}
		guessState(c, l, k, &e)
	}
	if limit == "" {
		return nil
	}
	p, err := r.Limits.NamedOrWritten(c, limit)
	if err != nil {
		return err
	}
	request := limiter.Request{Call: throttle.Call{Cost: 1, Peek: true}}
	if err := r.Limits.Ask(c, k, p, &request); err != nil {
		return err
	}
	v := r.Limits.Asked.Verdict
	l.Algorithm = p.Algorithm.Label
	l.Limit, l.Limited, l.RetryMs, l.ResetMs = ptr(v.Limit), ptr(v.Limited), ptr(v.RetryAfter), ptr(v.ResetAfter)
	request.Call.Cost = 0
	if err := r.Limits.Ask(c, k, p, &request); err == nil { // what is left now, and not after a call
		v := r.Limits.Asked.Verdict
		l.Remaining, l.Used = ptr(v.Remaining), nil
		if v.Limit >= 0 {
			l.Used = ptr(v.Limit - v.Remaining)
		}
	}
	return nil
}

// earliestTAT is the least number that passes for a time in ns: a counter is hardly ever so high.
const earliestTAT = int64(1e17) // early in 1973

// guessState tells what a key's state looks like, as far as that can be seen without the limit.
func guessState(c *command.Ctx, l *lookedUp, k store.Key, e *store.Entry) {
	switch e.Kind() {
	case store.KindString:
		n, wireError := command.StoredInteger(e)
		switch {
		case wireError != "":
		case n >= earliestTAT:
			l.Algorithm, l.ResetMs = "gcra", ptr(throttle.Millis(max(0, n-c.NowNs)))
		case e.ExpireAt() > 0:
			l.Algorithm, l.Used, l.ResetMs = "fixed", ptr(n), l.ExpiresMs
		default:
			l.Used = ptr(n)
		}
	case store.KindZSet:
		if z, found, err := c.DB.ZSet(k, c.Now); err == nil && found {
			l.Algorithm, l.Used, l.ResetMs = "log", ptr(int64(z.Len())), l.ExpiresMs
			if _, newest := z.AtRank(z.Len() - 1); newest > float64(c.Now) {
				l.Algorithm, l.Used = "lease", ptr(int64(z.CountAfter(c.Now)))
			}
		}
	case store.KindHash:
		if h, found, err := c.DB.Hash(k, c.Now); err == nil && found && h.Len() <= limits.MaxSlidingFields {
			used, sliding := int64(0), true
			h.Each(func(field, value []byte) bool {
				_, ok1 := number.ParseInt(field)
				n, ok2 := number.ParseInt(value)
				used += n
				sliding = sliding && ok1 && ok2
				return sliding
			})
			if sliding {
				l.Algorithm, l.Used, l.ResetMs = "sliding", ptr(used), l.ExpiresMs
			}
		}
	}
}

func ptr[T any](v T) *T { return &v }

// sendJSON answers with a value.
func sendJSON(w http.ResponseWriter, status int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		panic("server: " + err.Error()) // the values are ours
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a peer that has gone wants nothing
}
