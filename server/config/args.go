package config

import (
	"fmt"
	"slices"
	"strings"

	"headgate/internal/quoting"
)

// commandLine is what the words of a command line mean.
type commandLine struct {
	file       string // "" = none
	stdin      bool
	statements []statement
}

// parseArgs reads a command line as redis-server does: a first word without - in front is the configuration file; - as the first or
// the last word stands for standard input; --name starts a directive, and the words up to the next one are its values. The word
// right after --name is always a value, except that --save may stand alone and means save "". A whole line may be one word:
// "--port 7000".
func parseArgs(args []string) (commandLine, error) {
	var line commandLine
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") && args[0] != "" {
		line.file, args = args[0], args[1:]
	}
	if len(args) > 0 && args[0] == "-" {
		line.stdin, args = true, args[1:]
	}
	if n := len(args); n > 0 && args[n-1] == "-" {
		line.stdin, args = true, args[:n-1]
	}
	var current *statement // to which values belong
	wanting := false       // the next word is a value even if it starts with --
	for i, arg := range args {
		if !wanting && strings.HasPrefix(arg, "--") {
			st, err := flagStatement(arg)
			if err != nil {
				return line, err
			}
			line.statements = append(line.statements, st)
			current = &line.statements[len(line.statements)-1]
			wanting = len(st.words) == 1
			if wanting && standsAlone(st.words[0], args[i+1:]) {
				current.words, wanting = append(current.words, ""), false
			}
			continue
		}
		if current == nil {
			return line, fmt.Errorf("%q belongs to no directive; a configuration file comes first, a directive starts with --", arg)
		}
		current.words = append(current.words, arg)
		wanting = false
	}
	return line, nil
}

// standsAlone tells whether a directive is meant without a value, given the words that follow it.
func standsAlone(name string, rest []string) bool {
	return strings.EqualFold(name, "save") && (len(rest) == 0 || strings.HasPrefix(rest[0], "--"))
}

// flagStatement reads a word that starts with --.
func flagStatement(arg string) (statement, error) {
	words, err := quoting.Split(arg[len("--"):])
	switch {
	case err != nil:
		return statement{}, fmt.Errorf("%s: %w", strings.Fields(arg)[0], err)
	case len(words) == 0:
		return statement{}, fmt.Errorf("-- without a name; a directive is written --name value")
	}
	// A name and its value joined by = is the other usual way to write a flag, and would be hard to see in an error.
	if name, _, joined := strings.Cut(words[0], "="); joined && byName[strings.ToLower(name)] != nil {
		return statement{}, fmt.Errorf("--%s: the value comes after a space: --%s value", name, name)
	}
	return statement{where: "--" + words[0], words: slices.Clip(words)}, nil
}
