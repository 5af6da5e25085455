package compat

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"headgate/tests/internal/harness"
)

// maxRepeat bounds @repeat.
const maxRepeat = 10_000

// script is one file of testdata: commands that run one after another against both servers.
type script struct {
	name  string
	flags []string // @server: flags that both servers are started with
	own   []string // @headgate: flags that only headgate is started with
	steps []step
}

// step is one line of a script.
type step struct {
	line    int
	text    string   // the line as written
	conn    string   // the connection it runs on
	args    []string // the command
	raw     []byte   // @raw: sent as it is, instead of args
	sleep   time.Duration
	blocked int    // @blocked n: waits until so many clients are blocked; -1 for other lines
	noteID  bool   // @id: the connection's number is noted, for {id:conn}
	closed  bool   // @closed: the servers must have closed the connection
	noReply bool   // @noreply: nothing is read
	only    int    // @resp2, @resp3: the one protocol that the line runs in, or 0
	repeat  int    // @repeat n: runs n times with {i} replaced by 0 … n-1
	differs string // @differs: why the replies are not the same

	unordered, pairs, shape, ttl bool
	masks                        []*regexp.Regexp
}

// loadScripts parses every file of testdata.
func loadScripts() ([]script, error) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		return nil, err
	}
	var scripts []script
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		s, err := parseScript(filepath.Base(path), string(text))
		if err != nil {
			return nil, err
		}
		scripts = append(scripts, s)
	}
	return scripts, nil
}

func parseScript(name, text string) (script, error) {
	s := script{name: name}
	conn, number := "a", 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		words, err := harness.SplitWords(line)
		if err != nil {
			return s, fmt.Errorf("%s:%d: %w", name, number, err)
		}
		switch words[0] {
		case "@conn":
			conn = words[1]
			continue
		case "@server":
			s.flags = words[1:]
			continue
		case "@headgate":
			s.own = words[1:]
			continue
		}
		st := step{line: number, text: line, conn: conn, repeat: 1, blocked: -1}
		if err := st.parse(words); err != nil {
			return s, fmt.Errorf("%s:%d: %w", name, number, err)
		}
		s.steps = append(s.steps, st)
	}
	return s, nil
}

// parse takes the directives off the front of a line; what is left is the command.
func (st *step) parse(words []string) error {
	for len(words) > 0 && strings.HasPrefix(words[0], "@") {
		var err error
		if words, err = st.directive(words); err != nil {
			return err
		}
	}
	st.args = words
	if len(words) == 0 && st.raw == nil && st.sleep == 0 && !st.closed && st.blocked < 0 && !st.noteID {
		return fmt.Errorf("no command")
	}
	return nil
}

// directive applies the first word and returns the words after it and its operand.
func (st *step) directive(words []string) (rest []string, err error) {
	name, rest := words[0], words[1:]
	switch name {
	case "@unordered":
		st.unordered = true
	case "@pairs":
		st.unordered, st.pairs = true, true
	case "@shape":
		st.shape = true
	case "@ttl":
		st.ttl = true
	case "@noreply":
		st.noReply = true
	case "@closed":
		st.closed = true
	case "@id":
		st.noteID = true
	case "@resp2":
		st.only = 2
	case "@resp3":
		st.only = 3
	default:
		if len(rest) == 0 {
			return nil, fmt.Errorf("%s needs an operand or is unknown", name)
		}
		return rest[1:], st.operand(name, rest[0])
	}
	return rest, nil
}

func (st *step) operand(name, value string) (err error) {
	switch name {
	case "@raw":
		st.raw = []byte(value)
	case "@blocked":
		st.blocked, err = strconv.Atoi(value)
	case "@sleep":
		st.sleep, err = time.ParseDuration(value)
	case "@differs":
		st.differs = value
	case "@repeat":
		st.repeat, err = strconv.Atoi(value)
		if err == nil && (st.repeat < 1 || st.repeat > maxRepeat) {
			err = fmt.Errorf("@repeat takes 1 to %d", maxRepeat)
		}
	case "@mask":
		var mask *regexp.Regexp
		mask, err = regexp.Compile(value)
		st.masks = append(st.masks, mask)
	default:
		err = fmt.Errorf("unknown directive %s", name)
	}
	return err
}

// expand returns the command of one round of a repeated step.
func (st *step) expand(round int) []string {
	if st.repeat == 1 {
		return st.args
	}
	args := make([]string, len(st.args))
	for i, arg := range st.args {
		args[i] = strings.ReplaceAll(arg, "{i}", strconv.Itoa(round))
	}
	return args
}
