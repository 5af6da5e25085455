// Package pubsub sends clients what they have subscribed to: messages of channels, events of the keyspace, and
// invalidations of keys that they track.
//
// A message is appended to its receivers' output, whose fronts are woken; each front writes to its own sockets.
// Messages to a client whose own command is running go before that command's reply.
//
// What one client holds in tables that all share (subscriptions, prefixes it tracks, keys it watches or waits for) may
// be hundreds of thousands of entries. When it leaves or releases them all, they lose their effect at once, and
// background work takes them out of the tables (remains.go), so that no client waits for it; their memory counts as
// clients' until then. Each new entry removes two of them, so there are never more than were held at one time. Removing
// one costs the same however many there are.
package pubsub
