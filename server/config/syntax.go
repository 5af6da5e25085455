package config

import (
	"fmt"
	"strings"

	"headgate/internal/quoting"
)

// The syntax of redis.conf: one directive a line, its name and values separated by blanks; empty lines and lines that start with #
// mean nothing. A value may be quoted: 'single' knows only \', "double" knows \n \r \t \a \b, \xHH and \ before any other character.
// A comment cannot follow a directive on its line.

// statement is one directive as it was given: its name and values, and where it came from.
type statement struct {
	where string // "redis.conf:12", "--port" or "HEADGATE_PORT"; starts the operator's error line
	words []string
	wrong error // why there are no words
}

// parseText splits the text of a file into statements. name stands for the file in errors.
func parseText(name, text string) (list []statement) {
	for i, line := range strings.Split(text, "\n") {
		words, err := splitLine(line)
		if err != nil || len(words) > 0 {
			list = append(list, statement{where: fmt.Sprintf("%s:%d", name, i+1), words: words, wrong: err})
		}
	}
	return list
}

// splitLine splits one line of a file. A line without a directive has no words.
func splitLine(line string) ([]string, error) {
	line = strings.Trim(line, " \t\r\n")
	if strings.HasPrefix(line, "#") {
		return nil, nil
	}
	return quoting.Split(line)
}

// quoteIfNeeded quotes only what would not be read back as it is.
func quoteIfNeeded(s string) string {
	if words, err := splitLine(s); err == nil && len(words) == 1 && words[0] == s {
		return s
	}
	return quoting.Quote(s)
}
