package config

import (
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"headgate/internal/quoting"
	"headgate/server/limiter"
	"headgate/server/top"
)

// Bounds that several directives share.
const (
	kib = 1 << 10
	mib = 1 << 20

	maxIOThreads  = 128           // as in Redis
	maxSeconds    = math.MaxInt32 // of a time-out; what a C int holds, as in Redis
	maxDatabases  = 65536         // each costs memory even when it is empty
	maxSocketPath = 107           // bytes of a Unix socket's path that the kernel takes
	minHz, maxHz  = 1, 500        // other values of hz are bent to these, as in Redis
	maxUpstreamMs = 60_000        // of upstream's times
	maxWaiting    = 1_000_000     // of clients that wait for limiters
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
	MetricsUser     string // what the HTTP port asks for, with a password that is not empty
	MetricsPassword string // "" = no password. Never write it to a log
	// MetricsPagePassword is what the page asks for in place of MetricsPassword; "" = the same. Never write it to a log.
	MetricsPagePassword string

	checkConfig
	rlsConfig

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
	Unwritable      limiter.Unwritable // limiter-when-unwritable
	TopKeys         int                // keys that each list of RL.TOP watches; 0 = none
	TopWindow       time.Duration      // that the lists go back, at least; at most twice that
	WaitMaxClients  int                // calls with WAIT that wait at a time
	WaitMaxPerKey   int                // the same for one key

	upstreamConfig

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

	replicationConfig
	ReplTimeout    time.Duration
	TLSReplication bool

	clusterConfig
}

// directives is the table, sorted by name within each group. See Directive for how each field is used.
var directives = slices.Concat(firstDirectives, upstreamDirectives, laterDirectives, replicationDirectives, clusterDirectives, checkDirectives, rlsDirectives)

