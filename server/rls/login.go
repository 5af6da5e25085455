package rls

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"headgate/server/local"
)

// refusalEvery is the shortest time between two lines of the log about requests that the service's user may not make.
const refusalEvery = time.Minute

// refusals tell the operator of a user or a password that is wrong: Envoy lets requests pass without an answer, and nobody else would notice.
type refusals struct {
	log  *slog.Logger
	user string
	last atomic.Int64 // when the log was told last, in ns since 1970
}

// note tells of a request that was refused.
func (r *refusals) note(err error) {
	now, last := time.Now().UnixNano(), r.last.Load()
	if last != 0 && now-last < int64(refusalEvery) || !r.last.CompareAndSwap(last, now) {
		return
	}
	r.log.Warn("requests to the rate limit service fail: its user may not check limits", "user", r.user, "err", err)
}

// checkLogin warns, once, of a user or a password with which all requests fail.
func (p *Port) checkLogin() {
	if p.service.as == (local.Credentials{}) {
		if p.options.NeedsAuth() {
			p.options.Log.Warn("all requests to the rate limit service fail: the default user has a password; set rls-user and rls-password")
		}
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	session, err := p.service.sessions.Take(ctx, p.service.as)
	if err == nil {
		p.service.sessions.Put(session)
		return
	}
	if _, refused := local.Refusal(err); refused {
		p.options.Log.Warn("all requests to the rate limit service fail: correct rls-user and rls-password", "user", p.service.as.User, "err", err)
	}
}
