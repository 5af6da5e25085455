package compat

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

const (
	maxReports  = 15              // differences shown per file
	closedLimit = 5 * time.Second // for @closed and @blocked
	fewestPairs = 2000            // that a run compares
	mostDiffers = 20              // lines that may be listed as different
)

// pair is one server of each kind.
type pair struct {
	reference, subject *harness.Server
}

// pool hands a pair of servers to one test at a time.
type pool chan pair

func newPool(t *testing.T) pool {
	size := runtime.GOMAXPROCS(0)
	p := make(pool, size)
	for range size {
		p <- startPair(t)
	}
	return p
}

func startPair(t *testing.T, flags ...string) pair {
	t.Helper()
	subject, reference := harness.StartPair(t, flags...)
	return pair{reference: reference, subject: subject}
}

// link is a connection to each server of a pair.
type link struct {
	reference, subject *harness.Client
}

// dial connects to both in the protocol wanted. A server that wants a password refuses HELLO: such scripts say
// themselves which protocol they speak.
func (p pair) dial(t *testing.T, protocol int) link {
	t.Helper()
	l := link{harness.Dial(t, p.reference.Addr), harness.Dial(t, p.subject.Addr)}
	if protocol == 3 {
		l.reference.Do("HELLO", "3")
		l.subject.Do("HELLO", "3")
	}
	return l
}

func (l link) close() {
	l.reference.Close()
	l.subject.Close()
}

// send writes the same bytes to both.
func (l link) send(raw []byte) error { return l.sendEach(raw, raw) }

// sendEach writes to both.
func (l link) sendEach(forReference, forSubject []byte) error {
	if err := l.reference.Send(forReference); err != nil {
		return fmt.Errorf("redis-server: %w", err)
	}
	if err := l.subject.Send(forSubject); err != nil {
		return fmt.Errorf("headgate: %w", err)
	}
	return nil
}

// read returns one reply from each.
func (l link) read() (reference, subject harness.Value, err error) {
	if reference, err = l.reference.Read(harness.ReplyTimeout); err != nil {
		return reference, subject, fmt.Errorf("redis-server: %w", err)
	}
	if subject, err = l.subject.Read(harness.ReplyTimeout); err != nil {
		return reference, subject, fmt.Errorf("headgate: %w (redis-server said %q)", err, reference.Wire())
	}
	return reference, subject, nil
}

// tally counts what a whole run compared.
type tally struct {
	pairs   atomic.Int64 // requests whose two replies were compared
	differs atomic.Int64 // lines with a listed difference
}

// run is one script in one protocol.
type run struct {
	t        *testing.T
	script   script
	servers  pair
	protocol int
	self     bool // both servers are redis-server: listed differences are none
	tally    *tally

	links   map[string]link
	ids     map[string][2]string // what @id has noted of connections: their numbers on the two servers
	lag     time.Duration        // the sum of the two longest round trips so far
	reports int
}

func (r *run) all() {
	r.links, r.ids = make(map[string]link), make(map[string][2]string)
	defer func() {
		for _, l := range r.links {
			l.close()
		}
	}()
	first := r.link("a")
	first.reference.Do("FLUSHALL")
	first.subject.Do("FLUSHALL")
	for i := range r.script.steps {
		st := &r.script.steps[i]
		if st.only != 0 && st.only != r.protocol {
			continue
		}
		if err := r.step(st); err != nil {
			r.t.Errorf("%s: %v; the rest of the file did not run", r.where(st), err)
			return
		}
		if r.reports > maxReports {
			r.t.Errorf("%s: more differences follow", r.where(st))
			return
		}
	}
}

func (r *run) where(st *step) string {
	return fmt.Sprintf("testdata/%s:%d: RESP%d: %s", r.script.name, st.line, r.protocol, st.text)
}

func (r *run) link(name string) link {
	l, ok := r.links[name]
	if !ok {
		l = r.servers.dial(r.t, r.protocol)
		r.links[name] = l
	}
	return l
}

func (r *run) step(st *step) error {
	switch {
	case st.sleep > 0:
		time.Sleep(st.sleep)
		return nil
	case st.closed:
		return r.expectClosed(st)
	case st.blocked >= 0:
		return r.awaitBlocked(st.blocked)
	case st.noteID:
		l := r.link(st.conn)
		r.ids[st.conn] = [2]string{l.reference.Ask("CLIENT", "ID").Text, l.subject.Ask("CLIENT", "ID").Text}
		return nil
	}
	for round := range st.repeat {
		if err := r.exchange(st, round); err != nil {
			return err
		}
	}
	if st.differs != "" && (r.protocol == 2 || st.only == 3) {
		r.tally.differs.Add(1)
	}
	r.tally.pairs.Add(1)
	return nil
}

