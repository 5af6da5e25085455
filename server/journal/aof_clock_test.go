package journal_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"headgate/persistence/crashfs"
	"headgate/server"
	"headgate/server/command"
	"headgate/server/config"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

var clockRuns = flag.Int("aof.clocks", 12, "random histories of a wall clock that is set wrong")

// stepped is a wall clock that is set wrong and mended, beside the time that really passes.
type stepped struct{ wall, real int64 }

func (c *stepped) read() (wall, mono int64) { return c.wall, c.real }

func (c *stepped) pass(d time.Duration) {
	c.wall += int64(d)
	c.real += int64(d)
}

// user asks one limiter for one action at a time.
type user struct {
	call   []string
	answer func(reply string) (limited bool, wait time.Duration)

	wait   time.Duration // what was told after the last action that was allowed
	passed time.Duration // when that was, in real time
	since  time.Duration // the same in time in which the server ran; when it was started after it had been killed
	jumped bool          // the wall has been set forward since
}

// native reads a reply's numbers: limited or not, and the fourth in units.
func native(unit time.Duration) func(string) (bool, time.Duration) {
	return func(reply string) (bool, time.Duration) {
		lines := strings.Split(reply, "\r\n")
		retry, _ := strconv.Atoi(strings.TrimPrefix(lines[4], ":"))
		return lines[1] == ":1", time.Duration(retry) * unit
	}
}

// users are those of each limiter, with periods from a second to half a day.
func users() (all []*user) {
	for i, seconds := range []int{1, 10, 300, 3600, 43200} {
		add := func(unit time.Duration, call string) {
			words := strings.Fields(call)
			words[1] += strconv.Itoa(i)
			all = append(all, &user{call: words, answer: native(unit)})
		}
		add(time.Second, fmt.Sprintf("CL.THROTTLE cell 0 1 %d", seconds))
		add(time.Second, fmt.Sprintf("GCRA gcra 0 1 %d", seconds))
		add(time.Millisecond, fmt.Sprintf("RL.GCRA native 1 1 %ds", seconds))
		add(time.Millisecond, fmt.Sprintf("RL.FIXED fixed 1 %ds", seconds))
		add(time.Millisecond, fmt.Sprintf("RL.FIXED aligned 1 %ds ALIGNED", seconds))
		add(time.Millisecond, fmt.Sprintf("RL.SLIDING sliding 1 %ds", seconds))
		add(time.Millisecond, fmt.Sprintf("RL.LOG log 1 %ds", seconds))
		add(time.Millisecond, fmt.Sprintf("RL.ACQUIRE lease 1 %ds", seconds))
		all = append(all, &user{
			call: []string{"SET", "lock" + strconv.Itoa(i), "x", "NX", "EX", strconv.Itoa(seconds)},
			answer: func(reply string) (bool, time.Duration) {
				return reply != "+OK\r\n", time.Duration(seconds) * time.Second
			},
		})
	}
	return all
}

// steps are by how much the wall is set wrong.
var steps = []time.Duration{time.Second, -time.Second, time.Hour, -time.Hour, 24 * time.Hour, -24 * time.Hour}

// TestClockSteps sets the wall wrong by a second, an hour and a day, both ways, and mends it, while a server runs, and while it is
// stopped or has been killed. Nobody waits for more than twice the time that was told, from the next start on if the server was
// killed; nobody for less, unless the wall was set forward. Time never goes back, and no TTL is negative.
func TestClockSteps(t *testing.T) {
	seed := servertest.SeedOf(t)
	for i := range *clockRuns {
		s := &clockSim{t: t, rnd: rand.New(rand.NewPCG(seed, uint64(100+i))), disk: crashfs.New("/data"), users: users()}
		s.clock.wall = servertest.WallAtStart
		s.start()
		for range 400 {
			s.step()
		}
		s.w.Kill()
	}
}

// clockSim is a server whose wall clock nobody can rely on.
type clockSim struct {
	t     *testing.T
	rnd   *rand.Rand
	clock stepped
	disk  *crashfs.FS
	w     *servertest.AOFServer
	users []*user

	served time.Duration // for which a server has run
	last   int64         // what the server's clock has shown last
}

func (s *clockSim) start() {
	w, err := servertest.StartAOFBy(s.disk, config.FsyncEverysec, s.clock.read, nil)
	require.NoError(s.t, err)
	s.w = w
}

