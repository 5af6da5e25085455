// Headgate is a rate-limit server that speaks the Redis protocol.
//
//	headgate [file.conf] [--directive value ...] [-]     serve, as redis-server does
//	headgate check DIR [--fix]                            report whether a data directory is intact
//	headgate bench [--addr A] [--load L] ...              measure the throughput and latency of a server under load
//	headgate simulate [access.log ...] --policy P ...     show what limits would have done to the traffic in a log
//	headgate cli [-h HOST] [-p PORT] [command ...]        send commands, from the arguments, a pipe or a prompt, and print replies
//	headgate ping [the same words]                        exit with 0 if the server that the words configure answers, else with 1
//	headgate help [tool | command | directive]            explain a tool, a command of the server's, or a directive
//	headgate version | --version | --help
//	headgate [file.conf] [--directive value ...] --check-config
package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"headgate/cmd/headgate/cli"
	"headgate/internal/spelling"
	"headgate/persistence/check"
	"headgate/server"
	"headgate/server/command"
	"headgate/server/config"
	"headgate/server/front"
)

func main() {
	p := program{env: os.Environ(), stdout: os.Stdout, stderr: os.Stderr}
	os.Exit(p.run(os.Args[1:]))
}

// revision is the commit that was built; the linker sets it for releases.
var revision string

// program is one run, with the parts of the process that it uses.
type program struct {
	env            []string
	stdout, stderr io.Writer
}

const toolsHelp = `headgate, a rate-limit server that speaks the Redis protocol

  headgate [file.conf] [--directive ...]    run the server, as described below
  headgate [same arguments] --check-config  check the configuration without running
  headgate ping [same arguments]            exit with 0 if that server answers, else with 1
  headgate cli [command ...]                send commands, from arguments, a pipe or a prompt, and print the replies
  headgate check DIR [--fix]                show what is in a data directory and whether it is intact
  headgate bench [--addr A] [--load L] ...  measure the throughput and latency of a server under load
  headgate simulate [access.log] ...        show what limits would have done to the traffic in a log
  headgate help TOOL | COMMAND | DIRECTIVE  explain one of these, such as bench, RL.GCRA or maxmemory
  headgate version                          print the version

`

const versionHelp = `headgate version prints the version, the commit that a release was built from, the Redis version that it reports to clients, and the system.
`

// asksForHelp reports whether the words after a tool's name ask what it does.
func asksForHelp(args []string) bool {
	return slices.ContainsFunc(args, func(word string) bool { return word == "--help" || word == "-h" })
}

