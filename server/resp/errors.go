package resp

import "errors"

// ErrQueryBuffer means that one command occupies more than Limits.Query bytes.
// Redis closes such a connection without a reply.
var ErrQueryBuffer = errors.New("resp: query buffer limit exceeded")

// ProtocolError means that the bytes received are no command. The connection
// is answered with "-ERR " followed by Error and then closed, since nobody
// knows where the next command starts.
type ProtocolError struct{ text string }

// Error returns the text as Redis words it, starting with "Protocol error: ".
// It may hold any byte that the client sent, line breaks included.
func (e *ProtocolError) Error() string { return "Protocol error: " + e.text }

var (
	errInlineTooBig    = &ProtocolError{"too big inline request"}
	errQuotes          = &ProtocolError{"unbalanced quotes in request"}
	errCountTooBig     = &ProtocolError{"too big mbulk count string"}
	errCount           = &ProtocolError{"invalid multibulk length"}
	errCountUnauth     = &ProtocolError{"unauthenticated multibulk length"}
	errBulkCountTooBig = &ProtocolError{"too big bulk count string"}
	errBulk            = &ProtocolError{"invalid bulk length"}
	errBulkUnauth      = &ProtocolError{"unauthenticated bulk length"}
)

// errDollar is the complaint about an argument that starts with got.
func errDollar(got byte) *ProtocolError {
	return &ProtocolError{"expected '$', got '" + string([]byte{got}) + "'"}
}
