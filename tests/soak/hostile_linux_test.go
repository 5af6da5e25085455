package soak

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"headgate/tests/internal/flood"
	"headgate/tests/internal/harness"
)

var (
	hostileTime   = flag.Duration("soak.hostile", 1500*time.Millisecond, "how long floods go on beside clients that limit; from a minute on they are whole ones, and figures are asked for")
	hostileQuiet  = flag.Duration("soak.quiet", 500*time.Millisecond, "how long these clients are left alone before")
	hostileHonest = flag.Int("soak.clients", 200, "clients that limit")
	hostileOnly   = flag.String("soak.floods", "", "names of the floods to draw from, with commas between; none means all")
)

const (
	wholeFrom     = time.Minute            // floods of this time are whole ones
	floodsAtOnce  = 3                      // at most
	shortestFlood = 2 * time.Second        // of a whole one; a short one takes a tenth
	longestFlood  = 8 * time.Second        //
	floodPause    = time.Second            // at most, between some floods and the next
	partWithin    = 5 * time.Second        // at most, until a flood's connections are gone
	catchUpFor    = 30 * time.Second       // at most, until the honest have made up for a flood
	reportEvery   = 10 * time.Second       // a line about what goes on
	settleFor     = time.Minute            // after the last flood, until memory is looked at
	honestExtra   = 50 * time.Millisecond  // that floods may add to the p99.9 of the honest
	memoryDrift   = 10                     // percent by which settled memory may differ
	tablesShare   = 3                      // percent of the highest resident memory that the runtime's tables may have grown by
	fullPace      = 80                     // percent of the best that was seen of the processors, from which on they run at their speed
	mostResident  = 8 << 30                // bytes, beyond which the server is killed: others live on this machine too
	shortClients  = 50                     // of those that limit, in a short soak
	lookEvery     = 100 * time.Millisecond // at resident memory
)

// hostileSoak is one run.
type hostileSoak struct {
	t         *testing.T
	whole     bool
	reference bool // the server is redis-server, which has no limiters and no HTTP port
	size      flood.Size
	server    *harness.Server
	admin     *harness.Client
	monitors  []*monitor
	honest    *honest
	begin     time.Time
	r         *rand.Rand
	highest   atomic.Int64
	lowest    atomic.Int64  // what the server has taken of memory, since stay looks at it
	stolen    time.Duration // by the host of the machine, until the last line about what goes on
	pace      *harness.Pace // of its processors
	// undisturbed is what the honest waited for beside floods in rounds of which the processors ran at fullPace and more.
	undisturbed []time.Duration
	ran         map[string]int
}

// TestHostileSoak has floods drawn at random beside clients that limit: none of those is refused or let through wrongly, none loses its
// connection, and in a whole soak none waits for long and memory comes back. What they wait beside floods of long commands is measured apart,
// and nothing is asked of it: a single one takes as long as that. With redis-server in headgate's place it measures, and asks nothing.
func TestHostileSoak(t *testing.T) {
	seed := *soakSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-soak.seed %d", seed)
	s := &hostileSoak{t: t, whole: *hostileTime >= wholeFrom, r: rand.New(rand.NewPCG(seed, 0)), ran: make(map[string]int), begin: time.Now()}
	s.reference = harness.SubjectIsReference(t)
	s.size, s.stolen = flood.Short, harness.Stolen()
	clients := min(*hostileHonest, shortClients)
	if s.whole {
		s.size, clients = flood.Whole, *hostileHonest
		require.NoError(t, harness.PinSelf(0), "the attackers have the other processor for themselves")
	}
	floods := s.floods()
	s.start(floods)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s.honest = startHonest(ctx, t, s.server, clients, s.reference)
	s.pace = harness.WatchPace(ctx)
	go s.watch(ctx)
	for _, m := range s.monitors {
		go m.run(ctx)
	}

	before := s.stay("quiet", *hostileQuiet)
	for end := time.Now().Add(*hostileTime); time.Now().Before(end); {
		s.round(floods)
	}
	s.honest.phase.Store(phaseAfter)
	s.admin.Do("DEL", "bomb", "k") // what floods have stored is no leak,
	s.admin.Do("SCRIPT", "FLUSH")  // nor are their scripts
	settle := time.Duration(0)
	if s.whole {
		settle = settleFor
	}
	after := s.stay("after", settle)
	cancel()
	s.honest.clients.Wait()
	s.judge(before, after)
}

