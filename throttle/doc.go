// Package throttle decides whether a request may pass. It is arithmetic and nothing else: the caller hands in the time
// and the stored state, and gets back a decision and the state to store. The package reads no clock, keeps no state,
// allocates nothing and imports nothing beyond the standard library, so every function is safe for concurrent use and
// always gives the same answer to the same arguments. Two types are different, as they document: Reserved and QuotaLease
// keep state, and are not safe for concurrent use.
//
// # Units
//
// For GCRA instants are int64 nanoseconds since the Unix epoch and durations are int64 nanoseconds, unless a name says
// otherwise (expireAtMs); a Quota's period is in seconds. The other algorithms count in milliseconds. A result that int64
// cannot hold is ErrOverflow or the largest number, as the function says, never a number that wrapped around.
//
// # Glossary
//
//   - emission interval: the time one unit of quantity costs, period / count; GCRA cuts it to whole nanoseconds, Rate does not.
//   - theoretical arrival time (TAT): the instant at which everything charged so far is paid off. A TAT in the past,
//     like no TAT at all, means that nothing is used.
//   - burst: how many units may pass at one instant beyond the one that the steady rate lets through.
//   - limit: burst + 1, what passes at one instant when nothing is used; also called capacity. For windows: what passes
//     within one.
//   - used: the units charged that still count.
//   - delay variation tolerance: how far the TAT may lie ahead of now, emission interval * limit.
//   - quantity, or cost: the units that one call asks for. Zero looks without charging, a negative quantity gives back.
//   - remaining: the whole units that would still pass at this instant, after the call.
//   - retry_after: how long a limited caller waits until the same call passes, if no one else calls.
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
// GCRA has redis-cell's arithmetic, for CL.THROTTLE and GCRA: by its interval of whole nanoseconds a rate of ten million a second comes
// out too high by up to a percent, and one of 600 million by two thirds. Rate, for RL.GCRA, RL.BUCKET and RL.QUEUE, is exact for every count; its documentation has
// the rule, the bound, which is less than one unit above that, and why it holds.
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
//
// The same decision serves three names. As a token bucket (Turner 1986; RFC 2697 calls it a meter) tokens come back at the
// rate up to the capacity. As a leaky bucket used as a meter the level drains at the rate. As a leaky bucket used as a queue
// (Tanenbaum, "Computer Networks") requests leave evenly: Wait says how long to hold each one back, so that what lies
// behind the limiter sees no burst at all.
//
// # Fixed window
//
// Fixed counts from the first call of a window, or within windows aligned with the epoch or with a calendar, to the
// window's end.
//
// What it guarantees: no more than the limit pass within one window. Across a boundary up to twice the limit may pass within
// less than a window's length. A limited caller that waits retry_after meets a new window.
//
// Its memory is one integer and an expiry per key. It is what INCR and EXPIRE leave.
//
// Choose it for quotas that people are shown and billed by: per hour, per day, per calendar month in the customer's zone.
// Do not choose it to protect something from bursts.
//
// Sources: the pattern is as old as counters with an expiry; Calendar's rule for clocks that jump is this package's own.
//
// # Sliding window counter
//
// Sliding cuts the window into slices and adds the newest ones up; the one slice that is partly outside counts by the share of
// its time that is still inside, as if what passed in it had been spread evenly. With one slice this is the two-window
// approximation.
//
// What it guarantees: what it takes for used differs from what passed within the window by at most what passed in the slice
// that is being forgotten; so at most limit plus that slice's count pass in any window, and at most the limit in any whole
// slices that make up a window. A limited caller that waits retry_after passes, and would not have a millisecond earlier.
//
// A slice that begins in the future, which no call at now can have charged, does not count.
//
// Its memory is one integer for each slice with traffic, at most slices + 1 of them, whatever the limit.
//
// Choose it for large limits, where the exact log would cost memory and a fixed window's doubled burst is too much.
//
// Source: the two-window form is described in "How we built rate limiting capable of scaling to millions of domains"
// (Cloudflare, 2017); many slices are the "sliding window counter" of system design literature.
//
// # Sliding log
//
// Log keeps the instant of every unit that passed, and counts those within the window.
//
// What it guarantees: in no half-open interval (t - window, t] do more than the limit pass. Nothing is approximated.
//
// Its memory is one entry per unit, up to the limit, so it grows with the limit.
//
// Choose it where "never more than n in any period" is meant literally: logins, payments, text messages, a partner's contract.
//
// Source: ClassDojo's article on its rolling-rate-limiter (2015) popularised it with Redis's sorted sets.
//
// # Concurrency limit
//
// Leases bounds how many hold something at the same time. Every holder has a lease with an end, which it renews or gives
// back.
//
// What it guarantees: no more leases than the limit are alive at any instant, unless the limit was lowered below those alive.
// A holder that crashed is forgotten after its lease's time.
//
// Its memory is one entry per holder.
//
// Choose it where work in progress is what hurts: slow requests, downloads, database connections. A rate says nothing
// about how long requests take.
//
// Sources: Gray and Cheriton, "Leases: an efficient fault-tolerant mechanism for distributed file cache consistency" (1989);
// Little's law connects such a limit with a rate.
package throttle
