package simulate

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"

	"headgate/internal/flagtext"
)

// Options say what is simulated. ParseOptions fills in what is not given.
type Options struct {
	Logs     []string // files, read one after the other; - is the standard input
	Key      string
	Policies []Policy
	Skipped  []Policy // of files, that a log does not suffice for
	Format   string
	Spare    float64 // percent of the keys that a limit is looked for; 0 = none
	JSON     bool
	SVG      string // file to write; "" = none
}

// ErrHelp says that help was asked for, and has been written.
var ErrHelp = errors.New("help was asked for")

// ParseOptions reads the words after headgate simulate. When they ask for help it writes that and returns ErrHelp.
func ParseOptions(args []string, help io.Writer) (*Options, error) {
	o, spare := &Options{}, ""
	f := flag.NewFlagSet("simulate", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&o.Key, "key", "$remote_addr", "`template` of the key that is limited: text and fields of a line, such as '$remote_addr:$uri'")
	f.Func("policy", "`limit` to try, such as 'GCRA 20 100 1m'; give several to compare them", func(text string) error {
		p, err := parsePolicy(text)
		if err != nil && !strings.Contains(text, " ") {
			return fmt.Errorf("%w: put the whole limit in quotes, as in --policy 'GCRA 20 100 1m'", err)
		}
		o.Policies = append(o.Policies, p)
		return err
	})
	f.Func("policies", "`file` with one policy per line, or a configuration file with policy directives", func(path string) error {
		list, skipped, err := readPolicies(path)
		o.Policies, o.Skipped = append(o.Policies, list...), append(o.Skipped, skipped...)
		return err
	})
	f.StringVar(&o.Format, "format", autoFormat, "`format` of the log: auto, combined, json, haproxy, or a regular expression with (?P<time>...)")
	f.StringVar(&spare, "spare", "", "`share` of the keys that must never be limited, such as 99.9%: finds the smallest limit for that")
	f.BoolVar(&o.JSON, "json", false, "print all figures as JSON")
	f.StringVar(&o.SVG, "svg", "", "`file` to draw a plot over time into, as SVG")
	for len(args) > 0 { // flags may stand before and behind the logs
		switch err := f.Parse(args); {
		case errors.Is(err, flag.ErrHelp):
			return nil, errors.Join(ErrHelp, writeHelp(help, f))
		case err != nil:
			return nil, fmt.Errorf("%s; headgate simulate --help lists all flags", flagtext.WithTwoDashes(err))
		}
		if args = f.Args(); len(args) > 0 {
			o.Logs, args = append(o.Logs, args[0]), args[1:]
		}
	}
	return o, o.check(spare)
}

// Notice says which policies are not simulated, and why; "" if all are.
func (o *Options) Notice() string {
	if len(o.Skipped) == 0 {
		return ""
	}
	names := make([]string, len(o.Skipped))
	for i := range o.Skipped {
		names[i] = o.Skipped[i].String()
	}
	return "not simulated, since " + errLease.Error() + ": " + strings.Join(names, "; ")
}

// check refuses what cannot be carried out.
func (o *Options) check(spare string) (err error) {
	if len(o.Logs) == 0 {
		o.Logs = []string{standardInput}
	}
	switch n := len(o.Policies); {
	case n == 0:
		return errors.New("nothing to simulate: give a limit, such as --policy 'GCRA 20 100 1m'; headgate simulate --help lists all flags")
	case n > maxPolicies:
		return fmt.Errorf("there are %d policies, and at most %d are compared at once", n, maxPolicies)
	}
	if spare != "" {
		number, percent := strings.CutSuffix(spare, "%")
		o.Spare, err = strconv.ParseFloat(number, 64)
		if err != nil || !percent || !(o.Spare > 0 && o.Spare <= 100) {
			return fmt.Errorf("--spare %s is not a share of the keys: write a percentage with its %%, such as 99.9%%", spare)
		}
	}
	t, err := parseTemplate(o.Key)
	if err == nil && o.Format != autoFormat {
		_, err = newFormat(o.Format, t.fields)
	}
	return err
}

const helpText = `headgate simulate [access.log ... | -] --policy 'GCRA 20 100 1m' [--policy ...] [--key '$remote_addr'] ...
shows what limits would have done to the traffic of access logs, plain or gzipped, which are read in the order given.

`

const helpFormats = `
Formats, for --format, and the fields for --key:
  combined  nginx's and Apache's: $%s
  haproxy   HAProxy's with option httplog: $%s
  json      Caddy's, or any with one object per line: $name, or the path to a value, such as $request.host or
            ${request.headers.X-Api-Key}; also $remote_addr, $request_uri, $host and $http_user_agent for Caddy's
  '...'     a regular expression: its named groups
`

func writeHelp(out io.Writer, f *flag.FlagSet) error {
	var text strings.Builder
	text.WriteString(helpText)
	f.VisitAll(func(fl *flag.Flag) {
		value, usage := flag.UnquoteUsage(fl)
		if fl.DefValue != "" && fl.DefValue != "false" {
			usage += " (default " + fl.DefValue + ")"
		}
		fmt.Fprintf(&text, "  %-20s %s\n", "--"+fl.Name+" "+value, usage)
	})
	list := func(names []string) string { return strings.Join(names, " $") }
	fmt.Fprintf(&text, helpFormats, list(combinedNames), list(haproxyNames))
	_, err := io.WriteString(out, text.String())
	return err
}
