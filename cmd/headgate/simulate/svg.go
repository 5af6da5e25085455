package simulate

import (
	"fmt"
	"html"
	"strings"
)

// The plot's measures, in pixels.
const (
	plotWidth         = 760
	plotLeft          = 72
	plotRight         = 716
	plotTop           = 40
	plotHeight        = 260
	plotLegend        = 20 // of each line of the legend
	plotLines         = 4
	plotStyle         = `text{font:13px system-ui,sans-serif;fill:#333}.t{font-weight:600;font-size:15px}.g{stroke:#ddd}.all{fill:#ddd}.bg{fill:#fff}path.p{fill:none;stroke-width:2}@media(prefers-color-scheme:dark){text{fill:#ddd}.g{stroke:#3a3a3a}.all{fill:#333}.bg{fill:#111}}`
	plotDashes        = "6 3"
	plotTextBelowAxis = 20
)

// plotColours are those of the policies; after the last come the same, dashed.
var plotColours = []string{"#0a66c2", "#c2410c", "#15803d", "#a21caf", "#b45309", "#0891b2"}

// svg draws requests over time as an area, and on it as a line what each policy would have limited, in colours that suit a light and a dark
// page.
func (r *Report) svg() string {
	points, most := r.series.points, uint64(1)
	for _, p := range points {
		most = max(most, p.asked)
	}
	bottom := plotTop + plotHeight
	x := func(i int) float64 { return plotLeft + float64(i)*(plotRight-plotLeft)/float64(max(len(points), 1)) }
	y := func(n uint64) float64 { return float64(bottom) - float64(n)/float64(most)*plotHeight }
	// steps is the outline of a count for each step.
	steps := func(count func(p *point) uint64) string {
		var path strings.Builder
		for i := range points {
			fmt.Fprintf(&path, "%.1f %.1fH%.1fL", x(i), y(count(&points[i])), x(i+1))
		}
		return strings.TrimSuffix(path.String(), "L")
	}
	height := bottom + 2*plotTextBelowAxis + (len(r.Policies)+1)*plotLegend
	var s strings.Builder
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="requests over time, and how many would have been limited">`+"\n", plotWidth, height)
	fmt.Fprintf(&s, "<style>%s</style>\n<rect class=\"bg\" width=\"%d\" height=\"%d\"/>\n", plotStyle, plotWidth, height)
	fmt.Fprintf(&s, `<text class="t" x="%d" y="24">Requests in steps of %d s, and how many would have been limited</text>`+"\n", plotLeft, r.Step)
	for i := range plotLines + 1 {
		n := most * uint64(i) / plotLines
		fmt.Fprintf(&s, `<path class="g" d="M%d %.1fH%d"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", plotLeft, y(n), plotRight, plotLeft-6, y(n)+4, grouped(n))
	}
	legend := func(i int, mark, text string) {
		at := bottom + 2*plotTextBelowAxis + i*plotLegend
		fmt.Fprintf(&s, mark+`<text x="%d" y="%d">%s</text>`+"\n", plotLeft, at, plotLeft+30, at+4, html.EscapeString(text))
	}
	if len(points) > 0 {
		fmt.Fprintf(&s, `<path class="all" d="M%d %dL%sV%dZ"/>`+"\n", plotLeft, bottom, steps(func(p *point) uint64 { return p.asked }), bottom)
		fmt.Fprintf(&s, `<text x="%d" y="%d">%s</text><text x="%d" y="%d" text-anchor="end">%s</text>`+"\n",
			plotLeft, bottom+plotTextBelowAxis, r.From, plotRight, bottom+plotTextBelowAxis, r.To)
	}
	legend(0, `<path class="all" d="M%d %dm0 -5h24v10h-24z"/>`, "requests")
	for i := range r.Policies {
		paint := `stroke="` + plotColours[i%len(plotColours)] + `"`
		if i >= len(plotColours) {
			paint += ` stroke-dasharray="` + plotDashes + `"`
		}
		if len(points) > 0 {
			fmt.Fprintf(&s, `<path class="p" %s d="M%s"/>`+"\n", paint, steps(func(p *point) uint64 { return p.limited[i] }))
		}
		legend(i+1, `<path class="p" `+paint+` d="M%d %dh24"/>`, "limited by "+r.Policies[i].label)
	}
	s.WriteString("</svg>\n")
	return s.String()
}
