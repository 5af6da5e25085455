// Package simulate says what limits would have done to the traffic of an access log. It reads the log's lines, makes a key of each, and asks
// the limiters of package limiter for every line at that line's time. Their state is in memory, and no clock is read: the log's times are
// all that there is.
//
// A limiter's state goes when it has expired, as it would in a server. What stays of a key is a number of 64 bits and its counts, so that
// the report can say how many different keys there were and how many of them were limited.
package simulate
