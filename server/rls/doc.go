// Package rls answers Envoy's rate limit service, version 3, over gRPC, by the configuration files of envoyproxy/ratelimit.
//
// A request has a domain and descriptors. A descriptor is a list of entries, key and value, that leads down a tree of rules to a limit, if there
// is one. All limits of a request are asked in one RL.TAKE. docs/envoy.md lists the differences from envoyproxy/ratelimit.
//
// Sources: envoy.service.ratelimit.v3 and the README of envoyproxy/ratelimit.
package rls
