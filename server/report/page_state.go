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
	pageSlow      = 10  // the newest so many
	pageSlowBytes = 240 // of a command line
)

// pageCertificate is the one that tls-port shows.
type pageCertificate struct {
	Until  int64  `json:"until"`            // ms
	Soon   bool   `json:"soon,omitempty"`   // it ends soon, or has ended
	Broken string `json:"broken,omitempty"` // why the files that are there now are not used
}

// pageSlowCommand is an entry of the slow log, without what SLOWLOG GET takes out of it either.
type pageSlowCommand struct {
	At     int64  `json:"at"` // s
	Usec   int64  `json:"usec"`
	Text   string `json:"text"`
	Client string `json:"client"`
}

// slowForPage are the newest slow commands.
func (r *Reports) slowForPage() []pageSlowCommand {
	var slow []observe.SlowEntry
	r.locked(func() {
		entries := r.Recorder.Slowlog.Entries
		slow = slices.Clone(entries[max(0, len(entries)-pageSlow):])
	})
	list := make([]pageSlowCommand, 0, len(slow))
	for _, e := range slices.Backward(slow) {
		list = append(list, pageSlowCommand{At: e.At, Usec: e.Usec, Text: lineForPage(e.Args), Client: readable([]byte(cmp.Or(e.Name, e.Addr)))})
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
func (r *Reports) certificateForPage() *pageCertificate {
	if r.Config.Get().TLSPort == 0 {
		return nil
	}
	until, broken := r.Fronts.TLS.Certificate()
	return &pageCertificate{Until: until.UnixMilli(), Soon: front.EndsSoon(until), Broken: broken}
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
	if len(line) <= pageSlowBytes {
		return line
	}
	end := pageSlowBytes
	for !utf8.RuneStart(line[end]) {
		end--
	}
	return line[:end] + "…"
}
