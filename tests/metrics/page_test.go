package metrics

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"html"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

var (
	images    = flag.String("page.images", "", "folder to write screenshots of the page to")
	imageTime = flag.Duration("page.time", 90*time.Second, "how long the load lasts that the screenshots show")
)

// maxImage is the largest that a screenshot may be, in bytes.
const maxImage = 150 << 10

// browse runs the browser, without a window, on a page, and returns what it prints.
func browse(t *testing.T, addr string, flags ...string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 2*waitLimit)
	defer cancel()
	args := append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--user-data-dir=" + t.TempDir(),
		"--virtual-time-budget=3000",
	}, flags...)
	cmd := exec.CommandContext(ctx, program(t, "chromium"), append(args, "http://"+addr+"/")...)
	var errors strings.Builder
	cmd.Stderr = &errors
	out, err := cmd.Output()
	require.NoError(t, err, errors.String())
	return string(out)
}

// shown is the text of the element with an id.
func shown(t *testing.T, dom, id string) string {
	found := regexp.MustCompile(`id="` + id + `"[^>]*>([^<]*)<`).FindStringSubmatch(dom)
	require.NotNil(t, found, "no %s", id)
	return html.UnescapeString(found[1])
}

// row are the numbers of the row that begins with a text, in the table of an id.
func row(t *testing.T, dom, id, first string) []string {
	_, rest, found := strings.Cut(dom, `id="`+id+`"`)
	require.True(t, found, "no %s", id)
	table, _, _ := strings.Cut(rest, "</table>")
	for line := range strings.SplitSeq(table, "<tr>") {
		cells := regexp.MustCompile(`<td[^>]*>(.*?)</td>`).FindAllStringSubmatch(line, -1)
		if len(cells) == 0 {
			continue
		}
		var texts []string
		for _, cell := range cells {
			texts = append(texts, html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(cell[1], "")))
		}
		if texts[0] == first {
			return texts[1:]
		}
	}
	require.Fail(t, "no row", "%s in %s: %s", first, id, table)
	return nil
}

// infoField is a field of INFO limiters.
func infoField(t *testing.T, info, name string) string {
	for line := range strings.SplitSeq(info, "\r\n") {
		if value, found := strings.CutPrefix(line, name+":"); found {
			return value
		}
	}
	require.Fail(t, "no field", name)
	return ""
}

// TestPage: what a browser shows of a known load is what was sent and what INFO says, and keys that are markup stay text.
func TestPage(t *testing.T) {
	program(t, "chromium")
	s, addr := start(t)
	k := sendKnown(t, s)
	client := harness.Dial(t, s.Addr)
	defer client.Close()
	awaitSamples(t, addr, 2, waitLimit)
	dom := browse(t, addr, "--dump-dom")
	require.Contains(t, dom, `data-shown="yes"`)
	require.Equal(t, "ready", shown(t, dom, "state"))
	info := client.Ask("INFO", "limiters").Text
	require.Equal(t, strconv.Itoa(k.allowed+k.policyAllowed), shown(t, dom, "allowed-total"))
	require.Equal(t, infoField(t, info, "limiter_calls_allowed"), shown(t, dom, "allowed-total"))
	require.Equal(t, strconv.Itoa(k.limited+k.policyLimited), shown(t, dom, "limited-total"))
	require.Equal(t, infoField(t, info, "limiter_calls_limited"), shown(t, dom, "limited-total"))
	require.Equal(t, infoField(t, info, "limiter_calls_near_limit"), shown(t, dom, "near-total"))
	require.Equal(t, strconv.Itoa(k.keys), shown(t, dom, "keys"))
	require.Equal(t, []string{strconv.Itoa(k.limitedOfIt), "0"}, row(t, dom, "top-limited", k.mostLimited))
	require.Equal(t, []string{strconv.Itoa(k.policyLimited), "0"}, row(t, dom, "top-limited", "<script>alert(1)</script>"))
	require.Equal(t, []string{strconv.Itoa(k.policyAllowed + k.policyLimited), "0"}, row(t, dom, "top-hot", "<script>alert(1)</script>"))
	require.Equal(t, []string{strconv.Itoa(k.policyAllowed), "1", strconv.Itoa(k.policyLimited)}, row(t, dom, "policies", "login: FIXED 5 1d"))
	require.Equal(t, []string{strconv.Itoa(k.allowed), strconv.Itoa(k.near), strconv.Itoa(k.limited)}, row(t, dom, "algorithms", "gcra"))
	require.Equal(t, 1, strings.Count(dom, "<script"), "only the page's own")
	require.Regexp(t, `<path class="s0" d="M[0-9]`, dom, "a line is drawn")
}

