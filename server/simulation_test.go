package server_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"hash/maphash"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"headgate/server"
	"headgate/server/config"
	"headgate/server/netpoll"
	"headgate/server/servertest"
	"headgate/store"

	"github.com/stretchr/testify/require"
)

var (
	simulations    = flag.Int("simulation.seeds", 20, "simulated hours")
	simulationSeed = flag.Uint64("simulation.seed", 0, "seed of the first of them; 0 draws one")
)

const (
	simulatedTime    = time.Hour
	simulatedClients = 8
	simulatedRoom    = 400 << 10 // bytes that keys may take up before some go
	simulatedTwice   = 5         // of so many seeds the transcripts are compared
)

// TestSimulation runs the whole server with clients on pipes through hours of made-up time: random commands in fragments, pauses,
// connections cut at any point, keys that expire and keys that go because memory is short. Each command has one reply, the keyspace's books
// are right in the end, and the same seed gives the same hour.
func TestSimulation(t *testing.T) {
	first := *simulationSeed
	if first == 0 {
		first = rand.Uint64()
	}
	t.Logf("-simulation.seed %d", first)
	hash := maphash.MakeSeed() // the order of keys follows from it, so both runs of a seed have to share one
	var evicted, expired uint64
	commands := 0
	for n := range uint64(*simulations) {
		seed := first + n
		one := simulate(t, seed, hash)
		if n%max(uint64(*simulations)/simulatedTwice, 1) == 0 {
			require.Equal(t, one.transcript, simulate(t, seed, hash).transcript, "-simulation.seed %d: two runs differ", seed)
		}
		evicted, expired, commands = evicted+one.evicted, expired+one.expired, commands+one.commands
	}
	require.NotZero(t, evicted)
	require.NotZero(t, expired)
	t.Logf("%d commands in %d hours, %d keys evicted, %d expired", commands, *simulations, evicted, expired)
}

// simulated is what came of an hour.
type simulated struct {
	transcript       [sha256.Size]byte
	commands         int
	evicted, expired uint64
}

// simulation is an hour of a server and its clients.
type simulation struct {
	t     *testing.T
	seed  uint64
	srv   *server.Server
	conns sync.WaitGroup
}

func simulate(t *testing.T, seed uint64, hash maphash.Seed) (result simulated) {
	synctest.Test(t, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		cfg := servertest.Unsaved()
		cfg.MaxMemoryPolicy = config.EvictionPolicy(rnd.IntN(int(config.NoEviction) + 1))
		cfg.MaxMemorySamples = 1 + rnd.IntN(10)
		const room = simulatedRoom + 1<<20 // the directories are there before the first key
		cfg.MaxMemory = room
		s := &simulation{t: t, seed: seed}
		s.srv = server.New(config.NewLive(cfg), server.Options{Keys: store.Options{Hash: hash, Random: rand.New(rand.NewPCG(seed, 2))}})
		s.srv.Memory.AddOutside = func() uint64 { return 1 << 20 }
		s.srv.WatchMemory()
		stop := make(chan struct{})
		var background, clients sync.WaitGroup
		background.Go(func() {
			for w := s.srv.NewWorker(); ; {
				select {
				case <-stop:
					return
				case <-time.After(max(w.Tick(), time.Millisecond)):
				}
			}
		})
		all := make([]*simulatedClient, simulatedClients)
		for i := range all {
			c := &simulatedClient{simulation: s, rnd: rand.New(rand.NewPCG(seed, uint64(10+i))), end: time.Now().Add(simulatedTime)}
			all[i] = c
			clients.Go(c.live)
		}
		clients.Wait()
		s.conns.Wait()
		close(stop)
		background.Wait()
		sum := sha256.New()
		for _, c := range all {
			sum.Write(c.transcript.Bytes())
			result.commands += c.commands
		}
		result.transcript = [sha256.Size]byte(sum.Sum(nil))
		s.settle()
		stats := s.srv.Keys.Stats()
		result.evicted, result.expired = stats.Evicted, stats.Expired
		s.srv.Keys.Close()
	})
	return result
}

