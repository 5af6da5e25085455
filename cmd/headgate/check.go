package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"headgate/persistence"
	"headgate/persistence/check"
	"headgate/server"
	"headgate/server/config"
)

const checkHelp = `headgate check DIR [--fix]

Examines a data directory as the server does at its start, without loading it, and reports what each file contains and whether it is
intact. Two lines say which files a start would load, with appendonly yes and with no, under the files' usual names; --check-config says it of a
configuration. The last line is the verdict: what the server would do with the directory. The exit code is 0 if all files are intact, else 1.

  --fix  cut off the damaged end of an append-only file. Make a copy first, and stop the server that uses the directory
`

// check carries out headgate check DIR [--fix].
func (p program) check(args []string) error {
	if asksForHelp(args) {
		_, err := io.WriteString(p.stdout, checkHelp)
		return err
	}
	c := check.Checker{FS: dataFiles, Say: func(format string, a ...any) {
		fmt.Fprintln(p.stdout, printable(fmt.Sprintf(format, a...)))
	}}
	dir := ""
	for _, arg := range args {
		switch {
		case arg == "--fix":
			c.Fix = true
		case dir == "" && !strings.HasPrefix(arg, "-"):
			dir = arg
		default:
			return fmt.Errorf("check does not know %s; it takes a directory, and --fix", arg)
		}
	}
	if dir == "" {
		return errors.New("check needs a data directory, such as: headgate check /var/lib/headgate")
	}
	if isTerminal(p.stderr) {
		c.Progress = showProgress(p.stderr)
	}
	c.Starts = usualStarts(dir)
	whole, err := c.Dir(dir)
	switch {
	case err != nil:
		return err
	case !whole:
		return fmt.Errorf("%s is damaged", dir)
	}
	return nil
}

// dataFiles is where data directories are looked at. What is no file is not waited for.
var dataFiles = persistence.OS{RegularOnly: true}

// usualStarts are the starts in a directory, with appendonly yes and with no, whose configuration names no other files.
func usualStarts(dir string) []check.Start {
	with, without := config.Default(), config.Default()
	with.Dir, without.Dir = dir, dir
	with.AppendOnly, without.AppendOnly = true, false
	return []check.Start{server.StartOf(with, dataFiles), server.StartOf(without, dataFiles)}
}

// isTerminal reports whether a terminal shows what is written there.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// showProgress returns a function that shows on one line how far a file has been read, in whole percents.
func showProgress(w io.Writer) func(file string, done, total int64) {
	shown := int64(-1)
	return func(file string, done, total int64) {
		percent := 100 * done / max(total, 1)
		if percent != shown {
			shown = percent
			fmt.Fprintf(w, "\r%s: %d %%\x1b[K\r", file, percent)
		}
	}
}