// step lets something happen.
func (s *clockSim) step() {
	u := s.users[s.rnd.IntN(len(s.users))]
	switch s.rnd.IntN(20) {
	case 0:
		s.setWall(s.clock.wall + int64(steps[s.rnd.IntN(len(steps))]))
	case 1:
		s.setWall(servertest.WallAtStart + s.clock.real)
	case 2:
		s.restart()
	case 3, 4:
		s.pass(2*u.wait + 2*time.Millisecond)
		s.ask(u)
	default:
		s.pass(time.Duration(s.rnd.Int64N(int64(u.wait) + int64(time.Second))))
		s.ask(u)
	}
}

func (s *clockSim) setWall(wall int64) {
	if wall > s.clock.wall {
		for _, u := range s.users {
			u.jumped = true
		}
	}
	s.clock.wall = wall
}

// pass lets the server run for some time, in which it looks after its work now and then.
func (s *clockSim) pass(d time.Duration) {
	s.served += d
	for range 10 {
		s.clock.pass(d / 10)
		require.False(s.t, s.w.Tick())
	}
	s.clock.pass(d % 10)
	now := s.w.Srv.Clock.Read()
	require.GreaterOrEqual(s.t, now, s.last, "time goes back")
	s.last = now
}

// restart ends the server in one way or the other, and starts it some time later; meanwhile the wall may be set.
func (s *clockSim) restart() {
	if s.rnd.IntN(2) == 0 {
		s.w.Srv.EndRewriter()
		s.w.Srv.CloseLog()
		servertest.SpareServer(s.w.Srv)
		s.last -= s.last % int64(time.Millisecond) // what the log has
	} else {
		s.w.Kill()
		s.last = 0
		for _, u := range s.users {
			u.since = s.served
		}
	}
	s.clock.pass(time.Duration(s.rnd.Int64N(int64(time.Hour))))
	if s.rnd.IntN(2) == 0 {
		s.setWall(s.clock.wall + int64(steps[s.rnd.IntN(len(steps))]))
	}
	s.start()
	s.pass(0)
}

// ask has a user ask, and judges the answer.
func (s *clockSim) ask(u *user) {
	what := fmt.Sprint(u.call)
	limited, _ := u.answer(s.w.Words(u.call...))
	switch {
	case limited:
		require.Less(s.t, s.served-u.since, 2*u.wait+2*time.Millisecond, "%s: delayed", what)
	case !u.jumped && u.wait > 0: // seconds are rounded up
		require.Greater(s.t, time.Duration(s.clock.real)-u.passed, u.wait-time.Second, "%s: too early", what)
	}
	ttl, err := strconv.Atoi(strings.Trim(s.w.Words("PTTL", u.call[1]), ":\r\n"))
	require.NoError(s.t, err)
	require.Greater(s.t, ttl, 0, what)
	if !limited {
		var again bool
		again, u.wait = u.answer(s.w.Words(u.call...))
		require.True(s.t, again, what)
		u.passed, u.since, u.jumped = time.Duration(s.clock.real), s.served, false
	}
}

// TestClockSetBackBeforeSnapshotIsLoaded: a snapshot has its time too.
func TestClockSetBackBeforeSnapshotIsLoaded(t *testing.T) {
	for _, step := range steps {
		clock := &stepped{wall: servertest.WallAtStart}
		cfg := config.Default()
		cfg.Dir = t.TempDir()
		w := servertest.NewWorkerClientOf(t, server.New(config.NewLive(cfg), server.Options{Clock: command.NewClock(clock.read)}))
		require.Contains(t, string(w.Run(servertest.EncodeCommand("CL.THROTTLE", "k", "0", "1", "10"))), ":0\r\n:1\r\n:0\r\n:-1\r\n")
		require.NoError(t, w.Srv.Shutdown(0))
		clock.wall += int64(step)
		w = servertest.NewWorkerClientOf(t, server.New(config.NewLive(cfg), server.Options{Clock: command.NewClock(clock.read)}))
		require.NoError(t, w.Srv.LoadSnapshot())
		want := ":1\r\n:1\r\n:0\r\n:10\r\n"
		switch step {
		case time.Second:
			want = ":1\r\n:1\r\n:0\r\n:9\r\n"
		case time.Hour, 24 * time.Hour:
			want = ":0\r\n:1\r\n:0\r\n:-1\r\n"
		}
		require.Contains(t, string(w.Run(servertest.EncodeCommand("CL.THROTTLE", "k", "0", "1", "10"))), want, "%v", step)
	}
}
