package gateway

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"headgate/server/config"
	"headgate/server/upstream"
)

// Check returns what is wrong with a configuration's upstream, as far as it can be told without asking it.
func Check(cfg *config.Config) error {
	if cfg.Upstream == "" {
		return nil
	}
	if _, err := (&Gateway{}).upstreamConfig(cfg); err != nil {
		return err
	}
	return checkHomeOnly(cfg.Policies)
}

// upstreamConfig says where the upstream is. Files are only read if others are named than before; followFiles looks whether they change.
func (g *Gateway) upstreamConfig(cfg *config.Config) (upstream.Config, error) {
	return g.configWith(cfg, nil)
}

// configWith is upstreamConfig with files that have just been read, if there are some. Those that hold what they held before make the same TLS
// configuration, so that connections stay.
func (g *Gateway) configWith(cfg *config.Config, files *tlsFiles) (upstream.Config, error) {
	c, err := upstream.ParseURL(cfg.Upstream)
	if err != nil {
		return c, err
	}
	for _, addr := range c.Addrs {
		if isOwn(cfg, addr) {
			return c, fmt.Errorf("upstream: %s is this gateway itself, which listens there: give it another port", addr)
		}
	}
	if c.Unix != "" && c.Unix == cfg.Path(cfg.UnixSocket) {
		return c, fmt.Errorf("upstream: %s is this gateway itself", c.Unix)
	}
	c.Password = cfg.UpstreamPassword
	c.Timeout, c.Rest = cfg.UpstreamTimeout, cfg.UpstreamRest
	c.PendingBytes, c.PendingCommands = int64(cfg.UpstreamPendingMax.Bytes), cfg.UpstreamPendingMax.Commands
	c.ReplyMax = int64(cfg.ProtoMaxBulkLen)
	if hard := int64(cfg.OutputLimits.Normal.Hard); hard > 0 { // nobody could be sent more
		c.ReplyMax = min(c.ReplyMax, hard)
	}
	c.Map = map[string]string{}
	for _, t := range cfg.UpstreamMap {
		for _, addr := range []string{t.From, t.To} {
			if _, _, err := net.SplitHostPort(addr); err != nil {
				return c, fmt.Errorf("upstream-map: %q is not host:port", addr)
			}
		}
		c.Map[t.From] = t.To
	}
	if g.core != nil {
		c.RunID = g.core.RunID
	}
	switch {
	case c.TLS == nil && namesOf(cfg) != [3]string{}:
		return c, errors.New("upstream: there are files for TLS, but the URL begins with neither rediss:// nor rediss-sentinel://")
	case c.TLS == nil:
		return c, nil
	case files == nil && g.files.made != nil && g.files.names == namesOf(cfg):
		c.TLS = g.files.made
		return c, nil
	case files == nil:
		read, err := readTLSFiles(cfg)
		if err != nil {
			return c, err
		}
		files = &read
	}
	made := g.files.made
	if made == nil || !g.files.same(files) {
		if made, err = files.make(c.TLS); err != nil {
			return c, err
		}
	}
	g.files = *files
	g.files.made, c.TLS = made, made
	return c, nil
}

// namesOf are the paths of the files for TLS, "" for those that are not named.
func namesOf(cfg *config.Config) (names [3]string) {
	for i, name := range [...]string{cfg.UpstreamTLSCACertFile, cfg.UpstreamTLSCertFile, cfg.UpstreamTLSKeyFile} {
		if name != "" {
			names[i] = cfg.Path(name)
		}
	}
	return names
}

// isOwn reports whether a configured address is plainly one that the gateway listens on; others show themselves when they are asked.
func isOwn(cfg *config.Config, addr string) bool {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	number, err := strconv.Atoi(port)
	return err == nil && cfg.IsOwn(config.Address{Host: host, Port: number})
}

// tlsFiles is what the files for TLS hold, and the configuration that was made of them.
type tlsFiles struct {
	names                  [3]string
	authorities, cert, key []byte
	made                   *tls.Config
}

func (f *tlsFiles) same(other *tlsFiles) bool {
	return bytes.Equal(f.authorities, other.authorities) && bytes.Equal(f.cert, other.cert) && bytes.Equal(f.key, other.key)
}

