package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Limits on what Load reads.
const (
	maxFileSize     = 1 << 20 // bytes of one file
	maxIncludeDepth = 16      // files that include each other in a row
	maxFiles        = 256     // read in all
	maxMistakes     = 20      // that one Load reports
)

// Host is what the configuration needs from the machine. All fields must be set; see [OSHost].
type Host struct {
	ReadFile  func(path string) ([]byte, error)      // whole files; should fail for anything endless
	ReadAgain func(path string) ([]byte, error)      // the same while the server runs: should fail for pipes, which give nothing twice
	Glob      func(pattern string) ([]string, error) // as filepath.Glob
	Getwd     func() (string, error)                 // called once, by Load
	CheckDir  func(path string) error                // nil if path is a directory that may be entered
	Stdin     io.Reader                              // read to its end if - is among the arguments
}

// OSHost returns the host that this process runs on.
func OSHost() *Host {
	return &Host{ReadFile: readFile, ReadAgain: readAgain, Glob: filepath.Glob, Getwd: os.Getwd, CheckDir: checkOSDir, Stdin: os.Stdin}
}

// running is the host for a server that runs.
func (h *Host) running() *Host {
	next := *h
	next.ReadFile = h.ReadAgain
	return &next
}

// checkOSDir answers with the texts that CONFIG SET dir has in Redis.
func checkOSDir(path string) error {
	_, err := os.Stat(path + "/.") // the dot asks for a directory, and for the right to enter it
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrNotExist):
		return redisText("No such file or directory")
	case errors.Is(err, os.ErrPermission):
		return redisText("Permission denied")
	case errors.Is(err, syscall.ENOTDIR):
		return redisText("Not a directory")
	}
	return err
}

// Mistakes are what is wrong in a configuration, in the order of its layers and lines. There are two at least, and maxMistakes at most but for a last line
// that says that there are more.
type Mistakes []error

func (m Mistakes) Error() string {
	lines := make([]string, len(m))
	for i, err := range m {
		lines[i] = err.Error()
	}
	return strings.Join(lines, "; ")
}

// Unwrap is for package errors.
func (m Mistakes) Unwrap() []error { return m }

// errTooManyMistakes ends the evaluation.
var errTooManyMistakes = fmt.Errorf("there are more than %d mistakes: correct these first", maxMistakes)

// Notice tells the operator of something that was accepted but has no effect, or none yet.
type Notice struct {
	Where string // "redis.conf:12", "--name" or "HEADGATE_NAME"
	Text  string
}

func (n Notice) String() string { return n.Where + ": " + n.Text }

// sources are the layers of one Load, kept for SIGHUP and CONFIG REWRITE.
type sources struct {
	host  *Host
	start *Config // that all begins with; nil = the default
	cwd   string
	path  string // of the configuration file, absolute; "" = none
	stdin []statement
	env   []statement
	flags []statement
}

// Load evaluates the configuration: args are the command line's words after the program's name, env the environment as os.Environ
// has it. An error is one line that says what is wrong and where, or Mistakes with several of these; it shows no secret.
func Load(args, env []string, host *Host) (*Live, []Notice, error) {
	cwd, err := host.Getwd()
	if err != nil {
		return nil, nil, fmt.Errorf("cannot find the working directory: %w", err)
	}
	line, err := parseArgs(args)
	if err != nil {
		return nil, nil, err
	}
	s := &sources{host: host, cwd: cwd, flags: line.statements}
	if line.file != "" {
		s.path = s.absolute(line.file)
	}
	if line.stdin {
		if s.stdin, err = readStdin(host.Stdin); err != nil {
			return nil, nil, err
		}
	}
	var notices []Notice
	if s.env, notices, err = parseEnvironment(env); err != nil {
		return nil, nil, err
	}
	l, err := s.load()
	if err != nil {
		return nil, nil, err
	}
	if err := validate(l.config); err != nil {
		return nil, nil, err
	}
	return newLive(s, l), slices.Concat(notices, l.notices, atOdds(l.config)), nil
}

