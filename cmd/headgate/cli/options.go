package cli

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
)

// Help is the text of headgate cli --help.
const Help = `headgate cli [options] [command [argument ...]]

Sends a command to a server and prints its reply. Without a command it reads commands from its input, one per line. At a terminal it shows a
prompt with history: TAB completes the names of commands and shows their arguments, and "quit" ends. "help RL.GCRA" explains a command, at the
prompt, in the input and after headgate cli; that needs no server. There are no comments: a line that begins
with # is sent, as by redis-cli.

  -h, --host H   connect to this host (default 127.0.0.1)
  -p, --port P   connect to this port (default 6379)
  -s PATH        connect to this Unix socket instead
  --user NAME    authenticate as this user
  -a, --pass P   authenticate with this password; safer: in the environment variable REDISCLI_AUTH
  -n DB          use this database
  -2             use RESP2, the default
  -3             use RESP3
  --tls          use TLS; the server's certificate must be valid for the host
  --sni NAME     verify the certificate for this name instead
  --cacert FILE  trust only the authorities in this file
  --cert FILE    authenticate with this certificate
  --key FILE     and its key
  --insecure     accept any certificate
  --raw          print replies without formatting; the default unless the output is a terminal
  --no-raw       print replies with types, quotes and element numbers
  -e             exit with 1 if a reply is an error
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
	o, host, port, socket := &Options{}, "127.0.0.1", "6379", ""
	var secure, insecure bool
	var sni, caCert, cert, key string
	for _, variable := range env {
		if value, ok := strings.CutPrefix(variable, "REDISCLI_AUTH="); ok {
			o.Pass = value
		}
	}
	db := "0"
	values := map[string]*string{
		"-h": &host, "--host": &host, "-p": &port, "--port": &port, "-s": &socket, "--user": &o.User, "-a": &o.Pass, "--pass": &o.Pass, "-n": &db,
		"--sni": &sni, "--cacert": &caCert, "--cert": &cert, "--key": &key,
	}
	yes, no, resp2 := true, false, false
	flags := map[string]*bool{"-2": &resp2, "-3": &o.RESP3, "--tls": &secure, "--insecure": &insecure, "-e": &o.FailOnError}
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		word := args[0]
		args = args[1:]
		switch {
		case word == "--raw":
			o.Raw = &yes
		case word == "--no-raw":
			o.Raw = &no
		case flags[word] != nil:
			*flags[word] = true
		case values[word] == nil:
			return nil, fmt.Errorf("%s is no option; headgate cli --help lists them", word)
		case len(args) == 0:
			return nil, fmt.Errorf("%s needs a value; headgate cli --help says more", word)
		default:
			*values[word] = args[0]
			args = args[1:]
		}
	}
	o.Command = args
	var err error
	if o.DB, err = strconv.Atoi(db); err != nil || o.DB < 0 {
		return nil, fmt.Errorf("%q is no database", db)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return nil, fmt.Errorf("%q is no port", port)
	}
	if o.User != "" && o.Pass == "" {
		return nil, errors.New("--user needs --pass, or REDISCLI_AUTH in the environment")
	}
	o.Network, o.Address = "tcp", net.JoinHostPort(host, port)
	if socket != "" {
		o.Network, o.Address = "unix", socket
	}
	if secure || caCert != "" || cert != "" || sni != "" || insecure {
		if sni == "" {
			sni = host
		}
		o.TLS, err = settings(sni, caCert, cert, key, insecure)
	}
	return o, err
}

// settings are those of TLS.
func settings(name, caCert, cert, key string, insecure bool) (*tls.Config, error) {
	t := &tls.Config{ServerName: name, InsecureSkipVerify: insecure}
	if caCert != "" {
		pem, err := os.ReadFile(caCert)
		if err != nil {
			return nil, err
		}
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s holds no certificate", caCert)
		}
	}
	if (cert == "") != (key == "") {
		return nil, errors.New("--cert and --key belong together: give both")
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, err
		}
		t.Certificates = []tls.Certificate{pair}
	}
	return t, nil
}
