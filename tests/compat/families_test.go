package compat

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// TestHelpForm checks that HELP has Redis's form: a first line that names the family, then each sub-command with at least one
// indented line below it, HELP last.
func TestHelpForm(t *testing.T) {
	client := harness.Dial(t, harness.Start(t).Addr)
	for _, family := range []string{"CLIENT", "COMMAND", "CONFIG", "FUNCTION", "MEMORY", "OBJECT", "RL.POLICY", "SCRIPT", "XGROUP", "XINFO"} {
		help := client.Ask(family, "HELP")
		require.EqualValues(t, '*', help.Kind, family)
		lines := help.Strings()
		require.Equal(t, family+" <subcommand> [<arg> [value] [opt] ...]. Subcommands are:", lines[0])
		require.Equal(t, "HELP", lines[len(lines)-2])
		for i, line := range lines[1:] {
			assert.EqualValues(t, '+', help.Items[1+i].Kind)
			assert.Equal(t, i%2 == 1, strings.HasPrefix(line, "    "), "%s: line %d: %q", family, i+1, line)
		}
	}
}

// TestKeySpecs compares the key specifications of each command. Notes, which are prose, are left out.
func TestKeySpecs(t *testing.T) {
	const specs = 8
	p := startPair(t)
	l := p.dial(t, 3)
	for _, name := range commandNames(t, p.subject) {
		require.NoError(t, l.send(harness.Command("COMMAND", "INFO", name)))
		reference, subject, err := l.read()
		require.NoError(t, err)
		want, got := reference.Items[0].Items[specs], subject.Items[0].Items[specs]
		require.Len(t, got.Items, len(want.Items), name)
		for i := range want.Items {
			assert.Equal(t, withoutNotes(want.Items[i]).Wire(), got.Items[i].Wire(), "%s: key specification %d", name, i)
		}
	}
}

func withoutNotes(spec harness.Value) harness.Value {
	if len(spec.Items) > 0 && spec.Items[0].Text == "notes" {
		spec.Items = spec.Items[2:]
	}
	return spec
}
