package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// percentiles are those of the table.
var percentiles = []float64{50, 90, 99, 99.9, 99.99}

// Report is what a run has shown, as --json writes it. Latencies are in milliseconds, counted from when an operation was meant to begin.
type Report struct {
	Load        string         `json:"load"`
	Clients     int            `json:"clients"`
	Pipeline    int            `json:"pipeline"`
	Rate        float64        `json:"rate"` // 0 = closed loop
	Keys        int64          `json:"keys"`
	Rounds      int            `json:"rounds"`
	Seconds     float64        `json:"seconds"` // that were asked for, for each server
	Seed        uint64         `json:"seed"`
	Interrupted bool           `json:"interrupted"`
	Servers     []ServerReport `json:"servers"`
	// Ratios are the first server's figures over the second's: the median of all rounds.
	Ratios map[string]float64 `json:"ratios,omitempty"`

	sides []*side
}

// ServerReport is what one server has shown.
type ServerReport struct {
	Addr       string             `json:"addr"`
	Name       string             `json:"name"`
	Commands   string             `json:"commands"`
	Operations uint64             `json:"operations"`
	Seconds    float64            `json:"seconds"`
	PerSecond  float64            `json:"per_second"`
	CPUMicros  float64            `json:"server_cpu_us_per_operation,omitempty"`
	Allowed    *uint64            `json:"allowed,omitempty"` // nil: the load does not limit
	Limited    *uint64            `json:"limited,omitempty"`
	Errors     uint64             `json:"errors"`
	FirstError string             `json:"first_error,omitempty"`
	Late       uint64             `json:"never_sent"`
	LoaderBusy float64            `json:"loader_busy"` // share of the time of its threads
	Latency    map[string]float64 `json:"latency_ms"`
	Curve      [][2]float64       `json:"curve"` // percentile, milliseconds
}

const nsPerMs = 1e6

func newReport(b *Bench, sides []*side) *Report {
	r := &Report{
		Load: b.Load.Name, Clients: b.Clients, Pipeline: b.Pipeline, Rate: b.Rate, Keys: b.Keys, Rounds: b.Rounds,
		Seconds: b.Duration.Seconds(), Seed: b.Seed, Interrupted: b.Stop.Load(), sides: sides,
	}
	for _, s := range sides {
		m := s.total
		report := ServerReport{
			Addr: s.addr, Name: s.name, Commands: commandsText(s.load.Commands), Operations: m.ops, Seconds: m.elapsed.Seconds(),
			PerSecond: m.perSecond(), CPUMicros: m.cpuPerOp(), Errors: m.errors, FirstError: m.firstError, Late: m.late, LoaderBusy: m.busy(),
			Latency: map[string]float64{"mean": m.latency.Mean() / nsPerMs, "max": float64(m.latency.Max()) / nsPerMs}, Curve: curve(m),
		}
		if s.load.known {
			report.Allowed, report.Limited = &m.allowed, &m.limited
		}
		for _, p := range percentiles {
			report.Latency[percentileName(p)] = float64(m.latency.ValueAtPercentile(p)) / nsPerMs
		}
		r.Servers = append(r.Servers, report)
	}
	if len(sides) == 2 {
		r.Ratios = ratios(sides[0].rounds, sides[1].rounds)
	}
	return r
}

func percentileName(p float64) string { return "p" + strconv.FormatFloat(p, 'f', -1, 64) }

// ratios compares round with round and takes the medians, since what disturbs a machine disturbs neighbours alike.
func ratios(first, second []*measured) map[string]float64 {
	all := map[string][]float64{}
	for i := range min(len(first), len(second)) {
		a, b := first[i], second[i]
		note := func(name string, x, y float64) {
			if x > 0 && y > 0 {
				all[name] = append(all[name], x/y)
			}
		}
		note("per_second", a.perSecond(), b.perSecond())
		note("cpu", a.cpuPerOp(), b.cpuPerOp())
		note("mean", a.latency.Mean(), b.latency.Mean())
		note("max", float64(a.latency.Max()), float64(b.latency.Max()))
		for _, p := range percentiles {
			note(percentileName(p), float64(a.latency.ValueAtPercentile(p)), float64(b.latency.ValueAtPercentile(p)))
		}
	}
	medians := map[string]float64{}
	for name, values := range all {
		slices.Sort(values)
		medians[name] = (values[(len(values)-1)/2] + values[len(values)/2]) / 2
	}
	return medians
}

// curve begins at the shortest latency, ends at the longest, and between them has a point each time that the rest above has shrunk by
// curveStep.
func curve(m *measured) [][2]float64 {
	points := [][2]float64{{0, float64(m.latency.Min()) / nsPerMs}}
	rest := 100 * curveStep
	for range curvePoints {
		if rest/100*float64(m.ops) < 1 {
			break
		}
		points = append(points, [2]float64{100 - rest, float64(m.latency.ValueAtPercentile(100-rest)) / nsPerMs})
		rest *= curveStep
	}
	return append(points, [2]float64{100, float64(m.latency.Max()) / nsPerMs})
}

// curvePoints of curveStep each reach five nines.
const (
	curvePoints = 50
	curveStep   = 0.7943282347242815 // 10^-0.1
)

