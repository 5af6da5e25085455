package lua

import (
	"flag"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

var maxReports = flag.Int("lua.reports", 25, "differences shown per file and protocol")

const (
	fewestCases = 400 // that testdata/cases holds
	serverPairs = 2   // that the files of cases are shared out to
)

// pair is one server of each kind.
type pair struct{ subject, reference *harness.Server }

func startPair(t *testing.T, flags ...string) pair {
	t.Helper()
	subject, reference := harness.StartPair(t, flags...)
	return pair{subject, reference}
}

// link is a connection to each server of a pair.
type link struct{ subject, reference *harness.Client }

// dial connects to both in the protocol wanted.
func (p pair) dial(t testing.TB, protocol int) link {
	t.Helper()
	l := link{harness.Dial(t, p.subject.Addr), harness.Dial(t, p.reference.Addr)}
	if protocol == 3 {
		l.subject.Do("HELLO", "3")
		l.reference.Do("HELLO", "3")
	}
	return l
}

func (l link) close() {
	l.subject.Close()
	l.reference.Close()
}

// clear empties both servers of keys, scripts and functions. An answer is all that is wanted: a server may lack one.
func (l link) clear() {
	for _, command := range [][]string{{"FLUSHALL"}, {"SCRIPT", "FLUSH"}, {"FUNCTION", "FLUSH"}} {
		l.subject.Do(command...)
		l.reference.Do(command...)
	}
}

// exchange sends the same bytes to both and reads one reply from each.
func (l link) exchange(raw []byte) (subject, reference harness.Value, err error) {
	if err := l.send(raw); err != nil {
		return subject, reference, err
	}
	return l.read()
}

func (l link) send(raw []byte) error {
	if err := l.subject.Send(raw); err != nil {
		return fmt.Errorf("headgate: %w", err)
	}
	if err := l.reference.Send(raw); err != nil {
		return fmt.Errorf("redis-server: %w", err)
	}
	return nil
}

func (l link) read() (subject, reference harness.Value, err error) {
	if reference, err = l.reference.Read(harness.ReplyTimeout); err != nil {
		return subject, reference, fmt.Errorf("redis-server: %w", err)
	}
	if subject, err = l.subject.Read(harness.ReplyTimeout); err != nil {
		return subject, reference, fmt.Errorf("headgate: %w (redis-server said %q)", err, reference.Wire())
	}
	return subject, reference, nil
}

// TestCases runs every file of testdata/cases.
func TestCases(t *testing.T) {
	files, err := loadCases()
	require.NoError(t, err)
	self := harness.SubjectIsReference(t)
	servers := make(chan pair, serverPairs)
	for range serverPairs {
		servers <- startPair(t)
	}
	var compared atomic.Int64
	cases, listed := 0, 0
	for _, file := range files {
		for _, c := range file.cases {
			cases++
			if c.differs != "" {
				listed++
			}
		}
	}
	require.GreaterOrEqual(t, cases, fewestCases)
	t.Run("files", func(t *testing.T) {
		for _, file := range files {
			t.Run(file.name, func(t *testing.T) {
				t.Parallel()
				p := <-servers
				defer func() { servers <- p }()
				protocols := []int{2, 3}
				if *calls < wholeCalls {
					protocols = harness.Draw(t, protocols, 1)
				}
				for _, protocol := range protocols {
					r := caseRun{t: t, file: file, servers: p, protocol: protocol, self: self, links: map[string]link{}}
					r.all()
					compared.Add(r.compared)
				}
			})
		}
	})
	t.Logf("%d cases, %d replies compared, %d cases listed as different", cases, compared.Load(), listed)
}

// caseRun is one file in one protocol.
type caseRun struct {
	t        *testing.T
	file     caseFile
	servers  pair
	protocol int
	self     bool // both servers are redis-server: listed differences are none

	links    map[string]link
	compared int64
	reports  int
}

func (r *caseRun) all() {
	defer func() {
		for _, l := range r.links {
			l.close()
		}
	}()
	r.link("a").clear()
	for i := range r.file.cases {
		c := &r.file.cases[i]
		if c.only != 0 && c.only != r.protocol || c.alone && r.self {
			continue
		}
		subject, reference, err := r.exchange(c)
		if err != nil {
			r.t.Errorf("%s: %v; the rest of the file did not run", r.where(c), err)
			return
		}
		r.compared++
		r.judge(c, subject, reference)
		if r.reports > *maxReports {
			r.t.Errorf("%s: more differences follow", r.where(c))
			return
		}
	}
}

func (r *caseRun) exchange(c *luaCase) (subject, reference harness.Value, err error) {
	l := r.link(c.conn)
	if !c.alone {
		return l.exchange(harness.Command(c.args...))
	}
	if err = l.subject.Send(harness.Command(c.args...)); err == nil {
		subject, err = l.subject.Read(harness.ReplyTimeout)
	}
	return subject, reference, err
}

func (r *caseRun) judge(c *luaCase, subject, reference harness.Value) {
	same := c.form(subject) == c.form(reference)
	switch {
	case r.self && same, c.alone && c.want == "":
	case c.differs != "" && same:
		r.report(c, "is listed as different, but both say", subject, reference)
	case c.want != "" && !r.self && subject.Wire() != c.want:
		r.report(c, fmt.Sprintf("must be %q", c.want), subject, reference)
	case c.differs == "" && !c.alone && !same:
		r.report(c, "differs", subject, reference)
	}
}

func (r *caseRun) report(c *luaCase, what string, subject, reference harness.Value) {
	r.reports++
	r.t.Errorf("%s: %s\n  redis-server: %q\n  headgate:     %q", r.where(c), what, reference.Wire(), subject.Wire())
}

func (r *caseRun) where(c *luaCase) string {
	return fmt.Sprintf("testdata/cases/%s:%d: RESP%d: %s", r.file.name, c.line, r.protocol, c.text)
}

func (r *caseRun) link(name string) link {
	l, ok := r.links[name]
	if !ok {
		l = r.servers.dial(r.t, r.protocol)
		r.links[name] = l
	}
	return l
}

// form is what is compared of a reply.
func (c *luaCase) form(v harness.Value) string {
	if c.unordered {
		v = v.Sorted(false)
	}
	if c.shape {
		v = v.Shape()
	}
	wire := v.Append(nil)
	for _, mask := range c.masks {
		wire = mask.ReplaceAll(wire, []byte("<masked>"))
	}
	return string(wire)
}
