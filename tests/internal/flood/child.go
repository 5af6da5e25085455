package flood

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

const (
	jobVariable   = "FLOOD_JOB" // in a child's environment: what it is there for
	childPatience = time.Minute // beyond what a child was asked for, until it is killed
	ready         = "ready\n"
)

// job is what a child does.
type job struct {
	Flood    string // its attackers; "" is the client that sends PING
	Size     Size
	Addr     string
	Password string // which the client says, and attackers who are no strangers
	Time     time.Duration
}

// Child does a child's work and ends the process, if it is one. Otherwise it does nothing.
func Child(in io.Reader, out io.Writer) {
	text := os.Getenv(jobVariable)
	if text == "" {
		return
	}
	var j job
	err := json.Unmarshal([]byte(text), &j)
	if err == nil {
		err = j.run(in, out)
	}
	if err != nil {
		_, _ = fmt.Fprintln(out, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func (j job) run(in io.Reader, out io.Writer) error {
	gone := make(chan struct{}) // whoever started this process wants it to end, or has ended itself
	go func() {
		_, _ = io.Copy(io.Discard, in)
		close(gone)
	}()
	if j.Flood == "" {
		p, err := newProber(j.Addr, j.Password)
		if err != nil {
			return err
		}
		_, _ = io.WriteString(out, ready)
		return json.NewEncoder(out).Encode(p.run(gone))
	}
	f, err := Find(j.Flood)
	if err != nil {
		return err
	}
	_, _ = io.WriteString(out, ready)
	ctx, cancel := context.WithTimeout(context.Background(), j.Time)
	defer cancel()
	go func() {
		<-gone
		cancel()
	}()
	var config *tls.Config
	if f.TLS {
		config = &tls.Config{InsecureSkipVerify: true} // the attackers trust everybody
	}
	return json.NewEncoder(out).Encode(attack(ctx, f, j.Size, j.Addr, j.Password, config))
}

// child is a running one.
type child struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
	out *json.Decoder
}

// startChild runs this test's binary again on one processor, and returns when the child is about to begin.
func startChild(t testing.TB, cpu int, j job) *child {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	text, err := json.Marshal(j)
	require.NoError(t, err)
	c := &child{t: t, cmd: exec.Command("/bin/sh", "-c", harness.Pinned(cpu)+` && exec "$0"`, self)}
	c.cmd.Env = append(harness.Environment(), jobVariable+"="+string(text), "GOMEMLIMIT="+attackersRAM)
	var complaints strings.Builder
	c.cmd.Stderr = &complaints
	c.in, err = c.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := c.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.cmd.Start())
	t.Cleanup(func() { _ = c.cmd.Process.Kill() })
	first := make([]byte, len(ready))
	_, err = io.ReadFull(out, first)
	if err != nil || string(first) != ready {
		rest, _ := io.ReadAll(out)
		require.FailNow(t, "a child did not begin", "%v: %s%s%s", err, first, rest, complaints.String())
	}
	c.out = json.NewDecoder(out)
	return c
}

// stop asks the child to end.
func (c *child) stop() { _ = c.in.Close() }

// result waits for what the child has to say.
func (c *child) result(within time.Duration, into any) {
	c.t.Helper()
	late := time.AfterFunc(within+childPatience, func() { _ = c.cmd.Process.Kill() })
	defer late.Stop()
	err := c.out.Decode(into)
	_ = c.cmd.Wait()
	require.NoError(c.t, err, "what a child has to say")
}
