package rdb

import (
	"encoding/binary"

	"golang.org/x/sys/cpu"
)

// foldBlock is how many bytes the processor folds at a time: four registers of 16.
const foldBlock = 64

// foldBy are what the two halves of a register are multiplied with when it moves past four registers, and past one. The product of two
// reflected numbers has one x too many, so the powers are one less than the bits that each half passes.
var foldBy = [4]uint64{crcPower(4*128 + 63), crcPower(4*128 - 1), crcPower(128 + 63), crcPower(128 - 1)}

// crcPower is x^n, modulo the polynomial.
func crcPower(n int) uint64 {
	p := uint64(1) << 63
	for range n {
		p = crcTimesX(p)
	}
	return p
}

// foldCRC adds as much of p to a checksum as the processor can by multiplying without carries, and returns what is left of p. It is the
// method of Gopal and others, "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction" (Intel, 2009), but that the last
// 16 bytes, to which all others have been folded, go through the tables.
func foldCRC(crc uint64, p []byte) (sum uint64, rest []byte) {
	n := len(p) &^ (foldBlock - 1)
	if n == 0 || !cpu.X86.HasPCLMULQDQ {
		return crc, p
	}
	var folded [16]byte
	low, high := foldBlocks(crc, p[:n], &foldBy)
	binary.LittleEndian.PutUint64(folded[:], low)
	binary.LittleEndian.PutUint64(folded[8:], high)
	return updateCRC(0, folded[:]), p[n:]
}

// foldBlocks returns 16 bytes that have the same checksum, begun with 0, as p has when it is begun with crc. p is one block or more.
//
//go:noescape
func foldBlocks(crc uint64, p []byte, by *[4]uint64) (low, high uint64)
