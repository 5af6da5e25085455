package rls

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"headgate/server/local"
)

// service implements the rate limit service. It is safe for concurrent use.
type service struct {
	rls.UnimplementedRateLimitServiceServer

	sessions local.Sessions
	as       local.Credentials
	headers  bool // the answer has response headers
	rules    atomic.Pointer[Rules]
	counts   *Counts
	refusals refusals
}

// Counts are what has become of requests, and of reading the rules. They may be read at any time.
type Counts struct {
	OK, OverLimit, Failed  atomic.Uint64
	Reloads, FailedReloads atomic.Uint64
	Limits                 atomic.Int64 // that the rules have now
}

// badRequest is what a request is answered with that is not understood.
func badRequest(format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, format, args...)
}

// ShouldRateLimit implements the rate limit service.
func (s *service) ShouldRateLimit(ctx context.Context, request *rls.RateLimitRequest) (*rls.RateLimitResponse, error) {
	answer, err := s.decide(ctx, request)
	switch {
	case err != nil:
		s.counts.Failed.Add(1)
	case answer.OverallCode == rls.RateLimitResponse_OVER_LIMIT:
		s.counts.OverLimit.Add(1)
	default:
		s.counts.OK.Add(1)
	}
	return answer, err
}

func (s *service) decide(ctx context.Context, request *rls.RateLimitRequest) (*rls.RateLimitResponse, error) {
	switch {
	case request.GetDomain() == "":
		return nil, badRequest("rate limit domain must not be empty")
	case len(request.GetDescriptors()) == 0:
		return nil, badRequest("rate limit descriptor list must not be empty")
	case len(request.GetDescriptors()) > local.MaxPairs:
		return nil, badRequest("a request has more than %d descriptors", local.MaxPairs)
	}
	list, err := s.rules.Load().matches(request)
	if err != nil {
		return nil, err
	}
	asked, err := askedOf(request, list)
	if err != nil {
		return nil, err
	}
	var verdicts []local.Verdict
	if len(asked.pairs) > 0 {
		if verdicts, err = s.askAll(ctx, list, &asked); err != nil {
			failed := failure(err)
			if status.Code(failed) == codes.PermissionDenied {
				s.refusals.note(err)
			}
			return nil, failed
		}
	}
	return s.answer(list, asked.index, verdicts), nil
}

// asked are the limits that are asked for a request. Descriptors of one key are asked together: they charge the same count. Where they bring different
// limits of their own, the strictest decides for all, since a request passes only if each of them lets it pass.
type asked struct {
	pairs  []local.Pair
	index  []int // of each descriptor's pair; -1: it has none
	others []int // the descriptors whose own limit is not the one that decides
}

func askedOf(request *rls.RateLimitRequest, list []match) (asked, error) {
	a := asked{index: make([]int, len(list))}
	differ := false
	for i, m := range list {
		a.index[i] = -1
		if m.rule == nil || m.unlimited {
			continue
		}
		cost, err := costOf(request, i)
		if err != nil {
			return a, err
		}
		for j := range a.pairs {
			if a.pairs[j].Key == m.key {
				a.index[i] = j
			}
		}
		if a.index[i] < 0 {
			a.index[i] = len(a.pairs)
			a.pairs = append(a.pairs, local.Pair{Policy: m.asked, Key: m.key})
		}
		a.pairs[a.index[i]].Cost += cost
		differ = differ || a.pairs[a.index[i]].Policy != m.asked
	}
	if differ {
		a.letStrictestDecide(list)
	}
	return a, nil
}

func (a *asked) letStrictestDecide(list []match) {
	deciding := make([]*rule, len(a.pairs))
	for i, at := range a.index {
		if at >= 0 && (deciding[at] == nil || list[i].stricter(deciding[at])) {
			deciding[at], a.pairs[at].Policy = list[i].rule, list[i].asked
		}
	}
	for i, at := range a.index {
		if at >= 0 && list[i].asked != a.pairs[at].Policy {
			a.others = append(a.others, i)
		}
	}
}

// stricter reports whether a limit lets less pass than another one of the same key.
func (r *rule) stricter(other *rule) bool {
	if shadow := r.isShadow(); shadow != other.isShadow() {
		return !shadow
	}
	return r.limit.GetRequestsPerUnit() < other.limit.GetRequestsPerUnit()
}

func (r *rule) isShadow() bool { return strings.HasSuffix(r.policy, shadowWord) }

// maxHits bounds the hits of one descriptor, so that no sum of them overflows.
const maxHits = math.MaxInt64 / (2 * local.MaxPairs)

// costOf is how many hits a descriptor adds: its own number, which may be 0, or else the request's, which is at least 1.
func costOf(request *rls.RateLimitRequest, i int) (int64, error) {
	d := request.GetDescriptors()[i]
	hits := uint64(max(1, request.GetHitsAddend()))
	if own := d.GetHitsAddend(); own != nil {
		hits = own.GetValue()
	}
	if hits > maxHits {
		return 0, badRequest("hits_addend must be at most %d", int64(maxHits))
	}
	if d.GetIsNegativeHits() {
		return -int64(hits), nil
	}
	return int64(hits), nil
}

