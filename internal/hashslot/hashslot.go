// Package hashslot computes the hash slot of a key in a Redis Cluster. It is pure and safe for concurrent use.
package hashslot

import "bytes"

// Count is how many hash slots the keys of a Redis Cluster are spread over.
const Count = 16384

// Of returns the hash slot of a key, below Count: CRC16/XMODEM of the key, or of what stands between its first { and the } that follows if that is
// not empty (the Redis Cluster specification, "Key distribution model" and "Hash tags").
func Of(key []byte) uint16 {
	if open := bytes.IndexByte(key, '{'); open >= 0 {
		if size := bytes.IndexByte(key[open+1:], '}'); size > 0 {
			key = key[open+1 : open+1+size]
		}
	}
	var crc uint16
	for ; len(key) >= 4; key = key[4:] {
		crc = crcTables[3][byte(crc>>8)^key[0]] ^ crcTables[2][byte(crc)^key[1]] ^ crcTables[1][key[2]] ^ crcTables[0][key[3]]
	}
	for _, b := range key {
		crc = crc<<8 ^ crcTables[0][byte(crc>>8)^b]
	}
	return crc % Count
}

// crcTables are what a byte contributes to a CRC16 with the polynomial x^16 + x^12 + x^5 + 1: the last byte, and one with one, two or three bytes
// behind it, so that four are looked up without waiting for each other.
var crcTables = func() (tables [4][256]uint16) {
	for i := range 256 {
		crc := uint16(i) << 8
		for n := range tables {
			for range 8 {
				if crc&0x8000 != 0 {
					crc = crc<<1 ^ 0x1021
				} else {
					crc <<= 1
				}
			}
			tables[n][i] = crc
		}
	}
	return tables
}()