// atOdds are the directives that are set and do nothing, since another one is not, or do not go with another one.
func atOdds(c *Config) (notices []Notice) {
	defaults := Default()
	for _, each := range []struct {
		directive string
		true      bool
		text      string
	}{
		{"rls-config", c.RLSConfig != "" && c.RLSPort == 0, "it does nothing without rls-port, and its files are not read"},
		{"rls-bind", !slices.Equal(c.RLSBind, defaults.RLSBind) && c.RLSPort == 0, "it does nothing without rls-port"},
		{"rls-response-headers", c.RLSResponseHeaders && c.RLSPort == 0, "it does nothing without rls-port"},
		{"rls-user", c.RLSUser != defaults.RLSUser && c.RLSPassword == "", "it does nothing without rls-password: limits are checked as the default user"},
		{"http-bind", !slices.Equal(c.HTTPBind, defaults.HTTPBind) && c.HTTPPort == 0, "it does nothing without http-port"},
		{"metrics-password", c.MetricsPassword != "" && c.MetricsPort == 0, "it does nothing without metrics-port"},
		{"metrics-page-password", c.MetricsPagePassword != "" && c.MetricsPort == 0, "it does nothing without metrics-port"},
		{"metrics-bind", !slices.Equal(c.MetricsBind, defaults.MetricsBind) && c.MetricsPort == 0, "it does nothing without metrics-port"},
		{"masteruser", c.MasterUser != "" && c.MasterAuth == "", "it does nothing without masterauth"},
		{"requirepass", c.RequirePass != "" && c.ACLFile != "", "it does nothing with aclfile: passwords are those of the file's users"},
		{"requirepass", c.RequirePass != "" && c.ACLFile == "" && slices.ContainsFunc(c.Users, func(u User) bool { return u.Name == "default" }),
			"it does nothing with a line for the user default, which says what passwords that one has"},
		{"repl-timeout", c.PingsTooSeldom(), TooSeldom},
	} {
		if each.true {
			notices = append(notices, Notice{Where: each.directive, Text: each.text})
		}
	}
	return append(notices, withoutUpstream(c, defaults)...)
}

// withoutUpstream are the directives that say how to ask an upstream, and are set although there is none.
func withoutUpstream(c, defaults *Config) (notices []Notice) {
	if c.Upstream != "" {
		return nil
	}
	for _, d := range upstreamDirectives {
		if d.Format(c) != d.Format(defaults) {
			notices = append(notices, Notice{Where: d.Name, Text: "it does nothing without upstream"})
		}
	}
	return notices
}

// validate refuses what is wrong only as a whole.
func validate(c *Config) error {
	if (c.Port == 0 && c.TLSPort == 0 || len(c.Bind) == 0) && c.UnixSocket == "" {
		return errors.New("nothing to listen on: port is 0 or bind is empty; set them, or tls-port or unixsocket")
	}
	if err := c.portsApart(); err != nil {
		return err
	}
	if c.Upstream != "" && c.AppendOnly {
		return errors.New("appendonly is yes, but a gateway to an upstream keeps no data: remove one of the two")
	}
	if c.Upstream != "" && (c.OnSigterm|c.OnSigint)&ShutdownSave != 0 {
		return errors.New("shutdown-on-sigterm or shutdown-on-sigint says save, but a gateway to an upstream keeps no data: remove one of the two")
	}
	if c.Upstream != "" && c.ReplicaOf != (Address{}) {
		return errors.New("replicaof is set, but a gateway to an upstream keeps no data: remove one of the two")
	}
	if c.IsOwn(c.ReplicaOf) {
		return fmt.Errorf("replicaof names this server itself, which listens on port %d: name another one, or remove it", c.ReplicaOf.Port)
	}
	return nil
}

func readStdin(r io.Reader) ([]statement, error) {
	data, err := readAll(r, maxFileSize)
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration from standard input: %w", err)
	}
	return parseText("stdin", string(data)), nil
}

