// Package policy reads what limits are written as: the arguments of the RL.* commands, and policies, which are the same words
// under a name. It turns them into the values of package throttle; it decides nothing and keeps no limiter's state.
//
// Everything is safe for concurrent use.
package policy
