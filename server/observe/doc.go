// Package observe records what somebody may want to know later or at once: the slow log, the spikes of the latency monitor, and the
// clients that run MONITOR. Package report shows the figures.
package observe
