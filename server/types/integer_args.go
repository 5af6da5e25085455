package types

import (
	"headgate/internal/number"
	"headgate/server/command"
)

// integerOr parses args[i] as a whole number of at least least, or sends the given error for anything else and returns false.
func integerOr(c *command.Ctx, i int, least int64, refusal string) (int64, bool) {
	n, ok := number.ParseInt(c.Args[i])
	if !ok || n < least {
		c.Err(refusal)
		return 0, false
	}
	return n, true
}
