// Package bench is the load generator of headgate bench. It sends one kind of operation to one or two servers that speak the Redis
// protocol, as fast as they answer or at a given rate, and reports throughput and latency.
//
// Latency is counted from the moment at which an operation was meant to begin. When a rate is asked for, that is the schedule's
// moment, whatever the server was doing then, so that a stall is felt by all operations that it delayed. Nothing is allocated and
// nothing is formatted per operation: a connection holds its commands' bytes, and only digits of a fixed width change in them.
//
// Two drivers move the bytes. On Linux one goroutine serves all connections of a loop with epoll; TLS and other systems have a
// goroutine per connection. Both use client, which knows the protocol and no sockets.
package bench
