package rdb

import "encoding/binary"

// crcPoly is the polynomial of the format's CRC-64 (Jones), reflected: the highest bit is the term without x.
const crcPoly = 0x95ac9329ac4bc9b5

// crcTables let eight bytes be taken at a time: table k is for a byte that k others follow. They never change.
var crcTables = buildCRCTables()

func buildCRCTables() *[8][256]uint64 {
	t := &[8][256]uint64{}
	for i := range 256 {
		crc := uint64(i)
		for range 8 {
			crc = crcTimesX(crc)
		}
		t[0][i] = crc
	}
	for i := range 256 {
		for k := 1; k < 8; k++ {
			t[k][i] = t[k-1][i]>>8 ^ t[0][byte(t[k-1][i])]
		}
	}
	return t
}

// crcTimesX multiplies by x, modulo the polynomial.
func crcTimesX(a uint64) uint64 { return a>>1 ^ crcPoly&-(a&1) }

// UpdateCRC adds the bytes of p to a checksum, which is 0 for no bytes.
func UpdateCRC(crc uint64, p []byte) uint64 {
	crc, p = foldCRC(crc, p)
	return updateCRC(crc, p)
}

// updateCRC is UpdateCRC by tables.
func updateCRC(crc uint64, p []byte) uint64 {
	t := crcTables
	for ; len(p) >= 8; p = p[8:] {
		crc ^= binary.LittleEndian.Uint64(p)
		crc = t[7][byte(crc)] ^ t[6][byte(crc>>8)] ^ t[5][byte(crc>>16)] ^ t[4][byte(crc>>24)] ^
			t[3][byte(crc>>32)] ^ t[2][byte(crc>>40)] ^ t[1][byte(crc>>48)] ^ t[0][byte(crc>>56)]
	}
	for _, b := range p {
		crc = t[0][byte(crc)^b] ^ crc>>8
	}
	return crc
}