// commandsText writes commands as they could be typed. Long arguments are cut.
func commandsText(commands [][]string) string {
	const longest = 44
	var parts []string
	for _, command := range commands {
		words := make([]string, len(command))
		for i, arg := range command {
			if len(arg) > longest {
				arg = arg[:longest] + "…"
			}
			words[i] = arg
		}
		parts = append(parts, strings.Join(words, " "))
	}
	return strings.Join(parts, " ; ")
}

// grouped writes a whole number with commas.
func grouped(x float64) string {
	digits := strconv.FormatFloat(x, 'f', 0, 64)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// writeTable writes what a person reads.
func (r *Report) writeTable(out io.Writer) error {
	var text strings.Builder
	r.heading(&text)
	rows := r.rows()
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		line := fmt.Sprintf("%-*s", widths[0], row[0])
		for i, cell := range row[1:] {
			line += fmt.Sprintf("  %*s", widths[i+1], cell)
		}
		text.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// heading says what was sent to whom.
func (r *Report) heading(text *strings.Builder) {
	how := "closed loop"
	if r.Rate > 0 {
		how = grouped(r.Rate) + " a second intended"
	}
	turns := ""
	if r.Rounds > 1 {
		turns = fmt.Sprintf(" in %d rounds", r.Rounds)
		if len(r.sides) > 1 {
			turns += ", in turn"
		}
	}
	fmt.Fprintf(text, "%s: %s connections, pipelines of %d, %s, %s keys, %v for each server%s\n", r.Load, grouped(float64(r.Clients)), r.Pipeline,
		how, grouped(float64(r.Keys)), time.Duration(r.Seconds*float64(time.Second)), turns)
	for _, s := range r.Servers {
		fmt.Fprintf(text, "  %s at %s: %s\n", s.Name, s.Addr, s.Commands)
	}
	if r.Interrupted {
		text.WriteString("  Interrupted: these are the figures until then.\n")
	}
	if busiest := r.busiest(); r.Rate > 0 && busiest > busyLoader {
		fmt.Fprintf(text, "  The loader was busy for %.0f %% of the time: a part of these latencies is its own.\n", 100*busiest)
	}
	text.WriteString("\n")
}

// busyLoader is the share of its time from which on a loader delays what it measures.
const busyLoader = 0.8

func (r *Report) busiest() (most float64) {
	for _, s := range r.Servers {
		most = max(most, s.LoaderBusy)
	}
	return most
}

// rows are the table's cells: a label, one for each server, and the ratio where there is one.
func (r *Report) rows() [][]string {
	var rows [][]string
	row := func(label, ratio string, cell func(s *ServerReport) string) {
		cells := []string{label}
		for i := range r.Servers {
			cells = append(cells, cell(&r.Servers[i]))
		}
		if x, ok := r.Ratios[ratio]; ok {
			cells = append(cells, fmt.Sprintf("%.2f×", x))
		} else if label == "" && len(r.Ratios) > 0 {
			cells = append(cells, "ratio")
		} else {
			cells = append(cells, "")
		}
		rows = append(rows, cells)
	}
	row("", "", func(s *ServerReport) string { return s.Name })
	row("operations", "", func(s *ServerReport) string { return grouped(float64(s.Operations)) })
	row("per second", "per_second", func(s *ServerReport) string { return grouped(s.PerSecond) })
	if r.any(func(s *ServerReport) bool { return s.CPUMicros > 0 }) {
		row("server CPU, µs each", "cpu", func(s *ServerReport) string { return fmt.Sprintf("%.2f", s.CPUMicros) })
	}
	if r.any(func(s *ServerReport) bool { return s.Allowed != nil }) {
		row("allowed", "", func(s *ServerReport) string { return counted(s.Allowed) })
		row("limited", "", func(s *ServerReport) string { return counted(s.Limited) })
	}
	if r.any(func(s *ServerReport) bool { return s.Errors > 0 }) {
		row("errors", "", func(s *ServerReport) string { return grouped(float64(s.Errors)) })
	}
	if r.any(func(s *ServerReport) bool { return s.Late > 0 }) {
		row("never sent", "", func(s *ServerReport) string { return grouped(float64(s.Late)) })
	}
	names := []string{"mean"}
	for _, p := range percentiles {
		names = append(names, percentileName(p))
	}
	for _, name := range append(names, "max") {
		row(name+", ms", name, func(s *ServerReport) string { return fmt.Sprintf("%.3f", s.Latency[name]) })
	}
	return rows
}

func (r *Report) any(is func(s *ServerReport) bool) bool {
	return slices.ContainsFunc(r.Servers, func(s ServerReport) bool { return is(&s) })
}

func counted(n *uint64) string {
	if n == nil {
		return "–"
	}
	return grouped(float64(*n))
}

// tryFile returns the error with which a file, if one is named, could not be written after the run. It leaves all as it was.
func tryFile(path string) error {
	info, err := os.Stat(path)
	exists := err == nil
	if path == "" || exists && info.Mode()&(os.ModeNamedPipe|os.ModeDevice) != 0 { // closing a pipe would end what its reader has
		return nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	f.Close()
	if exists {
		return nil
	}
	made, err := filepath.EvalSymlinks(path) // a link to no file stays
	if err != nil {
		return err
	}
	return os.Remove(made)
}

// writeJSON writes everything to a file.
func (r *Report) writeJSON(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
