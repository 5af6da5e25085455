package config

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"headgate/internal/quoting"
	"headgate/persistence"
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

	// HTTPBind lists the addresses that the HTTP check listens on, in the form of Bind.
	HTTPBind           []string
	HTTPPort           int         // of the HTTP check; 0 = none
	HTTPUnixSocket     string      // socket file of the HTTP check; "" = none
	HTTPUnixSocketPerm os.FileMode // its permission bits; 0 = as the umask leaves them

	// RLSBind lists the addresses that the rate limit service listens on, in the form of Bind.
	RLSBind            []string
	RLSPort            int    // of Envoy's rate limit service; 0 = none
	RLSConfig          string // file or directory of its rules; relative to Dir, see Path
	RLSUser            string // as whom it asks limits, if RLSPassword is not empty
	RLSPassword        string // "" = none. Never write it to a log
	RLSTLS             bool
	RLSResponseHeaders bool

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

	// Upstream is the URL of where keys and the state of limiters are kept instead of here; "" = they are kept here.
	Upstream              string
	UpstreamPassword      string // Never write it to a log
	UpstreamTLSCACertFile string // the files are relative to Dir, see Path
	UpstreamTLSCertFile   string
	UpstreamTLSKeyFile    string
	UpstreamTimeout       time.Duration   // from a command's arrival to its answer
	UpstreamRest          time.Duration   // for which a node that has timed out is left alone
	UpstreamFailure       limiter.Failure // of limiters whose policy says nothing of it
	UpstreamLocalShare    float64         // of a limit, that limiter.FailLocal lets pass here

	UpstreamLease          bool          // hot limits are decided here, of leases
	UpstreamLeaseOvershoot float64       // of a limit, that more may pass by leases
	UpstreamLeaseStrict    bool          // nothing more may
	UpstreamLeaseMax       time.Duration // that a lease is long at most

	UpstreamPendingMax PendingLimit
	UpstreamMap        []Translation // addresses that nodes announce -> where they are reached
	UpstreamTake       UpstreamTake
	UpstreamUserMap    []Translation // users here -> users there

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

	ReplicaOf             Address // the primary that is followed; the zero Address: none
	MasterUser            string
	MasterAuth            string // "" = no password. Never write it to a log
	ReplicaReadOnly       bool
	ReplicaServeStaleData bool
	ReplicaPriority       int
	ReplicaAnnounceIP     string // "" = the one that the connection comes from
	ReplicaAnnouncePort   int    // 0 = port, or tls-port with TLSReplication
	ReplTimeout           time.Duration
	TLSReplication        bool

	ClusterEmulated         bool   // clients in cluster mode are answered
	ClusterAnnounceIP       string // "" = where they have connected to
	ClusterAnnounceHostname string
	ClusterAnnouncePort     int // 0 = where they have connected to
	ClusterAnnounceTLSPort  int
	ClusterEndpoint         Endpoint

	ReplBacklogSize             int           // bytes of changes that are kept for replicas which come back
	ReplBacklogTTL              time.Duration // how long they are kept while there are no replicas; 0 = for ever
	ReplPingReplicaPeriod       time.Duration
	ReplDisklessSync            bool
	ReplDisklessSyncDelay       time.Duration
	ReplDisklessSyncMaxReplicas int           // for so many the delay is not waited for; 0 = it always is
	MinReplicasToWrite          int           // 0 = none are needed
	MinReplicasMaxLag           time.Duration // 0 = none are needed
}

// directives is the table, sorted by name within each group. See Directive for how each field is used.
var directives = slices.Concat(firstDirectives, upstreamDirectives, laterDirectives, replicationDirectives, clusterDirectives, checkDirectives, rlsDirectives)

