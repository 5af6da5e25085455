package simulate

// series counts lines over time, in at most maxPoints steps of equal length. When there would be more the steps become longer.
type series struct {
	policies int
	width    int64 // seconds
	points   []point
}

// point is a step of time.
type point struct {
	start   int64 // s, Unix time: a multiple of the width
	asked   uint64
	limited []uint64 // by policy
}

const maxPoints = 240

// widths are the lengths of a step, in seconds. Each is a multiple of the one before; beyond the last it is doubled.
var widths = []int64{1, 5, 15, 60, 300, 900, 3600, 4 * 3600, secondsPerDay, 7 * secondsPerDay}

func newSeries(policies int) series { return series{policies: policies, width: widths[0]} }

func nextWidth(width int64) int64 {
	for _, w := range widths {
		if w > width {
			return w
		}
	}
	return 2 * width
}

// at is the step of an instant, which is not before the last one asked for.
func (s *series) at(ns int64) *point {
	if n := len(s.points); n > 0 && ns/nsPerSecond < s.points[n-1].start+s.width {
		return &s.points[n-1]
	}
	if len(s.points) > 0 {
		for ns/nsPerSecond/s.width-s.points[0].start/s.width >= maxPoints {
			*s = s.coarser()
		}
	}
	start := ns / nsPerSecond / s.width * s.width
	if len(s.points) == 0 {
		s.points = append(s.points, s.empty(start))
	}
	for s.points[len(s.points)-1].start < start {
		s.points = append(s.points, s.empty(s.points[len(s.points)-1].start+s.width))
	}
	return &s.points[len(s.points)-1]
}

func (s *series) empty(start int64) point {
	return point{start: start, limited: make([]uint64, s.policies)}
}

// coarser is the same in longer steps.
func (s *series) coarser() series {
	wide := series{policies: s.policies, width: nextWidth(s.width)}
	for _, p := range s.points {
		start := p.start / wide.width * wide.width
		if n := len(wide.points); n == 0 || wide.points[n-1].start != start {
			wide.points = append(wide.points, wide.empty(start))
		}
		into := &wide.points[len(wide.points)-1]
		into.asked += p.asked
		for i, n := range p.limited {
			into.limited[i] += n
		}
	}
	return wide
}

// within is the same in at most so many steps.
func (s *series) within(most int) series {
	fewer := *s
	for len(fewer.points) > most {
		fewer = fewer.coarser()
	}
	return fewer
}
