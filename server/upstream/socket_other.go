//go:build unix && !linux

package upstream

import "syscall"

func send(fd int, p []byte) (int, error) { return syscall.Write(fd, p) }

func receive(fd int, p []byte) (int, error) { return syscall.Read(fd, p) }
