package report

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"headgate/server/front"
	"headgate/server/observe"
)

// What the page shows of slow commands.
const (
	PageSlow      = 10  // the newest so many
	PageSlowBytes = 240 // of a command line
)

// PageCertificate is the one that tls-port shows.
type PageCertificate struct {
	Until  int64  `json:"until"`            // ms
	Soon   bool   `json:"soon,omitempty"`   // it ends soon, or has ended
	Broken string `json:"broken,omitempty"` // why the files that are there now are not used
}

// PageSlowCommand is an entry of the slow log, without what SLOWLOG GET takes out of it either.
type PageSlowCommand struct {
	At     int64  `json:"at"` // s
	Usec   int64  `json:"usec"`
	Text   string `json:"text"`
	Client string `json:"client"`
}

// slowForPage are the newest slow commands.
func (r *Reports) slowForPage() []PageSlowCommand {
	var slow []observe.SlowEntry
	r.locked(func() {
		entries := r.Recorder.Slowlog.Entries
		slow = slices.Clone(entries[max(0, len(entries)-PageSlow):])
	})
	list := make([]PageSlowCommand, 0, len(slow))
	for _, e := range slices.Backward(slow) {
		list = append(list, PageSlowCommand{At: e.At, Usec: e.Usec, Text: lineForPage(e.Args), Client: readable([]byte(cmp.Or(e.Name, e.Addr)))})
	}
	return list
}

// errorText is what an error says, or nothing if there is none.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// certificateForPage is how the certificate stands, or nil without TLS.
func (r *Reports) certificateForPage() *PageCertificate {
	if r.Config.Get().TLSPort == 0 {
		return nil
	}
	until, broken := r.Fronts.TLS.Certificate()
	return &PageCertificate{Until: until.UnixMilli(), Soon: front.EndsSoon(until), Broken: broken}
}

// lineForPage is a command line for people to read, cut where it is long.
func lineForPage(args [][]byte) string {
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = readable(arg)
		if strings.ContainsRune(words[i], ' ') && words[i][0] != '"' {
			words[i] = `"` + words[i] + `"`
		}
	}
	line := strings.Join(words, " ")
	if len(line) <= PageSlowBytes {
		return line
	}
	end := PageSlowBytes
	for !utf8.RuneStart(line[end]) {
		end--
	}
	return line[:end] + "…"
}
