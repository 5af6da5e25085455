package config

import (
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// TLSVersions returns the lowest and the highest version that tls-protocols names.
func (c *Config) TLSVersions() (low, high uint16) {
	low, high, _ = parseTLSProtocols(c.TLSProtocols)
	return low, high
}

// TLSCipherSuites returns the suites for TLS 1.2 that tls-ciphers names; nil leaves the choice to crypto/tls.
func (c *Config) TLSCipherSuites() []uint16 {
	ids, _ := parseTLSCiphers(c.TLSCiphers)
	return ids
}

func checkTLSProtocols(c *Config, _ *Host) error {
	_, _, err := parseTLSProtocols(c.TLSProtocols)
	return err
}

func checkTLSCiphers(c *Config, _ *Host) error {
	_, err := parseTLSCiphers(c.TLSCiphers)
	return err
}

var errTLSProtocols = errors.New("argument must name TLSv1.2, TLSv1.3 or both; older versions are not served")

// parseTLSProtocols reads versions with blanks between them, in any case.
func parseTLSProtocols(text string) (low, high uint16, err error) {
	for _, word := range strings.Fields(text) {
		var version uint16
		switch strings.ToLower(word) {
		case "tlsv1.2":
			version = tls.VersionTLS12
		case "tlsv1.3":
			version = tls.VersionTLS13
		default:
			return 0, 0, errTLSProtocols
		}
		if low == 0 || version < low {
			low = version
		}
		high = max(high, version)
	}
	if low == 0 {
		low, high = tls.VersionTLS12, tls.VersionTLS13
	}
	return low, high, nil
}

// openSSLSuites are OpenSSL's names of the suites for TLS 1.2 that crypto/tls holds for safe.
var openSSLSuites = map[string]uint16{
	"ECDHE-ECDSA-AES128-SHA":        tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA,
	"ECDHE-ECDSA-AES256-SHA":        tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA,
	"ECDHE-RSA-AES128-SHA":          tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA,
	"ECDHE-RSA-AES256-SHA":          tls.TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA,
	"ECDHE-ECDSA-AES128-GCM-SHA256": tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
	"ECDHE-ECDSA-AES256-GCM-SHA384": tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
	"ECDHE-RSA-AES128-GCM-SHA256":   tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
	"ECDHE-RSA-AES256-GCM-SHA384":   tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
	"ECDHE-ECDSA-CHACHA20-POLY1305": tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
	"ECDHE-RSA-CHACHA20-POLY1305":   tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
}

// parseTLSCiphers reads OpenSSL's list of suites. What is excluded with ! or - goes, if it is a suite's name; classes that are excluded
// (!aNULL, !MD5 and their like) are none that would be served.
func parseTLSCiphers(text string) ([]uint16, error) {
	var ids []uint16
	words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(":, ;\t", r) })
	for _, word := range words {
		name, excluded := strings.ToUpper(word), false
		if rest, found := strings.CutPrefix(name, "!"); found {
			name, excluded = rest, true
		} else if rest, found := strings.CutPrefix(name, "-"); found {
			name, excluded = rest, true
		}
		id := cipherSuite(name)
		switch {
		case excluded:
			ids = slices.DeleteFunc(ids, func(other uint16) bool { return other == id })
		case name == "DEFAULT" || name == "HIGH":
			for _, id := range safeSuites() {
				if !slices.Contains(ids, id) {
					ids = append(ids, id)
				}
			}
		case id == 0:
			return nil, fmt.Errorf("argument names %s, which is none of DEFAULT, %s", quoteIfNeeded(word), strings.Join(suiteNames(), ", "))
		case !slices.Contains(ids, id):
			ids = append(ids, id)
		}
	}
	if len(words) > 0 && len(ids) == 0 {
		return nil, errors.New("argument leaves no cipher suite")
	}
	return ids, nil
}

// cipherSuite returns the suite with a name, OpenSSL's or IANA's, in capitals; 0 if there is none.
func cipherSuite(name string) uint16 {
	if id, found := openSSLSuites[name]; found {
		return id
	}
	for _, id := range openSSLSuites {
		if tls.CipherSuiteName(id) == name {
			return id
		}
	}
	return 0
}

// safeSuites returns all suites for TLS 1.2, in the order of their numbers.
func safeSuites() []uint16 {
	var ids []uint16
	for _, id := range openSSLSuites {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func suiteNames() []string {
	var names []string
	for name := range openSSLSuites {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
