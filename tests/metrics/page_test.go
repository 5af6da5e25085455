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
	"syscall"
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
const maxImage = 250 << 10

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
		if name, _, _ := strings.Cut(texts[0], " "); texts[0] == first || name == first { // a policy may follow a key
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
	require.Equal(t, []string{strconv.Itoa(k.limitedOfIt)}, row(t, dom, "top-limited", k.mostLimited))
	require.Equal(t, []string{strconv.Itoa(k.policyLimited)}, row(t, dom, "top-limited", "<script>alert(1)</script>"))
	require.Equal(t, []string{strconv.Itoa(k.policyAllowed + k.policyLimited)}, row(t, dom, "top-hot", "<script>alert(1)</script>"))
	require.Equal(t, []string{strconv.Itoa(k.policyAllowed), "1", strconv.Itoa(k.policyLimited), "58 %"}, row(t, dom, "policies", "login FIXED 5 1d"))
	require.Equal(t, []string{strconv.Itoa(k.allowed), strconv.Itoa(k.near), strconv.Itoa(k.limited), "39 %"}, row(t, dom, "algorithms", "gcra"))
	require.Equal(t, 1, strings.Count(dom, "<script"), "only the page's own")
	require.Regexp(t, `<path class="s0" d="M[0-9]`, dom, "a line is drawn")
}

// TestPageBesideStoppedServer: a server that does not answer any more is not shown as ready. The page says since when, and what it shows
// is dimmed, until there is an answer again.
func TestPageBesideStoppedServer(t *testing.T) {
	s, addr := start(t)
	b := openTab(t, "http://"+addr+"/", 1200, 900)
	const dimmed = `[...document.querySelectorAll(".live")].every(e => getComputedStyle(e).opacity < .5)`
	b.await(`document.getElementById("state").textContent === "ready"`)
	require.Equal(t, false, b.eval(dimmed))
	require.NoError(t, syscall.Kill(s.PID(), syscall.SIGSTOP))
	b.await(`/^no answer since .*[0-9]+:[0-9]{2}/.test(document.getElementById("state").textContent)`)
	b.await(dimmed)
	require.Equal(t, true, b.eval(`document.getElementById("state").classList.contains("bad")`))
	b.await(`/numbers are [0-9.]+ s old/.test(document.getElementById("about").textContent)`)
	require.NoError(t, syscall.Kill(s.PID(), syscall.SIGCONT))
	b.await(`document.getElementById("state").textContent === "ready"`)
	b.await("!" + dimmed)
}

// TestPageOnPhone: what is limited and called most is seen without scrolling, and nothing is wider than the screen.
func TestPageOnPhone(t *testing.T) {
	s, addr := start(t)
	sendKnown(t, s)
	client := harness.Dial(t, s.Addr)
	defer client.Close()
	policy := "a-policy-with-a-long-name-" + strings.Repeat("x", 38)
	client.Ask("RL.POLICY", "SET", policy, "FIXED", "1000000", "1d", "SHADOW", "BLOCK", "10m", "DOUBLE", "60m")
	client.Ask("RL.TAKE", "1", policy, "phone", "COST", "1000000")
	client.Ask("RL.TAKE", "1", policy, "phone")
	client.Ask("RL.POLICY", "OVERRIDE", "SET", policy, "phone", "1", "1d")
	client.Ask("RL.POLICY", "SET", policy, "FIXED", "1000000", "1d", "BLOCK", "10m", "DOUBLE", "60m")
	client.Ask("RL.BLOCK", policy, "198.51.100.200", "1d")
	client.Ask("CONFIG", "SET", "slowlog-log-slower-than", "0")
	client.Ask("SET", "a-key-of-some-length", "a value of some length", "EX", "1000000")
	awaitSamples(t, addr, 2, waitLimit)
	b := openTab(t, "http://"+addr+"/", 390, 844)
	for _, list := range []string{"top-limited", "top-hot"} {
		require.Equal(t, true, b.eval(`document.querySelectorAll("#`+list+` td.k").length === 5`), "five rows, and the rest when they are asked for")
		require.Equal(t, true, b.eval(`[...document.querySelectorAll("#`+list+` td.k")].every(e => e.getBoundingClientRect().bottom < innerHeight)`), list)
	}
	require.Equal(t, true, b.eval(`document.documentElement.scrollWidth <= innerWidth`))
	for list, columns := range map[string]int{"policies": 8, "algorithms": 5, "blocked": 4, "slow": 4} {
		require.EqualValues(t, columns-1, b.eval(`document.querySelectorAll("#`+list+` th").length`), list)
		require.Equal(t, true, b.eval(`document.querySelectorAll("#`+list+` td.k").length > 0`), list)
		require.Equal(t, true, b.eval(`[...document.querySelectorAll("#`+list+` :is(th, td)")].every(e => e.getBoundingClientRect().right <= innerWidth)`), list)
	}
	b.eval(`document.querySelector("#top-limited .more").click()`)
	require.Equal(t, true, b.eval(`document.querySelectorAll("#top-limited td.k").length > 5`))
}