// TestPageIsPrivate: a password for clients keeps the page from strangers, and a password for the port opens it.
func TestPageIsPrivate(t *testing.T) {
	_, addr := start(t, "--requirepass", "secret")
	status := func(path string, user, password string) int {
		r, err := http.NewRequest("GET", "http://"+addr+path, nil)
		require.NoError(t, err)
		if user != "" {
			r.SetBasicAuth(user, password)
		}
		reply, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		_ = reply.Body.Close()
		return reply.StatusCode
	}
	for _, path := range []string{"/", "/data", "/lookup?key=k"} {
		require.Equal(t, 403, status(path, "", ""), path)
	}
	require.Equal(t, 200, status("/metrics", "", ""))
	_, addr = start(t, "--requirepass", "secret", "--metrics-password", "other")
	for _, path := range []string{"/", "/data", "/lookup?key=k", "/metrics"} {
		require.Equal(t, 401, status(path, "", ""), path)
		require.Equal(t, 401, status(path, "headgate", "secret"), path)
		require.Equal(t, 200, status(path, "headgate", "other"), path)
	}
	require.Equal(t, 200, status("/healthz", "", ""))
}

// awaitSamples waits until the page has so many samples to show.
func awaitSamples(t *testing.T, addr string, n int, limit time.Duration) {
	require.Eventually(t, func() bool {
		reply, err := http.Get("http://" + addr + "/data")
		require.NoError(t, err)
		defer reply.Body.Close()
		body, err := io.ReadAll(reply.Body)
		require.NoError(t, err)
		var d struct{ Samples [][]float64 }
		require.NoError(t, json.Unmarshal(body, &d))
		return len(d.Samples) >= n
	}, limit, 50*time.Millisecond)
}

// TestScreenshots draws the page under a load that goes up and down, for docs/page.md: light, dark, and as wide as a phone.
func TestScreenshots(t *testing.T) {
	if *images == "" {
		t.Skip("only with -page.images: make page")
	}
	program(t, "chromium")
	s, addr := start(t)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		wave(t, s, stop)
	}()
	awaitSamples(t, addr, int(*imageTime/time.Second), 2**imageTime)
	for name, flags := range map[string][]string{
		"page-light": {"--window-size=1200,1180"},
		"page-dark":  {"--window-size=1200,1180", "--blink-settings=preferredColorScheme=0"},
		"page-phone": {"--window-size=390,1500"},
	} {
		path, err := filepath.Abs(filepath.Join(*images, name+".png"))
		require.NoError(t, err)
		browse(t, addr, append(flags, "--screenshot="+path)...)
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.LessOrEqual(t, info.Size(), int64(maxImage), path)
	}
	close(stop)
	<-stopped
}

// wave sends a load that goes up and down.
func wave(t *testing.T, s *harness.Server, stop chan struct{}) {
	client := harness.Dial(t, s.Addr)
	defer client.Close()
	client.Ask("RL.POLICY", "SET", "login", "LOG", "5", "60s")
	client.Ask("RL.POLICY", "SET", "user", "GCRA", "40", "60", "60s")
	client.Ask("RL.POLICY", "SET", "global", "SLIDING", "20000", "60s")
	begin := time.Now()
	pace := time.NewTicker(50 * time.Millisecond)
	defer pace.Stop()
	for {
		select {
		case <-stop:
			return
		case <-pace.C:
		}
		at := time.Since(begin).Seconds() / imageTime.Seconds()
		calls := 12 + int(10*math.Sin(at*9)+6*math.Sin(at*31))
		for i := range calls {
			client.Ask("CL.THROTTLE", fmt.Sprintf("api:%d", (i*i*7+int(at*997))%200), "9", "30", "60")
			if i%3 == 0 {
				client.Ask("RL.TAKE", "2", "user", fmt.Sprintf("user:%d", i%17), "global", "all")
			}
		}
		if int(at*1000)%3 == 0 {
			client.Ask("RL.TAKE", "1", "login", fmt.Sprintf("login:198.51.100.%d", calls%9))
		}
		client.Ask("RL.FIXED", fmt.Sprintf("quota:%d", calls), "1000", "DAY")
	}
}
