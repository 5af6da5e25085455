package report_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"headgate/persistence/crashfs"
	"headgate/server/command"
	"headgate/server/config"
	"headgate/server/journal"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// ofTheMachine are fields of INFO whose values have no form of their own.
var ofTheMachine = regexp.MustCompile(`(?m)^(os|executable|go_version|mem_allocator|multiplexing_api|run_id|master_replid2?):.*`)

// numberOfInfo is a number in a value, and sizeForPeople one with its unit.
var (
	numberOfInfo  = regexp.MustCompile(`([:=,])-?[0-9]+(\.[0-9]+)?`)
	sizeForPeople = regexp.MustCompile(`(?m)(_human:0)(\.00)?[BKMGTP]$`)
)

// infoForms is the reply of INFO with what changes from call to call left out: numbers, units and what is of the machine.
func infoForms(reply string) string {
	_, info, _ := strings.Cut(strings.ReplaceAll(reply, "\r\n", "\n"), "\n")
	info = ofTheMachine.ReplaceAllString(info, "$1:*")
	info = numberOfInfo.ReplaceAllStringFunc(info, func(s string) string {
		zero := s[:1] + "0"
		if _, decimals, found := strings.Cut(s, "."); found {
			zero += "." + strings.Repeat("0", len(decimals))
		}
		return zero
	})
	return sizeForPeople.ReplaceAllString(info, "$1")
}

// TestInfoStaysAsItIs: the sections of INFO, the fields of each in their order and the forms of their values are what
// testdata/info.txt holds, idle and with all that adds fields.
func TestInfoStaysAsItIs(t *testing.T) {
	const path = "testdata/info.txt"
	var b strings.Builder
	w := servertest.NewWorkerClient(t)
	b.WriteString("== idle\n" + infoForms(w.Ask("INFO")) + "\n== everything, idle\n" + infoForms(w.Ask("INFO", "everything")))
	now := int64(servertest.WallAtStart)
	a, err := servertest.StartAOF(crashfs.New("/data"), config.FsyncNo, &now, func(cfg *config.Config) {
		cfg.TLSPort, cfg.TopKeys = 1, 0 // which keys are called most is forgotten after a while
	})
	require.NoError(t, err)
	defer a.Kill()
	a.WorkerClient.T = t
	a.WorkerClient.Ask("RL.POLICY", "SET", "login", "FIXED", "2", "1h")
	a.WorkerClient.Ask("RL.TAKE", "1", "login", "k")
	a.WorkerClient.Ask("CL.THROTTLE", "user", "3", "1", "3600")
	a.WorkerClient.Ask("SET", "a", "1", "EX", "1000")
	a.WorkerClient.Ask("NONE")
	a.Srv.Gate.Refuse(command.GateLoading, journal.ErrLoading)
	b.WriteString("\n== everything, busy\n" + infoForms(a.WorkerClient.Ask("INFO", "everything")))
	a.Srv.Gate.Refuse(command.GateLoading, "")
	if *servertest.WriteDocs {
		require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, strings.Split(string(want), "\n"), strings.Split(b.String(), "\n"), "if it is meant: go test ./server/report -run TestInfoStaysAsItIs -write")
}