// askAll asks all limits, and then what those would say that have not decided. These have verdicts of their own at the end, to which their indices point.
func (s *service) askAll(ctx context.Context, list []match, a *asked) ([]local.Verdict, error) {
	verdicts, err := s.ask(ctx, a.pairs, false)
	for _, i := range a.others {
		if err != nil {
			return nil, err
		}
		pair := a.pairs[a.index[i]]
		pair.Policy = list[i].asked
		var own []local.Verdict
		if own, err = s.ask(ctx, []local.Pair{pair}, true); err == nil {
			own[0].Limited = own[0].Limited && verdicts[a.index[i]].Limited // else it is charged already
			a.index[i] = len(verdicts)
			verdicts = append(verdicts, own[0])
		}
	}
	return verdicts, err
}

// ask asks all limits at once. Where an upstream is a cluster and their keys lie in several slots, each is asked by itself.
func (s *service) ask(ctx context.Context, pairs []local.Pair, peek bool) ([]local.Verdict, error) {
	one, err := s.sessions.Take(ctx, s.as)
	if err != nil {
		return nil, err
	}
	_, list, _, err := one.Take(ctx, pairs, peek, nil)
	refusal, refused := local.Refusal(err)
	if refused && strings.HasPrefix(string(refusal), "CROSSSLOT") && len(pairs) > 1 {
		list = list[:0]
		for i := range pairs {
			var each []local.Verdict
			if _, each, _, err = one.Take(ctx, pairs[i:i+1], peek, nil); err != nil {
				break
			}
			list = append(list, each...)
		}
		_, refused = local.Refusal(err)
	}
	if err != nil && !refused {
		one.Close()
		return nil, err
	}
	s.sessions.Put(one)
	return list, err
}

// failure is what a request is answered with that limits could not answer.
func failure(err error) error {
	code := codes.Unavailable
	var refusal local.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		code = codes.DeadlineExceeded
	case errors.Is(err, context.Canceled):
		code = codes.Canceled
	case !errors.As(err, &refusal):
	case strings.HasPrefix(string(refusal), "ERR no such policy"):
		code = codes.FailedPrecondition
	case strings.HasPrefix(string(refusal), "NOPERM"), strings.HasPrefix(string(refusal), "NOAUTH"), strings.HasPrefix(string(refusal), "WRONGPASS"):
		code = codes.PermissionDenied
	case strings.HasPrefix(string(refusal), "ERR"), strings.HasPrefix(string(refusal), "WRONGTYPE"):
		code = codes.FailedPrecondition
	}
	return status.Error(code, err.Error())
}

// madeStatus is memory for a descriptor's part of an answer, which is taken for all of them at once.
type madeStatus struct {
	status rls.RateLimitResponse_DescriptorStatus
	reset  durationpb.Duration
}

// answer makes the answer of what the limits have said.
func (s *service) answer(list []match, index []int, verdicts []local.Verdict) *rls.RateLimitResponse {
	answer := &rls.RateLimitResponse{OverallCode: rls.RateLimitResponse_OK, Statuses: make([]*rls.RateLimitResponse_DescriptorStatus, len(list))}
	made := make([]madeStatus, len(list))
	var closest *rls.RateLimitResponse_DescriptorStatus // to its limit, for the headers
	for i, m := range list {
		each := &made[i].status
		each.Code, answer.Statuses[i] = rls.RateLimitResponse_OK, each
		if m.rule != nil && m.unlimited {
			each.LimitRemaining = math.MaxUint32
		}
		if index[i] < 0 {
			continue
		}
		v := &verdicts[index[i]]
		each.CurrentLimit = m.limit
		each.LimitRemaining = uint32(min(max(0, v.Remaining), math.MaxUint32))
		made[i].reset.Seconds = resetOf(m.rule, v)
		each.DurationUntilReset = &made[i].reset
		over := v.Limited
		if over {
			each.Code, answer.OverallCode, each.LimitRemaining = rls.RateLimitResponse_OVER_LIMIT, rls.RateLimitResponse_OVER_LIMIT, 0
		}
		if closest == nil || over || closest.Code == rls.RateLimitResponse_OK && each.LimitRemaining < closest.LimitRemaining {
			closest = each
		}
	}
	if s.headers && closest != nil {
		answer.ResponseHeadersToAdd = []*core.HeaderValue{
			{Key: "RateLimit-Limit", Value: strconv.FormatUint(uint64(closest.CurrentLimit.GetRequestsPerUnit()), 10)},
			{Key: "RateLimit-Remaining", Value: strconv.FormatUint(uint64(closest.LimitRemaining), 10)},
			{Key: "RateLimit-Reset", Value: strconv.FormatInt(closest.DurationUntilReset.GetSeconds(), 10)},
		}
	}
	return answer
}

// resetOf is after how many seconds all of a limit is back. For what counts within windows that begin with the clock's that is the window's end, also
// before the first call in it.
func resetOf(r *rule, v *local.Verdict) int64 {
	if seconds := units[r.limit.GetUnit()]; seconds > 0 && strings.HasPrefix(r.policy, "FIXED ") {
		return seconds - time.Now().Unix()%seconds
	}
	ms := max(0, v.ResetAfter)
	return ms/1000 + min(1, ms%1000)
}