// firstDirectives are those of the groups before Upstream.
var firstDirectives = []*Directive{
	{
		Name: "bind", Group: Network, Since: "0.1.0", Default: "127.0.0.1 -::1", Settable: true,
		Summary: "Addresses to listen on: IP addresses or host names, * or 0.0.0.0 for all of IPv4, ::* or :: for all of IPv6. One with a leading - is skipped when this machine does not have it.",
		kind:    bind(func(c *Config) *[]string { return &c.Bind }),
	},
	{
		Name: "busy-poll-us", Group: Network, Since: "0.1.0", Default: "0", Settable: true,
		Summary: "Microseconds that an event loop polls for work before it sleeps. This cuts a single client's latency to a third, at the price of a core that is always busy.",
		kind:    integer(0, 10_000, func(c *Config) *int { return &c.BusyPollUs }),
	},
	{
		Name: "io-threads", Group: Network, Since: "0.1.0", Default: "1",
		Summary: "Number of event loops that read, parse and write, each serving a share of the connections. Commands still run one at a time; more than one loop pays off on machines with at least four cores.",
		kind:    integer(1, maxIOThreads, func(c *Config) *int { return &c.IOThreads }),
	},
	{
		Name: "port", Group: Network, Since: "0.1.0", Default: "6379", Settable: true,
		Summary: "TCP port to listen on; 0 means no TCP.",
		kind:    integer(0, 65535, func(c *Config) *int { return &c.Port }),
	},
	{
		Name: "protected-mode", Group: Network, Since: "0.1.0", Default: "yes", Settable: true,
		Summary: "Refuse clients from other machines while no password is set.",
		kind:    yesNo(func(c *Config) *bool { return &c.ProtectedMode }),
	},
	{
		Name: "tcp-backlog", Group: Network, Since: "0.1.0", Default: "511",
		Summary: "Connections that the kernel queues until the server accepts them; the system's own limit may be lower.",
		kind:    integer(0, math.MaxInt32, func(c *Config) *int { return &c.TCPBacklog }),
	},
	{
		Name: "tcp-keepalive", Group: Network, Since: "0.1.0", Default: "300", Settable: true,
		Summary: "Seconds of silence before the kernel checks that a client's machine still responds; 0 means never. Applies to new connections.",
		kind:    seconds(func(c *Config) *time.Duration { return &c.TCPKeepalive }),
	},
	{
		Name: "unixsocket", Group: Network, Since: "0.1.0", Default: `""`, Example: `/run/headgate/headgate.sock`,
		Summary: "Path of a Unix socket to listen on as well, the fastest way in for a client on the same machine.",
		kind:    text(func(c *Config) *string { return &c.UnixSocket }),
		check:   checkSocketPath,
	},
	{
		Name: "unixsocketperm", Group: Network, Since: "0.1.0", Default: "0",
		Summary: "Permission bits of the Unix socket, in octal; 0 leaves them to the umask.",
		kind:    permission(func(c *Config) *os.FileMode { return &c.UnixSocketPerm }),
	},

	{
		Name: "tls-auth-clients", Group: TLS, Since: "0.1.0", Default: "yes", Settable: true,
		Summary: "Whether TLS clients must present a certificate signed by an authority in tls-ca-cert-file or tls-ca-cert-dir; optional verifies a certificate only if the client presents one.",
		kind:    enum(func(c *Config) *TLSAuth { return &c.TLSAuthClients }, "no", "yes", "optional"),
	},
	{
		Name: "tls-ca-cert-dir", Group: TLS, Since: "0.1.0", Default: `""`, Example: `/etc/headgate/authorities`, Settable: true,
		Summary: "Directory of PEM files with the certificates of authorities that sign clients' certificates.",
		kind:    text(func(c *Config) *string { return &c.TLSCACertDir }),
	},
	{
		Name: "tls-ca-cert-file", Group: TLS, Since: "0.1.0", Default: `""`, Example: `/etc/headgate/ca.crt`, Settable: true,
		Summary: "PEM file with the certificates of authorities that sign clients' certificates.",
		kind:    text(func(c *Config) *string { return &c.TLSCACertFile }),
	},
	{
		Name: "tls-cert-file", Group: TLS, Since: "0.1.0", Default: `""`, Example: `/etc/headgate/headgate.crt`, Settable: true,
		Summary: "PEM file with the server's certificate and any intermediate certificates. This and the other TLS files are reloaded within a second of a change; open connections continue.",
		kind:    text(func(c *Config) *string { return &c.TLSCertFile }),
	},
	{
		Name: "tls-ciphers", Group: TLS, Since: "0.1.0", Default: `""`, Example: `DEFAULT`, Settable: true,
		Summary: "Cipher suites for TLS 1.2, by their OpenSSL or IANA names, separated by colons; DEFAULT and HIGH mean all supported suites. The server chooses among them, and also chooses the suites of TLS 1.3.",
		kind:    text(func(c *Config) *string { return &c.TLSCiphers }),
		check:   checkTLSCiphers,
	},
	{
		Name: "tls-key-file", Group: TLS, Since: "0.1.0", Default: `""`, Example: `/etc/headgate/headgate.key`, Settable: true,
		Summary: "PEM file with the private key of tls-cert-file.",
		kind:    text(func(c *Config) *string { return &c.TLSKeyFile }),
	},
	{
		Name: "tls-key-file-pass", Group: TLS, Since: "0.1.0", Default: `""`, Example: `change-me`, Settable: true, Secret: true,
		Summary: "Password of tls-key-file, if it is encrypted. Set it through HEADGATE_TLS_KEY_FILE_PASS or the file rather than a flag, which other users of the machine can see.",
		kind:    text(func(c *Config) *string { return &c.TLSKeyFilePass }),
	},
	{
		Name: "tls-port", Group: TLS, Since: "0.1.0", Default: "0", Settable: true,
		Summary: "TCP port to listen on for TLS, on the addresses in bind; 0 means none. It requires tls-cert-file and tls-key-file and, unless tls-auth-clients is no, tls-ca-cert-file or tls-ca-cert-dir. With port 0, only TLS is served.",
		kind:    integer(0, 65535, func(c *Config) *int { return &c.TLSPort }),
	},
	{
		Name: "tls-protocols", Group: TLS, Since: "0.1.0", Default: `""`, Example: `"TLSv1.2 TLSv1.3"`, Settable: true,
		Summary: "TLS versions to accept: TLSv1.2, TLSv1.3 or both; empty means both. Older versions are never accepted.",
		kind:    text(func(c *Config) *string { return &c.TLSProtocols }),
		check:   checkTLSProtocols,
	},
	{
		Name: "tls-session-caching", Group: TLS, Since: "0.1.0", Default: "yes", Settable: true,
		Summary: "Let clients resume earlier sessions, which saves both sides most of the handshake. A change of the TLS files invalidates all sessions.",
		kind:    yesNo(func(c *Config) *bool { return &c.TLSSessionCaching }),
	},

	{
		Name: "client-output-buffer-limit", Group: Clients, Since: "0.1.0", Settable: true,
		Default: "normal 64mb 16mb 30 replica 256mb 64mb 60 pubsub 32mb 8mb 60",
		Summary: "For each class of clients (normal, replica, pubsub): close a client when its pending replies exceed the first size, or have exceeded the second size for that many seconds. 0 disables a limit.",
		kind:    outputLimitsKind{},
	},
	{
		Name: "client-query-buffer-limit", Group: Clients, Since: "0.1.0", Default: "1gb", Settable: true,
		Summary: "Maximum size of one command, or of all commands queued in one transaction.",
		kind:    memory(mib, func(c *Config) *int { return &c.ClientQueryBufferLimit }),
	},
	{
		Name: "maxclients", Group: Clients, Since: "0.1.0", Default: "10000", Settable: true,
		Summary: "Maximum number of connections; further ones get an error and are closed. Lowered at start if the limit on open files is too low.",
		kind:    integer(1, math.MaxUint32, func(c *Config) *int { return &c.MaxClients }),
	},
	{
		Name: "proto-max-bulk-len", Group: Clients, Since: "0.1.0", Default: "512mb", Settable: true,
		Summary: "Maximum size of an argument, and therefore of a value.",
		kind:    memory(mib, func(c *Config) *int { return &c.ProtoMaxBulkLen }),
	},
	{
		Name: "timeout", Group: Clients, Since: "0.1.0", Default: "0", Settable: true,
		Summary: "Close a client that has sent nothing for this many seconds; 0 means never.",
		kind:    seconds(func(c *Config) *time.Duration { return &c.Timeout }),
	},
	{
		Name: "tracking-table-max-keys", Group: Clients, Since: "0.1.0", Default: "1000000", Settable: true,
		Summary: "Maximum number of keys tracked for client-side caching. Beyond it, random keys are dropped and their readers get an invalidation. 0 means no limit.",
		kind:    integer(0, math.MaxInt64, func(c *Config) *int { return &c.TrackingTableMaxKeys }),
	},

	{
		Name: "lfu-decay-time", Group: Memory, Since: "0.1.0", Default: "1", Settable: true,
		Summary: "Minutes without use after which a key's use counter is decremented, under the LFU policies; 0 means never.",
		kind:    integer(0, math.MaxInt32, func(c *Config) *int { return &c.LFUDecayTime }),
	},
	{
		Name: "lfu-log-factor", Group: Memory, Since: "0.1.0", Default: "10", Settable: true,
		Summary: "How much harder each increment of a key's use counter, up to 255, is than the one before: with 10, the counter is full after about a million uses.",
		kind:    integer(0, math.MaxInt32, func(c *Config) *int { return &c.LFULogFactor }),
	},
	{
		Name: "maxmemory", Group: Memory, Since: "0.1.0", Default: "0", Settable: true,
		Summary: "Memory that data and connections may use before keys are evicted or writes are refused, depending on maxmemory-policy; in bytes, or as a share of the memory available to the process, such as 60%. 0 means no limit, or 75 % where a limit of the container or the process bounds the memory.",
		kind:    memoryOrShare(func(c *Config) *int { return &c.MaxMemory }),
	},
	{
		Name: "maxmemory-clients", Group: Memory, Since: "0.1.0", Default: "0", Settable: true,
		Summary: "Total size of all clients' buffers, in bytes or as a share of maxmemory. Beyond it, the largest clients are closed, except those with CLIENT NO-EVICT ON. 0 means 20 % of the memory that the container, the limits of the process or the machine allow.",
		kind:    memoryOrShare(func(c *Config) *int { return &c.MaxMemoryClients }),
	},
	{
		Name: "maxmemory-eviction-tenacity", Group: Memory, Since: "0.1.0", Default: "10", Settable: true,
		Summary: "How long a command may wait while keys are evicted to make room for it: 10 means half a millisecond, 100 means without limit.",
		kind:    integer(0, 100, func(c *Config) *int { return &c.MaxMemoryTenacity }),
	},
	{
		Name: "maxmemory-policy", Group: Memory, Since: "0.1.0", Default: "noeviction", Settable: true,
		Summary: "Which keys are evicted when memory is short. noeviction refuses writes instead. The others choose from all keys or only from those with a TTL: the least recently used, the least frequently used, random ones, or those that expire soonest. volatile-ttl suits limiters best, because state that expires soon matters least.",
		kind: enum(func(c *Config) *EvictionPolicy { return &c.MaxMemoryPolicy },
			"volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl", "allkeys-lru", "allkeys-lfu", "allkeys-random", "noeviction"),
	},
	{
		Name: "maxmemory-samples", Group: Memory, Since: "0.1.0", Default: "5", Settable: true,
		Summary: "Keys sampled for each eviction. More samples follow the policy more closely and take more time.",
		kind:    integer(1, math.MaxInt32, func(c *Config) *int { return &c.MaxMemorySamples }),
	},

	{
		Name: "daemonize", Group: General, Since: "0.1.0", Default: "no",
		Summary: "No effect: headgate stays in the foreground, supervised by a service manager or a container. With yes, the log says so.",
		kind:    yesNo(func(c *Config) *bool { return &c.Daemonize }),
		check:   stayInForeground,
		notice:  daemonizeNotice,
	},
	{
		Name: "databases", Group: General, Since: "0.1.0", Default: "16",
		Summary: "Number of databases that SELECT may choose from.",
		kind:    integer(1, maxDatabases, func(c *Config) *int { return &c.Databases }),
	},
	{
		Name: "gc-percent", Group: General, Since: "0.1.0", Default: "400", Settable: true,
		Summary: "Growth of the Go heap, in percent of the live data, before a garbage collection; at most 256 MiB, or 100 percent if much of the heap has to be scanned. The heap grows that far by degrees, some 16 MiB in a tenth of a second. A script that makes much garbage has it collected every 64 MiB or so. Higher values cost memory and save CPU. Keys and small values are stored outside this heap.",
		kind:    integer(10, 10_000, func(c *Config) *int { return &c.GCPercent }),
	},
	{
		Name: "hz", Group: General, Since: "0.1.0", Default: "10", Settable: true,
		Summary: "Rounds of background work per second, such as closing idle clients. Values below 1 or above 500 count as 1 or 500.",
		kind:    integer(0, math.MaxInt32, func(c *Config) *int { return &c.Hz }),
		check:   clampHz,
	},
	{
		Name: "log-format", Group: General, Since: "0.1.0", Default: "auto",
		Summary: "Format of log lines: text writes key=value pairs, json writes an object; auto uses text on a terminal and json otherwise.",
		kind:    enum(func(c *Config) *LogFormat { return &c.LogFormat }, "auto", "text", "json"),
	},
	{
		Name: "logfile", Group: General, Since: "0.1.0", Default: `""`, Example: `/var/log/headgate.log`,
		Summary: "File to log to, relative to dir; empty means standard error.",
		kind:    text(func(c *Config) *string { return &c.LogFile }),
	},
	{
		Name: "loglevel", Group: General, Since: "0.1.0", Default: "notice", Settable: true,
		Summary: "The lowest severity that is logged.",
		kind:    enum(func(c *Config) *LogLevel { return &c.LogLevel }, "debug", "verbose", "notice", "warning"),
	},
	{
		Name: "pidfile", Group: General, Since: "0.1.0", Default: `""`, Example: `/run/headgate.pid`,
		Summary: "File to write the process ID to, relative to dir; empty means none.",
		kind:    text(func(c *Config) *string { return &c.PidFile }),
	},
	{
		Name: "shutdown-on-sigint", Group: General, Since: "0.1.0", Default: "default", Settable: true,
		Summary: "How SIGINT shuts the server down: default saves a snapshot if save points are configured, save always saves one, nosave never does, force shuts down even if saving fails, now does not wait for replicas that are behind. Another SIGINT at least a second after the first signal ends the process immediately.",
		kind:    shutdownKind{field: func(c *Config) *ShutdownFlags { return &c.OnSigint }},
	},
	{
		Name: "shutdown-on-sigterm", Group: General, Since: "0.1.0", Default: "default", Settable: true,
		Summary: "The same for SIGTERM.",
		kind:    shutdownKind{field: func(c *Config) *ShutdownFlags { return &c.OnSigterm }},
	},
	{
		Name: "shutdown-timeout", Group: General, Since: "0.1.0", Default: "10", Settable: true,
		Summary: "Seconds that a long-running script may continue after a shutdown signal; then it is aborted and its changes are discarded; if it has made some, no snapshot is saved. For as long, replicas that are behind are sent the rest. The server does not wait for clients, but it does wait for a snapshot, and for an append-only file that is being begun.",
		kind:    seconds(func(c *Config) *time.Duration { return &c.ShutdownTimeout }),
	},

	{
		Name: "latency-monitor-threshold", Group: Notices, Since: "0.1.0", Default: "0", Settable: true,
		Summary: "Milliseconds from which a command, a write to the append-only file or a slice of background work is recorded as a latency event, for LATENCY LATEST and the other LATENCY commands; 0 means never.",
		kind:    integer(0, math.MaxInt64, func(c *Config) *int { return &c.LatencyMonitorThreshold }),
	},
	{
		Name: "latency-tracking", Group: Notices, Since: "0.1.0", Default: "yes", Settable: true,
		Summary: "Record how long the calls of each command take, for LATENCY HISTOGRAM and INFO latencystats. For commands flagged fast, one call in 64 is timed and stands for all.",
		kind:    yesNo(func(c *Config) *bool { return &c.LatencyTracking }),
	},
	{
		Name: "latency-tracking-info-percentiles", Group: Notices, Since: "0.1.0", Default: "50 99 99.9", Settable: true,
		Summary: "Percentiles that INFO latencystats shows.",
		kind:    percentilesKind{},
	},
	{
		Name: "notify-keyspace-events", Group: Notices, Since: "0.1.0", Default: `""`, Example: `Ex`, Settable: true,
		Summary: "Classes of key-space events to publish, each a letter as in Redis; K publishes them on __keyspace@<db>__ channels, E on __keyevent@<db>__ channels. Empty means none.",
		kind:    eventsKind{},
	},
	{
		Name: "slowlog-log-slower-than", Group: Notices, Since: "0.1.0", Default: "10000", Settable: true,
		Summary: "Microseconds from which a command is recorded in the slow log; 0 records every command, -1 none. Below the default, every command is timed, which makes fast commands about a tenth slower; otherwise commands flagged fast are timed only if they have many arguments.",
		kind:    integer(-1, math.MaxInt64, func(c *Config) *int { return &c.SlowlogLogSlowerThan }),
	},
	{
		Name: "slowlog-max-len", Group: Notices, Since: "0.1.0", Default: "128", Settable: true,
		Summary: "Maximum number of entries in the slow log; the oldest are dropped first.",
		kind:    integer(0, math.MaxInt64, func(c *Config) *int { return &c.SlowlogMaxLen }),
	},

	{
		Name: "acl-pubsub-default", Group: Security, Since: "0.1.0", Default: "resetchannels", Settable: true,
		Summary: "Which channels a new user may use: none, or all.",
		kind:    enum(func(c *Config) *PubSubDefault { return &c.ACLPubSubDefault }, "allchannels", "resetchannels"),
	},
	{
		Name: "aclfile", Group: Security, Since: "0.1.0", Default: `""`, Example: `/etc/headgate/users.acl`,
		Summary: "File of ACL users, read by ACL LOAD and written by ACL SAVE. It replaces user lines and requirepass, and must exist.",
		kind:    text(func(c *Config) *string { return &c.ACLFile }),
	},
	{
		Name: "acllog-max-len", Group: Security, Since: "0.1.0", Default: "128", Settable: true,
		Summary: "Maximum number of entries in ACL LOG, up to 100,000; the oldest are dropped first.",
		kind:    integer(0, math.MaxInt64, func(c *Config) *int { return &c.ACLLogMaxLen }),
	},
	{
		Name: "enable-debug-command", Group: Security, Since: "0.1.0", Default: "no",
		Summary: "Who may use the DEBUG command: no client, every client, or clients on this machine.",
		kind:    enum(func(c *Config) *Access { return &c.EnableDebugCommand }, "no", "yes", "local"),
	},
	{
		Name: "enable-protected-configs", Group: Security, Since: "0.1.0", Default: "no",
		Summary: "Who may change guarded directives with CONFIG SET: no client, every client, or clients on this machine.",
		kind:    enum(func(c *Config) *Access { return &c.EnableProtectedConfigs }, "no", "yes", "local"),
	},
	{
		Name: "enable-restore-command", Group: Security, Since: "0.1.0", Default: "no",
		Summary: "Who may use RESTORE, which loads data supplied by the client: no client, every client, or clients on this machine.",
		kind:    enum(func(c *Config) *Access { return &c.EnableRestoreCommand }, "no", "yes", "local"),
	},
	{
		Name: "rename-command", Group: Security, Since: "0.1.0", Default: `""`, Example: `FLUSHALL ""`, Hidden: true,
		Summary: "Rename a command, or disable it with an empty name. ACL rules, statistics and the append-only file use the original name.",
		kind:    renamesKind{},
	},
	{
		Name: "requirepass", Group: Security, Since: "0.1.0", Default: `""`, Example: `change-me`, Settable: true, Secret: true,
		Summary: "Password that clients must give with AUTH or HELLO before anything else; empty means none. Set it through HEADGATE_REQUIREPASS or the file rather than a flag, which other users of the machine can see.",
		kind:    text(func(c *Config) *string { return &c.RequirePass }),
	},
	{
		Name: "user", Group: Security, Since: "0.1.0", Default: `""`, Example: `limiter on >change-me ~* +@throttle`, Secret: true, Hidden: true,
		Summary: "An ACL user and its rules, as for ACL SETUSER; with aclfile, users are defined there instead. CONFIG REWRITE writes the current users, unless they are just those of HEADGATE_USER.",
		kind:    usersKind{},
		place:   placeUsers,
	},

	{
		Name: "hash-max-listpack-entries", Aliases: []string{"hash-max-ziplist-entries"}, Group: Encodings, Since: "0.1.0", Default: "512", Settable: true,
		Summary: "A hash of at most this many fields is kept in one compact block.",
		kind:    integer(0, math.MaxInt64, func(c *Config) *int { return &c.HashMaxListpackEntries }),
	},
	{
		Name: "hash-max-listpack-value", Aliases: []string{"hash-max-ziplist-value"}, Group: Encodings, Since: "0.1.0", Default: "64", Settable: true,
		Summary: "Longest field or value, in bytes, of a hash in one compact block.",
		kind:    memory(0, func(c *Config) *int { return &c.HashMaxListpackValue }),
	},
	{
		Name: "hll-sparse-max-bytes", Group: Encodings, Since: "0.1.0", Default: "3000", Settable: true,
		Summary: "Longest HyperLogLog, in bytes, that is kept as runs of equal registers. Beyond this it takes 12 KiB, whatever it contains.",
		kind:    memory(0, func(c *Config) *int { return &c.HLLSparseMaxBytes }),
	},
	{
		Name: "list-max-listpack-size", Aliases: []string{"list-max-ziplist-size"}, Group: Encodings, Since: "0.1.0", Default: "-2", Settable: true,
		Summary: "How many elements a list, or each part of a long one, keeps in one compact block; -1 to -5 bound the block to 4, 8, 16, 32 or 64 KiB instead.",
		kind:    integer(math.MinInt32, math.MaxInt32, func(c *Config) *int { return &c.ListMaxListpackSize }),
	},
	{
		Name: "set-max-intset-entries", Group: Encodings, Since: "0.1.0", Default: "512", Settable: true,
		Summary: "A set of at most this many members, all of them integers, is kept in one compact block of up to 32 KiB.",
		kind:    integer(0, math.MaxInt64, func(c *Config) *int { return &c.SetMaxIntsetEntries }),
	},
	{
		Name: "stream-node-max-bytes", Group: Encodings, Since: "0.1.0", Default: "4096", Settable: true,
		Summary: "Bytes of a stream's entries that are kept in one compact block; 0 means no limit. Trimming with ~ removes whole blocks.",
		kind:    memory(0, func(c *Config) *int { return &c.StreamNodeMaxBytes }),
	},
	{
		Name: "stream-node-max-entries", Group: Encodings, Since: "0.1.0", Default: "100", Settable: true,
		Summary: "Entries of a stream that are kept in one compact block; 0 means no limit.",
		kind:    integer(0, math.MaxInt64, func(c *Config) *int { return &c.StreamNodeMaxEntries }),
	},
	{
		Name: "zset-max-listpack-entries", Aliases: []string{"zset-max-ziplist-entries"}, Group: Encodings, Since: "0.1.0", Default: "128", Settable: true,
		Summary: "A sorted set of at most this many members is kept in one compact block.",
		kind:    integer(0, math.MaxInt64, func(c *Config) *int { return &c.ZSetMaxListpackEntries }),
	},
	{
		Name: "zset-max-listpack-value", Aliases: []string{"zset-max-ziplist-value"}, Group: Encodings, Since: "0.1.0", Default: "64", Settable: true,
		Summary: "Longest member, in bytes, of a sorted set in one compact block.",
		kind:    memory(0, func(c *Config) *int { return &c.ZSetMaxListpackValue }),
	},

	{
		Name: "cl-throttle-limit", Group: Limiters, Since: "0.1.0", Default: "burst+1", Settable: true,
		Summary: "How CL.THROTTLE reads its second argument: burst+1, as in redis-cell, so that 15 allows 16 calls at once; capacity means the whole limit, so that 15 allows 15.",
		kind:    enum(func(c *Config) *ThrottleLimit { return &c.CLThrottleLimit }, "burst+1", "capacity"),
	},
	{
		Name: "limiter-when-unwritable", Group: Limiters, Since: "0.1.0", Default: "error", Settable: true,
		Summary: "What happens to a call that would change a limiter's state while nothing can be written (MISCONF): error returns the error; memory decides and keeps the change in memory only, where a restart may lose it. A policy can override this with WHEN-UNWRITABLE MEMORY or ERROR. RL.RESET follows it too; INCREX, RL.POLICY SET and RL.POLICY DEL always return the error.",
		kind:    enum(func(c *Config) *limiter.Unwritable { return &c.Unwritable }, "error", "memory"),
	},
	{
		Name: "policy", Group: Limiters, Since: "0.1.0", Default: `""`, Example: `login LOG 5 60s`, Settable: true,
		Summary: "A named limit for RL.TAKE: the name, an algorithm and its arguments, as in policy login LOG 5 60s. RL.POLICY can neither change nor delete it. In the file and as a flag, each directive defines one policy; in CONFIG SET and the environment, commas separate several: CONFIG SET policy \"login LOG 5 60s, api GCRA 10 5 1s\". CONFIG SET replaces all of them, and so does each source that defines any.",
		kind:    policiesKind{},
	},
	{
		Name: "top-keys", Group: Limiters, Since: "0.1.0", Default: "512", Settable: true,
		Summary: "Keys tracked to find those that are limited or called most. While no more keys are called than this, counts in RL.TOP are exact. After that a key without a place gets one with one call in 64, and takes over the count of the key that it replaces: a count may be too high by up to its error, which is at most the number of calls divided by this, plus 64, and too low by the calls before. Each key takes 0.8 KiB. 0 turns RL.TOP off.",
		kind:    integer(0, top.MaxKeys, func(c *Config) *int { return &c.TopKeys }),
	},
	{
		Name: "top-window", Group: Limiters, Since: "0.1.0", Default: "300", Settable: true,
		Summary: "Minimum number of seconds that RL.TOP looks back; it looks back at most twice as long. 0 counts as 1.",
		kind:    seconds(func(c *Config) *time.Duration { return &c.TopWindow }),
		check:   clampTopWindow,
	},
	{
		Name: "unknown-policy", Group: Limiters, Since: "0.1.0", Default: "error", Settable: true,
		Summary: "How RL.TAKE treats a policy that does not exist: error returns an error, allow treats it as unlimited.",
		kind:    enum(func(c *Config) *UnknownPolicy { return &c.UnknownPolicy }, "error", "allow"),
	},
	{
		Name: "wait-max-clients", Group: Limiters, Since: "0.1.0", Default: "10000", Settable: true,
		Summary: "Maximum number of limiter calls that wait (WAIT) at the same time. Further calls are limited immediately, as without WAIT. Each waiting call counts toward its client's memory. 0 turns WAIT off.",
		kind:    integer(0, maxWaiting, func(c *Config) *int { return &c.WaitMaxClients }),
	},
	{
		Name: "wait-max-per-key", Group: Limiters, Since: "0.1.0", Default: "1000", Settable: true,
		Summary: "Maximum number of limiter calls that wait (WAIT) for one key at the same time. Further calls are limited immediately, as without WAIT.",
		kind:    integer(0, maxWaiting, func(c *Config) *int { return &c.WaitMaxPerKey }),
	},
}

