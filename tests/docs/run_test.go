package docs

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

var (
	clone = flag.String("blocks.clone", "", "run the shell blocks of README.md and the guides in this clone: they install packages, write below /etc and "+
		"/run, and listen on 6379 and other usual ports")
	leftOut = flag.String("blocks.without", "", "a line of the blocks that is left out, such as \"make test\"")
)

// lineTimeout is how long a line may take, or take until it serves: the first one downloads and compiles.
const lineTimeout = 30 * time.Minute

// elsewhere are the programs that no chroot has, and what they take. Lines that begin with them are reported as not run.
var elsewhere = map[string]string{
	"docker":  "a container engine",
	"kubectl": "a Kubernetes cluster",
}

// TestBlocksRun types the shell blocks of README.md and the guides, document by document, as a reader does: each line must succeed, and what
// serves must decide a call. The sessions that the READMEs show are typed into headgate cli between them. Servers of others that a line names,
// such as the Redis behind a gateway, are started first.
func TestBlocksRun(t *testing.T) {
	if *clone == "" {
		t.Skip("make bare runs the shell blocks in a bare Debian")
	}
	paths := []string{"README.md", "README.zh-CN.md"}
	for _, pattern := range []string{"docs/*.md", "docs/zh/*.md"} {
		found, err := filepath.Glob(filepath.Join(*clone, pattern))
		require.NoError(t, err)
		for _, path := range found {
			name, err := filepath.Rel(*clone, path)
			require.NoError(t, err)
			paths = append(paths, name)
		}
	}
	r := &reader{exported: filepath.Join(t.TempDir(), "exported")}
	require.NoError(t, os.WriteFile(r.exported, nil, 0o644))
	for _, name := range paths {
		if !t.Run(name, func(t *testing.T) { r.read(t, name) }) {
			break // what comes later builds on it
		}
	}
	for _, line := range r.notRun {
		t.Log("not run: " + line)
	}
	if t.Failed() {
		return
	}
	t.Logf("%d lines were run, %d were not", r.ran, len(r.notRun))
	require.Greater(t, r.ran, 30, "lines of shell in the documents")
}

// reader types what documents show into a shell. What serves keeps running, as in a terminal of its own, until a later line needs its address.
type reader struct {
	t        *testing.T
	document string
	exported string // the file of what the lines so far have exported
	servers  []*served
	ran      int
	notRun   []string
}

// step is a line of shell, or a whole session at headgate's prompt.
type step struct {
	number  int // of its line in the document
	line    string
	session transcript
}

