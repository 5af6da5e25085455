package cli

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"net"
	"strconv"
	"strings"

	"headgate/cmd/headgate/peer"
)

// Help is the text of headgate cli --help.
var Help = `headgate cli [options] [command [argument ...]]

Sends a command to a server and prints its reply. Without a command it reads commands from its input, one per line. At a terminal it shows a
prompt with history: TAB completes the names of commands and shows their arguments, and "quit" ends. "help RL.GCRA" explains a command, at the
prompt, in the input and after headgate cli; that needs no server. There are no comments: a line that begins
with # is sent, as by redis-cli.

` + peer.Help() + `  -n DB            use this database
  -2               use RESP2, the default
  -3               use RESP3
  --raw            print replies without formatting; the default unless the output is a terminal
  --no-raw         print replies with types, quotes and element numbers
  -e               exit with 1 if a reply is an error
`

// Options are what a client is started with.
type Options struct {
	Network, Address string // as net.Dial takes them
	User, Pass       string // Pass is empty where nothing is authenticated
	DB               int
	RESP3            bool
	TLS              *tls.Config // nil: plain
	Raw              *bool       // nil: as the output is
	FailOnError      bool        // Run reports an error reply as ErrReply
	Command          []string    // empty: commands come from the input
}

// ParseOptions reads a command line. env are the variables of the environment.
func ParseOptions(args, env []string) (*Options, error) {
	o, server, db := &Options{}, peer.Flags{}, "0"
	yes, no, resp2 := true, false, false
	flags := map[string]*bool{"-2": &resp2, "-3": &o.RESP3, "-e": &o.FailOnError}
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		word := args[0]
		n, err := server.Take(args)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%w; headgate cli --help says more", err)
		case n > 0:
			args = args[n:]
			continue
		case word == "--raw":
			o.Raw = &yes
		case word == "--no-raw":
			o.Raw = &no
		case flags[word] != nil:
			*flags[word] = true
		case word != "-n":
			return nil, fmt.Errorf("%s is no option; headgate cli --help lists them", word)
		case len(args) == 1:
			return nil, fmt.Errorf("%s needs a value; headgate cli --help says more", word)
		default:
			db = args[1]
			args = args[1:]
		}
		args = args[1:]
	}
	o.Command = args
	var err error
	if o.DB, err = strconv.Atoi(db); err != nil || o.DB < 0 {
		return nil, fmt.Errorf("%q is no database", db)
	}
	if err := server.Finish(env); err != nil {
		return nil, err
	}
	o.User, o.Pass = server.User, server.Pass
	if o.Network, o.Address, err = server.Address(); err != nil || !server.TLS {
		return o, err
	}
	address := o.Address
	if o.Network == "unix" { // the certificate is for the host that would be there
		address = net.JoinHostPort(cmp.Or(server.Host, "127.0.0.1"), "0")
	}
	o.TLS, err = server.TLSConfig(address)
	return o, err
}
