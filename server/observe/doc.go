// Package observe records slow commands and events, in the slow log and the latency monitor, and shows every command to clients that run MONITOR.
// Package report shows the figures.
package observe
