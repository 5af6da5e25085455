package config

import (
	"path/filepath"
	"time"
)

// Path returns the absolute form of a file name that is relative to the directory named by dir. "" stays "".
func (c *Config) Path(name string) string {
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(c.Dir, name)
}

// OutputLimits holds one limit for each class of clients.
type OutputLimits struct {
	Normal, Replica, PubSub OutputLimit
}

// OutputLimit bounds the replies that wait for a client to read them. The client is closed at once above Hard bytes, and after it
// has been above Soft bytes for SoftTime (whole seconds) without a break. 0 bytes means no limit.
type OutputLimit struct {
	Hard, Soft int
	SoftTime   time.Duration
}

// SavePoint asks for a snapshot once Changes keys have changed within Seconds.
type SavePoint struct {
	Seconds, Changes int
}

// FsyncPolicy says when what is written to the append-only file has to be on stable storage.
type FsyncPolicy uint8

// The values of appendfsync.
const (
	FsyncEverysec FsyncPolicy = iota // a second later
	FsyncAlways                      // before the reply
	FsyncNo                          // when the system sees fit
)

// EvictionPolicy says which keys go when memory is short.
type EvictionPolicy uint8

// The values of maxmemory-policy.
const (
	VolatileLRU EvictionPolicy = iota
	VolatileLFU
	VolatileRandom
	VolatileTTL
	AllKeysLRU
	AllKeysLFU
	AllKeysRandom
	NoEviction
)

// String is the policy as it is written.
func (p FsyncPolicy) String() string { return byName["appendfsync"].Format(&Config{AppendFsync: p}) }

// String is the policy as it is written.
func (p EvictionPolicy) String() string {
	return byName["maxmemory-policy"].Format(&Config{MaxMemoryPolicy: p})
}

// CountsUses reports whether the policy needs to know how often keys are used, rather than when they last were.
func (p EvictionPolicy) CountsUses() bool { return p == VolatileLFU || p == AllKeysLFU }

// Volatile reports whether only keys with a TTL go.
func (p EvictionPolicy) Volatile() bool { return p <= VolatileTTL }

// LogLevel is the least severe kind of line that is logged.
type LogLevel uint8

// The levels of the loglevel directive, from the most talkative.
const (
	LogDebug LogLevel = iota
	LogVerbose
	LogNotice
	LogWarning
)

// LogFormat is the form of the log's lines.
type LogFormat uint8

// The values of log-format.
const (
	LogAuto LogFormat = iota // text on a terminal, JSON otherwise
	LogText
	LogJSON
)

// Access says who may use something that is dangerous to leave open.
type Access uint8

// The values of enable-debug-command, enable-protected-configs and enable-restore-command.
const (
	AccessNo    Access = iota // nobody
	AccessYes                 // every client
	AccessLocal               // clients that came over a loopback address or a Unix socket
)

// Allows reports whether a client may use what a guards. local tells that it came over a loopback address or a Unix socket.
func (a Access) Allows(local bool) bool {
	return a == AccessYes || a == AccessLocal && local
}

// PubSubDefault says which channels a new user may use.
type PubSubDefault uint8

// The values of acl-pubsub-default.
const (
	PubSubDefaultAll PubSubDefault = iota
	PubSubDefaultNone
)

// ShutdownFlags say how a server ends.
type ShutdownFlags uint8

// What shutdown-on-sigint and shutdown-on-sigterm may name.
const (
	ShutdownSave   ShutdownFlags = 1 << iota // save a snapshot even if there are no save points
	ShutdownNoSave                           // save none even if there are
	ShutdownNow                              // replicas that are behind are not waited for
	ShutdownForce                            // end even if the snapshot cannot be saved
)

// TLSAuth says whether clients over TLS have to show a certificate.
type TLSAuth uint8

// The values of tls-auth-clients.
const (
	TLSAuthNo       TLSAuth = iota // none is asked for
	TLSAuthYes                     // each client needs one that a known authority has signed
	TLSAuthOptional                // one that is shown must be signed so
)

// ThrottleLimit says how CL.THROTTLE reads its second argument.
type ThrottleLimit uint8

// The values of cl-throttle-limit.
const (
	LimitBurstPlusOne ThrottleLimit = iota // the limit is that number plus one, as redis-cell has it
	LimitCapacity                          // the limit is that number
)

// UnknownPolicy says what RL.TAKE makes of a policy that does not exist.
type UnknownPolicy uint8

// The values of unknown-policy.
const (
	UnknownPolicyError UnknownPolicy = iota // an error
	UnknownPolicyAllow                      // no limit
)
