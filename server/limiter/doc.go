// Package limiter declares the limiters: one [Algorithm] for each, in a file of its own or with those that share its state, from which the RL.* commands, policies, RL.TAKE, metrics,
// INFO, headgate bench and the tables of the documentation derive. The arithmetic is package throttle's.
//
// A call is answered in three steps, so that the state of a key may be kept anywhere, and may take a while to arrive:
//
//  1. [Call.Prepare] says what the decision needs to know of the key ([Want]), and [State] finds it ([Found]).
//  2. [Call.Decide] decides by that and by the time alone, and results in a [Verdict] and a [Change].
//  3. State applies the Change, or reports why it cannot. Nothing else checks whether data may be written, logs changes
//     and publishes key-space events, so that no algorithm can forget to.
//
// The package reads no clock, and keeps nothing between calls. Everything but a Call is safe for concurrent use.
package limiter