func (s *sources) absolute(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(s.cwd, path)
}

// loader evaluates layers into a configuration.
type loader struct {
	*sources
	config   *Config
	notices  []Notice
	mistakes Mistakes
	files    int
	set      map[string]bool   // names of directives that a file, standard input or flags have set; a repetition adds to them
	named    map[string]bool   // names of directives that a file has set
	fromFile *Config           // what the file alone says
	later    map[string]string // what has set a directive after the file, by the directive's name: "--port", "HEADGATE_PORT" or "stdin:12"
}

func (s *sources) newLoader() *loader {
	c := Default()
	if s.start != nil {
		*c = *s.start
	}
	c.Dir = s.cwd
	return &loader{sources: s, config: c, set: map[string]bool{}, named: map[string]bool{}, later: map[string]string{}}
}

// load evaluates all layers.
func (s *sources) load() (*loader, error) {
	l := s.newLoader()
	if s.path != "" {
		l.note(l.readFile("", s.path, 0))
	}
	return l, l.finish()
}

// loadText evaluates all layers with another text in the place of the file's.
func (s *sources) loadText(data []byte) (*loader, error) {
	l := s.newLoader()
	l.runText(s.path, data, 0)
	return l, l.finish()
}

// finish evaluates what stands above the file.
func (l *loader) finish() error {
	l.named = cloneSet(l.set)
	fromFile := *l.config
	l.fromFile, l.later = &fromFile, map[string]string{}
	l.run(l.stdin, 0)
	l.runEnvironment(l.env)
	l.run(l.flags, 0)
	if err := l.wrong(); err != nil {
		return err
	}
	if l.config.Upstream != "" {
		l.config.Save = nil // there are no data to save
	}
	return nil
}

// note remembers a mistake, so that all of them are told at once. nil is none.
func (l *loader) note(err error) {
	switch {
	case err == nil || l.full():
	case len(l.mistakes) == maxMistakes:
		l.mistakes = append(l.mistakes, errTooManyMistakes)
	default:
		l.mistakes = append(l.mistakes, err)
	}
}

// full reports whether there have been too many mistakes to go on.
func (l *loader) full() bool { return len(l.mistakes) > maxMistakes }

// wrong is all that is wrong, or nil.
func (l *loader) wrong() error {
	switch len(l.mistakes) {
	case 0:
		return nil
	case 1:
		return l.mistakes[0]
	}
	return l.mistakes
}

func cloneSet(set map[string]bool) map[string]bool {
	clone := make(map[string]bool, len(set))
	for name := range set {
		clone[name] = true
	}
	return clone
}

// readFile evaluates one file. where, which starts its errors, is empty or tells what includes it; depth counts the files that do.
func (l *loader) readFile(where, path string, depth int) error {
	l.files++
	data, err := l.host.ReadFile(path)
	if err != nil {
		return fileError(where, path, err)
	}
	l.runText(path, data, depth)
	return nil
}

func fileError(where, path string, err error) error {
	var pathError *os.PathError
	if errors.As(err, &pathError) {
		err = pathError.Err
	}
	return fmt.Errorf("%scannot read the configuration file %s: %w; check its path and permissions", where, quoteIfNeeded(path), err)
}

func (l *loader) runText(path string, data []byte, depth int) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	l.run(parseText(path, string(data)), depth)
}

// run evaluates statements, and notes those that are wrong.
func (l *loader) run(list []statement, depth int) {
	for _, st := range list {
		if l.full() {
			return
		}
		l.note(l.evaluate(st, depth))
	}
}

// runEnvironment evaluates variables. Each replaces what earlier layers have set.
func (l *loader) runEnvironment(list []statement) {
	for _, st := range list {
		delete(l.set, canonicalName(st.words[0]))
		l.note(l.evaluate(st, 0))
	}
}

