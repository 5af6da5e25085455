// Package admin is the commands of operators and of connections: CLIENT, CONFIG, DEBUG, COMMAND and their like.
package admin
