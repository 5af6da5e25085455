// Command mutants shows what the tests would not notice. It changes one place of the source at a time, drawn at random, as a slip of the
// hand would, and runs the tests that come by the place, the quickest first: those of the package, then, if they pass, all others. A change
// that none of them notices is printed. Either a test is missing there, or the change makes no difference; which of both is for people
// to say.
//
//	go run -C tests ./mutants [flags] [file.go | file.go:line | pattern]...
//
// Files are named from the repository's root. A mutant that does not compile is not counted; another is drawn in its place. The tree is not
// touched. All mutants are built into the tests at once, each behind a choice that is made when they run (package mutantswitch).
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"go/build"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

// usual are the files that mutants are drawn from if none are named: those in which a slip would count or lose what it should not.
var usual = []string{
	"throttle/*.go", "store/*.go", "persistence/*.go", "persistence/aof/*.go", "persistence/rdb/*.go", "internal/listpack/*.go", "server/acl/*.go", "server/limiter/*.go",
	"server/limits/*.go", "server/types/increx.go", "server/access/*.go", "server/command/effects.go", "server/exec/*.go", "server/journal/*.go",
}

// usualSuites come after a package's own tests: those of all packages, and those that drive the binary and measure nothing.
const usualSuites = "./... ./tests/compat ./tests/random ./tests/fuzzer ./tests/clients ./tests/crash ./tests/exchange ./tests/process ./tests/linear ./tests/lua ./tests/replicas"

// maxMutants is what package mutantswitch has numbers for.
const maxMutants = 10_000

func main() {
	n := flag.Int("n", 20, "how many mutants are tried")
	seed := flag.Uint64("seed", 0, "draws the same mutants again; 0 draws others")
	suites := flag.String("suites", usualSuites, "packages whose tests run when those of the mutant's package have passed")
	workers := flag.Int("workers", 1, "how many mutants are tried at a time")
	only := flag.String("run", "", "of all these, the tests that match, for a quick look")
	limit := flag.Duration("time", 280*time.Second, "how long one run of tests may take, at most")
	memory := flag.Int("memory", 4096, "MiB that a process of a run may have")
	flag.Parse()
	r := &runner{only: *only, limit: *limit, memory: *memory, tell: shower(os.Stderr), warn: func(text string) { fmt.Fprintln(os.Stderr, text) }}
	t := trial{runner: r, out: os.Stdout, suites: strings.Fields(*suites), workers: *workers}
	if err := t.run(*n, *seed, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// run tries n mutants of the files that patterns name, and reports on them.
func (t *trial) run(n int, seed uint64, patterns []string) (err error) {
	if n < 1 || n > maxMutants {
		return fmt.Errorf("-n is from 1 to %d", maxMutants)
	}
	if len(patterns) == 0 {
		patterns = usual
	}
	r := t.runner
	if r.root, err = repositoryRoot(); err != nil {
		return err
	}
	all, err := collect(r.root, patterns)
	if err != nil {
		return err
	}
	if r.dir, err = os.MkdirTemp("", "m"); err != nil { // a short name, since tests make sockets below it
		return err
	}
	defer func() { _ = os.RemoveAll(r.dir) }()
	for seed == 0 {
		seed = rand.Uint64()
	}
	n = min(n, len(all))
	fmt.Fprintf(t.out, "-seed %d: %d of %d mutants\n", seed, n, len(all))
	shuffle(all, seed)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	results, broken, err := t.try(ctx, all, n)
	report(t.out, results, broken)
	return err
}

// shuffle puts mutants into an order that the seed draws.
func shuffle(all []mutant, seed uint64) {
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
}

// collect returns the mutants of all files that patterns name, or of one line of them. A pattern that names nothing is an error: the file
// may have another name now.
func collect(root string, patterns []string) (all []mutant, err error) {
	seen := map[mutant]bool{}
	for _, pattern := range patterns {
		name, at, hasLine := strings.Cut(pattern, ":")
		line, err := strconv.Atoi(at)
		if hasLine && err != nil {
			return nil, fmt.Errorf("%s: %q is no line", pattern, at)
		}
		paths, err := filepath.Glob(filepath.Join(root, name))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", pattern, err)
		}
		matched := false
		for _, path := range paths {
			found, err := ofFile(root, path)
			if err != nil {
				return nil, err
			}
			for _, m := range found {
				if hasLine && m.line != line {
					continue
				}
				if matched = true; !seen[m] {
					seen[m] = true
					all = append(all, m)
				}
			}
		}
		if !matched {
			return nil, fmt.Errorf("%s: there is nothing to change", pattern)
		}
	}
	return all, nil
}

// ofFile returns the mutants of a file, none of one that is not built here or is a test.
func ofFile(root, path string) ([]mutant, error) {
	name, err := filepath.Rel(root, path)
	if err != nil {
		return nil, err
	}
	built, err := build.Default.MatchFile(filepath.Split(path))
	if err != nil || !built || strings.HasSuffix(path, "_test.go") {
		return nil, err
	}
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return mutantsOf(name, source)
}

// shower returns what shows a line in the place of the last one on a terminal, and nothing elsewhere.
func shower(f *os.File) func(line string) {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return func(string) {}
	}
	return func(line string) { fmt.Fprintf(f, "\r\033[K%s", line) }
}

// report prints what noticed how many mutants, and those that nothing noticed.
func report(out io.Writer, results []outcome, broken int) {
	noticed, by := 0, map[string]int{}
	var survivors []outcome
	for _, o := range results {
		if o.by == "" {
			survivors = append(survivors, o)
			continue
		}
		suite, _, _ := strings.Cut(o.by, " ")
		noticed++
		by[suite]++
	}
	fmt.Fprintf(out, "%d noticed, %d survive; %d more did not compile\n", noticed, len(survivors), broken)
	names := make([]string, 0, len(by))
	for name := range by {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(by[b]-by[a], strings.Compare(a, b)) })
	for _, name := range names {
		fmt.Fprintf(out, "  %4d by %s\n", by[name], name)
	}
	if len(survivors) == 0 {
		return
	}
	slices.SortFunc(survivors, func(a, b outcome) int { return cmp.Or(strings.Compare(a.file, b.file), a.line-b.line) })
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nplace\tchange\tbefore\tafter")
	for _, o := range survivors {
		fmt.Fprintln(table, o.mutant)
	}
	_ = table.Flush()
}
