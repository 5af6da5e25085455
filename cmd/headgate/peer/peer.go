// Package peer has the flags by which the tools are told which server they talk to, and how. They are declared once, so that what a user has learnt of one
// tool holds of all.
package peer

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
)

// Flags are what a command line says of the server. Empty fields were not given.
type Flags struct {
	Host, Port, Addr, Socket string
	User, Pass               string
	TLS, Insecure            bool
	SNI, CACert, Cert, Key   string
}

// option is a flag with all of its names. Either text or yes is set.
type option struct {
	names       []string
	value, help string
	text        func(*Flags) *string
	yes         func(*Flags) *bool
}

// Where the server is if nothing is said.
const (
	defaultHost = "127.0.0.1"
	defaultPort = "6379"
)

var options = []option{
	{[]string{"-h", "--host"}, "H", "connect to this host (default " + defaultHost + ")", func(f *Flags) *string { return &f.Host }, nil},
	{[]string{"-p", "--port"}, "P", "connect to this port (default " + defaultPort + ")", func(f *Flags) *string { return &f.Port }, nil},
	{[]string{"--addr"}, "A", "connect to this address instead: host:port, or the path of a Unix socket", func(f *Flags) *string { return &f.Addr }, nil},
	{[]string{"-s"}, "PATH", "connect to this Unix socket instead", func(f *Flags) *string { return &f.Socket }, nil},
	{[]string{"--user"}, "NAME", "authenticate as this user", func(f *Flags) *string { return &f.User }, nil},
	{[]string{"-a", "--pass"}, "WORD", "authenticate with this password; safer: in the environment variable REDISCLI_AUTH", func(f *Flags) *string { return &f.Pass }, nil},
	{[]string{"--tls"}, "", "use TLS; the server's certificate must be valid for the host", nil, func(f *Flags) *bool { return &f.TLS }},
	{[]string{"--sni"}, "NAME", "verify the certificate for this name instead", func(f *Flags) *string { return &f.SNI }, nil},
	{[]string{"--cacert"}, "FILE", "trust only the authorities in this file", func(f *Flags) *string { return &f.CACert }, nil},
	{[]string{"--cert"}, "FILE", "authenticate with this certificate; a server with tls-auth-clients yes, the default, asks for one", func(f *Flags) *string { return &f.Cert }, nil},
	{[]string{"--key"}, "FILE", "and its key", func(f *Flags) *string { return &f.Key }, nil},
	{[]string{"--insecure"}, "", "accept any certificate", nil, func(f *Flags) *bool { return &f.Insecure }},
}

// HelpWidth is how wide the column of names is in Help.
const HelpWidth = 16

// Help lists the flags, a line for each.
func Help() string {
	var text strings.Builder
	for _, o := range options {
		fmt.Fprintf(&text, "  %-*s %s\n", HelpWidth, strings.TrimSpace(strings.Join(o.names, ", ")+" "+o.value), o.help)
	}
	return text.String()
}

// Names are those of all flags, with their dashes.
func Names() (names []string) {
	for _, o := range options {
		names = append(names, o.names...)
	}
	return names
}

// Take reads the flag that a command line begins with, and returns how many words it has: 0 if the first is none of these flags.
func (f *Flags) Take(args []string) (n int, err error) {
	for _, o := range options {
		for _, name := range o.names {
			switch {
			case args[0] != name:
			case o.yes != nil:
				*o.yes(f) = true
				return 1, nil
			case len(args) == 1:
				return 0, fmt.Errorf("%s needs a value", name)
			default:
				*o.text(f) = args[1]
				return 2, nil
			}
		}
	}
	return 0, nil
}

// Bind has a flag set read the flags. Package flag takes one dash for two.
func (f *Flags) Bind(set *flag.FlagSet) {
	for _, o := range options {
		for _, name := range o.names {
			if name = strings.TrimLeft(name, "-"); o.yes != nil {
				set.BoolVar(o.yes(f), name, false, o.help)
			} else {
				set.StringVar(o.text(f), name, "", o.help)
			}
		}
	}
}

// IsGiven reports whether the flags say where the server is.
func (f *Flags) IsGiven() bool { return f.Host+f.Port+f.Addr+f.Socket != "" }

// Finish takes what the environment says in addition, and returns what is wrong with the flags.
func (f *Flags) Finish(env []string) error {
	for _, variable := range env {
		if value, ok := strings.CutPrefix(variable, "REDISCLI_AUTH="); ok && f.Pass == "" {
			f.Pass = value
		}
	}
	f.TLS = f.TLS || f.SNI != "" || f.CACert != "" || f.Cert != "" || f.Insecure
	switch n, err := strconv.Atoi(f.Port); {
	case f.Port != "" && (err != nil || n < 1 || n > 65535):
		return fmt.Errorf("%q is no port", f.Port)
	case f.Addr != "" && f.Host+f.Port+f.Socket != "":
		return errors.New("--addr says where the server is: leave out -h, -p and -s")
	case f.User != "" && f.Pass == "":
		return errors.New("--user needs --pass, or REDISCLI_AUTH in the environment")
	case (f.Cert == "") != (f.Key == ""):
		return errors.New("--cert and --key belong together: give both")
	}
	return nil
}

// Address is where the server is, as net.Dial takes it.
func (f *Flags) Address() (network, address string, err error) {
	switch {
	case f.Socket != "":
		return "unix", f.Socket, nil
	case f.Addr != "":
		return ParseAddress(f.Addr)
	}
	host, port := f.Host, f.Port
	if host == "" {
		host = defaultHost
	}
	if port == "" {
		port = defaultPort
	}
	return "tcp", net.JoinHostPort(host, port), nil
}

// ParseAddress reads host:port, or the path of a Unix socket, which unix: may precede.
func ParseAddress(text string) (network, address string, err error) {
	if path, ok := strings.CutPrefix(text, "unix:"); ok {
		return "unix", path, nil
	}
	if strings.HasPrefix(text, "/") || strings.HasPrefix(text, "./") {
		return "unix", text, nil
	}
	if _, _, err := net.SplitHostPort(text); err == nil {
		return "tcp", text, nil
	}
	if info, err := os.Stat(text); err == nil && info.Mode()&os.ModeSocket != 0 {
		return "unix", text, nil
	}
	return "", "", fmt.Errorf("the address %q is neither host:port nor the path of a Unix socket", text)
}

// TLSConfig is how TLS is spoken with the server at an address. Whose certificates are trusted is for the machine to say, unless the flags do.
func (f *Flags) TLSConfig(address string) (*tls.Config, error) {
	name := f.SNI
	if name == "" {
		name, _, _ = net.SplitHostPort(address)
	}
	settings := &tls.Config{ServerName: name, InsecureSkipVerify: f.Insecure, MinVersion: tls.VersionTLS12}
	if f.CACert != "" {
		pem, err := os.ReadFile(f.CACert)
		if err != nil {
			return nil, err
		}
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s holds no certificate", f.CACert)
		}
	}
	if f.Cert != "" {
		pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			return nil, err
		}
		settings.Certificates = []tls.Certificate{pair}
	}
	return settings, nil
}
