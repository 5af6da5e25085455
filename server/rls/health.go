package rls

import (
	"context"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// healthNames are the services whose health is told: all of them, the rate limit service, and the name that envoyproxy/ratelimit gives it.
var healthNames = []string{"", rls.RateLimitService_ServiceDesc.ServiceName, "ratelimit"}

// healthServer answers with what /readyz says at the time of the call. Those who watch are told of a change at the next look.
type healthServer struct {
	*health.Server
	unready func() string
}

func newHealth(unready func() string) *healthServer {
	return &healthServer{health.NewServer(), unready}
}

// look takes over what /readyz says now.
func (h *healthServer) look() {
	now := healthpb.HealthCheckResponse_SERVING
	if h.unready() != "" {
		now = healthpb.HealthCheckResponse_NOT_SERVING
	}
	for _, name := range healthNames {
		h.SetServingStatus(name, now)
	}
}

// Check implements healthpb.HealthServer.
func (h *healthServer) Check(ctx context.Context, request *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	h.look()
	return h.Server.Check(ctx, request)
}

// List implements healthpb.HealthServer.
func (h *healthServer) List(ctx context.Context, request *healthpb.HealthListRequest) (*healthpb.HealthListResponse, error) {
	h.look()
	return h.Server.List(ctx, request)
}

// Watch implements healthpb.HealthServer.
func (h *healthServer) Watch(request *healthpb.HealthCheckRequest, stream healthpb.Health_WatchServer) error {
	h.look()
	return h.Server.Watch(request, stream)
}
