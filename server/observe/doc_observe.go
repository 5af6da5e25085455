// Package observe keeps what took long, in the slow log and the latency monitor, and shows every command to those who
// monitor.
package observe
