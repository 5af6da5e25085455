package fuzzer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// expiring is how long keys whose time has come may take to be gone, at most.
const expiring = 30 * time.Second

// lookAtTotals wants every database to have as many keys as a scan finds, and INFO to say so; and every value to have as many elements as
// it is said to.
func lookAtTotals(t *testing.T, c *harness.Client) {
	t.Helper()
	total := 0
	for db := range databases {
		require.Equal(t, "OK", c.Ask("SELECT", strconv.Itoa(db)).Text)
		var names []string
		require.Eventually(t, func() bool {
			names = scan(t, c)
			for _, name := range names {
				c.Ask("PERSIST", name)
			}
			n := len(scan(t, c))
			return c.Ask("DBSIZE").Text == strconv.Itoa(n) && keyspaceOf(c, db) == fmt.Sprintf("keys=%d,expires=0,", n)
		}, expiring, time.Millisecond, "database %d: DBSIZE %s, INFO %q, a scan finds %d", db, c.Ask("DBSIZE").Text, keyspaceOf(c, db), len(names))
		names = scan(t, c)
		total += len(names)
		for _, name := range names {
			lookAtValue(t, c, name)
		}
	}
	require.Equal(t, "OK", c.Ask("SELECT", "0").Text)
	t.Logf("%d keys in the end", total)
}

// scan returns the names of a database's keys, each once.
func scan(t *testing.T, c *harness.Client) []string {
	t.Helper()
	var names []string
	for cursor := "0"; ; {
		v := c.Ask("SCAN", cursor, "COUNT", "100")
		require.Len(t, v.Items, 2)
		names = append(names, v.Items[1].Strings()...)
		if cursor = v.Items[0].Text; cursor == "0" {
			slices.Sort(names)
			return slices.Compact(names)
		}
	}
}

// keyspaceOf returns what INFO says of a database's keys; of an empty one it says nothing.
func keyspaceOf(c *harness.Client, db int) string {
	prefix := fmt.Sprintf("db%d:", db)
	for line := range strings.SplitSeq(c.Ask("INFO", "keyspace").Text, "\r\n") {
		if counts, found := strings.CutPrefix(line, prefix); found {
			return counts[:strings.Index(counts, "avg_ttl")]
		}
	}
	return "keys=0,expires=0,"
}

// lookAtValue counts a value's elements.
func lookAtValue(t *testing.T, c *harness.Client, name string) {
	t.Helper()
	count := func(said string, read ...string) {
		v := c.Ask(read...)
		require.NotEqual(t, byte('-'), v.Kind, "%q", read)
		require.Equal(t, c.Ask(said, name).Text, strconv.Itoa(len(v.Items)), "%q of %q", said, name)
	}
	switch kind := c.Ask("TYPE", name).Text; kind {
	case "string":
		require.Equal(t, c.Ask("STRLEN", name).Text, strconv.Itoa(len(c.Ask("GET", name).Text)), "%q", name)
	case "list":
		count("LLEN", "LRANGE", name, "0", "-1")
	case "set":
		count("SCARD", "SMEMBERS", name)
	case "zset":
		count("ZCARD", "ZRANGE", name, "0", "-1")
	case "hash":
		count("HLEN", "HKEYS", name)
	case "stream":
		count("XLEN", "XRANGE", name, "-", "+")
	default:
		require.Fail(t, "no type", "%q: %q", name, kind)
	}
	copied := name + " copied"
	dump := c.Ask("DUMP", name)
	require.Equal(t, "OK", c.Ask("RESTORE", copied, "0", dump.Text).Text, "%q", name)
	require.Equal(t, c.Ask("OBJECT", "ENCODING", name).Text != "", c.Ask("OBJECT", "ENCODING", copied).Text != "")
	require.Equal(t, "1", c.Ask("DEL", copied).Text)
}

// arena returns the bytes that keys and small values take up, once all that is to be freed later is free.
func arena(c *harness.Client) int {
	for line := range strings.SplitSeq(c.Ask("INFO", "memory").Text, "\r\n") {
		if n, found := strings.CutPrefix(line, "used_memory_arena:"); found {
			bytes, _ := strconv.Atoi(n)
			return bytes
		}
	}
	return -1
}

// emptyArena returns what arena says when every database has had a key, and so has an index (which a flush takes away), but is empty.
func emptyArena(c *harness.Client) int {
	for db := range databases {
		c.Ask("SELECT", strconv.Itoa(db))
		c.Ask("SET", "k", "v")
		c.Ask("DEL", "k")
	}
	c.Ask("SELECT", "0")
	return arena(c)
}

// lookAtMemory wants all of it back when every key is deleted, one by one.
func lookAtMemory(t *testing.T, c *harness.Client, empty int) {
	t.Helper()
	before := arena(c)
	for db := range databases {
		c.Ask("SELECT", strconv.Itoa(db))
		for _, name := range scan(t, c) {
			require.Equal(t, "1", c.Ask("DEL", name).Text, "%q", name)
		}
		require.Equal(t, "0", c.Ask("DBSIZE").Text)
	}
	require.Eventually(t, func() bool { return emptyArena(c) == empty }, expiring, time.Millisecond, "%d bytes with keys, %d at the start", before, empty)
	t.Logf("used_memory_arena: %d with keys, %d without", before, empty)
}

// contents returns what every key of every database has in it, and which functions there are.
func contents(t *testing.T, c *harness.Client) map[string]string {
	t.Helper()
	all := map[string]string{"functions": c.Ask("FUNCTION", "LIST", "WITHCODE").Sorted(false).Wire()}
	for db := range databases {
		c.Ask("SELECT", strconv.Itoa(db))
		for _, name := range scan(t, c) {
			kind := c.Ask("TYPE", name).Text
			var v harness.Value
			switch kind {
			case "string":
				v = c.Ask("GET", name)
			case "list":
				v = c.Ask("LRANGE", name, "0", "-1")
			case "set":
				v = c.Ask("SMEMBERS", name).Sorted(false)
			case "zset":
				v = c.Ask("ZRANGE", name, "0", "-1", "WITHSCORES")
			case "hash":
				v = c.Ask("HGETALL", name).Sorted(true)
			case "stream":
				v = harness.Value{Kind: '*', Items: []harness.Value{c.Ask("XRANGE", name, "-", "+"), c.Ask("XINFO", "GROUPS", name).Sorted(false)}}
			}
			all[fmt.Sprintf("%s %q in %d", kind, name, db)] = v.Wire()
		}
	}
	c.Ask("SELECT", "0")
	return all
}