// TestPlotsAreLabelled: there are numbers at both axes of each plot, those of times ten times each other or in steps of 1, 2 and 5.
func TestPlotsAreLabelled(t *testing.T) {
	s, addr := start(t, "--maxmemory", "8mb")
	sendKnown(t, s)
	awaitSamples(t, addr, 2, waitLimit)
	b := openTab(t, "http://"+addr+"/", 1200, 900)
	var labels [][]string
	text, err := json.Marshal(b.eval(`[...document.querySelectorAll("#plots svg")].map(s => [...s.querySelectorAll("text")].map(e => e.textContent))`))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &labels))
	require.Len(t, labels, 4)
	for i, of := range labels {
		require.Contains(t, of, "now", i)
		require.Contains(t, of, "−30 s", i)
		require.GreaterOrEqual(t, len(of), 5, i)
	}
	require.Contains(t, labels[0], "0")
	require.Contains(t, labels[2], "8 MiB")
	require.Contains(t, labels[2], "maxmemory")
	for _, tt := range []struct{ scale, want string }{
		{`logScale(3, 70)`, "1 µs 2 µs 5 µs 10 µs 20 µs 50 µs 100 µs"},
		{`logScale(.5, 2e6)`, "100 ns 10 µs 1 ms 100 ms 10 s"},
		{`logScale(10, 10)`, "10 µs 20 µs 50 µs 100 µs"},
	} {
		require.Equal(t, tt.want, b.eval(tt.scale+`.marks.map(micros).join(" ")`), tt.scale)
		require.Equal(t, true, b.eval(`(s => s.marks.every(m => s.place(m) >= 0 && s.place(m) <= 1))(`+tt.scale+`)`), tt.scale)
	}
	require.Equal(t, "0 20 40 60 80", b.eval(`evenScale(decimalStep)(0, 70).marks.map(short).join(" ")`))
	require.Equal(t, "0 B 2 MiB 4 MiB 6 MiB 8 MiB", b.eval(`evenScale(binaryStep)(0, 6.2 * 1048576).marks.map(bytes).join(" ")`))
	require.Equal(t, "0 1", b.eval(`evenScale(wholeStep)(0, 1).marks.map(short).join(" ")`))
}

