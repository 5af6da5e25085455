// Package waitqueue is the queue of calls that wait for one key's limit: their order, and the earliest time at which each of them could pass if
// nothing else happened. So a call that cannot pass in time is answered at once, and the next one need not look at all the others.
//
// A limit that is a rate, as GCRA, is known exactly: a charge moves the key's theoretical arrival time (TAT), and a call passes when that is
// not too far ahead. The queue adds up the charges of the calls before it. For other limits it is not known what these calls leave, so the time
// of the first one is used for all. A holder may give a lease back at any time, so a call that waits for one does so until its deadline.
//
// The package is pure: it reads no clock, asks no limiter, and knows no client. Times are in ns since the Unix epoch.
package waitqueue