func readTLSFiles(cfg *config.Config) (f tlsFiles, err error) {
	if (cfg.UpstreamTLSCertFile == "") != (cfg.UpstreamTLSKeyFile == "") {
		return f, errors.New("upstream: upstream-tls-cert-file and upstream-tls-key-file go together")
	}
	f.names = namesOf(cfg)
	for i, one := range []struct {
		directive string
		content   *[]byte
	}{
		{"upstream-tls-ca-cert-file", &f.authorities},
		{"upstream-tls-cert-file", &f.cert},
		{"upstream-tls-key-file", &f.key},
	} {
		path := f.names[i]
		if path == "" {
			continue
		}
		if *one.content, err = config.ReadRegular(path, config.MaxTLSFile); err != nil {
			return f, fmt.Errorf("upstream: %s cannot be read: %w", one.directive, err)
		}
	}
	return f, nil
}

// make adds what the files hold to a configuration.
func (f *tlsFiles) make(base *tls.Config) (*tls.Config, error) {
	c := base.Clone()
	if f.authorities != nil {
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(f.authorities) {
			return nil, errors.New("upstream: upstream-tls-ca-cert-file holds no certificate in PEM")
		}
	}
	if f.cert != nil {
		pair, err := tls.X509KeyPair(f.cert, f.key)
		if err != nil {
			return nil, fmt.Errorf("upstream: upstream-tls-cert-file and upstream-tls-key-file: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// usersOf are the upstream's users for users here.
func usersOf(cfg *config.Config) map[string]*upstream.UserConn {
	if len(cfg.UpstreamUserMap) == 0 {
		return nil
	}
	users := make(map[string]*upstream.UserConn, len(cfg.UpstreamUserMap))
	for _, t := range cfg.UpstreamUserMap {
		users[t.From] = &upstream.UserConn{Name: t.To, Password: cfg.UpstreamPassword}
	}
	return users
}

// changed takes a changed configuration into use, or refuses it. The executor's lock is held, or nothing runs yet.
func (g *Gateway) changed(_, cfg *config.Config) error {
	if cfg.Upstream == "" {
		return errUnset
	}
	return g.use(cfg, nil)
}

// use takes a configuration into use, with files that have just been read if there are some.
func (g *Gateway) use(cfg *config.Config, files *tlsFiles) error {
	c, err := g.configWith(cfg, files)
	if err != nil {
		return err
	}
	g.users = usersOf(cfg)
	g.leases.apply(g, cfg)
	g.Up.SetConfig(c)
	return nil
}

// Errors of changes between a native server and a gateway.
var (
	errUnset = errors.New("this process is a gateway, and cannot keep keys itself until it is restarted")
	errSet   = errors.New("this process keeps keys itself, and cannot be a gateway until it is restarted")
	errKeeps = errors.New("this process is a gateway, which keeps no data")
)

// keepNothing refuses directives about data.
func keepNothing(_, cfg *config.Config) error {
	if cfg.AppendOnly || len(cfg.Save) > 0 {
		return errKeeps
	}
	return nil
}

// StayNative has a server that is no gateway refuse to become one.
func StayNative(live *config.Live) {
	live.OnChange(func(_, cfg *config.Config) error {
		if cfg.Upstream != "" {
			return errSet
		}
		return nil
	}, "upstream")
}

// filesEvery is how often the files for TLS are looked at.
const filesEvery = time.Second

// followFiles takes changed files for TLS into use. Files that cannot be read, or do not fit, leave everything as it was; the log says so once for
// each reason.
func (g *Gateway) followFiles(ctx context.Context) {
	broken := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(filesEvery):
		}
		cfg := g.core.Config.Get()
		if cfg.UpstreamTLSCACertFile == "" && cfg.UpstreamTLSCertFile == "" {
			continue
		}
		files, err := readTLSFiles(cfg)
		g.core.Lock()
		cfg = g.core.Config.Get()
		changed := g.files.made != nil && files.names == namesOf(cfg) && (err != nil || !g.files.same(&files))
		if changed && err == nil {
			err = g.use(cfg, &files)
		}
		g.core.Unlock()
		switch {
		case err == nil:
			broken = ""
		case changed && err.Error() != broken:
			broken = err.Error()
			g.logger().Warn("the changed TLS files for the upstream cannot be used", "err", err)
		}
	}
}
