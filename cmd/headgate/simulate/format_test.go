package simulate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The lines are those of the formats' documentation, or written by what it says.
const (
	apacheLine = `127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif?a=b HTTP/1.0" 200 2326 "http://www.example.com/start.html" "Mozilla/4.08 [en] (Win98; I ;Nav) \"x\""`
	commonLine = `127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326`
	nginxLine  = `2001:db8::1 - - [10/Oct/2000:20:55:36 +0000] "\x16\x03\x01" 400 150 "-" "-" "203.0.113.9"`
	haLine     = `Feb  6 12:14:14 localhost haproxy[14389]: 10.0.1.2:33317 [06/Feb/2009:12:14:14.655] http-in~ static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {1wt.eu} {} "GET /index.html HTTP/1.1"`
	caddyLine  = `{"level":"info","ts":1646861401.5241024,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"127.0.0.1","remote_port":"41342","client_ip":"192.0.2.9","proto":"HTTP/2.0","method":"GET","host":"localhost","uri":"/a\"b","headers":{"User-Agent":["curl/7.82.0"],"Accept":["*/*"]},"tls":{"resumed":false,"version":772}},"user_id":"","duration":0.000929675,"size":10900,"status":200}`
	nginxJSON  = `{"time_iso8601":"2000-10-10T20:55:36+00:00", "remote_addr":"192.0.2.1", "nested":[[1,[2]],{"a":"b"}], "n":null}`
)

func TestFormats(t *testing.T) {
	for _, c := range []struct {
		name, format, line, time, key, want string
	}{
		{"apache", "combined", apacheLine, "2000-10-10T20:55:36Z", "$remote_addr $remote_user $request_method $uri $request_uri $status $http_referer $body_bytes_sent", "127.0.0.1 frank GET /apache_pb.gif /apache_pb.gif?a=b 200 http://www.example.com/start.html 2326"},
		{"apache's escapes", "combined", apacheLine, "2000-10-10T20:55:36Z", "$http_user_agent", `Mozilla/4.08 [en] (Win98; I ;Nav) \"x\"`},
		{"common", "combined", commonLine, "2000-10-10T20:55:36Z", "${remote_user}-$server_protocol", "frank-HTTP/1.0"},
		{"nginx", "combined", nginxLine, "2000-10-10T20:55:36Z", "$remote_addr", "2001:db8::1"},
		{"nobody", "combined", nginxLine, "2000-10-10T20:55:36Z", "$remote_user", ""},
		{"haproxy", "haproxy", haLine, "2009-02-06T12:14:14.655Z", "$remote_addr $frontend $backend/$server $status $bytes_sent $termination_state $captured_request_headers $uri", "10.0.1.2 http-in static/srv1 200 2750 ---- 1wt.eu /index.html"},
		{"caddy", "json", caddyLine, "2022-03-09T21:30:01.524102400Z", "$remote_addr $request.remote_ip $host $http_user_agent $status $request_method", "192.0.2.9 127.0.0.1 localhost curl/7.82.0 200 GET"},
		{"caddy's escapes", "json", caddyLine, "2022-03-09T21:30:01.524102400Z", "${request.headers.Accept}$$$request_uri", `*/*$/a"b`},
		{"an empty string", "json", caddyLine, "2022-03-09T21:30:01.524102400Z", "$remote_user", ""},
		{"nginx as JSON", "json", nginxJSON, "2000-10-10T20:55:36Z", "$remote_addr", "192.0.2.1"},
		{"null", "json", nginxJSON, "2000-10-10T20:55:36Z", "$n", ""},
		{"groups", `^(?P<time>\d+) (?P<user>\w+)`, "1646861401524 ann x", "2022-03-09T21:30:01.524Z", "u:$user", "u:ann"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tpl, err := parseTemplate(c.key)
			require.NoError(t, err)
			f, err := newFormat(c.format, tpl.fields)
			require.NoError(t, err)
			var r record
			require.True(t, f.parse([]byte(c.line), &r))
			require.Equal(t, c.time, time.Unix(0, r.ns).UTC().Format(time.RFC3339Nano[:len("2006-01-02T15:04:05")]+trimmed(c.time)))
			key, _, ok := tpl.render(&r, nil)
			require.Equal(t, c.want != "", ok)
			require.Equal(t, c.want, string(key))
			if c.format[0] != '^' {
				require.Equal(t, c.format, detect([]byte("strange\n"+c.line+"\n")))
			}
		})
	}
}

// trimmed is the layout of what stands behind a time's seconds.
func trimmed(text string) string {
	layout := []byte(text[len("2006-01-02T15:04:05"):])
	for i, c := range layout {
		if c >= '0' && c <= '9' {
			layout[i] = '0'
		}
	}
	return string(layout)
}

// TestTimesBeyond64Bits: a number of milliseconds that nanoseconds have no room for was taken for a time before 1970.
func TestTimesBeyond64Bits(t *testing.T) {
	for _, text := range []string{"9900000000000", "9900000000", "10/Oct/9999:13:55:36 -0700", "1969-12-31T23:59:59Z"} {
		ns, ok := parseTime([]byte(text))
		require.False(t, ok, "%s: %d", text, ns)
	}
}

func TestStrangeTemplates(t *testing.T) {
	for _, text := range []string{"", "text", "$", "${a", "${}", "$-"} {
		_, err := parseTemplate(text)
		require.Error(t, err, text)
	}
}

// FuzzFormats: no line is too strange for any format, and each value is part of what a line can say.
func FuzzFormats(f *testing.F) {
	for _, line := range []string{apacheLine, commonLine, nginxLine, haLine, caddyLine, nginxJSON, `[[[[`, `{"a":"\`} {
		f.Add([]byte(line))
	}
	combined, _ := newFormat(combinedFormat, combinedNames)
	ha, _ := newFormat(haproxyFormat, haproxyNames)
	object, _ := newFormat(jsonFormat, []string{"remote_addr", "host", "request.headers.Accept"})
	pattern, _ := newFormat(`(?P<time>\S+) (?P<a>.*)`, []string{"a"})
	f.Fuzz(func(t *testing.T, line []byte) {
		for _, one := range []format{combined, ha, object, pattern} {
			var r record
			if one.parse(line, &r) && (r.ns < 0 || len(r.values) == 0) {
				t.Fatalf("%T: %+v", one, r)
			}
		}
	})
}