// firstDirectives are those of the groups before Upstream.
var firstDirectives = []*Directive{
	{
		Name: "bind", Group: Network, Since: "0.1.0", Default: "127.0.0.1 -::1", Settable: true,
		Summary: "Addresses to listen on: IP addresses or host names, * for all of IPv4, ::* for all of IPv6. One with a leading - is skipped when this machine does not have it.",
		kind:    bind(func(c *Config) *[]string { return &c.Bind }),
	},
	{
		Name: "busy-poll-us", Group: Network, Since: "0.1.0", Default: "0", Settable: true,
		Summary: "Microseconds that an event loop keeps looking for work before it sleeps. A lone client's latency falls to a third at the price of a core that is always busy.",
		kind:    integer(0, 10_000, func(c *Config) *int { return &c.BusyPollUs }),
	},
	{
		Name: "io-threads", Group: Network, Since: "0.1.0", Default: "1",
		Summary: "Event loops that read, parse and write, each with its share of the connections. Commands are executed one at a time all the same: more than one loop pays with four cores and more.",
		kind:    integer(1, maxIOThreads, func(c *Config) *int { return &c.IOThreads }),
	},
	{
		Name: "port", Group: Network, Since: "0.1.0", Default: "6379", Settable: true,
		Summary: "TCP port to listen on; 0 means no TCP.",
		kind:    integer(0, 65535, func(c *Config) *int { return &c.Port }),
	},
	{
		Name: "protected-mode", Group: Network, Since: "0.1.0", Default: "yes", Settable: true,
		Summary: "Turn away clients from other machines as long as no password is set.",
		kind:    yesNo(func(c *Config) *bool { return &c.ProtectedMode }),
	},
	{
		Name: "tcp-backlog", Group: Network, Since: "0.1.0", Default: "511",
		Summary: "Connections that the kernel may keep waiting for us to accept them; the system's own limit may be lower.",
		kind:    integer(0, math.MaxInt32, func(c *Config) *int { return &c.TCPBacklog }),
	},
	{
		Name: "tcp-keepalive", Group: Network, Since: "0.1.0", Default: "300", Settable: true,
		Summary: "Seconds of silence before the kernel checks that a client's machine is still there; 0 means never. Holds for connections made after it is set.",
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
		Summary: "Whether clients over TLS have to show a certificate that tls-ca-cert-file or tls-ca-cert-dir vouches for; optional checks one only if it is shown.",
		kind:    enum(func(c *Config) *TLSAuth { return &c.TLSAuthClients }, "no", "yes", "optional"),
	},
	{
		Name: "tls-ca-cert-dir", Group: TLS, Since: "0.1.0", Default: `""`, Example: `/etc/headgate/authorities`, Settable: true,
		Summary: "Directory of files with certificates, in PEM, of authorities that vouch for clients.",
		kind:    text(func(c *Config) *string { return &c.TLSCACertDir }),
	},
	{
		Name: "tls-ca-cert-file", Group: TLS, Since: "0.1.0", Default: `""`, Example: `/etc/headgate/ca.crt`, Settable: true,
		Summary: "File with certificates, in PEM, of authorities that vouch for clients.",
		kind:    text(func(c *Config) *string { return &c.TLSCACertFile }),
	},
	{
		Name: "tls-cert-file", Group: TLS, Since: "0.1.0", Default: `""`, Example: `/etc/headgate/headgate.crt`, Settable: true,
		Summary: "File with the server's certificate, in PEM, and those between it and its authority. It is read again within two seconds when it changes, as are the other files; open connections continue.",
		kind:    text(func(c *Config) *string { return &c.TLSCertFile }),
	},
	{
		Name: "tls-ciphers", Group: TLS, Since: "0.1.0", Default: `""`, Example: `DEFAULT`, Settable: true,
		Summary: "Cipher suites for TLS 1.2, in OpenSSL's names or IANA's, with colons between them; DEFAULT and HIGH stand for all that are served. Which of them is taken is the server's choice, and so are those of TLS 1.3.",
		kind:    text(func(c *Config) *string { return &c.TLSCiphers }),
		check:   checkTLSCiphers,
	},
	{
		Name: "tls-key-file", Group: TLS, Since: "0.1.0", Default: `""`, Example: `/etc/headgate/headgate.key`, Settable: true,
		Summary: "File with the private key of tls-cert-file, in PEM.",
		kind:    text(func(c *Config) *string { return &c.TLSKeyFile }),
	},
	{
		Name: "tls-key-file-pass", Group: TLS, Since: "0.1.0", Default: `""`, Example: `change-me`, Settable: true, Secret: true,
		Summary: "Password of tls-key-file, if it is encrypted. Better given by HEADGATE_TLS_KEY_FILE_PASS or in the file than as a flag.",
		kind:    text(func(c *Config) *string { return &c.TLSKeyFilePass }),
	},
	{
		Name: "tls-port", Group: TLS, Since: "0.1.0", Default: "0", Settable: true,
		Summary: "TCP port to listen on for TLS, on the addresses of bind; 0 means none. It needs tls-cert-file and tls-key-file and, unless tls-auth-clients is no, authorities. With port 0 only TLS is served.",
		kind:    integer(0, 65535, func(c *Config) *int { return &c.TLSPort }),
	},
	{
		Name: "tls-protocols", Group: TLS, Since: "0.1.0", Default: `""`, Example: `"TLSv1.2 TLSv1.3"`, Settable: true,
		Summary: "Versions to serve: TLSv1.2, TLSv1.3 or both; empty means both. Older ones are never served.",
		kind:    text(func(c *Config) *string { return &c.TLSProtocols }),
		check:   checkTLSProtocols,
	},
	{
		Name: "tls-session-caching", Group: TLS, Since: "0.1.0", Default: "yes", Settable: true,
		Summary: "Let clients take up an earlier session, which spares both sides most of the handshake's work. A change of the files ends all sessions.",
		kind:    yesNo(func(c *Config) *bool { return &c.TLSSessionCaching }),
	},

	{
		Name: "client-output-buffer-limit", Group: Clients, Since: "0.1.0", Settable: true,
		Default: "normal 64mb 16mb 30 replica 256mb 64mb 60 pubsub 32mb 8mb 60",
		Summary: "Per class of clients (normal, replica, pubsub): close a client once the replies that wait for it exceed the first size, or have exceeded the second for that many seconds. 0 lifts a limit.",
		kind:    outputLimitsKind{},
	},
	{
		Name: "client-query-buffer-limit", Group: Clients, Since: "0.1.0", Default: "1gb", Settable: true,
		Summary: "Bytes that one command, or the commands queued in one transaction, may take up.",
		kind:    memory(mib, func(c *Config) *int { return &c.ClientQueryBufferLimit }),
	},
	{
		Name: "maxclients", Group: Clients, Since: "0.1.0", Default: "10000", Settable: true,
		Summary: "Connections at a time; one more is told so and closed. Lowered at start if the limit on open files leaves less.",
		kind:    integer(1, math.MaxUint32, func(c *Config) *int { return &c.MaxClients }),
	},
	{
		Name: "proto-max-bulk-len", Group: Clients, Since: "0.1.0", Default: "512mb", Settable: true,
		Summary: "Bytes of the longest argument, and so of the longest value.",
		kind:    memory(mib, func(c *Config) *int { return &c.ProtoMaxBulkLen }),
	},
	{
		Name: "timeout", Group: Clients, Since: "0.1.0", Default: "0", Settable: true,
		Summary: "Close a client that has sent nothing for this many seconds; 0 means never.",
		kind:    seconds(func(c *Config) *time.Duration { return &c.Timeout }),
	},
	{
		Name: "tracking-table-max-keys", Group: Clients, Since: "0.1.0", Default: "1000000", Settable: true,
		Summary: "Keys that are remembered because clients that cache have read them; beyond that, random ones are forgotten and their readers told that they have changed. 0 means no limit.",
		kind:    integer(0, math.MaxInt64, func(c *Config) *int { return &c.TrackingTableMaxKeys }),
	},

	{
		Name: "lfu-decay-time", Group: Memory, Since: "0.1.0", Default: "1", Settable: true,
		Summary: "Minutes without a use after which a key's counter of uses is one less, under the LFU policies; 0 means never.",
		kind:    integer(0, math.MaxInt32, func(c *Config) *int { return &c.LFUDecayTime }),
	},
	{
		Name: "lfu-log-factor", Group: Memory, Since: "0.1.0", Default: "10", Settable: true,
		Summary: "How much harder each step of a key's counter of uses, up to 255, is than the one before: with 10 it is full after about a million uses.",
		kind:    integer(0, math.MaxInt32, func(c *Config) *int { return &c.LFULogFactor }),
	},
	{
		Name: "maxmemory", Group: Memory, Since: "0.1.0", Default: "0", Settable: true,
		Summary: "Bytes that data and connections may take up before keys go, or writes are refused, as maxmemory-policy says; or a share of what the process may have, such as 60%. 0 means no limit, but 75 % where the container or the process's own limits bound the memory.",
		kind:    memoryOrShare(func(c *Config) *int { return &c.MaxMemory }),
	},
	{
		Name: "maxmemory-clients", Group: Memory, Since: "0.1.0", Default: "0", Settable: true,
		Summary: "Bytes, or a share of maxmemory, that the buffers of all clients may take up together. Beyond that the largest clients are closed; clients with CLIENT NO-EVICT ON stay. 0 means 20 % of the memory that the container, the process's own limits or the machine allows.",
		kind:    memoryOrShare(func(c *Config) *int { return &c.MaxMemoryClients }),
	},
	{
		Name: "maxmemory-eviction-tenacity", Group: Memory, Since: "0.1.0", Default: "10", Settable: true,
		Summary: "How long a command may be kept waiting while keys go to make room for it: 10 is half a millisecond, 100 is without end.",
		kind:    integer(0, 100, func(c *Config) *int { return &c.MaxMemoryTenacity }),
	},
	{
		Name: "maxmemory-policy", Group: Memory, Since: "0.1.0", Default: "noeviction", Settable: true,
		Summary: "Which keys go when memory is short: noeviction refuses writes instead; the others take all keys or only those with a TTL, and of these the least recently used, the least often used, random ones, or those that expire soonest. For a limiter volatile-ttl costs least: a state that expires soon has little left to say.",
		kind: enum(func(c *Config) *EvictionPolicy { return &c.MaxMemoryPolicy },
			"volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl", "allkeys-lru", "allkeys-lfu", "allkeys-random", "noeviction"),
	},
	{
		Name: "maxmemory-samples", Group: Memory, Since: "0.1.0", Default: "5", Settable: true,
		Summary: "Keys that are looked at for each one that goes. More come closer to the policy and cost more.",
		kind:    integer(1, math.MaxInt32, func(c *Config) *int { return &c.MaxMemorySamples }),
	},

	{
		Name: "daemonize", Group: General, Since: "0.1.0", Default: "no",
		Summary: "No effect: headgate stays in the foreground, and the service manager or the container looks after it. With yes, a notice says so.",
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
		Summary: "How much, in percent of what is live, the Go heap may grow before it is collected, but no more than 256 MiB, or 100 percent where much of it has to be read for that. More costs memory and saves CPU; keys and small values lie outside that heap.",
		kind:    integer(10, 10_000, func(c *Config) *int { return &c.GCPercent }),
	},
	{
		Name: "hz", Group: General, Since: "0.1.0", Default: "10", Settable: true,
		Summary: "Rounds of background work a second, such as closing idle clients. Values outside 1 to 500 are taken as the nearer end.",
		kind:    integer(0, math.MaxInt32, func(c *Config) *int { return &c.Hz }),
		check:   clampHz,
	},
	{
		Name: "log-format", Group: General, Since: "0.1.0", Default: "auto",
		Summary: "Form of the log's lines: text has key=value pairs, json an object; auto takes text on a terminal and json otherwise.",
		kind:    enum(func(c *Config) *LogFormat { return &c.LogFormat }, "auto", "text", "json"),
	},
	{
		Name: "logfile", Group: General, Since: "0.1.0", Default: `""`, Example: `/var/log/headgate.log`,
		Summary: "File to log to, relative to dir; empty means standard error.",
		kind:    text(func(c *Config) *string { return &c.LogFile }),
	},
	{
		Name: "loglevel", Group: General, Since: "0.1.0", Default: "notice", Settable: true,
		Summary: "The least severe lines that are logged.",
		kind:    enum(func(c *Config) *LogLevel { return &c.LogLevel }, "debug", "verbose", "notice", "warning"),
	},
	{
		Name: "pidfile", Group: General, Since: "0.1.0", Default: `""`, Example: `/run/headgate.pid`,
		Summary: "File to write the process number to, relative to dir; empty means none.",
		kind:    text(func(c *Config) *string { return &c.PidFile }),
	},
	{
		Name: "shutdown-on-sigint", Group: General, Since: "0.1.0", Default: "default", Settable: true,
		Summary: "How SIGINT ends the server: default saves a snapshot if there are save points, save and nosave do so or not in any case, force ends it even if that fails, now changes nothing. SIGINT while it ends, a second or more after the first signal, ends it at once.",
		kind:    shutdownKind{field: func(c *Config) *ShutdownFlags { return &c.OnSigint }},
	},
	{
		Name: "shutdown-on-sigterm", Group: General, Since: "0.1.0", Default: "default", Settable: true,
		Summary: "The same for SIGTERM.",
		kind:    shutdownKind{field: func(c *Config) *ShutdownFlags { return &c.OnSigterm }},
	},
	{
		Name: "shutdown-timeout", Group: General, Since: "0.1.0", Default: "10", Settable: true,
		Summary: "Seconds that an overrunning script may continue after a signal has asked the server to end; then it is cut off and nothing of it is kept. Clients are not waited for, a snapshot is.",
		kind:    seconds(func(c *Config) *time.Duration { return &c.ShutdownTimeout }),
	},

	{
		Name: "latency-monitor-threshold", Group: Notices, Since: "0.1.0", Default: "0", Settable: true,
		Summary: "Milliseconds from which on a command, a write to the append-only file or a slice of background work counts as a spike of latency, for LATENCY LATEST and its kin; 0 means never.",
		kind:    integer(0, math.MaxInt64, func(c *Config) *int { return &c.LatencyMonitorThreshold }),
	},
	{
		Name: "latency-tracking", Group: Notices, Since: "0.1.0", Default: "yes", Settable: true,
		Summary: "Count how long the calls of each command take, for LATENCY HISTOGRAM and INFO latencystats. Of commands marked fast one call in 64 stands for all.",
		kind:    yesNo(func(c *Config) *bool { return &c.LatencyTracking }),
	},
	{
		Name: "latency-tracking-info-percentiles", Group: Notices, Since: "0.1.0", Default: "50 99 99.9", Settable: true,
		Summary: "Percentiles of these times that INFO latencystats shows.",
		kind:    percentilesKind{},
	},
	{
		Name: "notify-keyspace-events", Group: Notices, Since: "0.1.0", Default: `""`, Example: `Ex`, Settable: true,
		Summary: "Classes of key-space events to publish, each a letter as in Redis; K publishes them on __keyspace@<db>__ channels, E on __keyevent@<db>__ channels. Empty means none.",
		kind:    eventsKind{},
	},
	{
		Name: "slowlog-log-slower-than", Group: Notices, Since: "0.1.0", Default: "10000", Settable: true,
		Summary: "Microseconds from which on a command is entered into the slow log; 0 means every command, -1 none. Below the default each command is timed, which costs fast ones a tenth of their time; else those marked fast are timed if they have many arguments.",
		kind:    integer(-1, math.MaxInt64, func(c *Config) *int { return &c.SlowlogLogSlowerThan }),
	},
	{
		Name: "slowlog-max-len", Group: Notices, Since: "0.1.0", Default: "128", Settable: true,
		Summary: "Slow commands that are kept; the oldest go first.",
		kind:    integer(0, math.MaxInt64, func(c *Config) *int { return &c.SlowlogMaxLen }),
	},

	{
		Name: "acl-pubsub-default", Group: Security, Since: "0.1.0", Default: "resetchannels", Settable: true,
		Summary: "Which channels a new user may use: none, or all.",
		kind:    enum(func(c *Config) *PubSubDefault { return &c.ACLPubSubDefault }, "allchannels", "resetchannels"),
	},
	{
		Name: "aclfile", Group: Security, Since: "0.1.0", Default: `""`, Example: `/etc/headgate/users.acl`,
		Summary: "File of ACL users, which ACL LOAD reads and ACL SAVE writes; it takes the place of user lines, and requirepass does not hold with it. It has to be there.",
		kind:    text(func(c *Config) *string { return &c.ACLFile }),
	},
	{
		Name: "acllog-max-len", Group: Security, Since: "0.1.0", Default: "128", Settable: true,
		Summary: "Denials that ACL LOG keeps, 100,000 at most; the oldest go first.",
		kind:    integer(0, math.MaxInt64, func(c *Config) *int { return &c.ACLLogMaxLen }),
	},
	{
		Name: "enable-debug-command", Group: Security, Since: "0.1.0", Default: "no",
		Summary: "Who may use the DEBUG command: no client, every client, or clients on this machine.",
		kind:    enum(func(c *Config) *Access { return &c.EnableDebugCommand }, "no", "yes", "local"),
	},
	{
		Name: "enable-protected-configs", Group: Security, Since: "0.1.0", Default: "no",
		Summary: "Who may change the guarded directives with CONFIG SET: no client, every client, or clients on this machine.",
		kind:    enum(func(c *Config) *Access { return &c.EnableProtectedConfigs }, "no", "yes", "local"),
	},
	{
		Name: "enable-restore-command", Group: Security, Since: "0.1.0", Default: "no",
		Summary: "Who may use RESTORE, which reads data that a client has made: no client, every client, or clients on this machine.",
		kind:    enum(func(c *Config) *Access { return &c.EnableRestoreCommand }, "no", "yes", "local"),
	},
	{
		Name: "rename-command", Group: Security, Since: "0.1.0", Default: `""`, Example: `FLUSHALL ""`, Hidden: true,
		Summary: "Give a command another name, or take it away with an empty one. ACL rules, statistics and the append-only file keep its own name.",
		kind:    renamesKind{},
	},
	{
		Name: "requirepass", Group: Security, Since: "0.1.0", Default: `""`, Example: `change-me`, Settable: true, Secret: true,
		Summary: "Password that clients must give with AUTH or HELLO before anything else; empty means none. Better given by HEADGATE_REQUIREPASS or in the file than as a flag, which other users of the machine can see.",
		kind:    text(func(c *Config) *string { return &c.RequirePass }),
	},
	{
		Name: "user", Group: Security, Since: "0.1.0", Default: `""`, Example: `limiter on >change-me ~* +@throttle`, Secret: true, Hidden: true,
		Summary: "An ACL user and the rules that make it, as for ACL SETUSER; with aclfile the users are in that file instead. CONFIG REWRITE writes the users of that moment.",
		kind:    usersKind{},
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
		Summary: "Longest HyperLogLog, in bytes, that is kept as runs of equal registers. Beyond this it takes 12 KiB, whatever it has counted.",
		kind:    memory(0, func(c *Config) *int { return &c.HLLSparseMaxBytes }),
	},
	{
		Name: "list-max-listpack-size", Aliases: []string{"list-max-ziplist-size"}, Group: Encodings, Since: "0.1.0", Default: "-2", Settable: true,
		Summary: "How many elements a list, or each part of a long one, keeps in one compact block; -1 to -5 bound the block to 4, 8, 16, 32 or 64 KiB instead.",
		kind:    integer(math.MinInt32, math.MaxInt32, func(c *Config) *int { return &c.ListMaxListpackSize }),
	},
	{
		Name: "set-max-intset-entries", Group: Encodings, Since: "0.1.0", Default: "512", Settable: true,
		Summary: "A set of at most this many whole numbers, and nothing else, is kept in one compact block of up to 32 KiB.",
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
		Summary: "How CL.THROTTLE reads its second argument: burst+1 as redis-cell does, so that 15 lets 16 calls pass at once; capacity takes it for the whole limit, so that 15 lets 15 pass.",
		kind:    enum(func(c *Config) *ThrottleLimit { return &c.CLThrottleLimit }, "burst+1", "capacity"),
	},
	{
		Name: "limiter-when-unwritable", Group: Limiters, Since: "0.1.0", Default: "error", Settable: true,
		Summary: "What becomes of a call that would change a limiter's state while nothing can be written (MISCONF): error answers with the error, memory decides and keeps the change in memory, where a restart may forget it. A policy may say otherwise: WHEN-UNWRITABLE MEMORY or ERROR after its words. RL.RESET obeys this, too; INCREX, RL.POLICY SET and RL.POLICY DEL always answer with the error.",
		kind:    enum(func(c *Config) *limiter.Unwritable { return &c.Unwritable }, "error", "memory"),
	},
	{
		Name: "policy", Group: Limiters, Since: "0.1.0", Default: `""`, Example: `login LOG 5 60s`, Settable: true,
		Summary: "A limit under a name, for RL.TAKE: the name, an algorithm and its arguments, as in policy login LOG 5 60s. RL.POLICY can neither change nor delete it. In the file and among flags each has a policy of its own; in one text, as in CONFIG SET and the environment, commas stand between several: CONFIG SET policy \"login LOG 5 60s, api GCRA 10 5 1s\". CONFIG SET replaces all of them, and so does each source that names any.",
		kind:    policiesKind{},
	},
	{
		Name: "top-keys", Group: Limiters, Since: "0.1.0", Default: "512", Settable: true,
		Summary: "Keys that are watched to tell which are limited most, and which are called most; a number in RL.TOP may be too high by the number of calls divided by this. Each takes 0.8 KiB. 0 turns RL.TOP off.",
		kind:    integer(0, top.MaxKeys, func(c *Config) *int { return &c.TopKeys }),
	},
	{
		Name: "top-window", Group: Limiters, Since: "0.1.0", Default: "300", Settable: true,
		Summary: "Seconds that RL.TOP looks back at least; at most twice as many. 0 is taken as 1.",
		kind:    seconds(func(c *Config) *time.Duration { return &c.TopWindow }),
		check:   clampTopWindow,
	},
	{
		Name: "unknown-policy", Group: Limiters, Since: "0.1.0", Default: "error", Settable: true,
		Summary: "What RL.TAKE makes of a policy that does not exist: error answers with an error, allow takes it for unlimited.",
		kind:    enum(func(c *Config) *UnknownPolicy { return &c.UnknownPolicy }, "error", "allow"),
	},
	{
		Name: "wait-max-clients", Group: Limiters, Since: "0.1.0", Default: "10000", Settable: true,
		Summary: "Calls of limiters that may wait at a time, by WAIT. One more is limited at once, as without WAIT. Each counts in its client's memory. 0 turns WAIT off.",
		kind:    integer(0, maxWaiting, func(c *Config) *int { return &c.WaitMaxClients }),
	},
	{
		Name: "wait-max-per-key", Group: Limiters, Since: "0.1.0", Default: "1000", Settable: true,
		Summary: "Calls of limiters that may wait for one key at a time, by WAIT. One more is limited at once, as without WAIT.",
		kind:    integer(0, maxWaiting, func(c *Config) *int { return &c.WaitMaxPerKey }),
	},
}

