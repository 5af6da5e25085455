package servertest

import (
	"fmt"
	"strings"
	"testing"

	"headgate/server"
	"headgate/server/report"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

// Scrape returns the values of all series, by their names and labels as Prometheus writes them.
func Scrape(t *testing.T, s *server.Server) map[string]float64 {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(&report.Collector{Reports: s.Reports})
	families, err := registry.Gather()
	require.NoError(t, err)
	series := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			name := family.GetName() + "{" + strings.Join(labels, ",") + "}"
			if h := m.GetHistogram(); h != nil {
				series[name+"_count"], series[name+"_sum"] = float64(h.GetSampleCount()), h.GetSampleSum()
				for _, b := range h.GetBucket() {
					series[fmt.Sprintf("%s_%g", name, b.GetUpperBound())] = float64(b.GetCumulativeCount())
				}
				continue
			}
			series[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return series
}