// steps are what a document has a reader type, from top to bottom.
func steps(t *testing.T, path string) (found []step) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, at := range shellBlock.FindAllStringSubmatchIndex(string(text), -1) {
		number := 1 + bytes.Count(text[:at[2]], []byte("\n"))
		line := ""
		for part := range strings.Lines(string(text[at[2]:at[3]])) {
			number++
			if more, continued := strings.CutSuffix(strings.TrimSpace(part), `\`); continued {
				line += more
				continue
			}
			if line += strings.TrimSpace(part); line != "" && !strings.HasPrefix(line, "#") {
				found = append(found, step{number: number - 1, line: line})
			}
			line = ""
		}
	}
	if strings.HasPrefix(filepath.Base(path), "README") { // those of the guides are replayed on servers of their own
		for _, session := range transcripts(t, path) {
			found = append(found, step{number: session.line, session: session})
		}
	}
	slices.SortFunc(found, func(a, b step) int { return a.number - b.number })
	return found
}

// read types a document. A guide finds what README.md's first lines leave: a server on 6379. None finds keys of the one before.
func (r *reader) read(t *testing.T, name string) {
	r.t, r.document = t, name
	defer r.stopAll()
	for _, data := range []string{"dump.rdb", "appendonlydir"} {
		require.NoError(t, os.RemoveAll(filepath.Join(*clone, data)))
	}
	todo := steps(t, filepath.Join(*clone, name))
	if len(todo) > 0 && !strings.HasPrefix(name, "README") {
		r.serve("headgate")
	}
	for _, s := range todo {
		first, _, _ := strings.Cut(s.line, " ")
		_, missing := exec.LookPath(first)
		where := fmt.Sprintf("%s:%d: %s", name, s.number, s.line)
		switch {
		case s.line == "":
			t.Logf("%s:%d: a session of headgate cli", name, s.number)
			r.converse(s.session)
			continue
		case elsewhere[first] != "" && missing != nil:
			r.notRun = append(r.notRun, where+": takes "+elsewhere[first])
			continue
		case s.line == *leftOut:
			r.notRun = append(r.notRun, where+": left out by -blocks.without")
			continue
		}
		t.Log(where)
		r.provide(s.line)
		if serves(s.line) {
			r.serve(s.line)
		} else {
			r.run(s.line)
		}
		r.ran++
	}
}

// shell runs a line with what earlier ones have exported. redis-cli fails on an error's reply here, which it only prints otherwise.
func (r *reader) shell(line, after string) *exec.Cmd {
	cmd := exec.Command("bash", "-c", fmt.Sprintf(". '%s'\nredis-cli() { command redis-cli -e \"$@\"; }\n%s\nstatus=$?\n%s\nexit $status", r.exported, line, after))
	cmd.Dir = *clone
	return cmd
}

// run has a line come to its end, which must be a good one.
func (r *reader) run(line string) {
	r.t.Helper()
	s := r.start(line, r.shell(line, "export -p >'"+r.exported+"'"), nil)
	select {
	case <-s.ended:
		require.NoError(r.t, s.err, "%s: %s\n%s", r.document, line, s.output.Bytes())
	case <-time.After(lineTimeout):
		_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
		<-s.ended
		require.FailNow(r.t, "does not end", "%s: %s\n%s", r.document, line, s.output.Bytes())
	}
}

// converse types a session into headgate cli, which must print what the document shows.
func (r *reader) converse(session transcript) {
	r.t.Helper()
	var input, want strings.Builder
	for _, c := range session.calls {
		input.WriteString(c.command + "\n")
		want.WriteString(c.output)
	}
	cmd := r.shell("bin/headgate cli --no-raw", "") // as at a terminal
	cmd.Stdin = strings.NewReader(input.String())
	out, err := cmd.CombinedOutput()
	require.NoError(r.t, err, "%s", out)
	require.Equal(r.t, trimmed(want.String()), trimmed(string(out)), "%s:%d", r.document, session.line)
}

// served is a process that a line has started, or that is there for one.
type served struct {
	line      string
	addresses []string
	control   string // the Unix socket of a server that no line has started
	cmd       *exec.Cmd
	output    bytes.Buffer // to be read when it has ended
	ended     chan struct{}
	err       error
}

var (
	portFlag    = regexp.MustCompile(`--port (\d+)`)
	portLine    = regexp.MustCompile(`(?m)^port (\d+)`)
	socketFlag  = regexp.MustCompile(`--unixsocket (\S+)`)
	metricsFlag = regexp.MustCompile(`--(?:metrics|http|rls)-port (\d+)`)
	fileArg     = regexp.MustCompile(`^\S+\.conf`)
)

// serves says whether a line ends with a server in the foreground.
func serves(line string) bool {
	if line == "headgate" {
		return true
	}
	called := calls(line)
	if len(called) == 0 {
		return false
	}
	last := called[len(called)-1]
	return !slices.Contains(tools, strings.Fields(last)[0]) && !strings.Contains(last, "--check-config")
}

// serve starts a line that serves and waits until it decides calls. Who has its addresses is ended first.
func (r *reader) serve(line string) {
	r.t.Helper()
	port := "6379"
	if file := fileArg.FindString(strings.Join(calls(line), "")); file != "" {
		text, err := os.ReadFile(filepath.Join(*clone, file))
		require.NoError(r.t, err)
		if found := portLine.FindSubmatch(text); found != nil {
			port = string(found[1])
		}
	}
	if found := portFlag.FindStringSubmatch(line); found != nil {
		port = found[1]
	}
	addresses := []string{"127.0.0.1:" + port}
	asked := []string{addresses[0]}
	if found := socketFlag.FindStringSubmatch(line); found != nil {
		asked = append(asked, found[1])
	}
	for _, found := range metricsFlag.FindAllStringSubmatch(line, -1) {
		addresses = append(addresses, "127.0.0.1:"+found[1])
	}
	s := r.start(line, r.shell(line, ""), addresses)
	for _, addr := range asked {
		r.await(s, func() error { return decides(addr) })
	}
	if found := regexp.MustCompile(`--metrics-port (\d+)`).FindStringSubmatch(line); found != nil {
		resp, err := http.Get("http://127.0.0.1:" + found[1] + "/")
		require.NoError(r.t, err)
		require.NoError(r.t, resp.Body.Close())
		require.Equal(r.t, http.StatusOK, resp.StatusCode, "%s: the page", line)
	}
}

// decides asks a server for a limit. A replica leaves that to its primary.
func decides(addr string) error {
	network := "tcp"
	if strings.HasPrefix(addr, "/") {
		network = "unix"
	}
	conn, err := net.DialTimeout(network, addr, harness.ReplyTimeout)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(harness.ReplyTimeout)); err != nil {
		return err
	}
	if _, err := conn.Write(harness.Command("RL.GCRA", "rl:documents", "1000", "1000", "1s")); err != nil {
		return err
	}
	reply := make([]byte, 256)
	n, err := conn.Read(reply)
	if answer := string(reply[:n]); err == nil && !strings.HasPrefix(answer, "*5\r\n") && !strings.HasPrefix(answer, "-READONLY ") {
		return errors.New(answer)
	}
	return err
}

// start starts a process in a group of its own, when its addresses are free.
func (r *reader) start(line string, cmd *exec.Cmd, addresses []string) *served {
	r.t.Helper()
	for _, addr := range addresses {
		r.stop(r.at(addr))
		listener, err := net.Listen("tcp", addr)
		require.NoError(r.t, err, "%s is needed for: %s", addr, line)
		require.NoError(r.t, listener.Close())
	}
	s := &served{line: line, addresses: addresses, cmd: cmd, ended: make(chan struct{})}
	s.cmd.Stdout, s.cmd.Stderr = &s.output, &s.output
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(r.t, s.cmd.Start())
	go func() {
		s.err = s.cmd.Wait()
		close(s.ended)
	}()
	if len(addresses) > 0 {
		r.servers = append(r.servers, s)
	}
	return s
}

// await waits until a server does what is asked of it.
func (r *reader) await(s *served, ready func() error) {
	r.t.Helper()
	var err error
	for deadline := time.Now().Add(lineTimeout); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		select {
		case <-s.ended:
			r.servers = slices.DeleteFunc(r.servers, func(o *served) bool { return o == s })
			require.FailNow(r.t, "does not serve", "%s: %s: %v\n%s", r.document, s.line, s.err, s.output.Bytes())
		default:
		}
		if err = ready(); err == nil {
			return
		}
	}
	require.NoError(r.t, err, "%s: %s", r.document, s.line)
}

// at is the server that has an address, or nil.
func (r *reader) at(addr string) *served {
	for _, s := range r.servers {
		if slices.Contains(s.addresses, addr) {
			return s
		}
	}
	return nil
}

// stop ends a server as Ctrl-C does, which must be in good order if a line has started it.
func (r *reader) stop(s *served) {
	r.t.Helper()
	if s == nil {
		return
	}
	r.servers = slices.DeleteFunc(r.servers, func(o *served) bool { return o == s })
	_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGINT)
	select {
	case <-s.ended:
	case <-time.After(6 * harness.ReplyTimeout):
		_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
		<-s.ended
	}
	if s.control == "" && !r.t.Failed() { // go run says 1 after Ctrl-C, whatever the program says
		require.Contains(r.t, s.output.String(), "headgate has ended", "%s: Ctrl-C ends: %s: %v", r.document, s.line, s.err)
	}
}

// stopAll ends all, the youngest first.
func (r *reader) stopAll() {
	for len(r.servers) > 0 {
		r.stop(r.servers[len(r.servers)-1])
	}
}
