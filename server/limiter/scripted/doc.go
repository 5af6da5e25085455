// Package scripted runs limiters whose state is stored in a Redis: a script decides there, and Go computes the full answer.
//
// A call becomes one command, EVALSHA of the script of its limiter's family. The script reads the state and the clock of the server that has
// the key, compares, and writes the new state: the same bytes with the same expiry that a headgate, or redis-cell, writes. It answers what
// has become of the call, the state that it found, and the time. From these the same steps that decide on a native server ([limiter.Call]) compute the
// answer: how much remains, when to retry. So there is one implementation of that, and each call checks that script and steps agree.
//
// What a script cannot decide exactly (text that is no plain number, numbers with which Lua's doubles are not exact, slices of another length,
// an algorithm that has no script) it leaves to the caller: the state is loaded, the decision made here, and the change written by a
// script that compares the state with the one that was loaded. That is tried again, up to a limit, if another caller was faster.
//
//	dst = q.Ask(dst[:0], key, policy, request)      // send dst, and
//	outcome, err := q.Answer(reply)                 // Done: the answer is in q.Call.Verdict, or
//	dst = q.Next(dst[:0])                           // Again: send dst, and so on
//
// The package does no I/O and reads no clock. A Question and a Take are for one call at a time and are reused, so that nothing is allocated for
// a call; different ones may be used concurrently. Redis 6.2 and all later ones will do, and Valkey.
package scripted
