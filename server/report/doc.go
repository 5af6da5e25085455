// Package report has the server's figures: INFO, MEMORY, RL.UPSTREAM, what Prometheus reads, and the page.
//
// /metrics reads all counters when it is asked for, and only then (metrics.go), in slices that each take the executor's
// lock for as long as a slice of background work at most. /readyz takes no lock: it asks the gate. If there is an HTTP
// port, background work enters a sample a second into a ring of 900, so that a page that is opened now shows the last
// 15 minutes; what is shown of a key that a user looks up is what PEEK answers (page.go).
package report
