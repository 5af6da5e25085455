package report

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"headgate/internal/number"
	"headgate/server/command"
	"headgate/server/config"
	"headgate/server/replication"
	"headgate/server/scripting"
	"headgate/server/upstream"

	"github.com/prometheus/client_golang/prometheus"
)

// figure is one thing that the server tells of itself. It is declared once, in the tables of figures_table.go; INFO, /metrics, the page
// and docs/metrics.md have it from there.
type figure struct {
	field  string                     // its name in INFO; empty: it is not there
	metric *family                    // its series in /metrics; nil: it has none
	page   string                     // its place in what the page asks for, with dots between names; empty: it is not there
	when   func(s *readings) bool     // when INFO and the page have it; nil: always. A series is always there
	read   func(s *readings) quantity // what it comes to now. The caller holds the executor's lock

	there func(r *Reports) bool // its section's, see figures
}

// section is a part of INFO, and what /metrics has of the same: figures, and behind them lines and series with labels, of which there are
// as many as have been used.
type section struct {
	title     string                // as printed; the argument that asks for it is the same in any case
	byDefault bool                  // shown when no section is asked for
	there     func(r *Reports) bool // whether the server has it at all, and its series too; nil: always. It never changes
	figures   []figure
	lines     func(r *Reports, c *command.Ctx, t *infoText)
	families  []*family                                        // of the series that collect sends
	collect   func(m *Collector, out chan<- prometheus.Metric) // takes the executor's lock in slices
}

// fixed is a field of INFO that never changes.
func fixed(field, value string) figure {
	return figure{field: field, read: func(*readings) quantity { return text(value) }}
}

// figures are those of all sections.
var figures = func() (all []figure) {
	for _, s := range sections {
		for _, f := range s.figures {
			f.there = s.there
			all = append(all, f)
		}
	}
	return all
}()

// has reports whether the server has what only some have.
func (r *Reports) has(there func(r *Reports) bool) bool { return there == nil || there(r) }

// families are those of all series, in the order of the sections.
var families = func() (all []*family) {
	for _, s := range sections {
		for _, f := range s.figures {
			if f.metric != nil {
				all = append(all, f.metric)
			}
		}
		all = append(all, s.families...)
	}
	return all
}()

// readings are what figures are read from. What takes time to find out is found out once, and only if a figure is asked for that needs it.
type readings struct {
	*Reports
	cfg     *config.Config
	nowNs   int64
	kept    *memoryFigures
	scripts *scripting.Memory
	status  *upstream.Status
	follows *replication.Status
	feeds   *replication.PrimaryStatus
}

// read begins to read figures. The caller holds the executor's lock.
func (r *Reports) read(nowNs int64) *readings {
	return &readings{Reports: r, cfg: r.Config.Get(), nowNs: nowNs}
}

func (s *readings) memory() *memoryFigures {
	if s.kept == nil {
		m := s.memoryFigures()
		s.kept = &m
	}
	return s.kept
}

func (s *readings) replica() *replication.Status {
	if s.follows == nil {
		status := s.Replica.Status()
		s.follows = &status
	}
	return s.follows
}

// primary is how this server's own replicas are.
func (s *readings) primary() *replication.PrimaryStatus {
	if s.feeds == nil {
		status := s.Replica.Primary.Status()
		s.feeds = &status
	}
	return s.feeds
}

func (s *readings) scriptMemory() *scripting.Memory {
	if s.scripts == nil {
		m := s.Reports.Scripts.Memory()
		s.scripts = &m
	}
	return s.scripts
}

// upstream is how a gateway's upstream is.
func (s *readings) upstream() *upstream.Status {
	if s.status == nil {
		status := s.Gateway.Status()
		s.status = &status
	}
	return s.status
}

// shows reports whether INFO and the page have a figure now.
func (s *readings) shows(f *figure) bool { return f.when == nil || f.when(s) }

// writeInfo writes the fields of a section.
func (s *readings) writeInfo(t *infoText, list []figure) {
	for i := range list {
		f := &list[i]
		if f.field == "" || !s.shows(f) {
			continue
		}
		q := f.read(s)
		t.field(f.field, q.shown)
		if q.bytes {
			t.field(f.field+"_human", number.FormatMemoryHuman(uint64(q.number)))
		}
	}
}

// forPage returns the figures that the page asks for, in objects within each other.
func (s *readings) forPage() map[string]any {
	reply := map[string]any{}
	for i := range figures {
		f := &figures[i]
		if f.page == "" || !s.has(f.there) || !s.shows(f) {
			continue
		}
		at, names := reply, strings.Split(f.page, ".")
		for _, name := range names[:len(names)-1] {
			if at[name] == nil {
				at[name] = map[string]any{}
			}
			at = at[name].(map[string]any)
		}
		at[names[len(names)-1]] = f.read(s)
	}
	return reply
}

// quantity is what a figure comes to.
type quantity struct {
	shown  string  // as INFO has it
	number float64 // as Prometheus has it, in its units
	plain  any     // as the page's JSON has it
	bytes  bool    // INFO shows it a second time, in a form for people
}

// MarshalJSON implements json.Marshaler.
func (q quantity) MarshalJSON() ([]byte, error) { return json.Marshal(q.plain) }

// count is a whole number.
func count[T int | int64 | uint64](n T) quantity {
	return quantity{shown: fmt.Sprint(n), number: float64(n), plain: n}
}

// size is a number of bytes that INFO shows in both forms.
func size[T int | int64 | uint64](n T) quantity {
	q := count(n)
	q.bytes = true
	return q
}

// text is no number.
func text(s string) quantity { return quantity{shown: s, plain: s} }

// truth is a condition: 1 if it holds.
func truth(is bool) quantity {
	q := count(0)
	if is {
		q = count(1)
	}
	q.plain = is
	return q
}

// outcome is whether something went well: ok if it did.
func outcome(well bool) quantity {
	q := truth(well)
	if q.shown = "err"; well {
		q.shown = "ok"
	}
	return q
}

// decimal has two decimals.
func decimal(n float64) quantity { return quantity{shown: fmt.Sprintf("%.2f", n), number: n, plain: n} }

// percent has two decimals and its sign.
func percent(n float64) quantity {
	return quantity{shown: fmt.Sprintf("%.2f%%", n), number: n, plain: n}
}

// wholeSeconds are a time since the Unix epoch or a duration, in ns, that is shown as whole seconds.
func wholeSeconds(ns int64) quantity {
	return quantity{shown: fmt.Sprint(ns / 1e9), number: asSeconds(ns), plain: ns / 1e9}
}

// millis are the same shown as whole ms.
func millis(ns int64) quantity {
	return quantity{shown: fmt.Sprint(ns / 1e6), number: asSeconds(ns), plain: ns / 1e6}
}

// cpuTime is shown in seconds, to the µs.
func cpuTime(d time.Duration) quantity {
	return quantity{shown: fmt.Sprintf("%.6f", d.Seconds()), number: d.Seconds(), plain: d.Seconds()}
}
