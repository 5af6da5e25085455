//go:build !linux

package bench

import "os/exec"

// processors are those that something may run on. Other systems are left to choose.
type processors struct{}

func splitProcessors() (first, rest processors) { return processors{}, processors{} }

func (processors) start(cmd *exec.Cmd) error { return cmd.Start() }

func (processors) confineSelf() (release func()) { return func() {} }
