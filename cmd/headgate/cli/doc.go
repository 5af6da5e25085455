// Package cli is a client of the server for people and scripts: it sends one command, the lines of a pipe, or what is typed at a prompt, and
// prints replies as redis-cli does.
package cli
