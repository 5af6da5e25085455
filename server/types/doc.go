// Package types holds the commands on the data types of Redis, one file for each type, and those on keys whatever their type.
//
// A handler reads its arguments, asks or changes the keyspace, and replies. It declares an effect, by [command.Ctx.Effect], where a replay
// of the command as it was called could decide otherwise.
package types
