// Package command defines what a command is, and has what all commands share: the table, the context in which one runs,
// and its effects.
//
// # The table
//
// There is one [Command] value per command. From it derive COMMAND and its sub-commands, arity errors, key extraction
// (and so the prefetch), ACL categories, rights to keys and channels, admission, what the slow log and MONITOR hide,
// INFO commandstats, docs/commands.md, and what the compat suite must cover. No code outside a declaration compares a
// command's name with a word. The table is checked when it is built; a declaration that contradicts itself, or takes a
// password and does not hide it, does not start. Where keys stand is found by [KeySpec.Find], for rights, COMMAND GETKEYS
// and tracking alike; behind a word or among options, it takes the handler's own steps.
//
// # Core
//
// [Core] is what every part of the server embeds: the executor's lock, the keyspace, the clock, the configuration, the
// log, the command table, counters, effects and clients.
//
// # Effects
//
// The changes of a command are recorded as commands with absolute times, so that a replay makes no decisions
// (effects.go). A write is noted as it was called unless its handler declares other effects; what happens within one
// client's command is one unit, in MULTI and EXEC if it is more than one effect. They are collected only while there is
// a log or a replica; otherwise a command looks at one field.
//
// # The gate
//
// The reasons why commands may not simply run are one mask (gate.go): the disk is full, snapshots fail, data are being
// loaded, a script overruns, memory has a limit, clients are paused. Each reason has its error and is set by the code
// that detects it; a command checks all of them at once. Rarely used features that concern each command (MONITOR, a slow
// log below its default, tracking) share one such check, too.
//
// # Time
//
// One clock (clock.go), read once per batch. It starts at the wall's time and never goes back: it jumps forward with
// the wall, and runs at half speed while it is ahead of it. Durations (uptime, idle times, rates, save points, how long
// a client's output is too long) are measured by the monotonic time that each reading takes along.
//
// The time of commands marked Fast is an estimate once they have been called often: one call in 64 is timed and counts
// for all, because two looks at the clock would cost such a command a tenth of its time. Calls with many arguments are
// always timed.
package command