// laterDirectives are those of the groups behind Upstream, but for groups with a file of their own.
var laterDirectives = []*Directive{
	{
		Name: "busy-reply-threshold", Aliases: []string{"lua-time-limit"}, Group: Scripts, Since: "0.1.0", Default: "5000", Settable: true,
		Summary: "Milliseconds after which other clients are served while a script is still running: with BUSY, except for SCRIPT KILL, FUNCTION KILL and SHUTDOWN NOSAVE. 0 means never.",
		kind:    integer(0, math.MaxInt64, func(c *Config) *int { return &c.BusyReplyThreshold }),
	},
	{
		Name: "script-time-limit", Group: Scripts, Since: "0.1.0", Default: "0", Settable: true,
		Summary: "Milliseconds after which a script is stopped if it has not written anything; 0 means never. A script that has written continues, so that its changes are not left half done.",
		kind:    integer(0, math.MaxInt64, func(c *Config) *int { return &c.ScriptTimeLimit }),
	},

	{
		Name: "aof-load-truncated", Group: Persistence, Since: "0.1.0", Default: "yes", Settable: true,
		Summary: "Whether to start when up to 4 MiB at the end of the append-only file are missing or damaged, and to truncate the file there; no refuses to start. Intact data behind the damage are not loaded either, because a power failure can lose sectors that were not synced; all that is cut off because of damage is kept beside the file, as its name and .cut-at- with the offset, and -2, -3 and so on if there is such a file. Redis starts only if just the end is missing.",
		kind:    yesNo(func(c *Config) *bool { return &c.AOFLoadTruncated }),
	},
	{
		Name: "aof-timestamp-enabled", Group: Persistence, Since: "0.1.0", Default: "no", Settable: true,
		Summary: "Accepted for compatibility with redis.conf: the append-only file always records the time of each write.",
		kind:    yesNo(func(c *Config) *bool { return &c.AOFTimestampEnabled }),
	},
	{
		Name: "appenddirname", Group: Persistence, Since: "0.1.0", Default: "appendonlydir",
		Summary: "Directory of the append-only file, within dir.",
		kind:    text(func(c *Config) *string { return &c.AppendDirName }),
		check:   checkAppendDirName,
	},
	{
		Name: "appendfilename", Group: Persistence, Since: "0.1.0", Default: "appendonly.aof",
		Summary: "Prefix of the names of the append-only file's parts.",
		kind:    text(func(c *Config) *string { return &c.AppendFilename }),
		check:   checkAppendFilename,
	},
	{
		Name: "appendfsync", Group: Persistence, Since: "0.1.0", Default: "everysec", Settable: true,
		Summary: "When writes are synced to disk: always before the reply, everysec about once a second, no whenever the system decides.",
		kind:    enum(func(c *Config) *FsyncPolicy { return &c.AppendFsync }, "everysec", "always", "no"),
	},
	{
		Name: "appendonly", Group: Persistence, Since: "0.1.0", Default: "no", Settable: true,
		Summary: "Whether to log every change to the append-only file, and to load that file at start instead of the snapshot.",
		kind:    yesNo(func(c *Config) *bool { return &c.AppendOnly }),
	},
	{
		Name: "auto-aof-rewrite-min-size", Group: Persistence, Since: "0.1.0", Default: "64mb", Settable: true,
		Summary: "Size below which the append-only file is not rewritten automatically.",
		kind:    memory(0, func(c *Config) *int { return &c.AutoAOFRewriteMinSize }),
	},
	{
		Name: "auto-aof-rewrite-percentage", Group: Persistence, Since: "0.1.0", Default: "100", Settable: true,
		Summary: "Growth since the last rewrite, in percent, at which the append-only file is rewritten automatically; 0 means never.",
		kind:    integer(0, math.MaxInt32, func(c *Config) *int { return &c.AutoAOFRewritePercentage }),
	},
	{
		Name: "dbfilename", Group: Persistence, Since: "0.1.0", Default: "dump.rdb", Settable: true, Guarded: true,
		Summary: "File in dir that snapshots are written to, and that is loaded at start.",
		kind:    text(func(c *Config) *string { return &c.DBFilename }),
		check:   checkDBFilename,
	},
	{
		Name: "dir", Group: Persistence, Since: "0.1.0", Default: "./", Settable: true, Guarded: true,
		Summary: "Directory of the data files; logfile, pidfile and other relative paths start from it. It must exist. As in Redis, the server changes into each dir that it reads: a relative one starts from the one before, even if that is the file's and this is a flag's, and all of them must exist. An append-only file that is open stays where it is, rewrites included, until appendonly has been turned off and on again; CONFIG REWRITE is an error meanwhile.",
		kind:    directory{},
		check:   checkDir,
	},
	{
		Name: "no-appendfsync-on-rewrite", Group: Persistence, Since: "0.1.0", Default: "no", Settable: true,
		Summary: "Treat appendfsync as no while the append-only file is being rewritten.",
		kind:    yesNo(func(c *Config) *bool { return &c.NoAppendFsyncOnRewrite }),
	},
	{
		Name: "rdbchecksum", Group: Persistence, Since: "0.1.0", Default: "yes",
		Summary: "Write a checksum at the end of snapshots, and verify it when one is loaded.",
		kind:    yesNo(func(c *Config) *bool { return &c.RDBChecksum }),
	},
	{
		Name: "rdbcompression", Group: Persistence, Since: "0.1.0", Default: "yes", Settable: true,
		Summary: "Compress strings of 21 bytes to 64 KiB in snapshots.",
		kind:    yesNo(func(c *Config) *bool { return &c.RDBCompression }),
	},
	{
		Name: "save", Group: Persistence, Since: "0.1.0", Default: "3600 1 300 100 60 10000", Settable: true,
		Summary: `Pairs of seconds and changes: take a snapshot when so many keys have changed and the last one is so old. With any, one is taken at the end too; "" means none.`,
		kind:    saveKind{}, ofOwn: true,
	},
	{
		Name: "stop-writes-on-bgsave-error", Group: Persistence, Since: "0.1.0", Default: "yes", Settable: true,
		Summary: "After a snapshot in the background has failed (a save point's, or BGSAVE), refuse writes until a snapshot succeeds, if save points are configured. A SAVE that fails refuses none.",
		kind:    yesNo(func(c *Config) *bool { return &c.StopWritesOnSaveError }),
	},

	{
		Name: "metrics-bind", Group: Metrics, Since: "0.1.0", Default: "127.0.0.1 -::1",
		Summary: "Addresses that metrics-port listens on, in the same form as bind. Every client that reaches them can read the counters; set metrics-password before other machines can.",
		kind:    bind(func(c *Config) *[]string { return &c.MetricsBind }),
	},
	{
		Name: "metrics-page-password", Group: Metrics, Since: "0.1.0", Default: `""`, Example: `change-me`, Settable: true, Secret: true,
		Summary: "Password for the page and its keys, instead of metrics-password. A scraper of /metrics then cannot see keys, and /metrics may have no password at all. Empty means metrics-password.",
		kind:    text(func(c *Config) *string { return &c.MetricsPagePassword }),
	},
	{
		Name: "metrics-password", Group: Metrics, Since: "0.1.0", Default: `""`, Example: `change-me`, Settable: true, Secret: true,
		Summary: "Password that metrics-port requires, by HTTP basic authentication, for everything except /healthz and /readyz; empty means none. The page may have its own password, metrics-page-password.",
		kind:    text(func(c *Config) *string { return &c.MetricsPassword }),
	},
	{
		Name: "metrics-port", Group: Metrics, Since: "0.1.0", Default: "0",
		Summary: "HTTP port for a status page, /metrics in Prometheus' format, /healthz and /readyz; 0 means none.",
		kind:    integer(0, 65535, func(c *Config) *int { return &c.MetricsPort }),
	},
	{
		Name: "metrics-user", Group: Metrics, Since: "0.1.0", Default: "headgate", Settable: true,
		Summary: "User name for metrics-password and metrics-page-password.",
		kind:    text(func(c *Config) *string { return &c.MetricsUser }),
	},
}

