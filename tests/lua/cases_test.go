// Package lua compares scripts: the same text, keys and arguments go to the built server and to redis-server, and the
// replies must be the same bytes. It also runs limiters under load and scripts that mean harm.
package lua

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"headgate/tests/internal/harness"
)

// caseFile is one file of testdata/cases, whose cases run in order against both servers, once in each protocol.
//
// A case is one line of one of two kinds:
//
//	return {KEYS[1], ARGV[1]} <- key / argument   a script, sent with EVAL; what follows <- may be left out
//	> SET key value                               a command, sent as it is
//
// Lines that begin with | continue the script above, or make up the last argument of the command above. A line that
// begins with # is a comment. Keys, arguments and commands are words: "…" takes Go's escapes, '…' takes none. In front
// of a case may stand:
//
//	@ro                 EVAL_RO instead of EVAL
//	@bytes              the script is a word, for bytes that a line cannot hold
//	@resp2, @resp3      runs in this protocol only
//	@unordered          the order of the elements is free, at every depth
//	@shape              only types and sizes are compared
//	@mask "regexp"      what matches is blanked in both replies
//	@differs "reason"   a listed difference; it fails when there is none any more
//	@want "bytes"       what headgate must answer, where that differs
//	@alone              redis-server does not survive it: sent to headgate only, which must answer
//
// On a line of its own, `@conn b` goes on with another connection.
type caseFile struct {
	name  string
	cases []luaCase
}

type luaCase struct {
	line int
	text string   // as written, for reports
	conn string   // the connection it runs on
	args []string // the command that is sent
	only int      // the one protocol it runs in, or 0

	readOnly, bytes, unordered, shape, alone bool
	masks                                    []*regexp.Regexp
	differs, want                            string
}

func loadCases() ([]caseFile, error) {
	paths, err := filepath.Glob("testdata/cases/*.txt")
	if err != nil {
		return nil, err
	}
	var files []caseFile
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		file, err := parseCases(filepath.Base(path), string(text))
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

func parseCases(name, text string) (caseFile, error) {
	file := caseFile{name: name}
	conn := "a"
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		line := strings.TrimRight(lines[i], " \t")
		if line == "" || line[0] == '#' {
			continue
		}
		if other, ok := strings.CutPrefix(line, "@conn "); ok {
			conn = other
			continue
		}
		c := luaCase{line: i + 1, text: line, conn: conn}
		var more []string
		for i+1 < len(lines) && strings.HasPrefix(lines[i+1], "|") {
			i++
			more = append(more, strings.TrimPrefix(lines[i][1:], " "))
		}
		if err := c.parse(line, more); err != nil {
			return file, fmt.Errorf("%s:%d: %w", name, c.line, err)
		}
		file.cases = append(file.cases, c)
	}
	return file, nil
}

// parse takes the directives off the front of the first line and makes a command of the rest.
func (c *luaCase) parse(line string, more []string) (err error) {
	for strings.HasPrefix(line, "@") {
		if line, err = c.directive(line); err != nil {
			return err
		}
	}
	if command, ok := strings.CutPrefix(line, ">"); ok {
		c.args, err = harness.SplitWords(command)
		if len(more) > 0 {
			c.args = append(c.args, strings.Join(more, "\n"))
		}
		return err
	}
	script := strings.Join(append([]string{line}, more...), "\n")
	var rest string
	if at := strings.LastIndex(script, " <- "); at >= 0 {
		script, rest = strings.TrimRight(script[:at], " "), script[at+len(" <- "):]
	}
	return c.eval(script, rest)
}

// eval makes the EVAL of a script and of its keys and arguments.
func (c *luaCase) eval(script, rest string) error {
	if c.bytes {
		words, err := harness.SplitWords(script)
		if err != nil || len(words) != 1 {
			return fmt.Errorf("@bytes wants one word: %v", err)
		}
		script = words[0]
	}
	words, err := harness.SplitWords(rest)
	if err != nil {
		return err
	}
	var keys, args []string
	into := &keys
	for _, word := range words {
		if word == "/" && into == &keys {
			into = &args
			continue
		}
		*into = append(*into, word)
	}
	name := "EVAL"
	if c.readOnly {
		name = "EVAL_RO"
	}
	c.args = append([]string{name, script, strconv.Itoa(len(keys))}, append(keys, args...)...)
	return nil
}

// directive applies the first word of the line and returns what is left after it and its operand.
func (c *luaCase) directive(line string) (rest string, err error) {
	name, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimLeft(rest, " ")
	switch name {
	case "@ro":
		c.readOnly = true
	case "@bytes":
		c.bytes = true
	case "@unordered":
		c.unordered = true
	case "@shape":
		c.shape = true
	case "@alone":
		c.alone = true
	case "@resp2":
		c.only = 2
	case "@resp3":
		c.only = 3
	case "@mask", "@differs", "@want":
		var operand strings.Builder
		if !strings.HasPrefix(rest, `"`) {
			return "", fmt.Errorf("%s needs a quoted operand", name)
		}
		n, err := harness.TakePart(rest, &operand)
		if err != nil {
			return "", err
		}
		return strings.TrimLeft(rest[n:], " "), c.operand(name, operand.String())
	default:
		return "", fmt.Errorf("unknown directive %s", name)
	}
	return rest, nil
}

func (c *luaCase) operand(name, value string) error {
	switch name {
	case "@differs":
		c.differs = value
	case "@want":
		c.want = value
	case "@mask":
		mask, err := regexp.Compile(value)
		c.masks = append(c.masks, mask)
		return err
	}
	return nil
}
