// Package throttle decides whether a request may pass. It is arithmetic and nothing else: the caller hands in the time
// and the stored state, and gets back a decision and the state to store. The package reads no clock, keeps no state,
// allocates nothing and imports nothing beyond the standard library, so every function is safe for concurrent use and
// gives the same answer to the same arguments for ever.
//
// # Units
//
// Instants are int64 nanoseconds since the Unix epoch and durations are int64 nanoseconds, unless a name says
// otherwise (expireAtMs). A Quota's period is in seconds. A result that int64 cannot hold is ErrOverflow, never a
// number that wrapped around.
//
// # Glossary
//
//   - emission interval: the time one unit of quantity costs, period / count, cut to whole nanoseconds.
//   - theoretical arrival time (TAT): the instant at which everything charged so far is paid off. A TAT in the past,
//     like no TAT at all, means that nothing is used.
//   - burst: how many units may pass at one instant beyond the one that the steady rate lets through.
//   - limit: burst + 1, what passes at one instant when nothing is used; also called capacity.
//   - delay variation tolerance: how far the TAT may lie ahead of now, emission interval * limit.
//   - quantity: the units that one call asks for. Zero looks without charging, a negative quantity gives back.
//   - remaining: the whole units that would still pass at this instant, after the call.
//   - retry_after: how long a limited caller waits until the same call passes, if nobody else calls.
//   - reset_after: how long until nothing is used any more.
//
// # GCRA
//
// The generic cell rate algorithm is the token bucket (equally, the leaky bucket as a meter) kept as one number. Each
// charge moves the TAT ahead by quantity emission intervals; a call is limited when that would take the TAT further
// ahead of now than the tolerance.
//
// What it guarantees, for a limit of at least 1 and without refunds: between any two instants t apart, both included,
// at most limit + t / interval units pass. A limited caller that waits retry_after is admitted at its first try, and
// would not have been a nanosecond earlier. A limited call and a call with quantity 0 change nothing. A refund stops at
// "nothing is used". Nothing is rounded away from one call to the next: rounding happens in what is reported only.
//
// Its memory is one integer and an expiry per key, whatever the limit and the traffic, and the key is gone by itself
// once nothing is used.
//
// Choose it when requests should be spread over the period while short bursts may pass: API quotas, login throttling,
// calls to an upstream with a rate of its own. Choose another algorithm when the promise is "never more than n in any
// period": a full burst followed by the steady rate passes limit + count units within the first period.
//
// Sources: ITU-T Recommendation I.371 and the ATM Forum's Traffic Management Specification 4.0 define the algorithm
// (there the tolerance counts what may pass beyond the first cell, so it is one interval smaller than the one here).
// Brandur Leach's article "Rate Limiting, Cells, and GCRA" and his redis-cell module carry it over to requests; this
// package gives redis-cell's answers, and an error where redis-cell's arithmetic would wrap around.
package throttle
