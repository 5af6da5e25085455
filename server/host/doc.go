// Package host reports the resources of the machine and the process: memory, the limits of containers, file descriptors, and the program's own
// pages.
package host
