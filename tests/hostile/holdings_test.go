package hostile

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// heldEntries is how many entries one client holds in each structure before it goes. With -flood.whole it goes in every way, and beside
// redis-server; else it only hangs up.
func heldEntries() int {
	if *floodWhole {
		return 300_000
	}
	return 50_000
}

// letGoWithin is for how long anybody else may wait while a client that holds much goes.
const letGoWithin = 50 * time.Millisecond

// holding is a structure that grows with what one client asks for.
type holding struct {
	name     string
	conns    int                  // among which the entries are divided; 0 = one
	batch    int                  // entries that one command takes; 0 = all
	before   []string             // a command that comes first
	take     []string             // the words of the command before the entries
	each     func(i int) []string // the words of an entry
	after    []string             // the words after them
	confirms bool                 // each entry is answered
	waits    bool                 // the command is not answered at all
	lets     [][]string           // commands of the client's own with which it lets go of everything
	others   [][]string           // commands of another client's that end it
	slow     bool                 // redis-server takes minutes to build it, since it looks through all that the client has for each
}

func named(form string) func(int) []string {
	return func(i int) []string { return []string{fmt.Sprintf(form, i)} }
}

var holdings = []holding{
	{name: "patterns", batch: 500, confirms: true, slow: true, take: []string{"PSUBSCRIBE"}, each: named("pattern:%07d:*"), lets: [][]string{{"PUNSUBSCRIBE"}, {"RESET"}}},
	{name: "channels", batch: 500, confirms: true, take: []string{"SUBSCRIBE"}, each: named("channel:%07d"), lets: [][]string{{"UNSUBSCRIBE"}, {"RESET"}}},
	{name: "shard channels", batch: 500, confirms: true, take: []string{"SSUBSCRIBE"}, each: named("shard:%07d"), lets: [][]string{{"SUNSUBSCRIBE"}, {"RESET"}}},
	{name: "tracked keys", batch: 500, before: []string{"CLIENT", "TRACKING", "ON"}, take: []string{"MGET"}, each: named("tracked:%07d"),
		lets: [][]string{{"CLIENT", "TRACKING", "OFF"}, {"RESET"}}},
	{name: "tracked prefixes", conns: 300, take: []string{"CLIENT", "TRACKING", "ON", "BCAST"},
		each: func(i int) []string { return []string{"PREFIX", fmt.Sprintf("prefix:%07d", i)} }, lets: [][]string{{"CLIENT", "TRACKING", "OFF"}, {"RESET"}}},
	{name: "watched keys", batch: 500, take: []string{"WATCH"}, each: named("watched:%07d"), slow: true, lets: [][]string{{"UNWATCH"}, {"RESET"}, {"MULTI\r\nEXEC"}}},
	{name: "blocked keys", take: []string{"BLPOP"}, each: named("blocked:%07d"), after: []string{"0"}, waits: true,
		others: [][]string{{"CLIENT", "UNBLOCK", "ID"}, {"RPUSH", "blocked:0000007", "x"}}},
	{name: "MULTI queue", batch: 1, before: []string{"MULTI"}, take: []string{"SET"}, each: func(i int) []string { return []string{fmt.Sprintf("queued:%07d", i), "v"} },
		lets: [][]string{{"DISCARD"}, {"RESET"}}},
}

