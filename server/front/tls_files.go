package front

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync/atomic"

	"headgate/server/config"
)

// maxTLSCAFile bounds the files of tls-ca-cert-dir that are read.
const maxTLSCAFile = 1024

// tlsFiles are the contents of the files that a TLS configuration is made of, and why what is missing could not be read.
type tlsFiles struct {
	cert, key, authority fileContents
	directory            map[string]fileContents // of tls-ca-cert-dir, by name
	unlisted             string                  // why it could not be listed
}

type fileContents struct {
	data []byte
	err  string
}

func (c fileContents) equal(other fileContents) bool {
	return c.err == other.err && bytes.Equal(c.data, other.data)
}

// readTLSFiles reads all files that the directives name. Symbolic links are followed, so that a directory that is exchanged as a whole,
// as Kubernetes does with ..data, is seen.
func readTLSFiles(cfg *config.Config) tlsFiles {
	files := tlsFiles{cert: readTLSFile(cfg.Path(cfg.TLSCertFile)), key: readTLSFile(cfg.Path(cfg.TLSKeyFile))}
	files.authority = readTLSFile(cfg.Path(cfg.TLSCACertFile))
	if cfg.TLSCACertDir == "" {
		return files
	}
	dir := cfg.Path(cfg.TLSCACertDir)
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > maxTLSCAFile {
		err = fmt.Errorf("%s has more than %d files", dir, maxTLSCAFile)
	}
	if err != nil {
		files.unlisted = err.Error()
		return files
	}
	files.directory = map[string]fileContents{}
	for _, entry := range entries {
		name := filepath.Join(dir, entry.Name())
		if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
			files.directory[name] = readTLSFile(name)
		}
	}
	return files
}

func readTLSFile(name string) fileContents {
	if name == "" {
		return fileContents{}
	}
	data, err := config.ReadRegular(name, config.MaxTLSFile)
	if err != nil {
		return fileContents{err: err.Error()}
	}
	return fileContents{data: data}
}

func (f *tlsFiles) equal(other *tlsFiles) bool {
	return f.unlisted == other.unlisted && f.cert.equal(other.cert) && f.key.equal(other.key) && f.authority.equal(other.authority) &&
		maps.EqualFunc(f.directory, other.directory, fileContents.equal)
}

// config makes the configuration for handshakes. An error names the directive to correct.
func (f *tlsFiles) config(cfg *config.Config) (*tls.Config, error) {
	pair, err := f.pair(cfg)
	if err != nil {
		return nil, err
	}
	made := &tls.Config{
		Certificates:           []tls.Certificate{pair},
		CipherSuites:           cfg.TLSCipherSuites(),
		SessionTicketsDisabled: !cfg.TLSSessionCaching,
	}
	made.MinVersion, made.MaxVersion = cfg.TLSVersions()
	if cfg.TLSAuthClients == config.TLSAuthNo {
		return made, nil
	}
	if made.ClientCAs, err = f.authorities(cfg); err != nil {
		return nil, err
	}
	made.ClientAuth = tls.RequireAndVerifyClientCert
	if cfg.TLSAuthClients == config.TLSAuthOptional {
		made.ClientAuth = tls.VerifyClientCertIfGiven
	}
	return made, nil
}

// CheckTLS returns what is wrong with the files and directives for TLS, if something is.
func CheckTLS(cfg *config.Config) error {
	files := readTLSFiles(cfg)
	_, err := files.config(cfg)
	return err
}

// FollowedTLS is for another port that speaks TLS as tls-port does: handshakes are made by the files as they were at the last Refresh. That is for one
// goroutine; handshakes may come from any.
type FollowedTLS struct {
	settings func() *config.Config // as they are now
	used     *config.Config        // with which the files were used last
	files    tlsFiles
	made     atomic.Pointer[tls.Config]
	broken   string // why the files that are there now cannot be used; empty: they can
}

// FollowTLS reads the files that the settings name, which may be asked for from any goroutine.
func FollowTLS(settings func() *config.Config) (*FollowedTLS, error) {
	f := &FollowedTLS{settings: settings}
	if _, err := f.Refresh(); err != nil {
		return nil, err
	}
	return f, nil
}

// Config is the configuration of the port's handshakes. protocols are what it offers by ALPN.
func (f *FollowedTLS) Config(protocols ...string) *tls.Config {
	return &tls.Config{NextProtos: protocols, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		made := f.made.Load().Clone()
		made.NextProtos = protocols
		return made, nil
	}}
}

