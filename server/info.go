package server

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"headgate/store"
)

// infoText is the text being written: lines of name and value.
type infoText struct{ strings.Builder }

func (t *infoText) field(name string, value any) { fmt.Fprintf(t, "%s:%v\r\n", name, value) }

// humanBytes shows a size with two decimals and the unit that suits it.
func humanBytes(n uint64) string {
	const step = 10 // bits between two units
	unit := min((bits.Len64(n)-1)/step, len("KMGTP"))
	if unit < 1 {
		return fmt.Sprintf("%dB", n)
	}
	return fmt.Sprintf("%.2f%c", float64(n)/float64(uint64(1)<<(step*unit)), "KMGTP"[unit-1])
}

func (r *Reports) info(c *Ctx) {
	var all, standard bool
	asked := map[string]bool{}
	for _, arg := range c.args[1:] {
		switch name := strings.ToLower(string(arg)); name {
		case "all", "everything":
			all = true
		case "default":
			standard = true
		default:
			asked[name] = true
		}
	}
	standard = standard || len(c.args) == 1
	var t infoText
	now := r.read(c.nowNs)
	for _, section := range sections {
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
	c.reply.Verbatim("txt", t.String())
}

func (r *Reports) infoCommandStats(c *Ctx, t *infoText) {
	for _, cmd := range c.core.commands.all {
		n := &c.core.stats.commands[cmd.id]
		if n.calls == 0 && n.rejected == 0 && n.failed == 0 {
			continue
		}
		perCall := 0.0
		if n.calls > 0 {
			perCall = float64(n.ns) / 1e3 / float64(n.calls)
		}
		t.field("cmdstat_"+cmd.fullName, fmt.Sprintf("calls=%d,usec=%d,usec_per_call=%.2f,rejected_calls=%d,failed_calls=%d",
			n.calls, n.ns/1e3, perCall, n.rejected, n.failed))
	}
}

func (r *Reports) infoErrorStats(c *Ctx, t *infoText) {
	for _, code := range slices.Sorted(maps.Keys(c.core.stats.errorCodes)) {
		t.field("errorstat_"+code, fmt.Sprintf("count=%d", c.core.stats.errorCodes[code]))
	}
}

// infoLatencyStats shows the times, in µs, that so many percent of a command's calls did not exceed.
func (r *Reports) infoLatencyStats(c *Ctx, t *infoText) {
	if !c.cfg.LatencyTracking {
		return
	}
	for _, cmd := range c.core.commands.all {
		h := c.core.stats.commands[cmd.id].times
		if h == nil || h.total == 0 {
			continue
		}
		var shown []string
		for _, p := range c.cfg.LatencyPercentiles {
			shown = append(shown, fmt.Sprintf("p%s=%.3f", strconv.FormatFloat(p, 'g', 10, 64), float64(h.percentile(p))/1e3))
		}
		t.field("latency_percentiles_usec_"+cmd.fullName, strings.Join(shown, ","))
	}
}

func (r *Reports) infoKeyspace(c *Ctx, t *infoText) {
	for i := range c.core.keys.Databases() {
		if db := c.core.keys.DB(i); db.Len() > 0 {
			t.field(fmt.Sprintf("db%d", i), fmt.Sprintf("keys=%d,expires=%d,avg_ttl=%d", db.Len(), db.Expires(), averageTTL(db, c.now)))
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
func (r *Reports) infoLimiters(c *Ctx, t *infoText) {
	show := func(name string, d *decisions) {
		if *d != (decisions{}) {
			t.field(name, fmt.Sprintf("allowed=%d,near_limit=%d,limited=%d", d.allowed, d.near, d.limited))
		}
	}
	limits := r.limits
	for i, a := range limits.algorithms.All() {
		show("algorithm_"+a.Label, &limits.counts[i])
	}
	for _, counted := range limits.policies.counts.list {
		show("policy_"+counted.name, &counted.decisions)
	}
	r.infoTop(c, t)
}

// infoTop shows the first keys of both lists. A key is quoted, so that it cannot pass for another field.
func (r *Reports) infoTop(c *Ctx, t *infoText) {
	keys := &r.limits.top
	if keys.keys == 0 {
		return
	}
	keys.goOn(c.core.clock.Mono())
	t.field("top_seconds", (c.core.clock.Mono()-keys.began)/int64(time.Second))
	for _, list := range []string{listLimited, listHot} {
		w := keys.window(list)
		t.field("top_"+list+"_error", w.Bound())
		for i, k := range c.topOf(w, topShown) {
			t.field(fmt.Sprintf("top_%s_%d", list, i+1),
				fmt.Sprintf("db=%d,calls=%d,error=%d,key=%s", k.DB, k.Count, k.Error, strconv.QuoteToASCII(string(k.Name))))
		}
	}
}
