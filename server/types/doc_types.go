// Package types is the commands of Redis's types and of keys: strings, hashes, lists, sets, sorted sets, streams,
// bitmaps, HyperLogLogs, SORT, DUMP and what holds for all of them. Each file declares its commands on top and has
// their handlers below; the values are package store's.
package types
