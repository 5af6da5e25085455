// Package servertest runs servers within a process for the tests of the packages below server: with workers that are driven by hand, a clock
// that stands still, disks that lose power, and connections that are pipes.
package servertest
