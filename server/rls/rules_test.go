package rls

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"headgate/server/limiter"
)

// read reads the text of one file.
func read(text string) (*Rules, error) {
	r := newRules()
	return r, r.readText("rules.yaml", []byte(text))
}

// descriptor makes a descriptor of pairs of key and value.
func descriptor(words ...string) *common.RateLimitDescriptor {
	d := &common.RateLimitDescriptor{}
	for i := 0; i < len(words); i += 2 {
		d.Entries = append(d.Entries, &common.RateLimitDescriptor_Entry{Key: words[i], Value: words[i+1]})
	}
	return d
}

const example = `
domain: shop
descriptors:
  - key: user
    rate_limit: {unit: minute, requests_per_unit: 60}
  - key: user
    value: bob
    rate_limit: {unit: hour, requests_per_unit: 5, name: bob, replaces: [{name: path}]}
    descriptors:
      - key: path
        value: /login
        rate_limit: {unit: second, requests_per_unit: 1, algorithm: gcra}
  - key: user
    value: vip*
    share_threshold: true
    rate_limit: {unit: day, requests_per_unit: 9}
  - key: path
    rate_limit: {unit: second, requests_per_unit: 100, name: path}
    shadow_mode: true
  - key: free
    rate_limit: {unlimited: true}
  - key: team
    rate_limit: {policy: teams}
  - key: group
    descriptors:
      - key: member
        rate_limit: {unit: week, requests_per_unit: 7, algorithm: sliding}
  - key: none
    rate_limit: {unit: year, requests_per_unit: 0, algorithm: log}
`

// TestFind: descriptors lead to the limits that envoyproxy/ratelimit finds.
func TestFind(t *testing.T) {
	r, err := read(example)
	require.NoError(t, err)
	for _, tt := range []struct {
		words       []string
		policy, key string
	}{
		{[]string{"user", "eve"}, "FIXED 60 60s ALIGNED", "rls:shop|user=eve|fixed minute"},
		{[]string{"user", "bob"}, "FIXED 5 3600s ALIGNED", "rls:shop|user=bob|fixed hour"},
		{[]string{"user", "bob", "path", "/login"}, "GCRA 1 1 1s", "rls:shop|user=bob|path=/login|gcra second"},
		{[]string{"user", "bob", "path", "/other"}, "", ""},
		{[]string{"user", "eve", "path", "/login"}, "", ""},
		{[]string{"user", "vip1"}, "FIXED 9 86400s ALIGNED", "rls:shop|user=vip*|fixed day"},
		{[]string{"user", "vip2"}, "FIXED 9 86400s ALIGNED", "rls:shop|user=vip*|fixed day"},
		{[]string{"path", "/"}, "FIXED 100 1s ALIGNED SHADOW", "rls:shop|path=/|fixed second"},
		{[]string{"team", "red"}, "teams", "rls:shop|team=red|policy teams"},
		{[]string{"group", "a", "member", "b"}, "SLIDING 7 604800s", "rls:shop|group=a|member=b|sliding week"},
		{[]string{"group", "a"}, "", ""},
		{[]string{"none", "x"}, "FIXED 0 31536000s ALIGNED", "rls:shop|none=x|log year"},
		{[]string{"unknown", "x"}, "", ""},
		{nil, "", ""},
		{[]string{"user", `a|b=c\d`}, "FIXED 60 60s ALIGNED", `rls:shop|user=a\|b\=c\\d|fixed minute`},
	} {
		m, err := r.find("shop", descriptor(tt.words...))
		require.NoError(t, err)
		require.Equal(t, tt.key, m.key, tt.words)
		if tt.policy == "" {
			require.Nil(t, m.rule, tt.words)
			continue
		}
		require.Equal(t, tt.policy, m.policy, tt.words)
		if strings.Contains(m.policy, " ") {
			_, _, err = limiter.Standard.ParseText(limiter.Words(m.policy))
			require.NoError(t, err, m.policy)
		}
	}
	m, err := r.find("shop", descriptor("free", "x"))
	require.NoError(t, err)
	require.True(t, m.unlimited)
	m, err = r.find("elsewhere", descriptor("user", "x"))
	require.NoError(t, err)
	require.Nil(t, m.rule)
}

