package limits

import (
	"strings"
	"testing"

	"headgate/server/limiter"

	"github.com/stretchr/testify/require"
)

func TestNamesBesideKeys(t *testing.T) {
	for _, test := range []struct{ policy, key, name string }{
		{"login", "user:1", "rl:block:{user:1}:login"},
		{"api:v1", "user:1", "rl:block:{user:1}:api;v1"},
		{"login", "ip:{10.0.0.1}:post", "rl:block:{10.0.0.1}:login:ip:{10.0.0.1}:post"},
		{"login", "a{b", "rl:block:{a{b}:login"},
		{"login", "{}x{y}", "rl:block::login:{}x{y}"},
		{"login", "a}b", "rl:block::login:a}b"},
		{"login", "", "rl:block::login:"},
	} {
		name := appendBeside(nil, BlockPrefix, test.policy, []byte(test.key))
		require.Equal(t, test.name, string(name))
		require.Equal(t, "beforerl:block:"+test.policy, string(Label([]byte("before"), name)))
		require.True(t, keptByServer(name))
	}
	for _, name := range []string{"rl:block:", "rl:block:{a}", "rl:block:{a", "rl:block:{a}:", "rl:block:{a}:a/b", "rl:block::login", "rl:blocks", "rl:policies", "user:{a}:login"} {
		require.Equal(t, "before", string(Label([]byte("before"), []byte(name))), name)
	}
}

// FuzzNamesBesideKeys: a name tells its policy and its key, so no two pairs have the same; and it lies in its key's slot wherever that is possible.
func FuzzNamesBesideKeys(f *testing.F) {
	for _, key := range []string{"user:1", "", "{", "}", "{}", "a{b}c", "T}:P:x{T", "x{T}:Q", "{a}{b}", "{a}:login", "::"} {
		f.Add("a:b", key)
		f.Add("login", key)
	}
	f.Fuzz(func(t *testing.T, policy, key string) {
		if limiter.CheckName([]byte(policy)) != nil {
			return
		}
		name := appendBeside(nil, OverridePrefix, policy, []byte(key))
		gotPolicy, gotKey, ok := besideOf(OverridePrefix, name)
		require.True(t, ok, "%q", name)
		require.Equal(t, policy, gotPolicy)
		require.Equal(t, key, string(gotKey))
		require.Equal(t, OverridePrefix+policy, string(Label(nil, name)))
		if tag := hashTag([]byte(key)); len(tag) > 0 && !(len(tag) == len(key) && strings.Contains(key, "}")) {
			require.Equal(t, string(tag), string(hashTag(name)))
		}
		if made, _, ok := besideOf(OverridePrefix, []byte(key)); ok && limiter.CheckName([]byte(made)) == nil { // somebody has made up such a name
			require.Equal(t, OverridePrefix+made, string(Label(nil, []byte(key))))
		}
	})
}
