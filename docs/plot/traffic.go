package main

// The traffic that all plots show, and the limit that all of them set against it: 20 requests in 10 seconds.
const (
	limit  = 20
	window = 10_000 // ms
	length = 60_000 // ms, of the plot
	step   = 500    // ms, of a bar
)

// burst is a run of requests at even distances.
type burst struct {
	from, to int64 // ms; to is left out
	every    int64 // ms
}

// bursts begin quietly, bring twice the limit around the boundary of a window, pause, press on beyond the limit for long, and end
// with a burst within one second.
var bursts = []burst{
	{0, 9_000, 1_500},
	{9_000, 11_000, 50},
	{11_000, 20_000, 1_500},
	{30_000, 45_000, 200},
	{56_000, 57_000, 20},
}

// arrivals are the instants of all requests, in ms from the start.
func arrivals() []int64 {
	var at []int64
	for _, b := range bursts {
		for t := b.from; t < b.to; t += b.every {
			at = append(at, t)
		}
	}
	return at
}