// run carries out a command line and returns the exit code.
func (p program) run(args []string) int {
	first := ""
	if len(args) > 0 {
		first = args[0]
	}
	var err error
	switch first {
	case "version", "--version", "-v":
		if asksForHelp(args[1:]) {
			_, err = io.WriteString(p.stdout, versionHelp)
			break
		}
		if len(args) > 1 {
			err = fmt.Errorf("version does not know %s; it takes no words", args[1])
			break
		}
		fmt.Fprintf(p.stdout, "headgate %s%s (as Redis %s) %s %s/%s\n",
			command.Version, strings.TrimRight(" "+revision, " "), command.RedisVersion, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	case "help", "--help", "-h":
		if first == "help" && len(args) > 1 {
			return p.help(args[1:])
		}
		if _, err = io.WriteString(p.stdout, toolsHelp); err == nil {
			err = config.Usage(p.stdout)
		}
	case "bench":
		err = p.bench(args[1:])
	case "check":
		err = p.check(args[1:])
	case "simulate":
		err = p.simulate(args[1:])
	case "cli":
		err = p.cli(args[1:])
	case "ping":
		err = p.ping(args[1:])
	default:
		if err = unknownTool(first); err != nil {
			break
		}
		isCheck := func(arg string) bool { return arg == "--check-config" }
		if slices.ContainsFunc(args, isCheck) { // a wrapper may add one of its own
			err = p.checkConfig(slices.DeleteFunc(slices.Clone(args), isCheck))
		} else {
			err = p.serve(args)
		}
	}
	if err != nil {
		p.complain(err)
		return 1
	}
	return 0
}

// help explains the tool, the command or the directive that the words name, and returns the exit code.
func (p program) help(words []string) int {
	if slices.Contains(tools, words[0]) {
		if len(words) > 1 {
			p.complain(fmt.Errorf("help %s does not know %s; it takes no more words", words[0], words[1]))
			return 1
		}
		if words[0] == "help" {
			return p.run(words[:1])
		}
		return p.run([]string{words[0], "--help"})
	}
	name := strings.Join(words, " ")
	text, near := cli.Explain(words)
	if text == "" {
		var directive string
		text, directive = config.Explain(name)
		near = cmp.Or(spelling.Nearest(name, tools...), near, directive)
	}
	if text == "" {
		advice := cmp.Or(advise(near), "; docs/commands.md has all commands, and headgate --help the directives")
		p.complain(fmt.Errorf("%q is no tool, no limiter, no command of Redis's types and no directive%s", name, advice))
		return exitMisused
	}
	if _, err := io.WriteString(p.stdout, text); err != nil {
		p.complain(err)
		return 1
	}
	return 0
}

// exitMisused is the exit code for words that ask for nothing there is, as that of shells.
const exitMisused = 2

// advise is the end of an error about a word that most likely means another one; empty: none is close.
func advise(near string) string {
	if near == "" {
		return ""
	}
	return "; did you mean " + near + "?"
}

// complain writes what has gone wrong, in a line for each mistake.
func (p program) complain(err error) {
	var several config.Mistakes
	if !errors.As(err, &several) {
		several = []error{err}
	}
	for _, one := range several {
		fmt.Fprintln(p.stderr, "headgate: "+strings.ReplaceAll(one.Error(), "\n", "; "))
	}
}

// tools are the first words that do not name a configuration file.
var tools = []string{"bench", "check", "cli", "help", "ping", "simulate", "version"}

// unknownTool returns the error for a first word that can only be a mistyped tool: the name of no file, and as no configuration file is called.
func unknownTool(word string) error {
	if word == "" || strings.ContainsAny(word, "-./"+string(os.PathSeparator)) {
		return nil
	}
	if _, err := os.Stat(word); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("%q is neither a configuration file nor one of the tools %s%s", word, strings.Join(tools, ", "), advise(spelling.Nearest(word, tools...)))
}

// checkConfig reads the configuration and reports what there is to say about it: all that a start would end with, and not only the first.
func (p program) checkConfig(args []string) error {
	live, notices, err := config.Load(args, p.env, config.OSHost())
	if err != nil {
		return err
	}
	cfg := live.Get()
	accessErr := server.CheckAccess(cfg)
	if accessErr == nil {
		notices = append(notices, server.Advise(cfg)...)
	}
	unwritable, dataErr := server.CheckData(cfg, dataFiles)
	what, warnings, loadErr := p.whatLoads(cfg)
	mistakes := slices.DeleteFunc(append(config.Mistakes{
		accessErr, dataErr, unusableLog(checkWritable(cfg.Path(cfg.LogFile))), unusablePID(checkWritable(cfg.Path(cfg.PidFile))), loadErr,
	}, front.Check(cfg)...), func(err error) bool { return err == nil })
	for _, n := range notices {
		fmt.Fprintln(p.stderr, n)
	}
	for _, n := range unwritable {
		fmt.Fprintln(p.stderr, "warning:", n)
	}
	when := ""
	if len(mistakes) == 0 {
		fmt.Fprintln(p.stdout, "the configuration is valid")
	} else {
		when = "once all is corrected, "
	}
	if what != "" {
		fmt.Fprintln(p.stdout, when+"a start loads", what)
	}
	for _, warning := range warnings {
		fmt.Fprintln(p.stderr, printable("warning: "+when+"a start "+warning))
	}
	if len(mistakes) > 0 {
		return mistakes
	}
	return nil
}

// linksMax is how many links are followed to a file that is not there yet.
const linksMax = 8

// checkWritable returns why a start could not write a file. It makes none under that name, which a server that starts meanwhile may be about to use, and
// does not open devices and pipes, since that may wait for who reads them. An empty path means none.
func checkWritable(path string) error {
	if path == "" {
		return nil
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.Mode()&(fs.ModeDevice|fs.ModeNamedPipe) != 0:
		return nil
	case err == nil:
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return f.Close()
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	for range linksMax {
		to, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = to
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	var failed *os.PathError
	if errors.As(err, &failed) { // not by the name that it was to have here
		return &os.PathError{Op: failed.Op, Path: path, Err: failed.Err}
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// whatLoads reads the data, and says which files a start with the configuration loads, with warnings if there are any. A gateway loads none. The error is
// why the start would end.
func (p program) whatLoads(cfg *config.Config) (what string, warnings []string, err error) {
	if cfg.Upstream != "" {
		return "", nil, nil
	}
	c := check.Checker{FS: dataFiles, Say: func(string, ...any) {}}
	if isTerminal(p.stderr) {
		c.Progress = showProgress(p.stderr)
	}
	if what, warnings, err = c.Start(server.StartOf(cfg, dataFiles)); err != nil {
		return "", nil, fmt.Errorf("the data cannot be loaded: %w", err)
	}
	return what, warnings, nil
}
