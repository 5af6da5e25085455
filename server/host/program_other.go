//go:build !linux

package host

// Program is nowhere: no way is known to have the system forget parts of the program's own file.
type Program struct{}

// FindProgram returns nothing.
func FindProgram() Program { return Program{} }

// GiveBack does nothing.
func (Program) GiveBack() {}
