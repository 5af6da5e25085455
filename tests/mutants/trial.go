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
		results = append(results, found...)
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
	var survivors []int
	for i, m := range mutants {
		results[i].mutant = m
		survivors = append(survivors, i)
	}
	tried := func(i int, by string) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if results[i].by = by; by != "" {
			fmt.Fprintf(t.out, "%s\n  noticed by %s\n", mutants[i], by)
		}
	}
	err := t.each(ctx, survivors, func(i int) error {
		own, err := t.suite(ctx, filepath.Dir(mutants[i].file))
		if err != nil {
			return err
		}
		by, err := t.notices(ctx, own, mutants[i])
		tried(i, by)
		return err
	})
	survivors = slices.DeleteFunc(survivors, func(i int) bool { return results[i].by != "" })
	if err != nil || len(survivors) == 0 {
		return results, err
	}
	for _, i := range survivors {
		fmt.Fprintf(t.out, "%s\n  not noticed by its package\n", mutants[i])
	}
	suites, err := t.proved(ctx)
	if err != nil {
		return results, err
	}
	return results, t.each(ctx, survivors, func(i int) error {
		for _, s := range suites {
			if s.name == filepath.Dir(mutants[i].file) {
				continue // it has not noticed
			}
			by, err := t.notices(ctx, s, mutants[i])
			if err != nil {
				return err
			}
			if by != "" {
				tried(i, by)
				return nil
			}
		}
		return nil
	})
}

// each calls f for each mutant, a few at a time, and returns the first error.
func (t *trial) each(ctx context.Context, mutants []int, f func(i int) error) (first error) {
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
	for k, i := range mutants {
		t.tell(fmt.Sprintf("%d of %d", k+1, len(mutants)))
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	done.Wait()
	if first == nil {
		first = ctx.Err()
	}
	return first
}

// proved returns all suites that have tests, the quickest first.
func (t *trial) proved(ctx context.Context) (suites []*suite, err error) {
	names, err := t.suiteNames()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		s, err := t.suite(ctx, name)
		if err != nil {
			return nil, err
		}
		if s.binary != "" {
			suites = append(suites, s)
		}
	}
	slices.SortFunc(suites, func(a, b *suite) int { return cmp.Compare(a.takes, b.takes) })
	return suites, nil
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
