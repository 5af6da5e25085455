package harness

import (
	"os"
	"testing"
)

// ownSessions is the variable by which a test tells launch.
const ownSessions = "HEADGATE_OWN_SESSIONS"

// OwnSessions has each server that the test starts from now on run in a session of its own, as service managers and containers give each a group of its
// own. Linux's scheduler otherwise takes the servers, their clients and the test for one program, and spreads a call that goes from one to the next over
// the processors: it has to wake one up each time. A server that has to share a processor with the test's clients, in turn, gets half of it at most.
func OwnSessions(t *testing.T) {
	t.Helper()
	t.Setenv(ownSessions, "yes")
}

func wantsOwnSession() bool { return os.Getenv(ownSessions) != "" }
