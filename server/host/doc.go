// Package host tells what the machine and the process have: memory, also what a container allows, file descriptors, and the pages of the
// program itself.
package host
