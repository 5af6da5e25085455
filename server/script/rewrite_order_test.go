package script

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/server/resp"
)

// TestOrderOfEvaluation: parts of statements are evaluated in the order that redis-server does it in, where a function that is called changes the variables
// of those around it.
func TestOrderOfEvaluation(t *testing.T) {
	text, err := os.ReadFile("testdata/order.txt")
	require.NoError(t, err)
	parts := strings.Split(string(text), "===\n")
	require.Len(t, parts, 5)
	begin, end, metatable := parts[1], parts[2], strings.TrimSuffix(parts[3], "\n")
	e := New(newFakeHost(), Options{})
	answer := func(statement string) string {
		lines := strings.Split(eval(e, begin+statement+"\n"+end, resp.RESP2, nil, nil), "\r\n")
		if lines[0][0] != '-' {
			return strings.TrimRight(lines[1], " ")
		}
		message, _, _ := strings.Cut(lines[0][1:], " script: ")
		_, message, _ = strings.Cut(message, "user_script:")
		_, message, _ = strings.Cut(message, ": ")
		return "error ERR " + message
	}
	statement, answers := "", []string(nil)
	cases := 0
	check := func() {
		if statement == "" {
			return
		}
		full := strings.Replace(statement, "@", metatable+" ", 1)
		require.Equal(t, answers[0], answer(full), statement)
		require.Equal(t, answers[len(answers)-1], answer("local function run() "+full+" end run()"), "in a function: %s", statement)
		cases++
	}
	for line := range strings.Lines(parts[4]) {
		line = strings.TrimSuffix(line, "\n")
		if found, ok := strings.CutPrefix(line, "  "); ok {
			answers = append(answers, found)
			continue
		}
		check()
		statement, answers = line, nil
	}
	check()
	require.Greater(t, cases, 200)
}
