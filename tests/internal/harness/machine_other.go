//go:build !linux

package harness

import "context"

// watchProcessors sees nothing here.
func watchProcessors() (stop func() [][]moment) { return func() [][]moment { return nil } }

// PinSelf does nothing where processes cannot be kept on a processor.
func PinSelf(int) error { return nil }

// WatchPace sees nothing here.
func WatchPace(context.Context) *Pace { return newPace() }