// byName finds an entry by its name or an alias, in lower case.
var byName = indexByName(directives)

// indexByName panics on a name that is there twice: the table would contradict itself.
func indexByName(table []*Directive) map[string]*Directive {
	index := map[string]*Directive{}
	for _, d := range table {
		for _, name := range d.names() {
			if index[name] != nil {
				panic("config: two directives are named " + name)
			}
			index[name] = d
		}
	}
	return index
}

// Directives returns the table, sorted by name within each group. The entries are shared: do not write to them.
func Directives() []*Directive { return slices.Clone(directives) }

// names returns all names that the directive answers to, its own first.
func (d *Directive) names() []string { return append([]string{d.Name}, d.Aliases...) }

// Syntax says in a few words what values the directive takes.
func (d *Directive) Syntax() string { return d.kind.syntax() }

// Format returns the directive's value in c as CONFIG GET prints it.
func (d *Directive) Format(c *Config) string { return d.kind.format(c) }

// errArguments is Redis's answer to a directive with too few or too many values.
var errArguments = errors.New("wrong number of arguments")

// apply sets the directive in c from the words that follow its name in the file. more tells that earlier words of the same source
// have set it already, so that a directive which may be repeated adds to them. On error c is left in an undefined state.
func (d *Directive) apply(c *Config, args []string, more bool, h *Host) error {
	switch {
	case !d.kind.several():
		if len(args) != 1 {
			return errArguments
		}
	case len(args) == 0: // an unset variable, perhaps: it must not pass for ""
		return errArguments
	case len(args) == 1 && args[0] == "":
		args = nil
	case len(args) == 1:
		if _, whole := d.kind.(textTaker); !whole {
			args = strings.Split(args[0], " ")
		}
	}
	if err := d.kind.parse(c, args, more); err != nil {
		return err
	}
	if d.check != nil {
		return d.check(c, h)
	}
	return nil
}

// Default returns the built-in configuration. Its Dir is relative; Load makes it absolute.
func Default() *Config {
	c := &Config{}
	anyDir := &Host{CheckDir: func(string) error { return nil }}
	for _, d := range directives {
		args, err := quoting.Split(d.Default)
		if err == nil {
			err = d.apply(c, args, false, anyDir)
		}
		if err != nil {
			panic("config: default of " + d.Name + ": " + err.Error())
		}
	}
	return c
}
