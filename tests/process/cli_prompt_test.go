package process

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"headgate/tests/internal/harness"
)

// openTerminal returns both ends of a pseudo-terminal: what is typed and shown, and what a program has.
func openTerminal(t *testing.T) (screen, program *os.File) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	screen = os.NewFile(uintptr(fd), "ptmx")
	t.Cleanup(func() { screen.Close() })
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err)
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { program.Close() })
	return screen, program
}

// TestCLIPrompt types at a terminal: names are completed, the syntax is shown, replies have types, and the prompt follows the session.
func TestCLIPrompt(t *testing.T) {
	server := harness.Start(t)
	screen, program := openTerminal(t)
	cmd := exec.Command(harness.Binary(t), "cli", "-p", strconv.Itoa(server.Port))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
	require.NoError(t, cmd.Start())
	shown := ""
	until := func(text string) {
		t.Helper()
		require.NoError(t, screen.SetReadDeadline(time.Now().Add(harness.ReplyTimeout)))
		buf := make([]byte, 4096)
		for !strings.Contains(shown, text) {
			n, err := screen.Read(buf)
			require.NoError(t, err, "waiting for %q: %q", text, shown)
			shown += string(buf[:n])
		}
		_, shown, _ = strings.Cut(shown, text)
	}
	typed := func(text string) {
		_, err := screen.WriteString(text)
		require.NoError(t, err)
	}
	prompt := "127.0.0.1:" + strconv.Itoa(server.Port)
	until(prompt + "> ")
	typed("rl.gc\tkey \t")
	until("RL.GCRA key capacity count period [COST n] [PEEK] [WAIT duration]")
	typed("10 5 1s\r")
	until("1) (integer) 0\r\n2) (integer) 10\r\n3) (integer) 9\r\n")
	until(prompt + "> ")
	typed("select 2\r")
	until("OK\r\n" + prompt + "[2]> ")
	typed("multi\r")
	until("OK\r\n" + prompt + "[2](TX)> ")
	typed("discard\r")
	until("OK\r\n" + prompt + "[2]> ")
	typed("help rl.reset\r")
	until("RL.RESET key [key …]\r\n")
	until(prompt + "[2]> ")
	typed("quit\r")
	require.NoError(t, cmd.Wait())
}
