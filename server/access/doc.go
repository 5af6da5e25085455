// Package access says who may run what. It describes the table of commands to package acl once, and a command line when
// it has to be judged.
//
// Most clients are the default user with all rights: whether a client's commands have to be looked at is worked out
// when a user changes, and is one field, Client.guarded, that dispatch, EXEC and scripts ask. A client points to its
// user, so that a changed rule holds for the next command. Names of keys that a client has not asked for (RL.TOP, INFO
// limiters, broadcasts of tracking) are told to who may read these keys.
//
// What a selector allows is kept as a bit for each command; what it is described by is found anew from them, since
// Redis 7.0 does so: the fewest categories that come near, then the commands that make the difference.
package access
