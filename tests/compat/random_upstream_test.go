package compat

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

var (
	// hereCommands are answered by a gateway itself, or change how its client is spoken to.
	hereCommands = [][]string{{"PING"}, {"ECHO", "between"}, {"HELLO", "2"}, {"HELLO", "3"}, {"HELLO", "9"}, {"CLIENT", "GETNAME"}, {"SELECT", "0"}, {"SELECT", "1"},
		{"SELECT", "x"}, {"DISCARD"}, {"EXEC"}, {"RESET"}, {"NO-SUCH-COMMAND", "x"}, {"GET"}}
	// badCommands have a transaction refused.
	badCommands = [][]string{{"NO-SUCH-COMMAND", "x"}, {"GET"}}
	skipReply   = []string{"CLIENT", "REPLY", "SKIP"}
)

// TestRandomThroughGateway runs random commands on a redis-server and on a gateway before another one, alone and in transactions, and compares every
// reply but that of HELLO, which says whose it is.
func TestRandomThroughGateway(t *testing.T) {
	const batch = 50
	seed := *randomSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-random.seed %d", seed)
	upstream := harness.StartReference(t)
	servers := pair{harness.StartReference(t), harness.Start(t, "--upstream", "redis://"+upstream.Addr, "--upstream-timeout-ms", "10000")}
	for i, family := range randomFamilies {
		t.Run(family.name, func(t *testing.T) {
			d := &dice{rand.New(rand.NewPCG(seed, uint64(i)))}
			l := servers.dial(t, 2+i%2)
			reports := 0
			for n := 0; n < *randomN && reports <= maxReports; n += batch {
				var calls [][]string
				for len(calls) < batch {
					calls = append(calls, d.throughGateway(family.next)...)
				}
				var raw []byte
				for _, call := range calls {
					raw = append(raw, harness.Command(call...)...)
				}
				require.NoError(t, l.send(raw))
				silent := false
				for _, call := range calls {
					if skips := &call[0] == &skipReply[0]; skips || silent {
						silent = skips
						continue
					}
					reference, subject, err := l.read()
					require.NoError(t, err, "%q", call)
					if call[0] != "HELLO" && reference.Wire() != subject.Wire() {
						reports++
						want, got := whereTheyPart(reference.Wire(), subject.Wire())
						t.Errorf("%q\n  redis-server: %q\n  gateway:      %q", call, want, got)
					}
				}
			}
		})
	}
}

// throughGateway returns a command of a family that a gateway serves, with or without others around it.
func (d *dice) throughGateway(family func(*dice) []string) [][]string {
	next := func() []string {
		for {
			call := family(d)
			if call[0] != "CONFIG" && !strings.HasPrefix(call[0], "B") { // the gateway's own, and what may block
				return call
			}
		}
	}
	switch d.IntN(12) {
	case 0:
		return [][]string{hereCommands[d.IntN(len(hereCommands))]}
	case 1:
		calls := [][]string{{"MULTI"}}
		for range d.IntN(6) {
			calls = append(calls, next())
			if d.IntN(12) == 0 {
				calls = append(calls, badCommands[d.IntN(len(badCommands))])
			}
		}
		return append(calls, []string{d.one("EXEC", "EXEC", "EXEC", "DISCARD")})
	case 2:
		return [][]string{skipReply, next()}
	}
	return [][]string{next()}
}
