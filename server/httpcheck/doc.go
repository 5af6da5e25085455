// Package httpcheck answers over HTTP whether a request may pass, for gateways that ask before they forward, as nginx's auth_request,
// Traefik's forwardAuth and Caddy's forward_auth do.
//
//	GET /check?policy=user&key=42&policy=site&key=all&cost=3
//
// is one RL.TAKE, and answers 200 or 429 with Retry-After and the fields of draft-ietf-httpapi-ratelimit-headers-11. The commands run like
// those of any client, with its rights, counts and upstream.
//
// Everything is bounded: the size of a request, connections, checks at a time, and the time for each.
package httpcheck
