package resp

// Limits of a connection, named after what Redis calls them.
const (
	// InlineMax is the longest inline command, and the longest line that
	// announces a count or a length, in bytes.
	InlineMax = 64 << 10
	// MultibulkMax is the largest number of arguments of one command.
	MultibulkMax = 1 << 20
	// BulkMax is the default of proto-max-bulk-len: the largest argument in
	// bytes.
	BulkMax = 512 << 20
	// QueryMax is the default of client-query-buffer-limit: the most bytes one
	// command may occupy, in bytes.
	QueryMax = 1 << 30

	// MultibulkUnauthMax is the largest number of arguments of a command from
	// a client that has yet to authenticate.
	MultibulkUnauthMax = 10
	// BulkUnauthMax is the largest argument in bytes from a client that has
	// yet to authenticate.
	BulkUnauthMax = 16 << 10
	// QueryUnauthMax is the most bytes that one command of a client that has
	// yet to authenticate may occupy.
	QueryUnauthMax = 1 << 20
)

// Limits bounds what a Reader accepts. Inline, Multibulk, Bulk and Query must
// be at least 1. A Limits may be shared by any number of Readers as long as
// nobody changes it.
type Limits struct {
	// Inline bounds an inline command and each header line, in bytes.
	Inline int
	// Multibulk bounds the number of arguments.
	Multibulk int
	// Bulk bounds one argument, in bytes.
	Bulk int
	// Query bounds one whole command as it was sent, in bytes.
	Query int

	// MultibulkUnauth and BulkUnauth bound further what a client that has yet
	// to authenticate may send. They have error texts of their own. 0 means
	// that the client needs no authentication or has done with it.
	MultibulkUnauth, BulkUnauth int
}

// DefaultLimits returns the limits of an authenticated client before any
// configuration is applied.
func DefaultLimits() Limits {
	return Limits{Inline: InlineMax, Multibulk: MultibulkMax, Bulk: BulkMax, Query: QueryMax}
}

// UnauthenticatedLimits returns base narrowed to what a client may send that
// has yet to authenticate.
//
// Commands are judged when they are parsed. While a client is unauthenticated
// the caller has to execute each command before it asks for the next one, or
// it would apply these limits to what stands behind a successful AUTH.
func UnauthenticatedLimits(base Limits) Limits {
	base.MultibulkUnauth = MultibulkUnauthMax
	base.BulkUnauth = BulkUnauthMax
	base.Query = min(base.Query, QueryUnauthMax)
	return base
}

// unauthenticated reports whether the narrower limits apply.
func (l *Limits) unauthenticated() bool { return l.MultibulkUnauth > 0 || l.BulkUnauth > 0 }
