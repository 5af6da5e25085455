package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"headgate/persistence"
)

// rewriteMark is the comment above the lines that CONFIG REWRITE has appended.
const rewriteMark = "# Added by CONFIG REWRITE"

// ErrNoFile says that the server was started without a configuration file. Its text is Redis's reply to CONFIG REWRITE, ERR aside.
var ErrNoFile error = redisText("The server is running without a config file")

// RewriteError says why the file could not be rewritten. Its text is Redis's reply, ERR aside.
type RewriteError struct{ Err error }

func (e *RewriteError) Error() string { return "Rewriting config file: " + e.Err.Error() }
func (e *RewriteError) Unwrap() error { return e.Err }

// Rewrite answers CONFIG REWRITE: it changes the configuration file so that a start with it and the same environment brings the configuration of this
// moment, whatever came from flags and CONFIG SET. What the environment says is not written: secrets are given by it so that no file has them. Lines that
// need no change stay as they are, with comments and order; a directive that the file does not have is appended. A relative dir that a flag or standard
// input gives is not written either: it would start from the one that is written, and the same command line would not find it. What Reload has found
// changed for the next start stays as the file has it. Files that are included are not touched. write must replace the file in one step, see [WriteFile];
// it is not called when the file is right already.
// The error is ErrNoFile or a *RewriteError.
func (l *Live) Rewrite(write func(path string, data []byte) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	path := l.src.path
	if path == "" {
		return ErrNoFile
	}
	before, err := l.src.host.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &RewriteError{err}
	}
	after, err := l.rewritten(before)
	if err == nil && string(after) != string(before) {
		err = write(path, after)
	}
	if err != nil {
		return &RewriteError{err}
	}
	// What is in the file now is what Reload takes back once it is there no more. Flags may not go with it, as a relative dir does not: Reload says so.
	if fresh, err := l.src.loadText(after); err == nil {
		l.lowerClients(fresh.config)
		l.remember(fresh)
	}
	return nil
}

// rewritten returns the file's new contents.
func (l *Live) rewritten(data []byte) ([]byte, error) {
	now := l.Get()
	wrong, err := l.wrongIn(data, now)
	if err != nil {
		return nil, err
	}
	if len(wrong) == 0 {
		return data, nil
	}
	text := newFileText(data)
	for _, d := range wrong {
		text.replace(d, now)
	}
	// What is still wrong is overruled by an include further down, or is not in this file.
	if wrong, err = l.wrongIn(text.bytes(), now); err != nil {
		return nil, err
	}
	for _, d := range wrong {
		text.add(d, now)
	}
	if wrong, err = l.wrongIn(text.bytes(), now); err == nil && len(wrong) > 0 {
		err = fmt.Errorf("%s cannot be expressed in it", wrong[0].Name)
	}
	return text.bytes(), err
}

// wrongIn returns the directives whose values would not be those of now after a start with the given file, without flags. Where the environment has
// another value than now, it is the file that has to be right.
func (l *Live) wrongIn(data []byte, now *Config) ([]*Directive, error) {
	loader := l.src.newLoader()
	loader.runText(l.src.path, data, 0)
	if err := loader.wrong(); err != nil {
		return nil, err
	}
	wrong := differing(loader.config, now)
	loader.runEnvironment(l.src.env)
	keepsDir := l.keepsDir(data, now)
	return slices.DeleteFunc(wrong, func(d *Directive) bool {
		return d.Format(loader.config) == d.Format(now) || l.waits(d, now) || isNoMatterOf(now, d) || keepsDir && d.kind == (directory{})
	}), nil
}

// keepsDir reports whether a start with the given file and the same command line comes to the directory of now because of a relative one above the
// file. That one would start from what the file is given.
func (l *Live) keepsDir(data []byte, now *Config) bool {
	relative := false
	for _, st := range slices.Concat(l.src.stdin, l.src.flags) {
		if st.wrong == nil && canonicalName(st.words[0]) == "dir" && len(st.words) == 2 {
			relative = !filepath.IsAbs(st.words[1])
		}
	}
	if !relative {
		return false
	}
	same, err := l.src.loadText(data)
	return err == nil && same.config.Dir == now.Dir
}

// isNoMatterOf reports whether it makes no difference to a configuration what its file says of a directive. A gateway saves nothing, wherever its upstream
// comes from: a save "" in the file would have a start without that upstream keep its data in memory alone.
func isNoMatterOf(c *Config, d *Directive) bool { return c.Upstream != "" && d.ofOwn }

// waits reports whether Reload has found another value of a directive, which waits for the next start. What a command has changed since then, and back
// possibly, is what is to be written: a user that was deleted must not return, nor a primary that is followed no more.
func (l *Live) waits(d *Directive, now *Config) bool {
	value := d.Format(now)
	return !d.Settable && !l.ordered[d.Name] && value == d.Format(l.started) && value != d.Format(l.base)
}

// fileText is the file being rewritten, by lines.
type fileText struct {
	lines  []string
	marked bool // rewriteMark is in it
}

func newFileText(data []byte) *fileText {
	t := &fileText{}
	if len(data) > 0 {
		t.lines = strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	}
	t.marked = slices.Contains(t.lines, rewriteMark)
	return t
}

func (t *fileText) bytes() []byte {
	if len(t.lines) == 0 {
		return nil
	}
	return []byte(strings.Join(t.lines, "\n") + "\n")
}

// replace puts the directive's lines in the place of its last one in the file, and takes away the others that it has.
func (t *fileText) replace(d *Directive, c *Config) {
	last := -1
	kept := t.lines[:0:0]
	for _, line := range t.lines {
		if !isAbout(line, d) {
			kept = append(kept, line)
			continue
		}
		last = len(kept)
	}
	if last >= 0 {
		t.lines = slices.Insert(kept, last, fileLines(d, c)...)
	}
}

// add appends the directive's lines, under the mark.
func (t *fileText) add(d *Directive, c *Config) {
	if !t.marked {
		if len(t.lines) > 0 {
			t.lines = append(t.lines, "")
		}
		t.lines = append(t.lines, rewriteMark)
		t.marked = true
	}
	lines := fileLines(d, c)
	if len(lines) == 0 { // an include has some
		lines = []string{d.Name + ` ""`}
	}
	t.lines = append(t.lines, lines...)
}

// isAbout tells whether a line of the file sets the directive.
func isAbout(line string, d *Directive) bool {
	words, err := splitLine(line)
	return err == nil && len(words) > 0 && slices.Contains(d.names(), strings.ToLower(words[0]))
}

func fileLines(d *Directive, c *Config) []string {
	lines := d.kind.lines(c)
	for i := range lines {
		lines[i] = d.Name + " " + lines[i]
	}
	return lines
}

// WriteFile replaces a file in one step: whoever reads it, also after a crash, finds the old contents or the new. It keeps the
// permissions of a file that is there, follows a symbolic link, and leaves no temporary file behind on error. What is there and is no regular
// file, such as a device, stays. Calls for one path must not overlap.
func WriteFile(fsys persistence.FS, path string, data []byte) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(path); err == nil {
		if !info.Mode().IsRegular() {
			return &fs.PathError{Op: "write", Path: path, Err: persistence.ErrNotRegular}
		}
		mode = info.Mode().Perm()
	}
	return persistence.ReplaceKept(fsys, path, data, mode)
}
