// Package waitqueue has the queue of those who wait for one key's limit: in which order they have come, and when each of them could pass at
// the earliest if nothing else happened. So whoever cannot pass in time is told at once, and who comes next need not look at all the others.
//
// A limit that is a rate, as GCRA, is known exactly: a charge moves the key's theoretical arrival time (TAT), and a call passes when that is
// not too far ahead. The queue adds up the charges of those who stand before. Of other limits nobody knows what those before leave, so that
// their first one's time stands for all. A holder may give a lease back at any time, so that whoever waits for one does so until its deadline.
//
// The package is pure: it reads no clock, asks no limiter, and knows no client. Times are in ns since the Unix epoch.
package waitqueue