// exchange sends the command to both servers and compares what they say.
func (r *run) exchange(st *step, round int) error {
	l := r.link(st.conn)
	forReference, forSubject := st.raw, st.raw
	if st.raw == nil {
		forReference = harness.Command(r.withIDs(st.expand(round), 0)...)
		forSubject = harness.Command(r.withIDs(st.expand(round), 1)...)
	}
	begin := time.Now()
	if err := l.sendEach(forReference, forSubject); err != nil || st.noReply {
		return err
	}
	reference, subject, err := l.read()
	if err != nil {
		return err
	}
	r.lag = max(r.lag, 2*time.Since(begin))
	same := st.same(reference, subject, r.lag)
	switch {
	case st.differs != "" && same && !r.self:
		r.report(st, "is listed as different, but both say", reference, subject)
	case st.differs == "" && !same:
		r.report(st, "differs", reference, subject)
	}
	return nil
}

// withIDs returns args with {id:conn} replaced by the number of that connection on one of the two servers.
func (r *run) withIDs(args []string, side int) []string {
	if len(r.ids) == 0 {
		return args
	}
	args = slices.Clone(args)
	for i := range args {
		for conn, ids := range r.ids {
			args[i] = strings.ReplaceAll(args[i], "{id:"+conn+"}", ids[side])
		}
	}
	return args
}

func (r *run) report(st *step, what string, reference, subject harness.Value) {
	r.reports++
	r.t.Errorf("%s: %s\n  redis-server: %q\n  headgate:     %q", r.where(st), what, reference.Wire(), subject.Wire())
}

// expectClosed wants both servers to have closed the connection, and forgets it, so that its next use dials anew.
func (r *run) expectClosed(st *step) error {
	l := r.link(st.conn)
	delete(r.links, st.conn)
	defer l.close()
	for _, side := range []struct {
		name   string
		client *harness.Client
	}{{"redis-server", l.reference}, {"headgate", l.subject}} {
		rest, closed := side.client.Drain(closedLimit)
		if !closed || len(rest) > 0 {
			return fmt.Errorf("%s: closed=%v, and it sent %q", side.name, closed, rest)
		}
	}
	return nil
}

// awaitBlocked returns when both servers have so many blocked clients.
func (r *run) awaitBlocked(n int) error {
	l := r.link("the one that asks")
	want := fmt.Sprintf("blocked_clients:%d\r\n", n)
	for _, client := range []*harness.Client{l.reference, l.subject} {
		for begin := time.Now(); !strings.Contains(client.Ask("INFO", "clients").Text, want); {
			if time.Since(begin) > closedLimit {
				return fmt.Errorf("there are never %d blocked clients", n)
			}
		}
	}
	return nil
}

// TestScripts runs every file of testdata in both protocols against headgate and redis-server.
func TestScripts(t *testing.T) {
	scripts, err := loadScripts()
	require.NoError(t, err)
	require.NotEmpty(t, scripts)
	self := harness.SubjectIsReference(t)
	servers := newPool(t)
	var counts tally
	t.Run("files", func(t *testing.T) {
		for _, s := range scripts {
			t.Run(strings.TrimSuffix(s.name, ".txt"), func(t *testing.T) {
				t.Parallel()
				runScript(t, s, servers, self, &counts)
			})
		}
	})
	require.GreaterOrEqual(t, counts.pairs.Load(), int64(fewestPairs))
	require.LessOrEqual(t, counts.differs.Load(), int64(mostDiffers))
	t.Logf("%d files, %d request and reply pairs compared, %d lines with a listed difference",
		len(scripts), counts.pairs.Load(), counts.differs.Load())
}

func runScript(t *testing.T, s script, servers pool, self bool, counts *tally) {
	var p pair
	switch {
	case s.own != nil:
		p = pair{reference: harness.StartReference(t, s.flags...), subject: harness.Start(t, slices.Concat(s.flags, s.own)...)}
	case s.flags != nil:
		p = startPair(t, s.flags...)
	default:
		p = <-servers
		defer func() { servers <- p }()
	}
	for _, protocol := range protocols(t) {
		r := run{t: t, script: s, servers: p, protocol: protocol, self: self, tally: counts}
		r.all()
	}
}