// floods are those to draw from.
func (s *hostileSoak) floods() (all []*flood.Flood) {
	for i := range flood.All {
		f := &flood.All[i]
		named := slices.Contains(strings.Split(*hostileOnly, ","), f.Name)
		if (named || *hostileOnly == "" && (s.whole || !f.TLS)) && !(s.reference && (f.Alone || f.Port != "" || f.TLS)) {
			all = append(all, f)
		}
	}
	require.NotEmpty(s.t, all)
	return all
}

// start runs a server that all of the floods can be let loose on.
func (s *hostileSoak) start(floods []*flood.Flood) {
	flags := slices.Concat(flood.Common, []string{"--requirepass", flood.Password, "--client-query-buffer-limit", "16mb"})
	if !s.reference {
		flags = slices.Concat(flags, flood.TLSFlags(s.t), flood.PortFlags(s.t, flood.Ports...), []string{"--enable-restore-command", "local"})
		s.monitors = monitorsOf(flags)
	}
	s.server = harness.StartUnder(s.t, harness.Pinned(0), flags...)
	s.admin = harness.Dial(s.t, s.server.Addr)
	s.admin.Do("AUTH", flood.Password)
	for _, f := range floods {
		f.Prepare(s.t, s.server, s.size, flood.Password)
	}
}

// watch looks at memory until the context ends.
func (s *hostileSoak) watch(ctx context.Context) {
	for ctx.Err() == nil {
		now, err := s.server.Status("VmRSS")
		if err != nil {
			return
		}
		s.highest.Store(max(s.highest.Load(), now))
		if taken, err := s.server.Status(takenField); err == nil {
			s.lowest.Store(min(s.lowest.Load(), taken))
		}
		if now > mostResident {
			s.server.Kill()
			return
		}
		time.Sleep(lookEvery)
	}
}

// takenField is what a process has taken of memory: what is resident of it, but for the pages of its own file. Of those the system gives up some
// 10 MiB now and then and has them back within a second, in the midst of quiet, so that the lowest of all that is resident tells of that alone.
const takenField = "RssAnon"

// settled is the memory of a server that is left alone by all but the honest.
type settled struct {
	// taken is the lowest in the last minute. What the honest leave as garbage is collected now and then, so that at any one moment
	// there is more or less of it, before the floods as well as after them; a leak is there at the lowest too.
	taken int64
	// classes are what Go's runtime says at the end. Some are tables of its own, to keep books of the heap. It never gives these back: they
	// are as large as the heap has ever required, about 2 % of small objects, so that a server which has not been flooded yet has less of
	// them. What leaks is in the heap.
	classes map[string]int64
	// code is what is resident of the program's own file at the end: what has run so far.
	code int64
}

// held is what is to be the same before and after.
func (m settled) held() int64 { return m.taken - m.tables() }

// stay leaves the honest alone for a time, and returns what memory has settled at by its end.
func (s *hostileSoak) stay(what string, d time.Duration) settled {
	end := time.Now().Add(d)
	s.stayUntil(what, end.Add(-settleFor))
	taken, err := s.server.Status(takenField)
	require.NoError(s.t, err)
	s.lowest.Store(taken)
	s.stayUntil(what, end)
	code, err := s.server.Status("RssFile")
	require.NoError(s.t, err)
	return settled{s.lowest.Load(), s.classes(), code}
}

func (s *hostileSoak) stayUntil(what string, end time.Time) {
	for time.Now().Before(end) {
		time.Sleep(min(reportEvery, time.Until(end)))
		s.report(what)
	}
}

// classes returns what the server's runtime says of its memory, in bytes by name.
func (s *hostileSoak) classes() map[string]int64 {
	all := make(map[string]int64)
	if s.reference {
		return all
	}
	for line := range strings.Lines(string(s.admin.Do("MEMORY", "MALLOC-STATS"))) {
		fields := strings.Fields(line)
		if len(fields) == 2 && strings.HasPrefix(fields[0], "/") {
			n, err := strconv.ParseInt(fields[1], 10, 64)
			require.NoError(s.t, err, line)
			all[fields[0]] = n
		}
	}
	require.Positive(s.t, all["/memory/classes/other:bytes"], "MEMORY MALLOC-STATS has no classes")
	return all
}

