// Package simulate reports what limits would have done to the traffic of an access log. It reads the log's lines, makes a key of each, and asks
// the limiters of package limiter for every line at that line's time. Their state is in memory, and time is the log's: no clock is read.
//
// A limiter's state is dropped when it expires, as in a server. Of a key, a 64-bit hash and its counts remain, so that the report can say how
// many different keys there were and how many of them were limited.
package simulate
