package config

// Directive is one entry of the table: everything there is to know about a directive. Entries never change.
type Directive struct {
	Name     string   // lower case, as in redis.conf
	Aliases  []string // older names, which CONFIG GET and SET answer to as well
	Group    Group
	Summary  string // one sentence or two for people
	Since    string // headgate's version that brought it
	Default  string // as it would be written in the file
	Example  string // for the sample file, where Default is empty and so does not show the form
	Settable bool   // CONFIG SET and SIGHUP may change it while the server runs
	Guarded  bool   // CONFIG SET needs enable-protected-configs as well
	Secret   bool   // the value is shown to CONFIG GET only: in no error, notice or help text
	Hidden   bool   // CONFIG GET and SET do not know it

	kind  kind
	ofOwn bool // it is about data of the server's own, which a gateway has none of
	// check refuses values that kind can read but this version or this machine cannot serve, or bends them into range.
	check func(c *Config, h *Host) error
	// notice says what a value does not do, to be logged; "" = it does all that it says. It may be nil.
	notice func(args []string) string
	// place notes where the value that was read last stands, for errors that are found later; it may be nil.
	place func(c *Config, where string)
}

// Group is a heading of the reference.
type Group string

// The groups, in the order of the reference.
const (
	Network     Group = "Network"
	TLS         Group = "TLS"
	Metrics     Group = "Metrics"
	Clients     Group = "Clients"
	Memory      Group = "Memory"
	General     Group = "General"
	Security    Group = "Security"
	Notices     Group = "Events and statistics"
	Encodings   Group = "Compact encodings"
	Limiters    Group = "Limiters"
	Upstream    Group = "Upstream"
	Scripts     Group = "Scripts"
	Persistence Group = "Persistence"
	Replication Group = "Replication"
	Cluster     Group = "Cluster"
	HTTPCheck   Group = "HTTP check"
	Envoy       Group = "Envoy"
)

var groups = []Group{Network, TLS, Clients, Memory, General, Notices, Security, Encodings, Limiters, Upstream, Scripts, Persistence, Metrics, Replication, Cluster, HTTPCheck, Envoy}