// settle checks what an hour has left behind.
func (s *simulation) settle() {
	require.Empty(s.t, s.srv.Clients.List, s.name())
	require.Zero(s.t, s.srv.Blocking.Clients, s.name())
	require.Empty(s.t, s.srv.Pause.Held, s.name())
	require.NoError(s.t, s.srv.Keys.Check(), s.name())
	if s.srv.Memory.Evict && !s.srv.Memory.How.Volatile {
		require.LessOrEqual(s.t, s.srv.UsedMemory(), s.srv.Memory.Max+64<<10, s.name())
	}
	s.srv.Keys.FlushAll()
	require.NoError(s.t, s.srv.Keys.Check(), s.name())
	require.Zero(s.t, s.srv.Keys.Stats().ArenaUsed, s.name())
	require.Zero(s.t, s.srv.Keys.Stats().ObjectBytes, s.name())
}

func (s *simulation) name() string { return fmt.Sprintf("-simulation.seed %d", s.seed) }

// simulatedClient is one client, which lives through the hour over many connections.
type simulatedClient struct {
	*simulation
	rnd        *rand.Rand
	end        time.Time
	conn       net.Conn
	replies    *bufio.Reader
	transcript bytes.Buffer
	commands   int
	token      int
}

func (c *simulatedClient) live() {
	c.rest(time.Second)
	for time.Now().Before(c.end) {
		if c.conn == nil {
			c.dial()
		}
		c.act()
		c.rest(40 * time.Second)
	}
	if c.conn != nil {
		c.conn.Close()
	}
}

// rest lets some time pass, to the nanosecond, so that no two clients do something at the same moment.
func (c *simulatedClient) rest(most time.Duration) {
	time.Sleep(time.Duration(1 + c.rnd.Int64N(int64(most))))
}

func (c *simulatedClient) dial() {
	client, server := net.Pipe()
	c.conns.Go(func() { netpoll.ServeConn(c.srv, server) })
	c.conn, c.replies = client, bufio.NewReader(client)
}

// act sends some commands, reads a reply for each, or cuts the connection anywhere on the way.
func (c *simulatedClient) act() {
	var input []byte
	count := 0
	for range 1 + c.rnd.IntN(4) {
		for _, words := range c.draw() {
			input = append(input, servertest.EncodeCommand(words...)...)
			count++
		}
	}
	c.token++
	token := strconv.Itoa(c.token)
	input = append(input, servertest.EncodeCommand("ECHO", token)...)
	c.commands += count + 1
	cut := c.rnd.IntN(12) == 0
	if cut {
		input = input[:c.rnd.IntN(len(input))]
	}
	sent := make(chan error, 1)
	pieces := c.pieces(input)
	go func() { // a pipe holds nothing, so replies are read meanwhile
		var err error
		for _, p := range pieces {
			time.Sleep(p.after)
			if _, err = c.conn.Write(p.bytes); err != nil {
				break
			}
		}
		sent <- err
	}()
	if cut {
		for range c.rnd.IntN(count + 1) {
			if c.read(time.Minute) != nil {
				break
			}
		}
		c.conn.Close()
		<-sent
		c.conn = nil
		return
	}
	for range count {
		require.NoError(c.t, c.read(10*time.Minute), c.name())
	}
	line, err := readReply(c.replies)
	require.NoError(c.t, err, c.name())
	require.Equal(c.t, token, line, "%s: a reply too many or too few", c.name())
	require.NoError(c.t, <-sent, c.name())
	require.Zero(c.t, c.replies.Buffered(), c.name())
}

// piece is a part of what is sent, after a while.
type piece struct {
	after time.Duration
	bytes []byte
}

// pieces cuts what is sent at random.
func (c *simulatedClient) pieces(input []byte) (list []piece) {
	for len(input) > 0 {
		n := len(input)
		if c.rnd.IntN(3) == 0 {
			n = 1 + c.rnd.IntN(n)
		}
		list = append(list, piece{time.Duration(c.rnd.Int64N(int64(2 * time.Second))), input[:n]})
		input = input[n:]
	}
	return list
}

// read reads a reply into the transcript.
func (c *simulatedClient) read(limit time.Duration) error {
	c.conn.SetReadDeadline(time.Now().Add(limit))
	text, err := readReply(c.replies)
	if err == nil {
		fmt.Fprintf(&c.transcript, "%d %s\n", time.Now().UnixNano(), text)
	}
	return err
}

