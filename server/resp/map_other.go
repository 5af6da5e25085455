//go:build !linux || !(amd64 || arm64)

package resp

func mapBuffer(int) []byte { return nil }

func remapBuffer([]byte, int) []byte { return nil }

func unmapBuffer([]byte) {}

func adviseHuge([]byte) {}

func populate([]byte) {}
