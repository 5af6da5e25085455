// Package types has the commands of Redis's types and of keys: strings, hashes, lists, sets, sorted sets, streams,
// bitmaps, HyperLogLogs, SORT, DUMP and the commands for keys of any type. Each file declares its commands on top and has
// their handlers below; the values are package store's.
//
// A handler reads its arguments, asks or changes the keyspace, and replies. It declares an effect, by
// [command.Ctx.Effect], where a replay of the command as it was called could decide otherwise.
package types
