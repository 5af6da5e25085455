package server

import (
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

var writeDocs = flag.Bool("write", false, "bring the documents in line with the table of commands")

// TestCommandsDocumented fails when docs/commands.md and the table of commands say different things; go generate mends it.
func TestCommandsDocumented(t *testing.T) {
	const path = "../docs/commands.md"
	document, err := os.ReadFile(path)
	require.NoError(t, err)
	want, err := ReplaceCommands(string(document))
	require.NoError(t, err)
	if *writeDocs {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(document), "run: go generate ./server")
}

// TestMetricsDocumented fails when docs/metrics.md is not what the table of metrics says.
func TestMetricsDocumented(t *testing.T) {
	const path = "../docs/metrics.md"
	if *writeDocs {
		require.NoError(t, os.WriteFile(path, []byte(MetricsMarkdown()), 0o644))
		return
	}
	document, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, MetricsMarkdown(), string(document), "run: go generate ./server")
}

// TestGroupsDocumented fails when a command belongs to a group that has no section.
func TestGroupsDocumented(t *testing.T) {
	sections := map[Group]bool{}
	for _, g := range documentedGroups {
		sections[g.group] = true
	}
	for _, cmd := range newRegistry((&Server{}).commandGroups()...).all {
		require.True(t, sections[cmd.Group], "%s is in group %q", cmd.fullName, cmd.Group)
	}
}

func TestReplaceCommandsNeedsBothMarks(t *testing.T) {
	for _, document := range []string{"", docsBegin, docsEnd} {
		_, err := ReplaceCommands(document)
		require.ErrorIs(t, err, errNoMarks)
	}
}
