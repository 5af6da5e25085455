package simulate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Report is what a run has shown, as --json writes it. Times are RFC 3339's, in UTC.
type Report struct {
	Logs         []string       `json:"logs"`
	Format       string         `json:"format"`
	Key          string         `json:"key"`
	Interrupted  bool           `json:"interrupted"`
	Lines        uint64         `json:"lines"`
	Requests     uint64         `json:"requests"` // lines that the policies were asked for
	Strange      uint64         `json:"not_understood"`
	StrangeLines []StrangeLine  `json:"first_not_understood,omitempty"`
	Broken       []BrokenLog    `json:"broken_off,omitempty"`
	Keyless      uint64         `json:"without_key"`
	TooMany      uint64         `json:"beyond_the_most_keys"`
	Late         uint64         `json:"late"` // lines that are older than one before
	LateMost     float64        `json:"late_seconds_at_most"`
	Keys         int            `json:"keys"`
	From         string         `json:"from,omitempty"`
	To           string         `json:"to,omitempty"`
	Busiest      []KeyReport    `json:"busiest_keys"`
	Policies     []PolicyReport `json:"policies"`
	Step         int64          `json:"step_seconds"`
	Series       []PointReport  `json:"series"`
	Spare        float64        `json:"spare_percent,omitempty"`

	series series
}

// BrokenLog is a compressed log that is not whole, and what is wrong with it. What it has before that is simulated.
type BrokenLog struct {
	Log   string `json:"log"`
	Error string `json:"error"`
}

// StrangeLine is a line that was not understood, quoted, and its number.
type StrangeLine struct {
	Line uint64 `json:"line"`
	Text string `json:"text"`
}

// KeyReport is a key and a count: of its lines, or of those that were limited.
type KeyReport struct {
	Key   string `json:"key"`
	Count uint32 `json:"count"`
}

// PolicyReport is what one policy would have done.
type PolicyReport struct {
	Name        string       `json:"name,omitempty"`
	Policy      string       `json:"policy"`
	Admitted    uint64       `json:"admitted"`
	Limited     uint64       `json:"limited"`
	KeysLimited int          `json:"keys_limited"`
	MostLimited []KeyReport  `json:"most_limited_keys"`
	Spare       *SpareReport `json:"spare,omitempty"`

	label string
}

// SpareReport is the smallest limit that spares the share of the keys that was asked for.
type SpareReport struct {
	Limit  int64  `json:"limit"`
	Policy string `json:"policy"`
	Spared int    `json:"keys_never_limited"`
}

// PointReport is a step of time.
type PointReport struct {
	From     string   `json:"from"`
	Requests uint64   `json:"requests"`
	Limited  []uint64 `json:"limited"` // by policy
}

func keyReports(list []counted) []KeyReport {
	reports := []KeyReport{}
	for _, k := range list {
		reports = append(reports, KeyReport{Key: k.name, Count: k.count})
	}
	return reports
}

func stamp(ns int64) string { return time.Unix(0, ns).UTC().Format(time.RFC3339) }

func newReport(l *reading) (*Report, error) {
	r := l.runner
	report := &Report{
		Logs: l.Logs, Format: l.kind, Key: l.Key, Interrupted: l.Stop.Load(), Lines: l.lines, Requests: r.asked, Strange: l.strange,
		StrangeLines: l.shown, Broken: l.broken, Keyless: l.keyless, TooMany: r.tooMany, Late: r.late, LateMost: float64(r.lateMost) / nsPerSecond,
		Keys: len(r.calls), Busiest: keyReports(r.busiest.sorted()), Step: r.series.width, Series: []PointReport{}, Spare: l.Spare, series: r.series,
	}
	if r.asked > 0 {
		report.From, report.To = stamp(r.first), stamp(r.now)
	}
	for _, p := range r.series.points {
		report.Series = append(report.Series, PointReport{From: stamp(p.start * nsPerSecond), Requests: p.asked, Limited: p.limited})
	}
	for _, one := range r.runs {
		p := PolicyReport{
			Name: one.Name, Policy: one.Text, Admitted: r.asked - one.limited, Limited: one.limited, MostLimited: keyReports(one.most.sorted()),
			label: one.String(),
		}
		for _, n := range one.refusals {
			if n > 0 {
				p.KeysLimited++
			}
		}
		if one.probe != nil {
			wanted := int(math.Ceil(float64(report.Keys)*l.Spare/100 - 1e-9))
			found, limit, spared, err := one.probe.smallest(min(wanted, report.Keys))
			if err != nil {
				return nil, err
			}
			p.Spare = &SpareReport{Limit: limit, Policy: found.Text, Spared: spared}
		}
		report.Policies = append(report.Policies, p)
	}
	return report, nil
}

// errNoLines is the error for logs without a line.
var errNoLines = errors.New("there are no lines to simulate")

// useless is the error for logs that have no lines, or none that could be simulated, or nil: a script should not take the report for one on quiet traffic.
func (r *Report) useless() error {
	switch {
	case r.Requests > 0 || r.Interrupted:
		return nil
	case r.Lines == 0:
		return errNoLines
	}
	var why []string
	if r.Strange > 0 {
		why = append(why, fmt.Sprintf("%s not of the format %s, see --format", withVerb(r.Strange, "is", "are"), r.Format))
	}
	if r.Keyless > 0 {
		why = append(why, fmt.Sprintf("%s no %s, see --key", withVerb(r.Keyless, "has", "have"), r.Key))
	}
	if why == nil {
		why = []string{"they are empty"}
	}
	if r.Lines == 1 {
		return fmt.Errorf("the one line could not be simulated: %s", strings.Join(why, "; "))
	}
	return fmt.Errorf("none of the %s lines could be simulated: %s", grouped(r.Lines), strings.Join(why, "; "))
}

