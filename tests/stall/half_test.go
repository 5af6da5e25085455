package stall

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

const (
	loadClients  = "200" // connections that send without waiting for each other
	loadCommand  = "CL.THROTTLE limiter:__key__ 100 100 100000 1"
	capacityRuns = 3                      // the best of which counts: what disturbs a machine only ever makes it slower
	jobAfter     = 10                     // a job begins after this part of the time that the load runs for
	jobLook      = 100 * time.Millisecond // between two looks at whether it is over
	longWait     = 20 * time.Millisecond  // runs with requests that wait longer are counted
	longPart     = longWait / 2           // what the server itself does for longer is named
)

// TestHalfLoad measures how many CL.THROTTLE a second the server can do, sends half of that whatever it does, and prints what the
// requests wait for, counted from when each was to be sent: with nothing beside them, while a snapshot is saved, and while the log is
// rewritten. The server has one processor and the load another, if there are two. What the host of a virtual machine takes away
// meanwhile is printed too, and how much a processor lost at once: a request waits for that as well. So it is in between with no load at
// all and, with -stall.floor, for a program that understands nothing and gets the same load: what requests wait for there is the machine's.
// What the server itself did for longPart or longer, as LATENCY tells it, is printed last.
func TestHalfLoad(t *testing.T) {
	t.Run("without a log", func(t *testing.T) {
		halfLoad(t, "BGSAVE", "rdb_bgsave_in_progress", "--appendonly", "no")
	})
	t.Run("with a log", func(t *testing.T) {
		halfLoad(t, "BGREWRITEAOF", "aof_rewrite_in_progress", "--appendonly", "yes", "--auto-aof-rewrite-percentage", "0")
	})
}

func halfLoad(t *testing.T, command, field string, flags ...string) {
	logSeed(t)
	flags = append(flags, "--latency-monitor-threshold", strconv.FormatInt(longPart.Milliseconds(), 10))
	s := harness.StartUnder(t, harness.Pinned(0), flags...)
	c := harness.Dial(t, s.Addr)
	defer c.Close()
	load(t, c, func(i int) []string {
		return strings.Fields(strings.Replace(loadCommand, "__key__", fmt.Sprintf("%012d", i), 1))
	})
	time.Sleep(*quiet / 2) // a log that has just been written is still on its way to the disk
	capacity := 0.0
	for range capacityRuns {
		capacity = max(capacity, runLoad(t, s.Addr, 0, *quiet/capacityRuns).PerSecond)
	}
	rate := float64(int(capacity / 2))
	t.Logf("%.0f a second at most; %.0f, half of them:", capacity, rate)
	var least, alone, beside halfRuns
	for range *rounds {
		watched := harness.WatchMachine(longWait)
		time.Sleep(*quiet)
		t.Logf("%-22s %s", "no load at all", took(watched()))
		if *floor != "" {
			least.add(t, "the floor", floorLoad(t, rate), "")
		}
		c.Do("LATENCY", "RESET")
		alone.add(t, "nothing beside it", runLoad(t, s.Addr, rate, *quiet), longParts(c))
		c.Do("LATENCY", "RESET")
		took := make(chan time.Duration, 1)
		go func() {
			time.Sleep(*quiet / jobAfter)
			begun := time.Now()
			for c.Do(command); !over(c, field); time.Sleep(jobLook) {
			}
			took <- time.Since(begun)
		}()
		report := runLoad(t, s.Addr, rate, *quiet)
		beside.add(t, fmt.Sprintf("%s, %v", command, (<-took).Round(jobLook)), report, longParts(c))
	}
	t.Logf("p99.9 beside %s: %.1f times that with nothing beside it, in the median", command, median(beside.p999)/median(alone.p999))
	t.Logf("of %d runs requests waited for more than %v in %d, with nothing beside them in %d", *rounds, longWait, beside.long, alone.long)
	if *floor != "" {
		t.Logf("with the floor in %d, whose p99.9 was %.3f ms in the median", least.long, median(least.p999))
	}
	info := c.Ask("INFO", "persistence").Text
	require.Contains(t, info, "aof_last_bgrewrite_status:ok")
	require.Contains(t, info, "rdb_last_bgsave_status:ok")
}