// Refresh uses the files anew if they or the settings have changed. changed is true only for other contents of the files: new settings alone are used and
// reported as false. Files that do not fit, such as a certificate whose key is
// not there yet, leave everything as it was; the error says so once for each reason.
func (f *FollowedTLS) Refresh() (changed bool, err error) {
	cfg := f.settings()
	files := readTLSFiles(cfg)
	if cfg == f.used && files.equal(&f.files) {
		f.broken = ""
		return false, nil
	}
	made, err := files.config(cfg)
	if err != nil {
		if err.Error() == f.broken {
			return false, nil
		}
		f.broken = err.Error()
		return false, err
	}
	changed = f.used != nil && !files.equal(&f.files)
	f.used, f.files, f.broken = cfg, files, ""
	f.made.Store(made)
	return changed, nil
}

// PrimaryTLS makes the configuration of connections to a primary. As with redis-server the primary's certificate has to be one that a known
// authority vouches for, whatever name it has.
func PrimaryTLS(cfg *config.Config) (*tls.Config, error) {
	files := readTLSFiles(cfg)
	if cfg.TLSCACertFile == "" && cfg.TLSCACertDir == "" {
		return nil, errors.New("tls-replication needs tls-ca-cert-file or tls-ca-cert-dir")
	}
	pool, err := files.authorities(cfg)
	if err != nil {
		return nil, err
	}
	made := &tls.Config{
		CipherSuites:       cfg.TLSCipherSuites(),
		InsecureSkipVerify: true, // since the name is not compared; the rest is done here
		VerifyConnection: func(state tls.ConnectionState) error {
			between := x509.NewCertPool()
			for _, c := range state.PeerCertificates[1:] {
				between.AddCert(c)
			}
			_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: pool, Intermediates: between})
			return err
		},
	}
	made.MinVersion, made.MaxVersion = cfg.TLSVersions()
	if cfg.TLSCertFile != "" {
		pair, err := files.pair(cfg)
		if err != nil {
			return nil, err
		}
		made.Certificates = []tls.Certificate{pair}
	}
	return made, nil
}

// LoadKeyPair reads the certificate of tls-cert-file with its key.
func LoadKeyPair(cfg *config.Config) (tls.Certificate, error) {
	files := readTLSFiles(cfg)
	return files.pair(cfg)
}

// pair returns the certificate with its key.
func (f *tlsFiles) pair(cfg *config.Config) (pair tls.Certificate, err error) {
	switch {
	case cfg.TLSCertFile == "":
		return pair, errors.New("no tls-cert-file is set")
	case cfg.TLSKeyFile == "":
		return pair, errors.New("no tls-key-file is set")
	case f.cert.err != "":
		return pair, fmt.Errorf("tls-cert-file: %s", f.cert.err)
	case f.key.err != "":
		return pair, fmt.Errorf("tls-key-file: %s", f.key.err)
	}
	key, err := decryptKey(f.key.data, []byte(cfg.TLSKeyFilePass))
	if err != nil {
		return pair, fmt.Errorf("tls-key-file %s: %w", cfg.Path(cfg.TLSKeyFile), err)
	}
	if pair, err = tls.X509KeyPair(f.cert.data, key); err != nil {
		return pair, fmt.Errorf("tls-cert-file %s with tls-key-file %s: %w", cfg.Path(cfg.TLSCertFile), cfg.Path(cfg.TLSKeyFile), err)
	}
	return pair, nil
}

// authorities returns those that vouch for clients.
func (f *tlsFiles) authorities(cfg *config.Config) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	switch {
	case cfg.TLSCACertFile == "" && cfg.TLSCACertDir == "":
		return nil, errors.New("tls-auth-clients needs tls-ca-cert-file or tls-ca-cert-dir; set one, or tls-auth-clients no")
	case f.authority.err != "":
		return nil, fmt.Errorf("tls-ca-cert-file: %s", f.authority.err)
	case f.unlisted != "":
		return nil, fmt.Errorf("tls-ca-cert-dir: %s", f.unlisted)
	case cfg.TLSCACertFile != "" && !pool.AppendCertsFromPEM(f.authority.data):
		return nil, fmt.Errorf("tls-ca-cert-file %s holds no certificate", cfg.Path(cfg.TLSCACertFile))
	}
	found := cfg.TLSCACertFile != ""
	for _, contents := range f.directory {
		found = pool.AppendCertsFromPEM(contents.data) || found
	}
	if !found {
		return nil, fmt.Errorf("tls-ca-cert-dir %s holds no certificate", cfg.Path(cfg.TLSCACertDir))
	}
	return pool, nil
}
