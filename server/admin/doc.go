// Package admin holds the commands with which operators and client libraries look after a server and their connections to it: CLIENT, CONFIG,
// COMMAND, DEBUG, SHUTDOWN and their like.
package admin
