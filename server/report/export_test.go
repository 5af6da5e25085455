package report

import (
	"net/http"
	"net/netip"
)

// What the tests of package report_test look at. They are a package of their own since package servertest imports this one.
type (
	Family          = family
	LookedUp        = lookedUp
	PageKey         = pageKey
	PageTopKey      = pageTopKey
	PageBlocked     = pageBlocked
	PageList        = pageList
	PageCounts      = pageCounts
	PageSample      = pageSample
	PageCertificate = pageCertificate
	PageSlowCommand = pageSlowCommand
)

const (
	MaxPolicySeries = maxPolicySeries
	MaxLookedUp     = maxLookedUp
	KeptSamples     = keptSamples
	PageSlow        = pageSlow
	PageSlowBytes   = pageSlowBytes
)

var Families = families

func (r *Reports) PageData(w http.ResponseWriter, req *http.Request)   { r.pageData(w, req) }
func (r *Reports) PageLookup(w http.ResponseWriter, req *http.Request) { r.pageLookup(w, req) }
func (r *Reports) RefusesPeer(peer netip.Addr) string                  { return r.refusesPeer(peer) }
