//go:build !linux

package resp

func mapBuffer(size int) []byte { return make([]byte, size) }

func remapBuffer([]byte, int) ([]byte, bool) { return nil, false }

func unmapBuffer([]byte) bool { return false }
