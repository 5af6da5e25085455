package main

import (
	"fmt"
	"strings"
)

// result is what a plot shows: for each step the requests that came and those that passed, and for each point of the line how many
// passed in the span that ends there.
type result struct {
	came, passed []int
	within       []int // one for each lineStep
	admitted     int
}

// lineStep is the distance of the line's points, in ms.
const lineStep = 250

// run sends the traffic through a limiter.
func (s subject) run() result {
	l := s.limiter()
	r := result{came: make([]int, length/step), passed: make([]int, length/step)}
	var at []int64
	for _, t := range arrivals() {
		r.came[t/step]++
		passes, ok := l(t)
		if !ok {
			continue
		}
		at = append(at, passes)
		if passes < length {
			r.passed[passes/step]++
		}
	}
	r.admitted = len(at)
	for end := int64(0); end <= length; end += lineStep {
		n := 0
		for _, t := range at {
			if end-s.span < t && t <= end {
				n++
			}
		}
		r.within = append(r.within, n)
	}
	return r
}

// The drawing, in pixels.
const (
	width, height             = 720, 230
	left, right, top, bottom  = 34, 8, 26, 26
	plotWidth, plotHeight     = width - left - right, height - top - bottom
	highest                   = 45 // requests at the upper edge
	gridStep, tickStep        = 10, 10_000
	barGap                    = 0.6
	captionY, axisLabelOffset = 15, 16
)

func x(ms int64) float64 { return left + float64(ms)*plotWidth/length }
func y(requests int) float64 {
	return top + plotHeight - float64(min(requests, highest))*plotHeight/highest
}

// style is readable on white and on black, and follows the reader's choice where a viewer tells of it.
const style = `text{font:11px sans-serif;fill:#555}.t{font-weight:bold}.g{stroke:#888;stroke-opacity:.25}.o{fill:#999;fill-opacity:.45}` +
	`.p{fill:#1f7a4d}.w{fill:none;stroke:#c2571a;stroke-width:1.6}.l{stroke:#c2571a;stroke-dasharray:4 3}.k{fill:#c2571a}` +
	`@media(prefers-color-scheme:dark){text{fill:#bbb}.p{fill:#4cc38a}.w,.l{stroke:#f0883e}.k{fill:#f0883e}}`

// draw renders one plot. The same code always draws the same text.
func (s subject) draw() string {
	r := s.run()
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, "<title>%s: %d of %d requests pass</title>\n<style>%s</style>\n", s.title, r.admitted, len(arrivals()), style)
	for n := 0; n <= highest; n += gridStep {
		fmt.Fprintf(&b, `<path class="g" d="M%d %.1fH%d"/><text x="%d" y="%.1f" text-anchor="end">%d</text>`+"\n",
			left, y(n), width-right, left-5, y(n)+4, n)
	}
	for t := int64(0); t <= length; t += tickStep {
		fmt.Fprintf(&b, `<path class="g" d="M%.1f %dV%d"/><text x="%.1f" y="%d" text-anchor="middle">%d s</text>`+"\n",
			x(t), top, top+plotHeight, min(x(t), width-right-10), height-bottom+axisLabelOffset, t/1000)
	}
	bars(&b, "o", r.came)
	bars(&b, "p", r.passed)
	fmt.Fprintf(&b, `<path class="l" d="M%d %.1fH%d"/>`+"\n", left, y(s.bound), width-right)
	b.WriteString(`<path class="w" d="`)
	for i, n := range r.within {
		command := "L"
		if i == 0 {
			command = "M"
		}
		fmt.Fprintf(&b, "%s%.1f %.1f", command, x(int64(i)*lineStep), y(n))
	}
	b.WriteString(`"/>` + "\n")
	fmt.Fprintf(&b, `<text class="t" x="%d" y="%d">%s</text>`, left, captionY, s.title)
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">bars: came, passed in half a second · <tspan class="k">line: %s</tspan></text>`+"\n",
		width-right, captionY, s.line)
	b.WriteString("</svg>\n")
	return b.String()
}

// bars draws one bar for each step that is not 0, as one path.
func bars(b *strings.Builder, class string, counts []int) {
	fmt.Fprintf(b, `<path class="%s" d="`, class)
	base := y(0)
	for i, n := range counts {
		if n > 0 {
			from, to := x(int64(i)*step)+barGap, x(int64(i+1)*step)-barGap
			fmt.Fprintf(b, "M%.1f %.1fV%.1fH%.1fV%.1fz", from, base, y(n), to, base)
		}
	}
	b.WriteString(`"/>` + "\n")
}
