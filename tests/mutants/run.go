package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Limits of a run beside those that flags set.
const (
	proofs     = 3                // how often tests may try to pass without a mutant: other processes may be at work
	slowdown   = 3                // a mutant's tests may take so many times as long as without it
	grace      = 20 * time.Second // and so much longer
	buildTime  = 30 * time.Minute // compiling and linking, with a cold cache too
	waitDelay  = 5 * time.Second  // for the output of processes that have been killed
	maxOutput  = 64 << 10         // bytes of a run's output that are kept
	fileBlocks = 16 << 20         // of 512 bytes: 8 GiB, the longest file that a run may write
)

// runner builds a module's tests with mutants in them, each behind a choice, and runs them with one of these after another. The tree is not
// touched: what is built is an overlay of the go command.
type runner struct {
	root   string        // of the server's module, the repository
	dir    string        // for the files of a run
	only   string        // "", or of which names the tests are that run
	limit  time.Duration // for each run of tests, at most
	memory int           // MiB that a process of a run may have

	mu     sync.Mutex // guards what follows
	suites map[string]*suite
	driven error // of building the binary for the suites that drive it
	binary sync.Once
	tell   func(state string) // of what is going on
	warn   func(text string)
}

// suite is the tests of one package.
type suite struct {
	name   string // its folder below root
	once   sync.Once
	err    error
	binary string
	tests  []*test
}

// test is one that passes without a mutant.
type test struct {
	suite   *suite
	name    string
	takes   time.Duration // without a mutant
	allowed time.Duration // with one
	reaches map[int]bool  // the mutants whose places it comes by
}

// outcome is what came of a mutant.
type outcome struct {
	mutant
	tried bool
	by    string // the test that noticed it, behind its suite's name; "" if none did
}

// suite returns the tests of a package, built, and those that pass without a mutant.
func (r *runner) suite(ctx context.Context, name string) (*suite, error) {
	r.mu.Lock()
	s := r.suites[name]
	if s == nil {
		s = &suite{name: name}
		r.suites[name] = s
	}
	r.mu.Unlock()
	s.once.Do(func() { s.err = r.prove(ctx, s) })
	return s, s.err
}

