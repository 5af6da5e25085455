// Package host is what the machine and the process are: memory, limits of containers, and the pages of the program
// itself.
package host
