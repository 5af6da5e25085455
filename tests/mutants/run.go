package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Limits of a run beside those that flags set.
const (
	slowdown   = 3                // a mutant's tests may take so many times as long as without it
	grace      = 20 * time.Second // and so much longer
	buildTime  = 5 * time.Minute  // compiling and linking, with a cold cache too
	waitDelay  = 5 * time.Second  // for the output of processes that have been killed
	maxOutput  = 64 << 10         // bytes of a run's output that are kept
	fileBlocks = 16 << 20         // of 512 bytes: 8 GiB, the longest file that a run may write
)

// runner runs the tests of a module on mutants. What they change is an overlay of the go command: the tree is not touched.
type runner struct {
	root   string // of the server's module, the repository
	dir    string // for the files of a run
	suites []string
	only   string        // "", or of which names the tests are that run
	limit  time.Duration // for each run of tests, at most
	memory int           // MiB that a process of a run may have

	allowed map[string]time.Duration // by the tests that have passed without a mutant: how long they may take with one
	tell    func(state string)       // of what is going on
}

// outcome is what came of a mutant.
type outcome struct {
	mutant
	compiles bool
	by       string // the tests that noticed it; "" if none did
}

// try runs tests on a mutant until some notice it. An error says why that cannot be known.
func (r *runner) try(ctx context.Context, m mutant) (outcome, error) {
	o := outcome{mutant: m}
	overlay, err := r.overlay(m)
	if err != nil {
		return o, err
	}
	own := "./" + filepath.ToSlash(filepath.Dir(m.file))
	r.tell("build")
	if ok, _ := r.run(ctx, buildTime, "go", "build", "-overlay", overlay, own); !ok {
		return o, ctx.Err()
	}
	o.compiles = true
	for i, suite := range append([]string{own}, r.suites...) {
		if i > 0 && suite == own {
			continue
		}
		if err := r.prove(ctx, suite); err != nil {
			return o, err
		}
		r.tell(suite)
		passes, _, err := r.test(ctx, suite, overlay, r.allowed[suite])
		if err != nil {
			return o, err
		}
		if !passes {
			o.by = suite
			break
		}
	}
	return o, ctx.Err()
}

// overlay writes the changed file, and what has the go command read it in the place of the other.
func (r *runner) overlay(m mutant) (path string, err error) {
	source, err := os.ReadFile(filepath.Join(r.root, m.file))
	if err != nil {
		return "", err
	}
	changed := filepath.Join(r.dir, "mutant.go")
	if err := os.WriteFile(changed, m.apply(source), 0o644); err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(r.root, m.file): changed}})
	if err != nil {
		return "", err
	}
	path = filepath.Join(r.dir, "overlay.json")
	return path, os.WriteFile(path, text, 0o644)
}

// prove runs tests on the tree as it is, before mutants are judged by them: they must pass, and say how long that takes.
func (r *runner) prove(ctx context.Context, suite string) error {
	if _, done := r.allowed[suite]; done {
		return nil
	}
	r.tell(suite + " without a mutant")
	start := time.Now()
	passes, output, err := r.test(ctx, suite, "", r.limit)
	if err != nil {
		return err
	}
	if !passes {
		return fmt.Errorf("%s fails without a mutant:\n%s", suite, output)
	}
	r.allowed[suite] = min(r.limit, slowdown*time.Since(start)+grace)
	return nil
}

// test runs the tests of a suite, on a mutant if overlay is not empty. Those below tests/ get a binary with it.
func (r *runner) test(ctx context.Context, suite, overlay string, limit time.Duration) (passes bool, output string, err error) {
	with := []string{"-overlay", overlay}
	if overlay == "" {
		with = nil
	}
	module := "."
	if inside, drives := strings.CutPrefix(suite, "./tests/"); drives {
		module, suite = "tests", "./"+inside
		build := append([]string{"go", "build", "-o", r.binary()}, with...)
		if ok, output := r.run(ctx, buildTime, append(build, "./cmd/headgate")...); !ok {
			return false, "", errors.Join(ctx.Err(), errors.New(output))
		}
	}
	test := append([]string{"go", "test", "-C", module, "-count=1", "-failfast", "-vet=off", "-timeout", limit.String(), "-run", r.only}, with...)
	defer sweep(filepath.Join(r.root, module, suite))()
	passes, output = r.run(ctx, limit+buildTime, append(test, suite)...)
	return passes, output, ctx.Err()
}

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

func (r *runner) binary() string { return filepath.Join(r.dir, "headgate") }

// run runs a command in the module, in a process group of its own, nothing of which is left behind: neither processes nor files.
func (r *runner) run(ctx context.Context, limit time.Duration, words ...string) (passes bool, output string) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	temp := filepath.Join(r.dir, "t")
	if err := os.MkdirAll(temp, 0o755); err != nil {
		return false, err.Error()
	}
	defer func() { _ = os.RemoveAll(temp) }()
	limits := fmt.Sprintf(`ulimit -d %d && ulimit -f %d && exec "$0" "$@"`, r.memory<<10, fileBlocks)
	cmd := exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", limits}, words...)...)
	cmd.Dir = r.root
	cmd.Env = append(os.Environ(), "TMPDIR="+temp, "HEADGATE_BIN="+r.binary())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = waitDelay
	kill := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel = kill
	var kept beginning
	cmd.Stdout, cmd.Stderr = &kept, &kept
	err := cmd.Run()
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
