//go:build !invariants && !race

package store

// invariants turns the checks on that cost memory and time; build with the tag of that name to have them.
const invariants = false
