package config

import (
	"os"
	"path/filepath"
	"time"
)

// Config is one state of the configuration. It never changes once it has been published: read it freely from any goroutine, and
// write to none of it. The zero value is not a usable configuration; see [Default].
type Config struct {
	// Bind lists the addresses to listen on, as written: an IP address or host name, * for all of IPv4, ::* for all of IPv6. A
	// leading - marks one that may be missing on this machine.
	Bind           []string
	Port           int           // TCP port; 0 = no TCP
	TCPBacklog     int           // connections that the kernel may hold for us to accept
	TCPKeepalive   time.Duration // idle time before the kernel probes a peer; 0 = never
	UnixSocket     string        // socket file; "" = none
	UnixSocketPerm os.FileMode   // its permission bits; 0 = as the umask leaves them
	IOThreads      int           // event loops
	BusyPollUs     int           // how long an event loop spins before it sleeps, in µs
	ProtectedMode  bool          // refuse clients of other machines while there is no password

	TLSPort           int    // TCP port for TLS; 0 = none
	TLSCertFile       string // the files are relative to Dir, see Path
	TLSKeyFile        string
	TLSKeyFilePass    string // Never write it to a log
	TLSCACertFile     string
	TLSCACertDir      string
	TLSAuthClients    TLSAuth
	TLSProtocols      string // as written; see TLSVersions
	TLSCiphers        string // as written; see TLSCipherSuites
	TLSSessionCaching bool

	// MetricsBind lists the addresses that the HTTP port listens on, in the form of Bind.
	MetricsBind     []string
	MetricsPort     int    // HTTP port; 0 = none
	MetricsUser     string // what the HTTP port asks for, if MetricsPassword is not empty
	MetricsPassword string // "" = no password. Never write it to a log

	MaxClients             int           // connections at a time, before what the limit on open files takes away
	Timeout                time.Duration // an idle client is closed after this; 0 = never
	ClientQueryBufferLimit int           // bytes of a command, and of a transaction, that a client may have pending
	ProtoMaxBulkLen        int           // bytes of one argument
	OutputLimits           OutputLimits  // client-output-buffer-limit

	MaxMemory         int // bytes; below 0: -60 is 60 % of what the process may have; 0 = see the directive
	MaxMemoryClients  int // bytes; below 0: a share of MaxMemory; 0 = no limit
	MaxMemoryPolicy   EvictionPolicy
	MaxMemorySamples  int
	MaxMemoryTenacity int // 0 to 100
	LFULogFactor      int
	LFUDecayTime      int // minutes; 0 = never

	Databases       int
	Hz              int // rounds of background work per second, 1 to 500
	GCPercent       int // see runtime/debug.SetGCPercent
	ShutdownTimeout time.Duration
	OnSigint        ShutdownFlags // shutdown-on-sigint
	OnSigterm       ShutdownFlags // shutdown-on-sigterm
	LogLevel        LogLevel
	LogFile         string // "" = standard error; relative to Dir, see Path
	LogFormat       LogFormat
	PidFile         string // "" = none; relative to Dir, see Path
	Daemonize       bool   // always false: yes has no effect

	RequirePass            string // "" = no password. Never write it to a log
	Users                  []User // as they were written; never write them to a log
	ACLFile                string // "" = none; relative to Dir, see Path
	ACLPubSubDefault       PubSubDefault
	ACLLogMaxLen           int      // denials that are kept
	Renames                []Rename // in the order in which they were written
	EnableDebugCommand     Access
	EnableRestoreCommand   Access
	EnableProtectedConfigs Access

	HashMaxListpackEntries int
	HashMaxListpackValue   int // bytes
	ListMaxListpackSize    int // elements; negative: a size, see the directive
	SetMaxIntsetEntries    int
	ZSetMaxListpackEntries int
	ZSetMaxListpackValue   int // bytes
	HLLSparseMaxBytes      int
	StreamNodeMaxBytes     int // 0 = no limit
	StreamNodeMaxEntries   int // 0 = no limit

	CLThrottleLimit ThrottleLimit
	Policies        []NamedPolicy // fixed ones, in the order in which they were written
	UnknownPolicy   UnknownPolicy
	TopKeys         int           // keys that each list of RL.TOP watches; 0 = none
	TopWindow       time.Duration // that the lists go back, at least; at most twice that

	BusyReplyThreshold int // ms that a script runs before other clients get BUSY; 0 = never
	ScriptTimeLimit    int // ms after which a script that has written nothing is stopped; 0 = never

	TrackingTableMaxKeys int // keys that are remembered for clients that track them; 0 = no limit

	SlowlogLogSlowerThan    int       // µs from which a command is slow; below 0 none is
	SlowlogMaxLen           int       // slow commands that are kept
	LatencyMonitorThreshold int       // ms from which a command is a spike of latency; 0 = none is
	LatencyTracking         bool      // count how long the calls of each command take
	LatencyPercentiles      []float64 // of those counts that INFO shows, 0 to 100

	NotifyEvents Events // which key-space events are published, and how

	Dir        string // working directory, absolute once loaded
	DBFilename string
	Save       []SavePoint // none: no snapshots but those that are asked for
	AppendOnly bool

	RDBChecksum           bool
	RDBCompression        bool
	StopWritesOnSaveError bool

	AppendDirName            string // of the append-only file's directory, within Dir
	AppendFilename           string // what the names in it begin with
	AppendFsync              FsyncPolicy
	NoAppendFsyncOnRewrite   bool
	AutoAOFRewritePercentage int // growth since the last rewrite that asks for the next; 0 = never
	AutoAOFRewriteMinSize    int // bytes below which nothing asks for one
	AOFLoadTruncated         bool
	AOFTimestampEnabled      bool
}

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
	ShutdownNow                              // no effect: there are no replicas to wait for
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