// laterDirectives are those of the groups behind Upstream, but for groups with a file of their own.
var laterDirectives = []*Directive{
	{
		Name: "busy-reply-threshold", Aliases: []string{"lua-time-limit"}, Group: Scripts, Since: "0.1.0", Default: "5000", Settable: true,
		Summary: "Milliseconds after which a script that still runs lets other clients be answered: with BUSY, except for SCRIPT KILL, FUNCTION KILL and SHUTDOWN NOSAVE. 0 means never.",
		kind:    integer(0, math.MaxInt64, func(c *Config) *int { return &c.BusyReplyThreshold }),
	},
	{
		Name: "script-time-limit", Group: Scripts, Since: "0.1.0", Default: "0", Settable: true,
		Summary: "Milliseconds after which a script is stopped if it has written nothing yet; 0 means never. One that has written continues, because half of its effects must not stay.",
		kind:    integer(0, math.MaxInt64, func(c *Config) *int { return &c.ScriptTimeLimit }),
	},

	{
		Name: "aof-load-truncated", Group: Persistence, Since: "0.1.0", Default: "yes", Settable: true,
		Summary: "Whether to start with an append-only file whose end is missing or damaged, by at most 4 MiB, and to cut that off; no refuses to start. What is whole behind damage goes too, since a power cut can lose sectors of what was not synced; Redis starts only if just the end is missing.",
		kind:    yesNo(func(c *Config) *bool { return &c.AOFLoadTruncated }),
	},
	{
		Name: "aof-timestamp-enabled", Group: Persistence, Since: "0.1.0", Default: "no", Settable: true,
		Summary: "Accepted for the sake of redis.conf: the append-only file always holds the time of each write.",
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
		Summary: "What the names of the append-only file's parts begin with.",
		kind:    text(func(c *Config) *string { return &c.AppendFilename }),
		check:   checkAppendFilename,
	},
	{
		Name: "appendfsync", Group: Persistence, Since: "0.1.0", Default: "everysec", Settable: true,
		Summary: "When writes have to be on the disk: always before the reply, everysec a second later, no when the system sees fit.",
		kind:    enum(func(c *Config) *FsyncPolicy { return &c.AppendFsync }, "everysec", "always", "no"),
	},
	{
		Name: "appendonly", Group: Persistence, Since: "0.1.0", Default: "no", Settable: true,
		Summary: "Whether to log every change to the append-only file, and to load it at the start.",
		kind:    yesNo(func(c *Config) *bool { return &c.AppendOnly }),
	},
	{
		Name: "auto-aof-rewrite-min-size", Group: Persistence, Since: "0.1.0", Default: "64mb", Settable: true,
		Summary: "Size below which the append-only file is not rewritten by itself.",
		kind:    memory(0, func(c *Config) *int { return &c.AutoAOFRewriteMinSize }),
	},
	{
		Name: "auto-aof-rewrite-percentage", Group: Persistence, Since: "0.1.0", Default: "100", Settable: true,
		Summary: "Growth since the last rewrite, in percent, at which the append-only file is rewritten by itself; 0 means never.",
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
		Summary: "Directory of the data files, to which logfile, pidfile and other paths are relative too; it must exist.",
		kind:    directory{},
		check:   checkDir,
	},
	{
		Name: "no-appendfsync-on-rewrite", Group: Persistence, Since: "0.1.0", Default: "no", Settable: true,
		Summary: "Whether appendfsync counts as no while the append-only file is being rewritten.",
		kind:    yesNo(func(c *Config) *bool { return &c.NoAppendFsyncOnRewrite }),
	},
	{
		Name: "rdbchecksum", Group: Persistence, Since: "0.1.0", Default: "yes",
		Summary: "Put a checksum at the end of snapshots, and compare it when one is loaded.",
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
		kind:    saveKind{},
	},
	{
		Name: "stop-writes-on-bgsave-error", Group: Persistence, Since: "0.1.0", Default: "yes", Settable: true,
		Summary: "Refuse writes from the moment when a snapshot fails until one succeeds, as long as there are save points.",
		kind:    yesNo(func(c *Config) *bool { return &c.StopWritesOnSaveError }),
	},

	{
		Name: "metrics-bind", Group: Metrics, Since: "0.1.0", Default: "127.0.0.1 -::1",
		Summary: "Addresses that metrics-port listens on, in the form of bind. Every client that reaches them can read the counters; set metrics-password before other machines can.",
		kind:    bind(func(c *Config) *[]string { return &c.MetricsBind }),
	},
	{
		Name: "metrics-page-password", Group: Metrics, Since: "0.1.0", Default: `""`, Example: `change-me`, Settable: true, Secret: true,
		Summary: "Password that metrics-port asks for before it shows the page and its keys, in place of metrics-password. A scraper of /metrics then sees no keys, and /metrics may do without a password. Empty means that of metrics-password.",
		kind:    text(func(c *Config) *string { return &c.MetricsPagePassword }),
	},
	{
		Name: "metrics-password", Group: Metrics, Since: "0.1.0", Default: `""`, Example: `change-me`, Settable: true, Secret: true,
		Summary: "Password that metrics-port asks for, by HTTP's basic authentication, before it answers anything but /healthz and /readyz; empty means none. The page may have its own, metrics-page-password.",
		kind:    text(func(c *Config) *string { return &c.MetricsPassword }),
	},
	{
		Name: "metrics-port", Group: Metrics, Since: "0.1.0", Default: "0",
		Summary: "HTTP port for a status page, /metrics in Prometheus' format, /healthz and /readyz; 0 means none.",
		kind:    integer(0, 65535, func(c *Config) *int { return &c.MetricsPort }),
	},
	{
		Name: "metrics-user", Group: Metrics, Since: "0.1.0", Default: "headgate", Settable: true,
		Summary: "User name that goes with metrics-password and metrics-page-password.",
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

// EnvironmentName returns the variable that sets the directive.
func (d *Directive) EnvironmentName() string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(d.Name, "-", "_"))
}

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
	case len(args) == 1 && args[0] == "":
		args = nil
	case len(args) == 1:
		args = strings.Split(args[0], " ")
	}
	if err := d.kind.parse(c, args, more); err != nil {
		return err
	}
	if d.check != nil {
		return d.check(c, h)
	}
	return nil
}

