//go:build invariants || race

package store

// invariants turns the checks on that cost memory and time.
const invariants = true
