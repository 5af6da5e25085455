package command

import (
	"bytes"
	"fmt"

	"headgate/internal/ascii"
)

// Errors as they stand on the wire, in Redis's words, since clients match on them. Those with one command's details are made
// where they are needed.
const (
	ErrSyntax         = "ERR syntax error"
	ErrUsage          = "ERR syntax error, try %s" // headgate's own, of RL.*: with how the command is called
	ErrNotInteger     = "ERR value is not an integer or out of range"
	ErrBadKeyCount    = "ERR Bad number of keys provided" // of FCALL's
	errManyKeys       = "ERR Number of keys can't be greater than number of args"
	errFewKeys        = "ERR Number of keys can't be negative"
	ErrNotFloat       = "ERR value is not a valid float"
	ErrWrongType      = "WRONGTYPE Operation against a key holding the wrong kind of value"
	ErrNoSuchKey      = "ERR no such key"
	ErrIndexRange     = "ERR index out of range"
	ErrOffsetRange    = "ERR offset is out of range"
	ErrOverflow       = "ERR increment or decrement would overflow"
	ErrNaN            = "ERR increment would produce NaN or Infinity"
	ErrScoreNaN       = "ERR resulting score is not a number (NaN)"
	ErrInvalidCursor  = "ERR invalid cursor"
	errInvalidDB      = "ERR invalid DB index"
	ErrDBRange        = "ERR DB index is out of range"
	errInt32Range     = "ERR value is out of range, value must between -2147483648 and 2147483647"
	ErrSameObject     = "ERR source and destination objects are the same"
	ErrStringTooLong  = "ERR string exceeds maximum allowed size (proto-max-bulk-len)"
	ErrNotPositive    = "ERR value is out of range, must be positive"
	ErrOutOfRange     = "ERR value is out of range"
	ErrMinMaxFloat    = "ERR min or max is not a float"
	ErrMinMaxLex      = "ERR min or max not valid string range item"
	ErrNoAuth         = "NOAUTH Authentication required."
	ErrDeniedKey      = "NOPERM this user has no permissions to access one of the keys used as arguments"
	ErrOOM            = "OOM command not allowed when used memory > 'maxmemory'."
	ErrExecAbort      = "EXECABORT Transaction discarded because of previous errors."
	ErrNoMulti        = "ERR Command not allowed inside a transaction"
	ErrMaxClients     = "ERR max number of clients reached"
	ErrNoCluster      = "ERR This instance has cluster support disabled"
	ErrHashNotInteger = "ERR hash value is not an integer"
	errNotHLL         = "WRONGTYPE Key is not a valid HyperLogLog string value."
	errCorruptHLL     = "INVALIDOBJ Corrupted HLL object detected"
	ErrHashNotFloat   = "ERR hash value is not a float"
)

// ErrProtected is what a client from outside gets while the server is open to the network without a password.
const ErrProtected = "DENIED Running in protected mode because protected mode is enabled and no password is set for the default user. " +
	"Only clients of this machine are served. Set requirepass, or turn protected-mode off if the network itself is safe."

// Lengths to which an unknown command's name and its arguments are quoted in the error.
const (
	unknownNameShown = 128
	unknownArgsShown = 128
)

// ErrUnknownCommand sends the error for a command that does not exist, and counts it.
func (c *Ctx) ErrUnknownCommand() {
	c.Core.Stats.Unknown++
	name := c.Args[0]
	var shown bytes.Buffer
	for _, a := range c.Args[1:] {
		if shown.Len() >= unknownArgsShown {
			break
		}
		fmt.Fprintf(&shown, "'%.*s' ", unknownArgsShown-shown.Len(), CutAtNUL(a))
	}
	c.Errf("ERR unknown command '%.*s', with args beginning with: %s", unknownNameShown, CutAtNUL(name), shown.Bytes())
}

// ErrUnknownSubcommand sends the error for a sub-command that the command has not.
func (c *Ctx) ErrUnknownSubcommand() {
	c.Errf("ERR unknown subcommand '%.*s'. Try %s HELP.", unknownNameShown, CutAtNUL(c.Args[1]), ascii.Upper(string(CutAtNUL(c.Args[0]))))
}

// CutAtNUL ends text where C's printing of it would.
func CutAtNUL(b []byte) []byte {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		return b[:i]
	}
	return b
}
