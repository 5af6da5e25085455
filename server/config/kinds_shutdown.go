package config

import (
	"errors"
	"slices"
	"strings"
)

// shutdownKind is shutdown-on-sigint and shutdown-on-sigterm: any of a few words.
type shutdownKind struct {
	list
	field func(*Config) *ShutdownFlags
}

// shutdownWords are the words by bit; shutdownDefault is none of them.
var shutdownWords = []string{"save", "nosave", "now", "force"}

const shutdownDefault = "default"

func (k shutdownKind) parse(c *Config, args []string, _ bool) error {
	var flags ShutdownFlags
	for _, arg := range args {
		arg = strings.ToLower(arg)
		i := slices.Index(shutdownWords, arg)
		if i < 0 && arg != shutdownDefault {
			args = nil
			break
		}
		if i >= 0 {
			flags |= 1 << i
		}
	}
	if len(args) == 0 {
		return errors.New("argument(s) must be one of the following: " + k.syntax())
	}
	if flags&ShutdownSave != 0 && flags&ShutdownNoSave != 0 {
		return redisText("shutdown options SAVE and NOSAVE can't be used simultaneously")
	}
	*k.field(c) = flags
	return nil
}

func (k shutdownKind) format(c *Config) string {
	var words []string
	for i, word := range shutdownWords {
		if *k.field(c)&(1<<i) != 0 {
			words = append(words, word)
		}
	}
	if len(words) == 0 {
		return shutdownDefault
	}
	return strings.Join(words, " ")
}

func (k shutdownKind) lines(c *Config) []string { return []string{k.format(c)} }

func (shutdownKind) syntax() string {
	return shutdownDefault + ", " + strings.Join(shutdownWords, ", ")
}
