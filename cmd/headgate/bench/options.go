package bench

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"headgate/cmd/headgate/peer"
	"headgate/internal/flagtext"
)

// Options say what is measured. The zero value is not useful; ParseOptions fills in what is not given.
type Options struct {
	peer.Flags        // of the server, and of the second one but for where it is
	Versus     string // another server; "" = none, VersusRedis = this program and redis-server are started
	Load       Load
	Clients    int
	Pipeline   int
	Threads    int
	Rate       float64 // operations per second; 0 = as many as possible
	Duration   time.Duration
	Rounds     int
	Keys       int64
	Seed       uint64
	JSON       string // file to write; "" = none
	SVG        string
}

// ErrHelp says that help was asked for, and has been written.
var ErrHelp = errors.New("help was asked for")

// flags binds the options to their flags.
func (o *Options) flags(load *string) *flag.FlagSet {
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	o.Bind(f)
	f.StringVar(&o.Versus, "vs", "", "`address` of a second server, measured in turns with the first; ratios are first to second. The word redis starts this program and redis-server on free ports")
	f.StringVar(load, "load", "throttle", "`name` of a load, or a command")
	f.IntVar(&o.Clients, "clients", 50, "`number` of connections, beside the one on which the server is asked what it is and has used")
	f.IntVar(&o.Pipeline, "pipeline", 1, "`number` of operations that a connection sends at once")
	f.Float64Var(&o.Rate, "rate", 0, "`operations` per second, sent on schedule even if the server is slow; 0: each connection sends as soon as it is answered")
	o.Duration = 10 * time.Second
	f.Func("duration", "`time` for each server, in all rounds together, such as 30s (default 10s)", func(text string) (err error) {
		if o.Duration, err = time.ParseDuration(text); err != nil {
			return errors.New("must be a number with a unit, such as 5s")
		}
		return nil
	})
	f.IntVar(&o.Rounds, "rounds", 0, "`number` of rounds in that time; with --vs the servers take turns (default 5 with --vs, else 1)")
	f.Int64Var(&o.Keys, "keys", 100_000, "`number` of different keys")
	f.IntVar(&o.Threads, "threads", 1, "`number` of threads that share the connections")
	f.Uint64Var(&o.Seed, "seed", 1, "`number` that seeds the choice of keys")
	f.StringVar(&o.JSON, "json", "", "`file` to write all figures to")
	f.StringVar(&o.SVG, "svg", "", "`file` to draw the latencies into, as SVG")
	return f
}

// ParseOptions reads the words after headgate bench. When they ask for help it writes that and returns ErrHelp.
func ParseOptions(args, env []string, help io.Writer) (*Options, error) {
	o, load := &Options{}, ""
	f := o.flags(&load)
	if len(args) == 1 && args[0] == "-h" { // else it is the host, as for headgate cli
		args = []string{"--help"}
	}
	switch err := f.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return nil, errors.Join(ErrHelp, writeHelp(help, f))
	case err != nil:
		return nil, fmt.Errorf("%s; headgate bench --help lists all flags and loads", flagtext.WithTwoDashes(err))
	case f.NArg() > 0:
		return nil, fmt.Errorf("bench does not know %q; headgate bench --help lists all flags and loads", f.Arg(0))
	}
	if o.Versus == VersusRedis && o.IsGiven() {
		return nil, errors.New("--vs redis starts both servers: leave out --addr, -h, -p and -s")
	}
	var err error
	if o.Load, err = FindLoad(load); err != nil {
		return nil, err
	}
	if err := o.Finish(env); err != nil {
		return nil, err
	}
	if o.Rounds == 0 {
		o.Rounds = 1
		if o.Versus != "" {
			o.Rounds = 5
		}
	}
	return o, o.check()
}

// check refuses what cannot be carried out.
func (o *Options) check() error {
	for _, limit := range []struct {
		name     string
		n, least int64
		most     int64
	}{
		{"clients", int64(o.Clients), 1, maxClients},
		{"pipeline", int64(o.Pipeline), 1, maxPipeline},
		{"threads", int64(o.Threads), 1, maxThreads},
		{"rounds", int64(o.Rounds), 1, maxRounds},
		{"keys", o.Keys, 1, maxKeys},
	} {
		if limit.n < limit.least || limit.n > limit.most {
			return fmt.Errorf("--%s %d is out of range: it must be between %d and %d", limit.name, limit.n, limit.least, limit.most)
		}
	}
	if o.Duration < time.Millisecond || o.Duration > maxDuration {
		return fmt.Errorf("--duration %v is out of range: it must be between 1ms and %v", o.Duration, maxDuration)
	}
	if o.Rate < 0 || o.Rate > maxRate || math.IsNaN(o.Rate) {
		return fmt.Errorf("--rate %g is out of range: it must be between 0 and %g", o.Rate, float64(maxRate))
	}
	if n := len(newTemplate(o.Load.Commands).bytes) * o.Pipeline; n > maxOutBytes {
		return fmt.Errorf("a pipeline of %d such operations has %d bytes, and at most %d are sent at once", o.Pipeline, n, maxOutBytes)
	}
	if o.Versus == VersusRedis && (o.Pass != "" || o.TLS) {
		return errors.New("--vs redis starts servers without a password and without TLS: leave out --user, --pass, REDISCLI_AUTH and --tls")
	}
	if isSameFile(o.JSON, o.SVG) {
		return errors.New("--json and --svg name the same file: give each its own")
	}
	return nil
}

// isSameFile reports whether two paths lead to one file, of which neither has to be there. An empty path leads nowhere.
func isSameFile(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	there, err := os.Stat(a)
	other, otherErr := os.Stat(b)
	if err == nil && otherErr == nil {
		return os.SameFile(there, other)
	}
	fullA, err := filepath.Abs(a)
	fullB, otherErr := filepath.Abs(b)
	return err == nil && otherErr == nil && fullA == fullB
}

// writeHelp lists flags, loads and placeholders.
func writeHelp(out io.Writer, f *flag.FlagSet) error {
	var text strings.Builder
	text.WriteString("headgate bench sends a load to a server that speaks the Redis protocol, and reports throughput, CPU time and latency.\n\n")
	text.WriteString("The server, and with --vs how both are asked:\n" + peer.Help() + "\nThe load:\n")
	server := peer.Names()
	f.VisitAll(func(fl *flag.Flag) {
		if slices.Contains(server, "-"+fl.Name) || slices.Contains(server, "--"+fl.Name) {
			return
		}
		value, usage := flag.UnquoteUsage(fl)
		if fl.DefValue != "" && fl.DefValue != "false" && fl.DefValue != "0" {
			usage += " (default " + fl.DefValue + ")"
		}
		fmt.Fprintf(&text, "  %-22s %s\n", "--"+fl.Name+" "+value, usage)
	})
	text.WriteString("\nLoads, for --load:\n")
	for _, l := range Loads {
		fmt.Fprintf(&text, "  %-22s %s\n", l.Name, l.Help)
	}
	text.WriteString("  \"GET key:__key__\"      any command, or several with \"; \" between them. These words stand for numbers:\n")
	for _, p := range placeholders {
		fmt.Fprintf(&text, "    %-20s %s\n", p.placeholder, p.help)
	}
	_, err := io.WriteString(out, text.String())
	return err
}
