package bench

import (
	"fmt"
	"html"
	"math"
	"os"
	"strings"
)

// The plot's measures, in pixels.
const (
	plotWidth, plotHeight     = 760, 380
	plotLeft, plotRight       = 72, 716
	plotTop, plotBottom       = 64, 330
	plotLegendY               = 44
	plotNines                 = 5 // at the right edge: 99.999 %
	plotStyle                 = `text{font:13px system-ui,sans-serif;fill:#333}.t{font-weight:600;font-size:15px}.g{stroke:#ddd}.a{stroke:#0a66c2;fill:none;stroke-width:2}.b{stroke:#c2410c;fill:none;stroke-width:2;stroke-dasharray:6 3}.bg{fill:#fff}@media(prefers-color-scheme:dark){text{fill:#ddd}.g{stroke:#3a3a3a}.a{stroke:#6cb6ff}.b{stroke:#ff9b6b}.bg{fill:#111}}`
	plotSmallest, plotLargest = 1e-4, 1e6 // ms
)

// writeSVG draws latency over percentiles, both on logarithmic scales, in colours that suit a light and a dark page.
func (r *Report) writeSVG(path string) error {
	return os.WriteFile(path, []byte(r.svg()), 0o644)
}

func (r *Report) svg() string {
	low, high := r.decades()
	x := func(percentile float64) float64 {
		nines := min(-math.Log10(max(1-percentile/100, 1e-12)), plotNines)
		return plotLeft + nines/plotNines*(plotRight-plotLeft)
	}
	y := func(ms float64) float64 {
		return plotBottom - (math.Log10(max(ms, plotSmallest))-low)/(high-low)*(plotBottom-plotTop)
	}
	var s strings.Builder
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="latency by percentile">`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&s, "<style>%s</style>\n<rect class=\"bg\" width=\"%d\" height=\"%d\"/>\n", plotStyle, plotWidth, plotHeight)
	how := "closed loop"
	if r.Rate > 0 {
		how = grouped(r.Rate) + " a second"
	}
	fmt.Fprintf(&s, `<text class="t" x="%d" y="24">Latency of %s: %d connections, pipelines of %d, %s</text>`+"\n", plotLeft, html.EscapeString(r.Load), r.Clients, r.Pipeline, how)
	for nines := range plotNines + 1 {
		p := 100 * (1 - math.Pow(10, -float64(nines)))
		fmt.Fprintf(&s, `<path class="g" d="M%.1f %dV%d"/><text x="%.1f" y="%d" text-anchor="middle">%g %%</text>`+"\n", x(p), plotTop, plotBottom, x(p), plotBottom+20, math.Round(p*1e4)/1e4)
	}
	for e := low; e <= high; e++ {
		ms := math.Pow(10, e)
		fmt.Fprintf(&s, `<path class="g" d="M%d %.1fH%d"/><text x="%d" y="%.1f" text-anchor="end">%g ms</text>`+"\n", plotLeft, y(ms), plotRight, plotLeft-6, y(ms)+4, ms)
	}
	fmt.Fprintf(&s, `<text x="%d" y="%d" text-anchor="middle">of all operations were answered within</text>`+"\n", (plotLeft+plotRight)/2, plotBottom+42)
	for i := range r.Servers {
		class := string(rune('a' + i))
		legendX := plotLeft + 330*i
		fmt.Fprintf(&s, `<path class="%s" d="M%d %dh24"/><text x="%d" y="%d">%s</text>`+"\n", class, legendX, plotLegendY, legendX+30, plotLegendY+4, html.EscapeString(r.Servers[i].Name))
		s.WriteString(`<path class="` + class + `" d="`)
		for j, point := range r.Servers[i].Curve {
			step := "L"
			if j == 0 {
				step = "M"
			}
			fmt.Fprintf(&s, "%s%.1f %.1f", step, x(point[0]), y(point[1]))
		}
		s.WriteString("\"/>\n")
	}
	s.WriteString("</svg>\n")
	return s.String()
}

// decades are the powers of ten between which all latencies lie.
func (r *Report) decades() (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, s := range r.Servers {
		for _, point := range s.Curve {
			ms := math.Log10(min(max(point[1], plotSmallest), plotLargest))
			low, high = min(low, math.Floor(ms)), max(high, math.Ceil(ms))
		}
	}
	return low, max(high, low+1)
}
