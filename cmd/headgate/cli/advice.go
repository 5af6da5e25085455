package cli

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
)

// PortAdvice ends an error for a server that has not answered anything over TCP: if it has closed the connection, or keeps silent where
// it should shake hands, it most likely speaks TLS where the client does not, or the other way round. It is empty for other errors.
func PortAdvice(err error, secured bool) string {
	var op *net.OpError // whose other operations are to connect, and TLS's alerts
	closed := errors.Is(err, io.EOF) || errors.As(err, &op) && (op.Op == "read" || op.Op == "write")
	var timeout net.Error
	silent := errors.As(err, &timeout) && timeout.Timeout()
	var noTLS tls.RecordHeaderError
	switch {
	case secured && (closed || silent || errors.As(err, &noTLS)):
		return ": its port may be one without TLS"
	case !secured && closed && !silent:
		return ": its port may be one for TLS, see --tls"
	}
	return ""
}
