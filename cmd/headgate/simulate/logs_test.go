package simulate_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/cmd/headgate/simulate"
	"headgate/server"
	"headgate/server/command"
	"headgate/server/config"
	"headgate/server/servertest"
)

// loggedRequest is a line of a log, as the test reads it.
type loggedRequest struct {
	key string
	ns  int64
}

var nginxFields = regexp.MustCompile(`^(\S+) - - \[([^\]]+)\] `)

func readNginx(t *testing.T, line []byte) loggedRequest {
	fields := nginxFields.FindSubmatch(line)
	require.Len(t, fields, 3, "%s", line)
	at, err := time.Parse("02/Jan/2006:15:04:05 -0700", string(fields[2]))
	require.NoError(t, err)
	return loggedRequest{string(fields[1]), at.UnixNano()}
}

func readCaddy(t *testing.T, line []byte) loggedRequest {
	var entry struct {
		TS      float64 `json:"ts"`
		Request struct {
			RemoteIP string `json:"remote_ip"`
		} `json:"request"`
	}
	require.NoError(t, json.Unmarshal(line, &entry))
	return loggedRequest{entry.Request.RemoteIP, int64(math.Round(entry.TS*1e6)) * 1e3}
}

// TestLogsOfWebServers: nginx 1.22.1 and Caddy 2.6.2 wrote these logs, by their default formats, while twelve clients sent bursts. What is
// simulated on them is what a server answers whose clock is the log's, call by call and in total.
func TestLogsOfWebServers(t *testing.T) {
	for name, read := range map[string]func(*testing.T, []byte) loggedRequest{"nginx": readNginx, "caddy": readCaddy} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join("testdata", name+".log.gz")
			file, err := os.Open(path)
			require.NoError(t, err)
			defer file.Close()
			log, err := gzip.NewReader(file)
			require.NoError(t, err)

			policies := []string{"GCRA 5 2 1s", "FIXED 4 1s", "SLIDING 5 2s SLICES 4", "LOG 3 1s", "BUCKET 3 1 500ms", "FIXED 8 MINUTE BLOCK 3s DOUBLE 10s"}
			replay, err := simulate.NewReplay(false, policies...)
			require.NoError(t, err)
			var now int64
			s := server.New(config.NewLive(servertest.Unsaved()), server.Options{})
			s.Clock = command.NewClock(func() (wall, mono int64) { return now, now })
			limited, requests := make([]uint64, len(policies)), uint64(0)
			var live *servertest.WorkerClient
			for lines := bufio.NewScanner(log); lines.Scan(); requests++ {
				r := read(t, lines.Bytes())
				now = max(now, r.ns)
				if live == nil {
					live = servertest.NewWorkerClientOf(t, s)
					for i, policy := range policies {
						require.Equal(t, "+OK\r\n", live.Ask(strings.Fields(fmt.Sprint("RL.POLICY SET p", i, " ", policy))...))
					}
				}
				verdicts, err := replay.Take(r.key, now)
				require.NoError(t, err)
				for i := range policies {
					reply := live.Ask("RL.TAKE", "1", fmt.Sprint("p", i), fmt.Sprint(r.key, "-", i))
					require.Equal(t, strings.HasPrefix(reply, "*3\r\n:1\r\n"), verdicts[i].Limited, "line %d, %s: the server says %q", requests+1, policies[i], reply)
					if verdicts[i].Limited {
						limited[i]++
					}
				}
			}

			args := []string{path, "--json", "--key", "$remote_addr"}
			for _, policy := range policies {
				args = append(args, "--policy", policy)
			}
			options, err := simulate.ParseOptions(args, io.Discard)
			require.NoError(t, err)
			var out bytes.Buffer
			require.NoError(t, (&simulate.Simulation{Options: options, Stop: new(atomic.Bool)}).Run(&out))
			var report simulate.Report
			require.NoError(t, json.Unmarshal(out.Bytes(), &report))
			require.Equal(t, requests, report.Requests)
			require.Zero(t, report.Strange)
			for i, policy := range report.Policies {
				require.Equal(t, limited[i], policy.Limited, policies[i])
				require.Positive(t, policy.Limited, policies[i])
				require.Positive(t, policy.Admitted, policies[i])
			}
		})
	}
}