// TestMistakes: a mistake is told with the file, the line, and what there should be.
func TestMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "1: the file is empty",
		"- a":                          "1: there must be a mapping here",
		"descriptors: []":              "1: the file must name its domain",
		"domain: a\ndomain: b":         "2: key 'domain' is set twice",
		"domain: a\nlimits: []":        "2: unknown key 'limits', use domain, descriptors",
		"1: a":                         "1: a key must be a string",
		"domain: a\ndescriptors: b":    "2: there must be a list here",
		"domain: [a]":                  "1: there must be a text here",
		"domain: a\ndescriptors: [b]":  "2: there must be a mapping here",
		"domain: a\ndescriptors: [{}]": "2: a descriptor must have a key",
		"domain: a\ndescriptors:\n- {key: a, value: b}\n- {key: a_b}":                                                "4: descriptor 'a_b' is defined twice",
		"domain: a\ndescriptors:\n- key: a\n  shadow_mode: maybe":                                                    "4: 'maybe' must be true or false",
		"domain: a\ndescriptors:\n- key: a\n  share_threshold: true":                                                 "4: share_threshold needs a value that ends with *",
		"domain: a\ndescriptors:\n- key: a\n  rate_limit:\n    unit: fortnight":                                      "5: unit 'fortnight' must be second, minute, hour, day, week, month or year",
		"domain: a\ndescriptors:\n- key: a\n  rate_limit:\n    unit: unknown":                                        "5: unit 'unknown' must be second, minute, hour, day, week, month or year",
		"domain: a\ndescriptors:\n- key: a\n  rate_limit:\n    unit: day\n    requests_per_unit: -1":                 "6: requests_per_unit '-1' must be from 0 to 4294967295",
		"domain: a\ndescriptors:\n- key: a\n  rate_limit:\n    unit: day\n    algorithm: leaky":                      "6: algorithm 'leaky' must be fixed, gcra, sliding or log",
		"domain: a\ndescriptors:\n- key: a\n  rate_limit:\n    unlimited: true\n    unit: day":                       "6: unit cannot be combined with unlimited",
		"domain: a\ndescriptors:\n- key: a\n  rate_limit:\n    policy: p\n    unit: day":                             "6: unit cannot be combined with policy",
		"domain: a\ndescriptors:\n- key: a\n  shadow_mode: true\n  rate_limit:\n    policy: p":                       "6: policy cannot be combined with shadow_mode or quota_mode: add SHADOW to the policy",
		"domain: a\ndescriptors:\n- key: a\n  quota_mode: true\n  rate_limit: {policy: p}":                           "5: policy cannot be combined with shadow_mode or quota_mode: add SHADOW to the policy",
		"domain: a\ndescriptors:\n- key: a\n  rate_limit:\n    policy: p q":                                          "5: 'p q' is not the name of a policy",
		"domain: a\ndescriptors:\n- key: a\n  rate_limit:\n    unit: day\n    name: n\n    replaces:\n    - name: n": "8: a limit cannot replace itself",
		"domain: a\ndescriptors:\n- key: a\n  rate_limit:\n    unit: day\n    replaces:\n    - {}":                   "7: what is replaced must have a name",
		"domain: a\ndescriptors: &d\n- key: a\n  descriptors: *d":                                                    "4: there must be a list here",
		"domain: a\ndescriptors:\n" + nested(maxDepth+1):                                                             fmt.Sprintf("%d: descriptors can be nested at most %d deep", maxDepth*2+3, maxDepth),
	} {
		_, err := read(text)
		require.EqualError(t, err, "rules.yaml:"+want, text)
	}
	_, err := read("domain: [")
	require.ErrorContains(t, err, "rules.yaml: yaml: line 1:")
}

// nested is descriptors that stand so deep within each other.
func nested(depth int) string {
	var b strings.Builder
	for i := range depth {
		fmt.Fprintf(&b, "%s- key: k\n", strings.Repeat("  ", i))
		if i < depth-1 {
			fmt.Fprintf(&b, "%s  descriptors:\n", strings.Repeat("  ", i))
		}
	}
	return b.String()
}

