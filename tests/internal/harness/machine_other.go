//go:build !linux

package harness

// watchProcessors sees nothing here.
func watchProcessors() (stop func() [][]moment) { return func() [][]moment { return nil } }

// PinSelf does nothing where processes cannot be kept on a processor.
func PinSelf(int) error { return nil }