// TestPageTellsOfTrouble: what is wrong with memory, disk and certificate is said and marked, and an error only where there is one.
func TestPageTellsOfTrouble(t *testing.T) {
	_, addr := start(t, "--maxmemory", "64mb", "--appendonly", "yes", "--slowlog-log-slower-than", "0")
	b := openTab(t, "http://"+addr+"/", 1200, 900)
	rows := func() map[string]string {
		text, err := json.Marshal(b.eval(`Object.fromEntries([...document.querySelectorAll("#health dt")].map(e => [e.textContent, e.nextSibling.className + "|" + e.nextSibling.textContent]))`))
		require.NoError(t, err)
		var m map[string]string
		require.NoError(t, json.Unmarshal(text, &m))
		return m
	}
	well := rows()
	require.Regexp(t, `^\|[0-9.]+ % of 64 MiB, noeviction$`, well["maxmemory"])
	require.Regexp(t, `^\|[0-9.]+ (B|KiB), synced everysec$`, well["Append-only file"])
	require.Regexp(t, `^\|none since the start, 0 changes`, well["Snapshot"])
	require.Equal(t, "|TLS is off", well["Certificate"])
	require.Len(t, well, 4)

	b.eval(`clearTimeout(timer), health({now: 2e12, memory: 95, memoryLimit: {max: 100, policy: "allkeys-lru", evicted: 7},
		disk: {unwritable: "MISCONF no", log: {failed: "disk full", rewrite: "no room"}, snapshot: {failed: true, changes: 3}},
		certificate: {until: 1.9e12, soon: true, broken: "no key"}})`)
	require.Equal(t, map[string]string{
		"Writes": "bad|refused: MISCONF no", "maxmemory": "warn|95 % of 100 B, allkeys-lru, 7 keys evicted", "Append-only file": "bad|cannot be written: disk full",
		"Rewrite": "bad|the last one failed: no room", "Snapshot": "bad|the last one failed; 3 changes", "Certificate": "bad|ended on 2030-03-17",
		"TLS files": "bad|those of now cannot be used: no key",
	}, rows())
	require.Equal(t, "5", b.eval(`[calls({calls: 5, error: 0})].flat().map(e => e.textContent || e).join("")`))
	require.Equal(t, "5 ±3", b.eval(`[calls({calls: 5, error: 3})].flat().map(e => e.textContent || e).join("")`))
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
		defer reply.Body.Close()
		_, err = io.Copy(io.Discard, reply.Body) // to its end: until then the server counts it among the scrapes at a time
		require.NoError(t, err)
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

	// With a password of its own the page opens to nothing else, and /metrics is as metrics-password says: open, or for who has that one.
	s, addr := start(t, "--requirepass", "secret", "--metrics-page-password", "page")
	c := harness.Dial(t, s.Addr)
	c.Do("AUTH", "secret")
	for _, of := range []struct {
		metrics string
		want    int
	}{{"", 200}, {"other", 401}} {
		c.Do("CONFIG", "SET", "metrics-password", of.metrics)
		for _, path := range []string{"/", "/data", "/lookup?key=k"} {
			require.Equal(t, 401, status(path, "", ""), path)
			require.Equal(t, 401, status(path, "headgate", "other"), path)
			require.Equal(t, 200, status(path, "headgate", "page"), path)
		}
		require.Equal(t, of.want, status("/metrics", "", ""))
		require.Equal(t, of.want, status("/metrics", "headgate", "page"))
		require.Equal(t, 200, status("/metrics", "headgate", "other"))
	}
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
	s, addr := start(t, "--appendonly", "yes", "--maxmemory", "64mb", "--slowlog-log-slower-than", "500")
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		wave(t, s, stop)
	}()
	awaitSamples(t, addr, int(*imageTime/time.Second), 2**imageTime)
	b := openTab(t, "http://"+addr+"/", 1200, 900)
	for _, picture := range []struct {
		name, scheme  string
		width, height int // 0: all of it
	}{
		{"page-light", "light", 1200, 0}, {"page-dark", "dark", 1200, 0}, {"page-phone", "light", 390, 844},
		{"page-top-light", "light", 1200, 674}, {"page-top-dark", "dark", 1200, 674}, // for README.md
	} {
		path, err := filepath.Abs(filepath.Join(*images, picture.name+".png"))
		require.NoError(t, err)
		b.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": picture.scheme}}}, nil)
		b.resize(picture.width, 900)
		b.eval(`dispatchEvent(new Event("resize")), tables(latest)`)
		height := picture.height
		if height == 0 {
			height = int(b.eval(`document.documentElement.scrollHeight`).(float64))
		}
		b.resize(picture.width, height)
		b.screenshot(path)
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
	for i := range 2000 {
		client.Ask("RPUSH", "visits", strconv.Itoa(i))
	}
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
		if int(at*1000)%100 == 0 {
			client.Ask("SORT", "visits", "BY", "visit:*->at", "LIMIT", "0", "10")
		}
	}
}