func checkSocketPath(c *Config, _ *Host) error { return checkSocketLength(c.UnixSocket) }

func checkHTTPSocketPath(c *Config, _ *Host) error { return checkSocketLength(c.HTTPUnixSocket) }

func checkSocketLength(path string) error {
	if len(path) > maxSocketPath {
		return fmt.Errorf("argument must be a path of at most %d bytes", maxSocketPath)
	}
	return nil
}

func stayInForeground(c *Config, _ *Host) error {
	c.Daemonize = false
	return nil
}

// clampTopWindow has the lists look back a second at least.
func clampTopWindow(c *Config, _ *Host) error {
	c.TopWindow = max(c.TopWindow, time.Second)
	return nil
}

func daemonizeNotice(args []string) string {
	if strings.EqualFold(args[0], "yes") {
		return "daemonize is ignored: headgate stays in the foreground; let systemd or the container run it"
	}
	return ""
}

func clampHz(c *Config, _ *Host) error {
	c.Hz = min(max(c.Hz, minHz), maxHz)
	return nil
}

// checkFileName refuses what is not a name within a directory, in Redis's words.
func checkFileName(directive, name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%s can't be empty", directive)
	case persistence.Reserved(name):
		return fmt.Errorf("%s can't be %s, which the server uses for itself", directive, name)
	case name != filepath.Base(name) || name == "." || name == "..":
		return fmt.Errorf("%s can't be a path, just a %s", directive, map[bool]string{true: "dirname", false: "filename"}[directive == "appenddirname"])
	}
	return nil
}

func checkAppendDirName(c *Config, _ *Host) error {
	return checkFileName("appenddirname", c.AppendDirName)
}

func checkAppendFilename(c *Config, _ *Host) error {
	return checkFileName("appendfilename", c.AppendFilename)
}

func checkDBFilename(c *Config, _ *Host) error {
	if strings.ContainsRune(c.DBFilename, '/') {
		return redisText("dbfilename can't be a path, just a filename")
	}
	if persistence.Reserved(c.DBFilename) {
		return fmt.Errorf("dbfilename can't be %s, which the server uses for itself", c.DBFilename)
	}
	return nil
}

func checkDir(c *Config, h *Host) error { return h.CheckDir(c.Dir) }

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