// withVerb is a number and its verb.
func withVerb(n uint64, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return grouped(n) + " " + several
}

func (r *Report) writeJSON(out io.Writer) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(r)
}

// maxRows is how many steps of time the text shows.
const maxRows = 24

// writeText writes what a person reads.
func (r *Report) writeText(out io.Writer) error {
	var text strings.Builder
	r.heading(&text)
	if r.Requests > 0 {
		r.totals(&text)
		r.spares(&text)
		r.overTime(&text)
		r.keys(&text)
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// countOf is a number with what it counts.
func countOf(n uint64, what string) string {
	if n != 1 {
		what += "s"
	}
	return grouped(n) + " " + what
}

func (r *Report) heading(text *strings.Builder) {
	fmt.Fprintf(text, "%s (%s): %s, %s of %s", strings.Join(r.Logs, " "), r.Format, countOf(r.Lines, "line"), countOf(uint64(r.Keys), "key"), r.Key)
	if r.Requests > 0 {
		fmt.Fprintf(text, ", from %s to %s", r.From, r.To)
	}
	text.WriteString("\n")
	if r.Interrupted {
		text.WriteString("Interrupted: the figures cover what was read until then.\n")
	}
	for _, b := range r.Broken {
		fmt.Fprintf(text, "%s is cut off: %s. The figures cover what comes before that.\n", b.Log, b.Error)
	}
	if r.Strange > 0 {
		fmt.Fprintf(text, "Lines that could not be parsed: %s\n", grouped(r.Strange))
		for _, l := range r.StrangeLines {
			fmt.Fprintf(text, "  line %d: %s\n", l.Line, l.Text)
		}
	}
	if r.Keyless > 0 {
		fmt.Fprintf(text, "Lines without a key, left out: %s\n", grouped(r.Keyless))
	}
	if r.TooMany > 0 {
		fmt.Fprintf(text, "Lines with keys beyond the first %s, left out: %s\n", grouped(maxKeys), grouped(r.TooMany))
	}
	if r.Late > 0 {
		fmt.Fprintf(text, "Lines older than an earlier line (by up to %s), counted at that line's time: %s\n", time.Duration(r.LateMost*nsPerSecond), grouped(r.Late))
	}
}

func share(n, of uint64) string {
	if of == 0 {
		return "-"
	}
	return strconv.FormatFloat(100*float64(n)/float64(of), 'f', 2, 64) + " %"
}

func (r *Report) totals(text *strings.Builder) {
	rows := [][]string{{"policy", "admitted", "limited", "share", "keys limited", "share"}}
	for _, p := range r.Policies {
		rows = append(rows, []string{
			p.label, grouped(p.Admitted), grouped(p.Limited), share(p.Limited, r.Requests),
			grouped(uint64(p.KeysLimited)), share(uint64(p.KeysLimited), uint64(r.Keys)),
		})
	}
	table(text, rows)
}

func (r *Report) spares(text *strings.Builder) {
	if r.Spare == 0 {
		return
	}
	rows := [][]string{{fmt.Sprintf("to spare %g %% of the keys", r.Spare), "smallest limit", "policy", "keys never limited", "share"}}
	for _, p := range r.Policies {
		if s := p.Spare; s != nil {
			rows = append(rows, []string{p.label, grouped(uint64(s.Limit)), s.Policy, grouped(uint64(s.Spared)), share(uint64(s.Spared), uint64(r.Keys))})
		}
	}
	table(text, rows)
}

func (r *Report) overTime(text *strings.Builder) {
	steps := r.series.within(maxRows)
	head := []string{"limited, in steps of " + (time.Duration(steps.width) * time.Second).String(), "requests"}
	for _, p := range r.Policies {
		head = append(head, p.label)
	}
	rows := [][]string{head}
	for _, p := range steps.points {
		row := []string{stamp(p.start * nsPerSecond), grouped(p.asked)}
		for _, n := range p.limited {
			row = append(row, grouped(n))
		}
		rows = append(rows, row)
	}
	table(text, rows)
}

func (r *Report) keys(text *strings.Builder) {
	list := func(head, of string, keys []KeyReport) {
		rows := [][]string{{head, of}}
		for _, k := range keys {
			rows = append(rows, []string{shownKey(k.Key), grouped(uint64(k.Count))})
		}
		table(text, rows)
	}
	list("busiest keys", "requests", r.Busiest)
	for _, p := range r.Policies {
		if len(p.MostLimited) > 0 {
			list("limited most by "+p.label, "limited", p.MostLimited)
		}
	}
}

// shownKey is a key that does nothing to a terminal, whatever is in it.
func shownKey(key string) string {
	if quoted := strconv.Quote(key); len(key) > maxShown || quoted[1:len(quoted)-1] != key {
		return fmt.Sprintf("%.*q", maxShown, key)
	}
	return key
}

// table writes rows after an empty line, the first column to the left and the others to the right.
func table(text *strings.Builder, rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	text.WriteString("\n")
	for _, row := range rows {
		for i, cell := range row {
			space := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				text.WriteString(cell + space)
			} else {
				text.WriteString("  " + space + cell)
			}
		}
		text.WriteString("\n")
	}
}

// grouped writes thousands apart.
func grouped(n uint64) string {
	digits := strconv.FormatUint(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
