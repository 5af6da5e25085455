package server

import (
	"bytes"
	"fmt"

	"headgate/internal/ascii"
)

// Errors as they stand on the wire, in Redis's words, since clients match on them. Those with one command's details are made
// where they are needed.
const (
	errSyntax         = "ERR syntax error"
	errUsage          = "ERR syntax error, try %s" // headgate's own, of RL.*: with how the command is called
	errNotInteger     = "ERR value is not an integer or out of range"
	errNotFloat       = "ERR value is not a valid float"
	errWrongType      = "WRONGTYPE Operation against a key holding the wrong kind of value"
	errNoSuchKey      = "ERR no such key"
	errIndexRange     = "ERR index out of range"
	errOffsetRange    = "ERR offset is out of range"
	errOverflow       = "ERR increment or decrement would overflow"
	errNaN            = "ERR increment would produce NaN or Infinity"
	errScoreNaN       = "ERR resulting score is not a number (NaN)"
	errInvalidCursor  = "ERR invalid cursor"
	errInvalidDB      = "ERR invalid DB index"
	errDBRange        = "ERR DB index is out of range"
	errInt32Range     = "ERR value is out of range, value must between -2147483648 and 2147483647"
	errSameObject     = "ERR source and destination objects are the same"
	errStringTooLong  = "ERR string exceeds maximum allowed size (proto-max-bulk-len)"
	errNotPositive    = "ERR value is out of range, must be positive"
	errOutOfRange     = "ERR value is out of range"
	errMinMaxFloat    = "ERR min or max is not a float"
	errMinMaxLex      = "ERR min or max not valid string range item"
	errNoAuth         = "NOAUTH Authentication required."
	errOOM            = "OOM command not allowed when used memory > 'maxmemory'."
	errExecAbort      = "EXECABORT Transaction discarded because of previous errors."
	errNoMulti        = "ERR Command not allowed inside a transaction"
	errMaxClients     = "ERR max number of clients reached"
	errNoCluster      = "ERR This instance has cluster support disabled"
	errHashNotInteger = "ERR hash value is not an integer"
	errNotHLL         = "WRONGTYPE Key is not a valid HyperLogLog string value."
	errCorruptHLL     = "INVALIDOBJ Corrupted HLL object detected"
	errHashNotFloat   = "ERR hash value is not a float"
)

// errProtected is what a client from outside gets while the server is open to the network without a password.
const errProtected = "DENIED Running in protected mode because protected mode is enabled and no password is set for the default user. " +
	"Only clients of this machine are served. Set requirepass, or turn protected-mode off if the network itself is safe."

// Lengths to which an unknown command's name and its arguments are quoted in the error.
const (
	unknownNameShown = 128
	unknownArgsShown = 128
)

func (c *Ctx) errUnknownCommand() {
	c.core.stats.unknown++
	name := c.args[0]
	var shown bytes.Buffer
	for _, a := range c.args[1:] {
		if shown.Len() >= unknownArgsShown {
			break
		}
		fmt.Fprintf(&shown, "'%.*s' ", unknownArgsShown-shown.Len(), cutAtNUL(a))
	}
	c.errf("ERR unknown command '%.*s', with args beginning with: %s", unknownNameShown, cutAtNUL(name), shown.Bytes())
}

func (c *Ctx) errUnknownSubcommand() {
	c.errf("ERR unknown subcommand '%.*s'. Try %s HELP.", unknownNameShown, cutAtNUL(c.args[1]), ascii.Upper(string(cutAtNUL(c.args[0]))))
}

// cutAtNUL ends text where C's printing of it would.
func cutAtNUL(b []byte) []byte {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		return b[:i]
	}
	return b
}
