package resp

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"
)

// These tests show why commands are not read with redcon v1.6.2's own reader.
// Should one fail after an upgrade, redcon was mended, and ARCHITECTURE.md
// wants a word about it.

const (
	lengthBomb = "*1\r\n$9223372036854775807\r\n"
	countBomb  = "*9223372036854775807\r\n"
)

func TestRedconReaderPanicsOnLargestLength(t *testing.T) {
	require.Panics(t, func() {
		_, _ = redcon.NewReader(bytes.NewReader([]byte(lengthBomb))).ReadCommands()
	})
	_, err := feed(t, []byte(lengthBomb), DefaultLimits())
	require.EqualError(t, err, "Protocol error: invalid bulk length")
}

// redconSpinEnv makes the test binary run redcon's reader in a process that
// can be ended.
const redconSpinEnv = "HEADGATE_TEST_REDCON_SPIN"

func TestRedconReaderSpinsOnLargestCount(t *testing.T) {
	if os.Getenv(redconSpinEnv) != "" {
		_, _ = os.Stdout.WriteString("reading\n")
		// Nothing follows the header, so that a reader which does not spin
		// meets the end of its input at once.
		_, _ = redcon.NewReader(bytes.NewReader([]byte(countBomb))).ReadCommands()
		return
	}
	_, err := feed(t, []byte(countBomb), DefaultLimits())
	require.EqualError(t, err, "Protocol error: invalid multibulk length")

	child := exec.Command(os.Args[0], "-test.run=^TestRedconReaderSpinsOnLargestCount$")
	child.Env = append(os.Environ(), redconSpinEnv+"=1")
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "reading\n", line)

	ended := make(chan struct{})
	go func() {
		_ = child.Wait()
		close(ended)
	}()
	const deadline = 500 * time.Millisecond
	spinning := false
	select {
	case <-ended:
	case <-time.After(deadline):
		spinning = true
		require.NoError(t, child.Process.Kill())
		<-ended
	}
	require.True(t, spinning, "redcon's reader came back")
}

// BenchmarkRedconReader is BenchmarkReader with redcon's parsers: ReadCommands
// is what its server uses, ReadNextCommand the one that does not copy.
func BenchmarkRedconReader(b *testing.B) {
	for _, pipeline := range pipelines() {
		b.Run(pipeline.name+"/ReadCommands", func(b *testing.B) {
			b.ReportAllocs()
			source := bytes.NewReader(nil)
			reader := redcon.NewReader(source)
			for b.Loop() {
				source.Reset(pipeline.bytes)
				for left := 16; left > 0; {
					commands, err := reader.ReadCommands()
					if err != nil {
						b.Fatal(err)
					}
					left -= len(commands)
				}
			}
		})
		b.Run(pipeline.name+"/ReadNextCommand", func(b *testing.B) {
			b.ReportAllocs()
			var args [][]byte
			for b.Loop() {
				rest := pipeline.bytes
				for len(rest) > 0 {
					_, args, _, rest, _ = redcon.ReadNextCommand(rest, args[:0])
				}
			}
		})
	}
}
