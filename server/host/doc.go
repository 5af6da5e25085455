// Package host tells what the machine and the process have: memory, also that of a cgroup, file descriptors and the name of the program.
package host
