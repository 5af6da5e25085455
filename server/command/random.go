package command

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
)

// RandomSeed returns a number that nobody can guess.
func RandomSeed() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.LittleEndian.Uint64(b[:])
}

// RandomHex returns n random bytes in hexadecimal.
func RandomHex(n int) string {
	b := make([]byte, n)
	rand.Read(b)
	return hex.EncodeToString(b)
}