// prove builds the tests of a suite and runs each without a mutant.
func (r *runner) prove(ctx context.Context, s *suite) error {
	r.tell(s.name + " without a mutant")
	module, folder := ".", s.name
	if inside, drives := strings.CutPrefix(s.name, "tests/"); drives {
		module, folder = "tests", inside
		r.binary.Do(func() {
			if ok, output := r.run(ctx, buildTime, ".", nil, "go", "build", "-overlay", r.overlay(), "-o", r.program(), "./cmd/headgate"); !ok {
				r.driven = errors.Join(ctx.Err(), errors.New(output))
			}
		})
		if r.driven != nil {
			return r.driven
		}
	}
	s.binary = filepath.Join(r.dir, strings.ReplaceAll(s.name, "/", "_")+".test")
	if ok, output := r.run(ctx, buildTime, ".", nil, "go", "test", "-C", module, "-c", "-vet=off", "-overlay", r.overlay(), "-o", s.binary, "./"+folder); !ok {
		return fmt.Errorf("%s fails without a mutant:\n%s", s.name, output)
	}
	if _, err := os.Stat(s.binary); err != nil {
		return ctx.Err() // it has no tests
	}
	_, list := r.run(ctx, r.limit, s.name, nil, s.binary, "-test.list", cmp.Or(r.only, "."))
	for _, name := range strings.Fields(list) {
		if strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz") || strings.HasPrefix(name, "Example") {
			if err := r.measure(ctx, s, name); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// measure sees whether a test passes without a mutant, how long that takes, and by which places it comes. One that fails judges nothing.
func (r *runner) measure(ctx context.Context, s *suite, name string) error {
	t := &test{suite: s, name: name, allowed: r.limit, reaches: map[int]bool{}}
	reached := s.binary + "." + name
	passes, output := false, ""
	for try := 0; try < proofs && !passes; try++ {
		start := time.Now()
		passes, output = r.test(ctx, t, "MUTANT_REACHED="+reached)
		t.takes = time.Since(start)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if !passes {
		r.warn(fmt.Sprintf("%s: %s is left out, since it fails without a mutant:\n%s", s.name, name, output))
		return nil
	}
	t.allowed = min(r.limit, slowdown*t.takes+grace)
	text, err := os.ReadFile(reached)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, word := range strings.Fields(string(text)) {
		id, err := strconv.Atoi(word)
		if err != nil {
			return fmt.Errorf("%s: %w", reached, err)
		}
		t.reaches[id] = true
	}
	s.tests = append(s.tests, t)
	return nil
}

// notices returns the first test of some that fails with a mutant, as people are told it, or "". The quickest of those that come by its place
// run first.
func (r *runner) notices(ctx context.Context, tests []*test, m mutant) (by string, err error) {
	tests = slices.DeleteFunc(slices.Clone(tests), func(t *test) bool { return !t.reaches[m.id] })
	slices.SortStableFunc(tests, func(a, b *test) int { return cmp.Compare(a.takes, b.takes) })
	for _, t := range tests {
		passes, output := r.test(ctx, t, fmt.Sprintf("MUTANT=%d", m.id))
		if err := ctx.Err(); err != nil {
			return "", err
		}
		if !passes {
			by = t.suite.name + " " + t.name
			if strings.Contains(output, "panic: test timed out") {
				by += ", which did not end"
			}
			return by, nil
		}
	}
	return "", nil
}

// test runs a test in its package's folder.
func (r *runner) test(ctx context.Context, t *test, variable string) (passes bool, output string) {
	defer sweep(filepath.Join(r.root, t.suite.name))()
	return r.run(ctx, t.allowed+waitDelay, t.suite.name, []string{variable}, t.suite.binary,
		"-test.paniconexit0", "-test.failfast", "-test.timeout", t.allowed.String(), "-test.run", "^"+t.name+"$")
}

// build writes the mutants' choices, and what has the go command read them in the place of the source. It forgets the suites built before.
func (r *runner) build(c *compiler, mutants []mutant) error {
	r.suites, r.binary, r.driven = map[string]*suite{}, sync.Once{}, nil
	old, _ := filepath.Glob(filepath.Join(r.dir, "*")) // it is no bad pattern
	for _, path := range old {
		_ = os.RemoveAll(path)
	}
	byFile := map[string][]mutant{}
	for _, m := range mutants {
		byFile[m.file] = append(byFile[m.file], m)
	}
	replace := map[string]string{}
	write := func(name string, text []byte) error {
		changed := filepath.Join(r.dir, fmt.Sprintf("changed%d.go", len(replace)))
		replace[filepath.Join(r.root, name)] = changed
		return os.WriteFile(changed, text, 0o644)
	}
	if err := write(filepath.Join(switchDir, "switch.go"), switchSource); err != nil {
		return err
	}
	for name, of := range byFile {
		source, err := os.ReadFile(filepath.Join(r.root, name))
		if err != nil {
			return err
		}
		slices.SortFunc(of, func(a, b mutant) int { return a.from - b.from })
		if err := write(name, c.withChoices(source, of)); err != nil {
			return err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	return os.WriteFile(r.overlay(), text, 0o644)
}

func (r *runner) overlay() string { return filepath.Join(r.dir, "overlay.json") }

// program is the binary for the suites that drive it.
func (r *runner) program() string { return filepath.Join(r.dir, "headgate") }

// sweep notes which failures rapid has kept in a package's folder, for the tests to begin with the next time, and returns what removes
// those that have come since: they are a mutant's.
func sweep(dir string) func() {
	pattern := filepath.Join(dir, "testdata", "rapid", "*", "*.fail")
	before, _ := filepath.Glob(pattern) // it is no bad pattern
	return func() {
		after, _ := filepath.Glob(pattern)
		for _, path := range after {
			if slices.Contains(before, path) {
				continue
			}
			for ; path != dir; path = filepath.Dir(path) {
				if os.Remove(path) != nil { // a folder that holds something else
					break
				}
			}
		}
	}
}

// run runs a command in a folder of the module, in a process group of its own, nothing of which is left behind: neither processes nor files.
func (r *runner) run(ctx context.Context, limit time.Duration, folder string, variables []string, words ...string) (passes bool, output string) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	temp, err := os.MkdirTemp(r.dir, "t") // a short name, since tests make sockets below it
	if err != nil {
		return false, err.Error()
	}
	defer func() { _ = os.RemoveAll(temp) }()
	limits := fmt.Sprintf(`ulimit -d %d && ulimit -f %d && exec "$0" "$@"`, r.memory<<10, fileBlocks)
	cmd := exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", limits}, words...)...)
	cmd.Dir = filepath.Join(r.root, folder)
	cmd.Env = append(append(os.Environ(), "TMPDIR="+temp, "HEADGATE_BIN="+r.program()), variables...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = waitDelay
	kill := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel = kill
	var kept beginning
	cmd.Stdout, cmd.Stderr = &kept, &kept
	err = cmd.Run()
	if cmd.Process != nil {
		_ = kill() // servers that outlived the tests that had started them
	}
	if err != nil {
		kept.text = append(kept.text, (err.Error() + "\n")...)
	}
	return err == nil, string(kept.text)
}

// beginning keeps the first bytes that are written to it: a mutant may print without end.
type beginning struct{ text []byte }

func (b *beginning) Write(p []byte) (int, error) {
	b.text = append(b.text, p[:min(len(p), maxOutput-min(len(b.text), maxOutput))]...)
	return len(p), nil
}

// repositoryRoot is the directory of the module that the working directory lies in, or of the one around that: the suites' module is a
// folder of the server's.
func repositoryRoot() (string, error) {
	path, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	file := strings.TrimSpace(string(path))
	if file == "" || file == os.DevNull {
		return "", errors.New("there is no go.mod here or above")
	}
	root := filepath.Dir(file)
	if _, err := os.Stat(filepath.Join(filepath.Dir(root), "go.mod")); err == nil {
		root = filepath.Dir(root)
	}
	return root, nil
}
