package process

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// manager is systemd's end of the socket that a server tells its state over.
type manager struct {
	t    *testing.T
	conn *net.UnixConn
	path string
}

func newManager(t *testing.T) *manager {
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return &manager{t, conn, path}
}

// hears waits for a message with a line, whatever comes before it.
func (m *manager) hears(line string) {
	m.t.Helper()
	require.NoError(m.t, m.conn.SetReadDeadline(time.Now().Add(10*time.Second)))
	buf := make([]byte, 4096)
	for {
		n, err := m.conn.Read(buf)
		require.NoError(m.t, err, "%s did not come", line)
		for _, got := range strings.Split(string(buf[:n]), "\n") {
			if got == line || strings.HasSuffix(line, "=") && strings.HasPrefix(got, line) {
				return
			}
		}
	}
}

// TestNotify: systemd hears when the server is ready, reads its configuration anew, is alive, and ends.
func TestNotify(t *testing.T) {
	m := newManager(t)
	cmd := command(t, "--port", strconv.Itoa(harness.FreePort(t)))
	cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+m.path, "WATCHDOG_USEC=100000")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill() })
	m.hears("READY=1")
	m.hears("WATCHDOG=1")
	require.NoError(t, cmd.Process.Signal(syscall.SIGHUP))
	m.hears("RELOADING=1")
	m.hears("READY=1")
	m.hears("WATCHDOG=1")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	m.hears("STOPPING=1")
	require.NoError(t, cmd.Wait())
}

// TestDebianConfiguration: the file that Debian's redis-server comes with starts headgate, on a directory of the test's own.
func TestDebianConfiguration(t *testing.T) {
	const stock = "/etc/redis/redis.conf"
	text, err := os.ReadFile(stock)
	if err != nil {
		t.Skipf("%s cannot be read: %v", stock, err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "redis.conf")
	changed := strings.ReplaceAll(string(text), "dir /var/lib/redis", "dir "+dir)
	require.NotEqual(t, string(text), changed)
	require.NoError(t, os.WriteFile(file, []byte(changed), 0o600))
	s := startConfigured(t, file, "--logfile", "", "--pidfile", filepath.Join(dir, "pid"))
	c := dialSoon(t, s.addr)
	require.Equal(t, "+OK\r\n", string(c.Do("SET", "k", "v")))
	require.FileExists(t, filepath.Join(dir, "pid"))
	require.Contains(t, s.log.String(), "daemonize is ignored")
	require.Equal(t, "+OK\r\n", string(c.Do("CONFIG", "SET", "hz", "20", "maxclients", "99")))
	require.Equal(t, "+OK\r\n", string(c.Do("CONFIG", "REWRITE")))
	require.NoError(t, s.Process.Signal(syscall.SIGTERM))
	s.ends(0)
	require.FileExists(t, filepath.Join(dir, "dump.rdb"))

	after, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, strings.Count(changed, "\n# "), strings.Count(strings.ReplaceAll(string(after), "\n# Added by CONFIG REWRITE", "\n"), "\n# "), "comments stay")
	c = dialSoon(t, startConfigured(t, file, "--logfile", "").addr)
	require.Equal(t, "$1\r\nv\r\n", string(c.Do("GET", "k")))
	require.Contains(t, string(c.Do("CONFIG", "GET", "hz")), "\r\n20\r\n")
	require.Contains(t, string(c.Do("CONFIG", "GET", "maxclients")), "\r\n99\r\n")
}