// canonicalName returns the name that the table has for a directive, in lower case.
func canonicalName(name string) string {
	name = strings.ToLower(name)
	if d := byName[name]; d != nil {
		return d.Name
	}
	return name
}

// evaluate carries out one statement. What is wrong in a file that it includes is noted.
func (l *loader) evaluate(st statement, depth int) error {
	if st.wrong != nil {
		return fmt.Errorf("%s: %w", st.where, st.wrong)
	}
	name, args := strings.ToLower(st.words[0]), st.words[1:]
	d := byName[name]
	switch {
	case name == includeName:
		return l.include(st, depth)
	case name == "loadmodule":
		notice, err := judgeModule(args)
		return l.judged(st, notice, err)
	case d == nil:
		entry, found := findIgnored(name)
		if !found {
			return unknownDirective(st.where, st.words[0])
		}
		return l.judged(st, fmt.Sprintf("%s is ignored: %s", name, entry.Reason), entry.judge(args))
	}
	if err := d.apply(l.config, args, l.set[d.Name], l.host); err != nil {
		if d.kind == (directory{}) && len(args) == 1 && args[0] != "" && !filepath.IsAbs(args[0]) {
			err = fmt.Errorf("%s: %w", l.config.Dir, err) // where it has been looked for
		}
		return directiveError(st, d, err)
	}
	if d.place != nil {
		d.place(l.config, st.where)
	}
	l.set[d.Name], l.later[d.Name] = true, st.where
	if d.notice != nil {
		if text := d.notice(args); text != "" {
			l.notices = append(l.notices, Notice{Where: st.where, Text: text})
		}
	}
	return nil
}

func (l *loader) judged(st statement, notice string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", st.where, err)
	}
	l.notices = append(l.notices, Notice{Where: st.where, Text: notice})
	return nil
}

// directiveError names the directive and, unless it is secret, the value.
func directiveError(st statement, d *Directive, err error) error {
	if slices.Contains(st.words[1:], "#") {
		err = fmt.Errorf("%w; a comment stands on a line of its own", err)
	}
	if d.Secret {
		return fmt.Errorf("%s: %s: %w", st.where, d.Name, err)
	}
	words := []string{d.Name}
	for _, arg := range st.words[1:] {
		words = append(words, quoteIfNeeded(arg))
	}
	return fmt.Errorf("%s: %s: %w", st.where, strings.Join(words, " "), err)
}

func unknownDirective(where, name string) error {
	advice := "headgate --help lists them all"
	if d, _, found := strings.Cut(name, "="); found && byName[strings.ToLower(d)] != nil {
		name, advice = d+"=", "a blank stands before the value: "+d+" VALUE" // which may be secret
	} else if near := nearest(strings.ToLower(name)); near != "" {
		advice = fmt.Sprintf("did you mean %q?", near)
	}
	return fmt.Errorf("%s: unknown directive %q; %s", where, name, advice)
}

// globMarks are the characters that make an include a pattern, of which any number of files may match, even none.
const globMarks = "*?["

func (l *loader) include(st statement, depth int) error {
	if len(st.words) != 2 {
		return fmt.Errorf("%s: include: %w", st.where, errArguments)
	}
	if depth++; depth > maxIncludeDepth {
		return fmt.Errorf("%s: include: more than %d files deep; check for files that include each other", st.where, maxIncludeDepth)
	}
	path := l.absolute(st.words[1])
	paths := []string{path}
	if strings.ContainsAny(st.words[1], globMarks) {
		var err error
		if paths, err = l.host.Glob(path); err != nil {
			return fmt.Errorf("%s: include %s: %w", st.where, quoteIfNeeded(st.words[1]), err)
		}
	}
	for _, p := range paths {
		if l.files == maxFiles {
			l.files++ // told once
			return fmt.Errorf("%s: more than %d configuration files; check the include directives for a loop", st.where, maxFiles)
		}
		if l.files < maxFiles {
			l.note(l.readFile(st.where+": ", p, depth))
		}
	}
	return nil
}
