// Package observe keeps what took long, in the slow log and the latency monitor, and shows every command to the clients that run MONITOR.
// Package report shows the figures.
package observe