// readReply reads one reply in RESP2, whatever is nested in it, as text.
func readReply(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimSuffix(line, "\r\n")
	switch line[0] {
	case '+', '-', ':':
		return line[1:], nil
	case '$', '*':
		n, err := strconv.Atoi(line[1:])
		if err != nil {
			return "", err
		}
		if line[0] == '$' && n < 0 {
			return "nil", nil
		}
		if line[0] == '$' {
			text := make([]byte, n+2)
			_, err := io.ReadFull(r, text)
			return string(text[:n]), err
		}
		var items []string
		for range max(n, 0) {
			item, err := readReply(r)
			if err != nil {
				return "", err
			}
			items = append(items, item)
		}
		return "[" + strings.Join(items, " ") + "]", nil
	}
	return "", fmt.Errorf("no reply: %q", line)
}

// draw is a command, or several that belong together.
func (c *simulatedClient) draw() [][]string {
	n := func(most int) string { return strconv.Itoa(c.rnd.IntN(most)) }
	key := func(kind string) string { return kind + n(60) }
	text := func() string { return strings.Repeat("x", c.rnd.IntN(1+c.rnd.IntN(4000))) }
	one := func(words ...string) [][]string { return [][]string{words} }
	switch c.rnd.IntN(34) {
	case 0, 1:
		return one("SET", key("s"), text())
	case 2, 3:
		return one("SET", key("s"), text(), "PX", n(600_000)+"1")
	case 4:
		return one("GET", key("s"))
	case 5:
		return one("INCR", key("n"))
	case 6:
		return one("APPEND", key("s"), text())
	case 7:
		return one("EXPIRE", key("s"), n(300))
	case 8:
		return one("DEL", key("s"), key("h"), key("z"), key("l"))
	case 9:
		return one("RPUSH", key("l"), text(), n(1000))
	case 10:
		return one("BLPOP", key("l"), key("l"), fmt.Sprintf("%d.%d", c.rnd.IntN(20), 1+c.rnd.IntN(9)))
	case 11:
		return one("LRANGE", key("l"), "0", "-1")
	case 12:
		return one("HSET", key("h"), n(700), text(), n(700), n(10))
	case 13:
		return one("HGETALL", key("h"))
	case 14:
		return one("ZADD", key("z"), n(1000), n(300), n(1000), n(300))
	case 15:
		return one("ZRANGE", key("z"), "0", "-1", "WITHSCORES")
	case 16:
		return one("ZREMRANGEBYSCORE", key("z"), "0", n(1000))
	case 17:
		return one("SADD", key("u"), n(400), text())
	case 18:
		return one("SUNIONSTORE", key("u"), key("u"), key("u"))
	case 19, 20:
		return one("CL.THROTTLE", key("t"), "5", "10", "60", n(4))
	case 21:
		return one("RL.LOG", key("g"), "100", "10m", "COST", n(40))
	case 22:
		return one("RL.SLIDING", key("w"), "20", "60s")
	case 23:
		return one("RL.FIXED", key("f"), "20", "60s")
	case 24:
		return one("XADD", key("x"), "MAXLEN", "~", "200", "*", "f", text())
	case 25:
		return one("PTTL", key("s"))
	case 26:
		return one("SCAN", "0", "COUNT", n(100)+"1")
	case 27:
		return one("RENAME", key("s"), key("s"))
	case 28:
		return one("COPY", key("z"), key("z"), "REPLACE")
	case 29:
		return [][]string{{"WATCH", key("n")}, {"MULTI"}, {"INCR", key("n")}, {"SET", key("s"), text()}, {"RPUSH", key("l"), n(9)}, {"EXEC"}}
	case 30:
		return one("EVAL", "redis.call('INCRBY', KEYS[1], ARGV[1]) return redis.call('TTL', KEYS[2])", "2", key("n"), key("s"), n(9))
	case 31:
		return one("SELECT", n(2))
	case 32:
		return one("OBJECT", "IDLETIME", key("s"))
	}
	if c.rnd.IntN(40) == 0 {
		return one("FLUSHDB")
	}
	return one("DBSIZE")
}
