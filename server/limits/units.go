package limits

import (
	"strings"

	"headgate/server/command"
	"headgate/server/limiter"
)

// watchUnits logs durations of a call that probably lack their unit: a limit of so long is none that a client notices. The log has one line for
// each command while the process runs, since each call of a client would be another.
func (l *Limits) watchUnits(c *command.Ctx, durations ...[]byte) {
	for _, word := range durations {
		if c.Cmd == nil || !limiter.LacksUnit(word) || l.unitless[c.Cmd] { // without a command it is read again, and was a client's before
			continue
		}
		if l.unitless == nil {
			l.unitless = map[*command.Command]bool{}
		}
		l.unitless[c.Cmd] = true
		ms, _ := limiter.ParseDuration(word)
		l.Logger.Warn("a duration probably lacks its unit: a bare number is milliseconds", "command", strings.ToUpper(strings.ReplaceAll(c.Cmd.FullName, "|", " ")), "value", string(word),
			"days", ms/(24*60*60*1000), "client", c.Client.ID)
	}
}