// tables adds up the runtime's own tables.
func (m settled) tables() (sum int64) {
	for name, n := range m.classes {
		if strings.HasPrefix(name, "/memory/classes/metadata/") || name == "/memory/classes/other:bytes" {
			sum += n
		}
	}
	return sum
}

// grown lists the classes that are larger than they were, or smaller, by a MiB and more.
func (m settled) grown(before settled) string {
	var all []string
	for name, n := range m.classes {
		if by := (n - before.classes[name]) >> 20; by > 0 || by < -1 {
			all = append(all, fmt.Sprintf("%s %+d", name, by))
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// round lets some floods loose at once, and waits for their end.
func (s *hostileSoak) round(floods []*flood.Flood) {
	require.True(s.t, s.server.Alive(), "the server has ended; it took %d MiB at most", s.highest.Load()>>20)
	duration := shortestFlood + time.Duration(s.r.Int64N(int64(longestFlood-shortestFlood)))
	if !s.whole {
		duration /= 10
	}
	chosen := s.r.Perm(len(floods))[:1+s.r.IntN(min(floodsAtOnce, len(floods)))]
	phase := int64(phaseFloods)
	if slices.ContainsFunc(chosen, func(i int) bool { return floods[i].Long }) {
		phase = phaseLong
	}
	s.honest.phase.Store(phase) // before the first of them begins, while the others are still being started
	var loose []*flood.Attackers
	var names []string
	for _, i := range chosen {
		names = append(names, floods[i].Name)
		s.ran[floods[i].Name]++
		loose = append(loose, floods[i].Loose(s.t, s.server, s.size, flood.Password, duration))
	}
	for _, a := range loose {
		a.Wait()
	}
	if s.whole {
		s.report(strings.Join(names, ", "))
		time.Sleep(time.Duration(s.r.Int64N(int64(floodPause))))
		s.partFrom()
		if slowest := s.catchUp(); slowest > honestExtra {
			s.t.Logf("%6.0f s  %v at most once they had hung up; %s", time.Since(s.begin).Seconds(), slowest.Round(100*time.Microsecond), strings.Join(names, ", "))
		}
	}
}

// partFrom waits until the attackers' connections are gone: a command whose sender has gone is run even so, and would be taken for a part of
// the next round. Of a crowd that connects at once, the kernel may hold one for which its peer does not exist, until it is probed.
func (s *hostileSoak) partFrom() {
	end := time.Now().Add(partWithin)
	for s.strangers() > 0 {
		if time.Now().After(end) {
			s.t.Logf("%d connections of attackers are still open", s.strangers())
			return
		}
		time.Sleep(honestEvery)
	}
}

// catchUp waits until the honest are late no more, so that what one round has cost them is not taken for the next one's: each of them is
// answered some times, and in time. It returns how long one of them has waited at most since the last line about what goes on.
func (s *hostileSoak) catchUp() (waited time.Duration) {
	const calls = 5
	for end := time.Now().Add(catchUpFor); time.Now().Before(end); {
		before := atomic.LoadInt64(&s.honest.Calls)
		waited = slowestOf(waited, s.honest.look())
		time.Sleep(2 * calls * honestEvery)
		answers := int(atomic.LoadInt64(&s.honest.Calls) - before)
		late := slowestOf(0, s.honest.look())
		if waited = max(waited, late); late < honestEvery && answers >= calls*s.honest.count {
			break
		}
	}
	return waited
}

func slowestOf(most time.Duration, times []time.Duration) time.Duration {
	for _, took := range times {
		most = max(most, took)
	}
	return most
}

// strangers counts the connections beside those of the honest and of the administrator.
func (s *hostileSoak) strangers() int {
	for line := range strings.Lines(string(s.admin.Do("INFO", "clients"))) {
		if value, ok := strings.CutPrefix(line, "connected_clients:"); ok {
			connected, err := strconv.Atoi(strings.TrimSpace(value))
			require.NoError(s.t, err, line)
			return connected - s.honest.count - 1
		}
	}
	require.FailNow(s.t, "INFO does not say how many clients are connected")
	return 0
}

// report prints a line about what the honest have seen since the last one.
func (s *hostileSoak) report(what string) {
	times := s.honest.look()
	_, _, p999, slowest := flood.Quantiles(times)
	pace := s.pace.Look()
	if s.honest.phase.Load() == phaseFloods && pace >= fullPace {
		s.undisturbed = append(s.undisturbed, times...)
	}
	resident, _ := s.server.Status("VmRSS")
	before := s.stolen
	s.stolen = harness.Stolen()
	v := &s.honest.verdicts
	s.t.Logf("%6.0f s  honest p99.9 %8v, slowest %8v, %d answers, %d wrongly refused, %d wrongly let through, %d errors; resident %5d MiB, at most %5d; the host took %v away, and the processors ran at %d %%; %s",
		time.Since(s.begin).Seconds(), p999.Round(100*time.Microsecond), slowest.Round(100*time.Microsecond), atomic.LoadInt64(&v.Calls),
		atomic.LoadInt64(&v.WronglyRefused), atomic.LoadInt64(&v.WronglyLetThrough), atomic.LoadInt64(&v.Errors), resident>>20, s.highest.Load()>>20, s.stolen-before, pace, what)
}

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// judge prints what was measured, and asks for what was promised.
func (s *hostileSoak) judge(before, after settled) {
	t, v := s.t, &s.honest.verdicts
	shared := s.honest.settleShared()
	var p999 [phases]time.Duration
	for phase, name := range []string{"before the floods", "beside them", "beside long commands", "after them"} {
		count, p50, p99, late, slowest := s.honest.phaseTimes(phase)
		p999[phase] = late
		t.Logf("the honest %-20s %8d answers: p50 %v, p99 %v, p99.9 %v, slowest %v", name, count, p50, p99, late, slowest)
	}
	_, _, late, slowest := flood.Quantiles(s.undisturbed)
	t.Logf("of those beside floods %d came in rounds of which the processors ran at %d %% of their best and more: p99.9 %v, slowest %v",
		len(s.undisturbed), fullPace, late, slowest)
	t.Logf("%d refusals among %d answers, %d shared keys settled; wrongly refused %d, wrongly let through %d, errors %d (%s: %s)", v.Refused, v.Calls, shared,
		v.WronglyRefused, v.WronglyLetThrough, v.Errors, v.firstOf, v.firstError)
	drift := 100 * float64(after.held()-before.held()) / float64(before.held())
	t.Logf("%.1f MiB taken before the floods, %.1f after them, of these %.1f and %.1f the runtime's tables; the rest %+.1f %%; resident of the program's file beside that %.1f and %.1f; all that was resident %d MiB at most",
		mib(before.taken), mib(after.taken), mib(before.tables()), mib(after.tables()), drift, mib(before.code), mib(after.code), s.highest.Load()>>20)
	t.Logf("what the runtime says, in MiB more than before the floods: %s", after.grown(before))
	t.Logf("of the monitors: %v", s.monitors)
	t.Logf("floods: %v", s.ran)
	if s.reference {
		return // for its figures
	}
	require.True(t, s.server.Alive(), "the server has ended")
	require.Positive(t, v.Refused, "some were to be refused")
	require.Zero(t, v.Errors, "%s: %s", v.firstOf, v.firstError)
	require.Zero(t, v.WronglyRefused, "refused wrongly")
	require.Zero(t, v.WronglyLetThrough, "let through wrongly")
	if !s.whole {
		return
	}
	require.Empty(t, unanswered(s.monitors), "of the monitors")
	assert.LessOrEqual(t, p999[phaseFloods], p999[phaseQuiet]+honestExtra, "p99.9 of the honest")
	assert.LessOrEqual(t, drift, float64(memoryDrift), "what was taken of memory but for the runtime's tables")
	assert.LessOrEqual(t, after.tables()-before.tables(), s.highest.Load()*tablesShare/100, "the runtime's tables")
}