// loadReport is what headgate bench has measured of a server, and how much processor time the host took away meanwhile.
type loadReport struct {
	PerSecond  float64            `json:"per_second"`
	Errors     uint64             `json:"errors"`
	FirstError string             `json:"first_error"`
	LoaderBusy float64            `json:"loader_busy"`
	Latency    map[string]float64 `json:"latency_ms"`
	machine    harness.Disturbance
}

// halfRuns are those of one kind.
type halfRuns struct {
	p999 []float64 // ms
	long int       // in how many of them a request waited for more than longWait
}

// add prints a report and takes note of it.
func (h *halfRuns) add(t *testing.T, what string, r loadReport, parts string) {
	t.Helper()
	t.Logf("%-22s %.0f a second: p50 %.3f ms, p99 %.3f, p99.9 %.3f, slowest %.3f; the load was busy for %.0f %%, %s%s",
		what, r.PerSecond, r.Latency["p50"], r.Latency["p99"], r.Latency["p99.9"], r.Latency["max"], 100*r.LoaderBusy, took(r.machine), parts)
	h.p999 = append(h.p999, r.Latency["p99.9"])
	if r.Latency["max"] > milliseconds(longWait) {
		h.long++
	}
}

// took says what the machine kept from whatever ran on it.
func took(d harness.Disturbance) string {
	return fmt.Sprintf("the host took %v away, a processor lost up to %.1f ms at once", d.Taken, milliseconds(d.Lost))
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// median is the lower one of the two in the middle of an even number.
func median(all []float64) float64 {
	slices.Sort(all)
	return all[(len(all)-1)/2]
}

// longParts says which of the server's own doings were long, and how long in ms.
func longParts(c *harness.Client) (parts string) {
	for _, event := range c.Ask("LATENCY", "LATEST").Items {
		parts += fmt.Sprintf(", %s %s ms", event.Items[0].Text, event.Items[3].Text)
	}
	return parts
}

// runLoad runs headgate bench for a time, at a rate or, with 0, as fast as the server answers.
func runLoad(t *testing.T, addr string, rate float64, duration time.Duration) loadReport {
	t.Helper()
	figures := filepath.Join(t.TempDir(), "load.json")
	args := []string{"-c", harness.Pinned(1) + ` && exec "$0" "$@"`, harness.Binary(t), "bench", "--addr", addr, "--clients", loadClients,
		"--keys", strconv.Itoa(*keys), "--load", loadCommand, "--duration", duration.String(), "--rate", strconv.FormatFloat(rate, 'f', 0, 64),
		"--seed", strconv.FormatUint(*seed, 10), "--json", figures}
	watched := harness.WatchMachine(longWait)
	out, err := exec.Command("/bin/sh", args...).CombinedOutput()
	machine := watched()
	require.NoError(t, err, "%s", out)
	data, err := os.ReadFile(figures)
	require.NoError(t, err)
	var report struct{ Servers []loadReport }
	require.NoError(t, json.Unmarshal(data, &report))
	require.Len(t, report.Servers, 1)
	r := report.Servers[0]
	require.Zero(t, r.Errors, r.FirstError)
	r.machine = machine
	return r
}

// floorLoad runs the load against the floor, on the server's processor.
func floorLoad(t *testing.T, rate float64) loadReport {
	t.Helper()
	port := strconv.Itoa(harness.FreePort(t))
	cmd := exec.Command("/bin/sh", "-c", harness.Pinned(0)+` && exec "$0" "$@"`, *floor, "--port", port)
	require.NoError(t, cmd.Start())
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	addr := net.JoinHostPort("127.0.0.1", port)
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			conn.Close()
		}
		return err == nil
	}, 5*time.Second, 10*time.Millisecond)
	return runLoad(t, addr, rate, *quiet)
}
