package limiter

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
)

// DrawnIDLength is the length of an id that the server draws, in hex digits.
const DrawnIDLength = 32

// AppendDrawnID appends an id that nobody can foresee, so that nobody gives back another one's lease by accident.
func AppendDrawnID(dst []byte) []byte {
	var random [DrawnIDLength / 2]byte
	binary.LittleEndian.PutUint64(random[:], rand.Uint64())
	binary.LittleEndian.PutUint64(random[8:], rand.Uint64())
	return hex.AppendEncode(dst, random[:])
}
