// Package page is the page that the HTTP port shows: one document that loads nothing from other hosts.
package page

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // for the document
	"encoding/base64"
)

// HTML is the document.
//
//go:embed page.html
var HTML []byte

// Policy is the Content-Security-Policy that goes with it: its own style and script run, and nothing else, whatever a key may be called.
var Policy = "default-src 'none'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"style-src '" + digest("style") + "'; script-src '" + digest("script") + "'"

// digest names the contents of the document's only element of a kind by their hash.
func digest(element string) string {
	_, rest, found := bytes.Cut(HTML, []byte("<"+element+">"))
	text, _, ended := bytes.Cut(rest, []byte("</"+element+">"))
	if !found || !ended {
		panic("page: there is no " + element)
	}
	sum := sha256.Sum256(text)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
