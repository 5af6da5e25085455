// Package flood holds what strangers and readers do to a server on purpose: each flood is a value with a name, the directives that a
// server gets, what has to be there before, and what each of its connections does. The hostile suite runs them one at a time and
// measures; the soak draws them at random.
//
// The attackers are a process of their own, this test's binary started again, and so is the client whose PING is measured: what they take
// of the processor and of memory is not the server's, and they can be kept on processors of their own. A suite that uses this package
// calls Child first thing in its TestMain.
package flood

import (
	"fmt"
	"time"

	"headgate/tests/internal/harness"
)

// Password is that of servers whose floods need one. The attackers do not know it; the client beside them does.
const Password = "s"

// Size says how much of a flood is wanted.
type Size int

// Short is for a suite that is run all the time, Whole is what the figures are asked of.
const (
	Short Size = iota
	Whole
)

// of is the first count for a short flood and the second for a whole one.
func (s Size) of(short, whole int) int {
	if s == Short {
		return short
	}
	return whole
}

// Flood is one attack.
type Flood struct {
	Name  string
	Flags []string // directives for the server, besides Common
	Own   []string // directives for headgate alone, which redis-server does not have
	Limit int64    // bytes of address space that the server may have, 0 for as much as it likes
	TLS   bool     // the server also listens for TLS, and the attackers come that way
	Port  string   // the directive of the port that they come to, one of Ports, for which headgate listens too; "" is the Redis port
	// Stranger marks attackers who would not say a password if they were asked for one.
	Stranger bool

	// Setup has what the flood needs put into the server, by somebody who may.
	Setup func(do Do, size Size) error

	// Conns is the number of connections at a time.
	Conns func(size Size) int
	// Attack is what one connection does; when it returns, the connection is closed and the next one takes its place. It ends at the
	// latest when the flood does, since all that it sends and reads then fails.
	Attack func(c *Conn, size Size) error

	// Memory is how much the server may grow by, in bytes.
	Memory func(size Size) int64
	// Settle is how long after the flood the server is looked at: what a client leaves behind when it hangs up takes time as well.
	Settle time.Duration
	// Back asks that this long after the flood resident memory be back to what it was, but for a tenth of what it grew by. 0 asks nothing.
	Back time.Duration
	// Pause is what PING may take at p99.9 whatever redis-server takes; 0 stands for DefaultPause.
	Pause time.Duration
	// Factor is how many times redis-server's PING and memory the server may take; 0 stands for DefaultFactor of PING alone.
	Factor float64
	// Long marks a flood of commands or transactions of which one alone takes more than 25 ms: nobody can be answered before it has ended.
	Long bool
	// Alone marks a flood that has headgate's own commands or directives in it, which redis-server does not know.
	Alone bool
}

// DefaultPause is what a PING may take at p99.9 during a flood, unless redis-server takes two thirds of it itself.
const DefaultPause = 100 * time.Millisecond

// DefaultFactor is how many times what a PING takes on redis-server it may take.
const DefaultFactor = 1.5

// Do runs one command and fails on an error reply.
type Do func(args ...string) (harness.Value, error)

// Common are directives that both servers get, so that they are asked the same.
var Common = []string{"--protected-mode", "no", "--client-output-buffer-limit", "normal", "64mb", "16mb", "30", "--client-output-buffer-limit", "pubsub", "32mb", "8mb", "60"}

// Find returns the flood of a name.
func Find(name string) (*Flood, error) {
	for i := range All {
		if All[i].Name == name {
			return &All[i], nil
		}
	}
	return nil, fmt.Errorf("no flood is called %q", name)
}

// same is a count that does not depend on the size.
func same(n int) func(Size) int { return func(Size) int { return n } }

// sized is a count that does.
func sized(short, whole int) func(Size) int { return func(s Size) int { return s.of(short, whole) } }

// bytes is a bound that does not depend on the size.
func bytes(n int64) func(Size) int64 { return func(Size) int64 { return n } }
