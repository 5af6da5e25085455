// Package limits has the commands that limit, the policies that they may name, and the state of limiters in the
// keyspace.
//
// Package limiter declares the algorithms; the RL.* commands derive from it. State here is a [limiter.State] over the
// keyspace. RL.TAKE asks all of its limits as peeks first, and then, if none limits, again in earnest: keys are
// different from each other, so the second answers are the first ones.
//
// Limiters decide even when writes are refused. Dispatch lets them run when memory is short or the disk is full. Decisions
// are stored in one place, which checks before the first change whether it may write and whether the change needs memory:
// a new key, or more entries than the call removes. So a key that is limited stays limited, however many keys strangers
// invent. While memory is short, RL.TAKE rehearses all of its charges first.
//
// A policy's name is looked up in a map of what was parsed. The store counts the changes of one name in a database
// (DB.Follow), by whatever command they come, and the map is thrown away when the count has moved: that costs every
// other write one comparison of lengths.
//
// A reservation (reserve*.go) charges its limits as RL.TAKE does, and is kept as a key of the server's own. How much of it may come back
// depends on the least backlog since the charge, so the store reports each change of the key before it happens
// (DB.Mark), which costs other writes a look at a pointer while nothing is reserved. When it times out is in a heap, which is rebuilt
// from the keys whenever there are more of them than are known.
//
// A policy's blocks and overrides for single keys are strings beside these keys (companion_keys.go). The store counts
// these by policy (DB.Reserved), by whatever command they come and go, and says by one number whether that has
// changed: so a policy without any is asked as fast as if there were no such thing. For one that has some, or that
// says SHADOW or BLOCK, askBlockable stands before its limit. A block begins when a call is answered and no sooner, so
// that a call which waits begins none.
//
// What expires at once leaves a limiter's state in slices: no call takes out more than maxTrimmed entries, and what
// lies outside the window is left out by rank, not by walking over it.
//
// A call with WAIT that would be limited stands in the queue of one key (wait.go), whose times package
// waitqueue knows. ServeWaits looks at a queue when its key has changed (store.Heed), when policies have, and when the first
// one could pass; a call that is looked at is parsed again from its arguments. While no call waits, all this costs a call
// one comparison.
//
// Decisions are counted by algorithm and by policy (decisions.go): three additions for a call. Which keys are called
// and limited most, package top estimates by a Space-Saving sketch. Keys that it watches are counted call by call. Once its
// places are taken, the calls of other keys have a chance of one in 64 to have theirs watched, so that traffic over
// many keys does not pay for replacing one by the other. Two such sketches take turns, so that old calls are forgotten.
package limits
