package report

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"headgate/server/command"
	"headgate/server/limits"
	"headgate/store"
)

// infoText is the text being written: lines of name and value.
type infoText struct{ strings.Builder }

func (t *infoText) field(name string, value any) { fmt.Fprintf(t, "%s:%v\r\n", name, value) }

func (r *Reports) info(c *command.Ctx) {
	var all, standard bool
	asked := map[string]bool{}
	for _, arg := range c.Args[1:] {
		switch name := strings.ToLower(string(arg)); name {
		case "all", "everything":
			all = true
		case "default":
			standard = true
		default:
			asked[name] = true
		}
	}
	standard = standard || len(c.Args) == 1
	var t infoText
	now := r.read(c.NowNs)
	for _, section := range sections {
		if !r.has(section.there) {
			continue
		}
		if !all && !(standard && section.byDefault) && !asked[strings.ToLower(section.title)] {
			continue
		}
		if t.Len() > 0 {
			t.WriteString("\r\n")
		}
		t.WriteString("# " + section.title + "\r\n")
		now.writeInfo(&t, section.figures)
		if section.lines != nil {
			section.lines(r, c, &t)
		}
	}
	c.Reply.Verbatim("txt", t.String())
}

func (r *Reports) infoCommandStats(c *command.Ctx, t *infoText) {
	for _, cmd := range c.Core.Commands.All {
		n := &c.Core.Stats.Commands[cmd.ID]
		if n.Calls == 0 && n.Rejected == 0 && n.Failed == 0 {
			continue
		}
		perCall := 0.0
		if n.Calls > 0 {
			perCall = float64(n.Ns) / 1e3 / float64(n.Calls)
		}
		t.field("cmdstat_"+cmd.FullName, fmt.Sprintf("calls=%d,usec=%d,usec_per_call=%.2f,rejected_calls=%d,failed_calls=%d",
			n.Calls, n.Ns/1e3, perCall, n.Rejected, n.Failed))
	}
}

func (r *Reports) infoErrorStats(c *command.Ctx, t *infoText) {
	for _, code := range slices.Sorted(maps.Keys(c.Core.Stats.ErrorCodes)) {
		t.field("errorstat_"+code, fmt.Sprintf("count=%d", c.Core.Stats.ErrorCodes[code]))
	}
}

// infoLatencyStats shows the times, in µs, that so many percent of a command's calls did not exceed.
func (r *Reports) infoLatencyStats(c *command.Ctx, t *infoText) {
	if !c.Cfg.LatencyTracking {
		return
	}
	for _, cmd := range c.Core.Commands.All {
		h := c.Core.Stats.Commands[cmd.ID].Times
		if h == nil || h.Total == 0 {
			continue
		}
		var shown []string
		for _, p := range c.Cfg.LatencyPercentiles {
			shown = append(shown, fmt.Sprintf("p%s=%.3f", strconv.FormatFloat(p, 'g', 10, 64), float64(h.Percentile(p))/1e3))
		}
		t.field("latency_percentiles_usec_"+cmd.FullName, strings.Join(shown, ","))
	}
}

func (r *Reports) infoKeyspace(c *command.Ctx, t *infoText) {
	for i := range c.Core.Keys.Databases() {
		if db := c.Core.Keys.DB(i); db.Len() > 0 {
			t.field(fmt.Sprintf("db%d", i), fmt.Sprintf("keys=%d,expires=%d,avg_ttl=%d", db.Len(), db.Expires(), averageTTL(db, c.Now)))
		}
	}
}

// ttlSample is how many keys averageTTL looks at.
const ttlSample = 64

// averageTTL estimates the mean of the TTLs, in ms, from the first keys in the order of their hashes, which is a fair sample.
func averageTTL(db *store.DB, now int64) int64 {
	if db.Expires() == 0 {
		return 0
	}
	sum, n := int64(0), int64(0)
	db.Scan(0, now, ttlSample, func(e *store.Entry) {
		if at := e.ExpireAt(); at != 0 {
			sum += max(at-now, 0)
			n++
		}
	})
	if n == 0 {
		return 0
	}
	return sum / n
}

// infoLimiters shows the decisions by algorithm and by policy, and the keys with the most.
func (r *Reports) infoLimiters(c *command.Ctx, t *infoText) {
	show := func(name string, d *limits.Decisions) {
		if *d != (limits.Decisions{}) {
			text := fmt.Sprintf("allowed=%d,near_limit=%d,limited=%d", d.Allowed, d.Near, d.Limited)
			if d.Shadow != 0 {
				text += fmt.Sprintf(",shadow_limited=%d", d.Shadow)
			}
			if d.Blocks != 0 {
				text += fmt.Sprintf(",blocks=%d", d.Blocks)
			}
			t.field(name, text)
		}
	}
	limits := r.Limits
	for i, a := range limits.Algorithms.All() {
		show("algorithm_"+a.Label, &limits.Counts[i])
	}
	for _, counted := range limits.Policies.Counts.List {
		show("policy_"+counted.Name, &counted.Decisions)
	}
	r.infoTop(c, t)
}

// infoTop shows the first keys of both lists. A key is quoted, so that it cannot pass for another field.
func (r *Reports) infoTop(c *command.Ctx, t *infoText) {
	keys := &r.Limits.Top
	if keys.Keys == 0 {
		return
	}
	keys.GoOn(c.Core.Clock.Mono())
	t.field("top_seconds", (c.Core.Clock.Mono()-keys.Began)/int64(time.Second))
	for _, list := range []string{limits.ListLimited, limits.ListHot} {
		w := keys.Window(list)
		t.field("top_"+list+"_error", w.Bound())
		for i, k := range limits.TopOf(c, w, limits.TopShown) {
			policy := ""
			if k.Label != 0 {
				policy = "policy=" + r.Limits.Policies.Counts.Labelled(k.Label) + ","
			}
			t.field(fmt.Sprintf("top_%s_%d", list, i+1),
				fmt.Sprintf("db=%d,calls=%d,error=%d,%skey=%s", k.DB, k.Count, k.Error, policy, strconv.QuoteToASCII(string(k.Name))))
		}
	}
}