// TestHoldingsAreLetGo: a client that holds many entries of one structure goes, or lets go of them all, and nobody waits for that.
func TestHoldingsAreLetGo(t *testing.T) {
	unlimited := []string{"--client-output-buffer-limit", "pubsub", "0", "0", "0"} // what UNSUBSCRIBE answers is no subject here
	subject := harness.Start(t, unlimited...)
	var reference *harness.Server
	if *floodWhole {
		reference = harness.StartReference(t, unlimited...)
	}
	for _, h := range holdings {
		endings := map[string]func(t *testing.T, server *harness.Server, held []*holder){"hanging up": hangUp}
		if *floodWhole {
			endings["CLIENT KILL"] = func(t *testing.T, server *harness.Server, held []*holder) {
				other := harness.Dial(t, server.Addr)
				defer other.Close()
				for _, c := range held {
					other.Do("CLIENT", "KILL", "ID", c.id)
				}
			}
			for _, line := range h.lets {
				endings[strings.ReplaceAll(strings.Join(line, " "), "\r\n", " ")] = func(t *testing.T, _ *harness.Server, held []*holder) {
					for _, c := range held {
						require.NoError(t, c.client.Send([]byte(strings.Join(line, " ")+"\r\n")))
					}
				}
			}
			for _, line := range h.others {
				endings[strings.Join(line, " ")] = func(t *testing.T, server *harness.Server, held []*holder) {
					other := harness.Dial(t, server.Addr)
					defer other.Close()
					said := append([]string(nil), line...)
					for i := range said {
						if said[i] == "ID" {
							said[i] = held[0].id
						}
					}
					require.Contains(t, string(other.Do(said...)), ":1")
				}
			}
		}
		for ending, end := range endings {
			t.Run(h.name+"/"+ending, func(t *testing.T) {
				var ours time.Duration
				for range attempts {
					if ours = h.longestWait(t, subject, end); ours < letGoWithin {
						break
					}
				}
				if reference != nil && !h.slow {
					t.Logf("redis-server: %v", h.longestWait(t, reference, end))
				}
				t.Logf("longest PING while %d %s go by %s: %v", heldEntries(), h.name, ending, ours)
				require.Less(t, ours, letGoWithin, "in each of %d attempts", attempts)
			})
		}
	}
}

// hangUp closes the connections without a word.
func hangUp(_ *testing.T, _ *harness.Server, held []*holder) {
	for _, c := range held {
		c.client.Close()
	}
}

// holder is a connection that holds entries.
type holder struct {
	client *harness.Client
	id     string
}

// longestWait has entries taken and let go, and returns the longest that another client waited for a PING meanwhile.
func (h holding) longestWait(t *testing.T, server *harness.Server, end func(*testing.T, *harness.Server, []*holder)) time.Duration {
	t.Helper()
	conns := max(h.conns, 1)
	share := heldEntries() / conns
	var held []*holder
	for i := range conns {
		held = append(held, h.hold(t, server, i*share, (i+1)*share))
	}
	other := newBystander(t, server.Addr, "")
	time.Sleep(10 * time.Millisecond)
	for _, c := range held {
		go drain(c.client.Conn())
	}
	end(t, server, held)
	time.Sleep(150 * time.Millisecond)
	line := other.finish(t, row{})
	hangUp(t, server, held)
	settle(t, server)
	return line.pingSlowest
}

// settle waits until the server knows only of the client that asks, and is at rest.
func settle(t *testing.T, server *harness.Server) {
	t.Helper()
	client := harness.Dial(t, server.Addr)
	defer client.Close()
	require.Eventually(t, func() bool {
		return strings.Count(string(client.Do("CLIENT", "LIST")), "\nid=") == 1
	}, 2*patience, 20*time.Millisecond)
	client.Do("FLUSHALL")
}

// hold opens a connection and has it take the entries from begin up to end.
func (h holding) hold(t *testing.T, server *harness.Server, begin, end int) *holder {
	t.Helper()
	client := harness.Dial(t, server.Addr)
	c := &holder{client: client, id: client.Ask("CLIENT", "ID").Text}
	if h.before != nil {
		client.Do(h.before...)
	}
	batch := h.batch
	if batch == 0 {
		batch = end - begin
	}
	var request []byte
	for from := begin; from < end; from += batch {
		n := min(batch, end-from)
		line := append([]string(nil), h.take...)
		for i := from; i < from+n; i++ {
			line = append(line, h.each(i)...)
		}
		request = append(request, harness.Command(append(line, h.after...)...)...)
	}
	if h.waits {
		require.NoError(t, client.Send(request))
		other := harness.Dial(t, server.Addr)
		require.Eventually(t, func() bool { return strings.Contains(string(other.Do("INFO", "clients")), "blocked_clients:1") }, 10*patience, 5*time.Millisecond)
		other.Close()
		return c
	}
	go func() { _ = client.Send(request) }()
	for range h.answers(end-begin, batch) {
		client.Value()
	}
	return c
}

// answers is how many replies come when so many entries are taken.
func (h holding) answers(entries, batch int) int {
	if h.confirms {
		return entries
	}
	return (entries + batch - 1) / batch
}
