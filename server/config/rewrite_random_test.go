package config

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRewriteOfAnything: whatever the file, an include, the environment and a flag say, and commands and reloads change, a start with the rewritten file and
// the same environment brings the configuration of the moment. What the environment overrules there is right in the file.
func TestRewriteOfAnything(t *testing.T) {
	directives := [][]string{ // a name, and values
		{"timeout", "0", "5", "7"}, {"hz", "10", "20"}, {"requirepass", "s3", "s4"}, {"save", "60 1", "3600 1 60 100"}, {"databases", "16", "4"},
		{"client-output-buffer-limit", "normal 1mb 2mb 3", "pubsub 1mb 1mb 1", "normal 0 0 0 pubsub 0 0 0"}, {"notify-keyspace-events", "KEA", "Ex"},
		{"slave-priority", "1", "100"}, {"replica-priority", "1", "7"}, {"hash-max-ziplist-value", "10", "64"}, {"hash-max-listpack-value", "10", "20"},
		{"user", "a on", "b on >x"}, {"policy", "p FIXED 5 1h", "q GCRA 10 1 1m"}, {"replicaof", "no one", "127.0.0.1 7009"}, {"bind", "127.0.0.1", "127.0.0.1 ::1"},
	}
	started, written := 0, 0
	for seed := range uint64(1500) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		pick := func() (name, value string) {
			d := directives[rnd.IntN(len(directives))]
			return d[0], d[1+rnd.IntN(len(d)-1)]
		}
		text := func() (text string) {
			for range rnd.IntN(5) {
				name, value := pick()
				text += name + " " + value + "\n"
			}
			return text
		}
		files := map[string]string{"/srv/h.conf": text() + "include inc.conf\n" + text(), "/srv/inc.conf": text()}
		var env []string
		for range rnd.IntN(4) {
			name, value := pick()
			env = append(slices.DeleteFunc(env, func(v string) bool { return strings.HasPrefix(v, variableOf(name)+"=") }), variableOf(name)+"="+value)
		}
		args := []string{"h.conf"}
		if rnd.IntN(3) == 0 {
			name, value := pick()
			args = append(append(args, "--"+name), strings.Fields(value)...)
		}
		story := []string{files["/srv/h.conf"], files["/srv/inc.conf"], strings.Join(env, " "), strings.Join(args, " ")}
		live, _, err := Load(args, env, memoryHost(files))
		if err != nil {
			continue // two of the directives do not go together
		}
		started++
		for range rnd.IntN(8) {
			switch rnd.IntN(6) {
			case 0, 1:
				name, value := pick()
				_ = live.Set([]Pair{{name, value}}, true)
				story = append(story, "CONFIG SET "+name+" "+value)
			case 2:
				_, _ = live.Reload() // a flag may name a user again that is in the file now
				story = append(story, "SIGHUP")
			case 3:
				live.SetUsers([][]User{nil, {{Name: "c", Rules: []string{"on"}}}}[rnd.IntN(2)])
				story = append(story, "ACL")
			case 4:
				live.SetReplicaOf([]Address{{}, {"127.0.0.1", 7009}}[rnd.IntN(2)])
				story = append(story, "REPLICAOF")
			default:
				story = append(story, "CONFIG REWRITE")
				if live.Rewrite(func(path string, data []byte) error { files[path] = string(data); return nil }) != nil {
					continue // an include's lines cannot be taken back
				}
				written++
				story = append(story, files["/srv/h.conf"])
				again, _, err := Load([]string{"h.conf"}, env, memoryHost(files))
				require.NoError(t, err, story)
				alone, _, err := Load([]string{"h.conf"}, nil, memoryHost(files))
				require.NoError(t, err, story)
				for _, d := range differing(again.Get(), live.Get()) {
					overruled := d.Format(alone.Get()) == d.Format(live.Get())
					require.True(t, overruled || live.waits(d, live.Get()), "seed %d: %s is %q and was %q\n%s", seed, d.Name, d.Format(again.Get()), d.Format(live.Get()),
						strings.Join(story, "\n--\n"))
				}
				require.NoError(t, live.Rewrite(func(string, []byte) error { t.Fatal("all is right already", story); return nil }))
			}
		}
	}
	require.Greater(t, started, 1000)
	require.Greater(t, written, 500)
}
