package random

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// logged are the flags of servers whose changes can be replayed.
var logged = []string{"--appendonly", "yes", "--appendfsync", "no", "--auto-aof-rewrite-percentage", "0"}

// requireReplay kills both servers, and starts each of them on what each has logged: all that the writer held is there, and nothing
// else.
func requireReplay(t *testing.T, servers ...*harness.Server) {
	t.Helper()
	for _, writer := range servers {
		want := contents(t, writer)
		writer.Kill()
		for _, start := range []func(testing.TB, string, ...string) *harness.Server{harness.StartIn, harness.StartReferenceIn} {
			dir := t.TempDir()
			require.NoError(t, os.CopyFS(dir, os.DirFS(writer.Dir)))
			reader := start(t, dir, logged...)
			what := fmt.Sprintf("%s on the log of %s", reader.Name, writer.Name)
			got := contents(t, reader)
			now := time.Now().UnixMilli()
			for name, k := range want {
				if k.expires > 0 && k.expires <= now {
					continue
				}
				require.Contains(t, got, name, what)
				require.Equal(t, k, got[name], "%s: %s", what, name)
			}
			for name := range got {
				require.Contains(t, want, name, what)
			}
			t.Logf("%s: %d keys", what, len(got))
			require.NoError(t, reader.Terminate())
		}
	}
}

// kept is what a key holds.
type kept struct {
	expires int64 // ms since the Unix epoch; negative: never
	kind    string
	value   string
}

// contents is all that a server holds, by database and name.
func contents(t *testing.T, s *harness.Server) map[string]kept {
	t.Helper()
	c := harness.Dial(t, s.Addr)
	defer c.Close()
	all := map[string]kept{}
	for db := range databases {
		c.Ask("SELECT", strconv.Itoa(db))
		for _, key := range c.Ask("KEYS", "*").Strings() {
			k := kept{kind: c.Ask("TYPE", key).Text}
			k.expires, _ = strconv.ParseInt(c.Ask("PEXPIRETIME", key).Text, 10, 64)
			read, isUnordered, inPairs := reader(k.kind, key)
			value := c.Ask(read...)
			if isUnordered {
				value = value.Sorted(inPairs)
			}
			k.value = value.Wire()
			if k.kind == "stream" {
				k.value += streamDetails(c, key)
			}
			if k.kind != "none" && k.expires != -2 { // its time has come meanwhile
				all[fmt.Sprintf("%d/%s", db, key)] = k
			}
		}
	}
	return all
}

// streamDetails is what a stream holds beside its entries, without what follows the clock.
func streamDetails(c *harness.Client, key string) (text string) {
	for _, subcommand := range []string{"STREAM", "GROUPS"} {
		info := c.Ask("XINFO", subcommand, key)
		groups := []harness.Value{info}
		if subcommand == "GROUPS" {
			groups = info.Items
		}
		for _, fields := range groups {
			for i := 0; i+1 < len(fields.Items); i += 2 {
				switch name := fields.Items[i].Text; name {
				case "radix-tree-keys", "radix-tree-nodes":
				default:
					text += name + " " + fields.Items[i+1].Wire()
				}
				if fields.Items[i].Text == "name" {
					group := fields.Items[i+1].Text
					for _, p := range c.Ask("XPENDING", key, group, "-", "+", "100000").Items {
						text += p.Items[0].Wire() + p.Items[1].Wire() + p.Items[3].Wire()
					}
				}
			}
		}
	}
	return text
}
