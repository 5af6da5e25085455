package config

import (
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// memoryHost is a machine with the given files, whose working directory is /srv.
func memoryHost(files map[string]string) *Host {
	read := func(name string) ([]byte, error) {
		text, ok := files[name]
		if !ok {
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		}
		return []byte(text), nil
	}
	return &Host{
		ReadFile: read, ReadAgain: read,
		Glob: func(pattern string) ([]string, error) {
			var list []string
			for _, name := range slices.Sorted(maps.Keys(files)) {
				ok, err := path.Match(pattern, name)
				if err != nil {
					return nil, err
				}
				if ok {
					list = append(list, name)
				}
			}
			return list, nil
		},
		Getwd: func() (string, error) { return "/srv", nil },
		CheckDir: func(dir string) error {
			if strings.HasPrefix(dir, "/missing") {
				return redisText("No such file or directory")
			}
			return nil
		},
		Stdin: strings.NewReader(files["-"]),
	}
}

// load evaluates flags and a file headgate.conf, if text is not empty.
func load(t *testing.T, text string, args ...string) *Live {
	t.Helper()
	files := map[string]string{}
	if text != "" {
		files["/srv/headgate.conf"] = text
		args = append([]string{"headgate.conf"}, args...)
	}
	live, _, err := Load(args, nil, memoryHost(files))
	require.NoError(t, err)
	return live
}

// value returns one directive as CONFIG GET prints it.
func value(t *testing.T, live *Live, name string) string {
	t.Helper()
	pairs := live.Match([]string{name})
	if d := byName[name]; d != nil && d.Hidden {
		require.Empty(t, pairs, name)
		return d.Format(live.Get())
	}
	require.Len(t, pairs, 1, name)
	return pairs[0].Value
}
