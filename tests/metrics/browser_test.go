package metrics

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// tab is a page in a browser without a window, which is told what to do through a pair of pipes by Chromium's own protocol: JSON, and a
// zero byte after each message.
type tab struct {
	t       *testing.T
	out     *os.File
	in      *bufio.Reader
	session string
	asked   int
}

// openTab starts a browser with a window of a width and height in CSS pixels, and waits until it shows headgate's page.
func openTab(t *testing.T, url string, width, height int) *tab {
	theirIn, out, err := os.Pipe()
	require.NoError(t, err)
	in, theirOut, err := os.Pipe()
	require.NoError(t, err)
	cmd := exec.Command(program(t, "chromium"), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
		"--user-data-dir="+t.TempDir(), "--remote-debugging-pipe")
	cmd.ExtraFiles = []*os.File{theirIn, theirOut} // as 3 and 4
	require.NoError(t, cmd.Start())
	_, _ = theirIn.Close(), theirOut.Close()
	b := &tab{t: t, out: out, in: bufio.NewReader(in)}
	t.Cleanup(func() {
		_ = out.Close() // of which the browser ends
		end := time.AfterFunc(waitLimit, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		end.Stop()
		_ = in.Close()
	})
	require.NoError(t, in.SetReadDeadline(time.Now().Add(5*waitLimit)))
	var made struct{ TargetID, SessionID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &made)
	b.call("Target.attachToTarget", map[string]any{"targetId": made.TargetID, "flatten": true}, &made)
	b.session = made.SessionID
	b.resize(width, height)
	b.call("Page.navigate", map[string]any{"url": url}, nil)
	b.await(`document.body?.dataset.shown === "yes"`)
	return b
}

// call has the browser do something and reads what it answers.
func (b *tab) call(method string, params map[string]any, reply any) {
	b.t.Helper()
	b.asked++
	question := map[string]any{"id": b.asked, "method": method, "params": params}
	if b.session != "" {
		question["sessionId"] = b.session
	}
	text, err := json.Marshal(question)
	require.NoError(b.t, err)
	_, err = b.out.Write(append(text, 0))
	require.NoError(b.t, err)
	for {
		text, err := b.in.ReadBytes(0)
		require.NoError(b.t, err, method)
		var answer struct {
			ID     int
			Error  *struct{ Message string }
			Result json.RawMessage
		}
		require.NoError(b.t, json.Unmarshal(text[:len(text)-1], &answer))
		if answer.ID != b.asked { // an event
			continue
		}
		require.Nil(b.t, answer.Error, "%s: %s", method, text)
		if reply != nil {
			require.NoError(b.t, json.Unmarshal(answer.Result, reply))
		}
		return
	}
}

func (b *tab) resize(width, height int) {
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 700}, nil)
}

// eval returns what a line of the page's own language comes to, in JSON's types.
func (b *tab) eval(expression string) any {
	b.t.Helper()
	var reply struct {
		Result           struct{ Value any }
		ExceptionDetails json.RawMessage
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true}, &reply)
	require.Nil(b.t, reply.ExceptionDetails, "%s: %s", expression, string(reply.ExceptionDetails))
	return reply.Result.Value
}

// await waits until a condition holds.
func (b *tab) await(expression string) {
	b.t.Helper()
	for end := time.Now().Add(waitLimit); b.eval(expression) != true; time.Sleep(50 * time.Millisecond) {
		require.True(b.t, time.Now().Before(end), expression)
	}
}

// screenshot writes a picture of what the window shows.
func (b *tab) screenshot(path string) {
	var reply struct{ Data string }
	b.call("Page.captureScreenshot", map[string]any{"format": "png"}, &reply)
	picture, err := base64.StdEncoding.DecodeString(reply.Data)
	require.NoError(b.t, err)
	require.NoError(b.t, os.WriteFile(path, picture, 0o644))
}
