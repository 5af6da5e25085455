// Package access decides which client may run which command. It describes the table of commands to package acl once, and a
// command line when it has to be judged.
//
// Most clients are the default user with all rights: whether a client's commands have to be looked at is worked out
// when a user changes, and is one field, Client.Guarded, that dispatch, EXEC and scripts ask. A client points to its
// user, so that a changed rule applies from the next command on. Names of keys that a client has not asked for (RL.TOP, RL.RESERVATIONS,
// RL.POLICY OVERRIDE LIST, INFO limiters, broadcasts of tracking) are shown only to clients that may read these keys.
//
// A selector keeps one bit for each command. Its description is derived from these bits, as in Redis 7.0: the fewest
// categories that come close, then the commands that make the difference.
package access
