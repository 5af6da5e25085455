package deploy

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

var image = flag.Bool("image", false, "run the Dockerfile's build, which compiles everything anew, and what it builds")

const imageUser = "65532"

// TestImage runs what the Dockerfile runs, without an engine: its build command, then the program alone in an empty root that
// cannot be written, as the image's user, without capabilities, with the image's environment.
func TestImage(t *testing.T) {
	if !*image {
		t.Skip("only with -image")
	}
	if os.Getuid() != 0 {
		t.Skip("only root can change the root directory")
	}
	unshare, _, _ := tool(t, "unshare"), tool(t, "setpriv"), tool(t, "chroot")
	if err := exec.Command(unshare, "--mount", "true").Run(); err != nil {
		t.Skipf("no mount namespaces here: %v", err)
	}
	dockerfile := read(t, "Dockerfile")
	require.Contains(t, dockerfile, "\nUSER "+imageUser+":"+imageUser+"\n")
	build := regexp.MustCompile(`(?m)^RUN (CGO_ENABLED=0 go build .*) -o /headgate (\S+)$`).FindStringSubmatch(dockerfile)
	require.NotNil(t, build, "the Dockerfile's build command")
	env := regexp.MustCompile(`(?m)^ENV (.*)$`).FindStringSubmatch(dockerfile)
	require.NotNil(t, env)

	root, err := os.MkdirTemp("", "image")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(root) })
	require.NoError(t, os.Chmod(root, 0o755))
	cmd := exec.Command("/bin/sh", "-c", build[1]+` -o "$0" `+build[2], filepath.Join(root, "headgate"))
	cmd.Dir = harness.Root(t)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))

	port := harness.FreePort(t)
	script := fmt.Sprintf(`mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && %s exec setpriv --no-new-privs --inh-caps=-all --bounding-set=-all,+sys_chroot,+setuid,+setgid \
		chroot --userspec=%s:%s "$0" /headgate --port %d`, env[1], imageUser, imageUser, port)
	server := exec.Command(unshare, "--mount", "--propagation", "private", "/bin/sh", "-c", script, root)
	log := filepath.Join(t.TempDir(), "log")
	file, err := os.Create(log)
	require.NoError(t, err)
	defer file.Close()
	server.Stderr = file
	t.Cleanup(func() {
		if text, err := os.ReadFile(log); err == nil && t.Failed() {
			t.Logf("%s", text)
		}
	})
	require.NoError(t, server.Start())
	defer server.Process.Kill()
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	require.Eventually(t, func() bool {
		c, err := harness.TryDial(t, addr)
		return err == nil && string(c.Do("PING")) == "+PONG\r\n"
	}, 30*time.Second, 10*time.Millisecond, "it does not answer")

	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", server.Process.Pid))
	require.NoError(t, err)
	for _, line := range []string{"Name:\theadgate", "Uid:\t65532\t65532\t65532\t65532", "CapPrm:\t0000000000000000", "CapEff:\t0000000000000000", "NoNewPrivs:\t1"} {
		require.Contains(t, string(status), line)
	}
	c := harness.Dial(t, addr)
	require.Equal(t, byte(':'), c.Ask("CL.THROTTLE", "k", "1", "1", "60").Items[0].Kind)
	require.NotEqual(t, byte('-'), c.Ask("RL.FIXED", "day", "10", "DAY", "TZ", "Europe/Berlin").Kind, "time zones need no files")
	require.Equal(t, byte('-'), c.Ask("SAVE").Kind, "there is nowhere to save to")
	require.Equal(t, "+PONG\r\n", string(c.Do("PING")))

	health := exec.Command("chroot", "--userspec="+imageUser+":"+imageUser, root, "/headgate", "ping", "--port", fmt.Sprint(port))
	out, err = health.CombinedOutput()
	require.NoError(t, err, "HEALTHCHECK: %s", out)

	require.NoError(t, server.Process.Signal(syscall.SIGTERM))
	require.NoError(t, server.Wait())
	entries, err := os.ReadDir(root)
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing was written")
}
