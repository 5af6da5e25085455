// Package admin holds the commands with which operators and client libraries look after a server: CONFIG, CLIENT, COMMAND, DEBUG, SHUTDOWN
// and their like.
package admin
