package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// trial tries mutants by their packages' own tests, and what these do not notice by the suites.
type trial struct {
	*runner
	out     io.Writer
	suites  []string // patterns of packages
	workers int      // mutants that are tried at a time
}

// try tries the first n mutants that compile, and returns in their order what came of them. What came of each is printed at once, since a run
// takes long.
func (t *trial) try(ctx context.Context, all []mutant, n int) (results []outcome, broken int, err error) {
	c, err := newCompiler(t.root, all)
	if err != nil {
		return nil, 0, err
	}
	var drawn []mutant
	for _, m := range all {
		if len(drawn) == n || ctx.Err() != nil {
			break
		}
		ok, err := c.compiles(&m)
		if err != nil {
			return nil, broken, err
		}
		if !ok {
			broken++
			continue
		}
		drawn = append(drawn, m)
	}
	for len(drawn) > 0 && err == nil {
		var now []mutant
		now, drawn = apart(drawn)
		if err = t.build(c, now); err != nil {
			break
		}
		var found []outcome
		found, err = t.round(ctx, now)
		results = append(results, slices.DeleteFunc(found, func(o outcome) bool { return !o.tried })...)
	}
	return results, broken, err
}

// apart takes from mutants those that can be built into one program, and numbers them: no two are in one place.
func apart(mutants []mutant) (now, later []mutant) {
	for _, m := range mutants {
		if slices.ContainsFunc(now, func(o mutant) bool { return o.file == m.file && o.from < m.to && m.from < o.to }) {
			later = append(later, m)
			continue
		}
		m.id = len(now) + 1
		now = append(now, m)
	}
	return now, later
}

// round tries mutants that are built into one program.
func (t *trial) round(ctx context.Context, mutants []mutant) ([]outcome, error) {
	results := make([]outcome, len(mutants))
	for i, m := range mutants {
		results[i].mutant = m
	}
	tried := func(i int, by string) {
		t.mu.Lock()
		defer t.mu.Unlock()
		results[i].by, results[i].tried = by, true
		fmt.Fprintf(t.out, "%s\n  noticed by %s\n", mutants[i], cmp.Or(by, "none of these tests"))
	}
	err := t.each(ctx, len(mutants), func(i int) error {
		own, err := t.suite(ctx, filepath.Dir(mutants[i].file))
		if err != nil {
			return err
		}
		by, err := t.notices(ctx, own.tests, mutants[i])
		if err == nil {
			tried(i, by)
		}
		return err
	})
	var survivors []int
	for i, o := range results {
		if o.tried && o.by == "" {
			survivors = append(survivors, i)
		}
	}
	if err != nil || len(survivors) == 0 {
		return results, err
	}
	others, err := t.others(ctx)
	if err != nil {
		return results, err
	}
	return results, t.each(ctx, len(survivors), func(k int) error {
		i := survivors[k]
		own := filepath.Dir(mutants[i].file)
		by, err := t.notices(ctx, slices.DeleteFunc(slices.Clone(others), func(o *test) bool { return o.suite.name == own }), mutants[i])
		if err == nil {
			tried(i, by)
		}
		return err
	})
}

// each calls f for 0 to n-1, a few at a time, and returns the first error.
func (t *trial) each(ctx context.Context, n int, f func(i int) error) (first error) {
	next := make(chan int)
	var done sync.WaitGroup
	var once sync.Once
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for range max(t.workers, 1) {
		done.Go(func() {
			for i := range next {
				if err := f(i); err != nil {
					once.Do(func() { first = err })
					cancel()
				}
			}
		})
	}
	for i := 0; i < n && ctx.Err() == nil; i++ {
		t.tell(fmt.Sprintf("%d of %d", i+1, n))
		next <- i
	}
	close(next)
	done.Wait()
	if first == nil {
		first = ctx.Err()
	}
	return first
}

// others returns the tests of all suites.
func (t *trial) others(ctx context.Context) (tests []*test, err error) {
	names, err := t.suiteNames()
	if err != nil {
		return nil, err
	}
	suites := make([]*suite, len(names))
	err = t.each(ctx, len(names), func(i int) (err error) {
		suites[i], err = t.suite(ctx, names[i])
		return err
	})
	for _, s := range suites {
		if s != nil {
			tests = append(tests, s.tests...)
		}
	}
	return tests, err
}

// suiteNames are the folders of the packages that the suites' patterns mean.
func (t *trial) suiteNames() (names []string, err error) {
	for _, pattern := range t.suites {
		module := "."
		if inside, drives := strings.CutPrefix(pattern, "./tests/"); drives {
			module, pattern = "tests", "./"+inside
		}
		list := exec.Command("go", "list", "-C", module, "-f", "{{.Dir}}", pattern)
		list.Dir, list.Stderr = t.root, os.Stderr
		out, err := list.Output()
		if err != nil {
			return nil, fmt.Errorf("go list %s: %w", pattern, err)
		}
		for _, dir := range strings.Fields(string(out)) {
			name, err := filepath.Rel(t.root, dir)
			if err != nil {
				return nil, err
			}
			names = append(names, name)
		}
	}
	return names, nil
}