// TestDirectory: all files of a directory are read, and of those with mistakes the first of each is told.
func TestDirectory(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	_, err := Read(dir)
	require.ErrorContains(t, err, "has no file that ends with .yaml or .yml")
	write("a.yaml", "domain: a")
	write("b.yml", "domain: b")
	write("notes.txt", "no yaml: [")
	write(".hidden.yaml", "no yaml: [")
	r, err := Read(dir)
	require.NoError(t, err)
	require.Len(t, r.domains, 2)
	write("c.yaml", "domain: a")
	write("d.yaml", "x: y")
	write("e.yaml", "domain: e\ndescriptors: [{key: k, rate_limit: {requests_per_unit: 1}}]")
	_, err = Read(dir)
	require.ErrorContains(t, err, "c.yaml:1: domain 'a' is already defined in "+filepath.Join(dir, "a.yaml"))
	require.ErrorContains(t, err, "e.yaml:2: unit is missing: it must be second")
	require.ErrorContains(t, err, "d.yaml:1: unknown key 'x', use domain, descriptors")
	_, err = Read(filepath.Join(dir, "absent"))
	require.Error(t, err)
	pipes := t.TempDir()
	require.NoError(t, syscall.Mkfifo(filepath.Join(pipes, "pipe.yaml"), 0o600))
	_, err = Read(pipes)
	require.ErrorContains(t, err, "pipe.yaml: it is not a regular file")
	require.NoError(t, os.Mkdir(filepath.Join(pipes, "dir.yaml"), 0o700))
	_, err = Read(pipes)
	require.ErrorContains(t, err, "dir.yaml: it is not a regular file")
}

// FuzzRules: whatever the bytes of a file and the words of a descriptor are, they are read or refused, and policies that are written out parse.
func FuzzRules(f *testing.F) {
	f.Add(example, "user", "bob")
	f.Add("domain: shop\ndescriptors: [{key: \"*\", share_threshold: true}]", "*", "")
	f.Fuzz(func(t *testing.T, text, key, value string) {
		r, err := read(text)
		if err != nil {
			return
		}
		for domain := range r.domains {
			m, err := r.find(domain, descriptor(key, value))
			require.NoError(t, err)
			if m.rule != nil && !m.unlimited && strings.Contains(m.policy, " ") {
				_, _, err := limiter.Standard.ParseText(limiter.Words(strings.TrimSuffix(m.policy, " SHADOW")))
				require.NoError(t, err, m.policy)
			}
		}
	})
}

// FuzzDescriptors: whatever a request is, it is answered or refused, and no two of its descriptors with different entries share a key that is no
// wildcard's.
func FuzzDescriptors(f *testing.F) {
	for _, d := range []*common.RateLimitDescriptor{
		descriptor("user", "bob", "path", "/login"), descriptor("user", "vip1"), descriptor("team", ""), descriptor("free", "x"), descriptor(),
		descriptor("user", `a|path=/login|b\=`),
	} {
		for _, request := range []*rls.RateLimitRequest{
			{Domain: "shop", Descriptors: []*common.RateLimitDescriptor{d, d}},
			{Domain: "shop", HitsAddend: 7, Descriptors: []*common.RateLimitDescriptor{
				{Entries: d.Entries, IsNegativeHits: true, HitsAddend: wrapperspb.UInt64(3)},
				{Entries: d.Entries, Limit: &common.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 9, Unit: 2}},
			}},
		} {
			wire, err := proto.Marshal(request)
			require.NoError(f, err)
			f.Add(wire)
		}
	}
	rules, err := read(example)
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, wire []byte) {
		request := &rls.RateLimitRequest{}
		if len(wire) > maxRequest || proto.Unmarshal(wire, request) != nil {
			return
		}
		list, err := rules.matches(request)
		if err != nil {
			require.Equal(t, codes.InvalidArgument, status.Code(err))
			return
		}
		require.Len(t, list, len(request.Descriptors))
		owners := map[string][]*common.RateLimitDescriptor_Entry{}
		for i, m := range list {
			if m.rule == nil || m.unlimited {
				continue
			}
			require.LessOrEqual(t, len(m.key), maxKey)
			require.LessOrEqual(t, len(m.asked), 200)
			entries := request.Descriptors[i].Entries
			if before, is := owners[m.key]; is && !strings.Contains(m.key, "*") {
				require.Equal(t, words(before), words(entries))
			}
			owners[m.key] = entries
		}
		a, err := askedOf(request, list)
		if err != nil {
			require.Equal(t, codes.InvalidArgument, status.Code(err))
			return
		}
		for i, at := range a.index {
			require.Equal(t, list[i].rule == nil || list[i].unlimited, at < 0)
			if at >= 0 {
				require.Equal(t, list[i].key, a.pairs[at].Key)
			}
		}
	})
}

// words are the keys and values of entries.
func words(entries []*common.RateLimitDescriptor_Entry) (list []string) {
	for _, e := range entries {
		list = append(list, e.GetKey(), e.GetValue())
	}
	return list
}
