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
	for _, b := range key {
		crc = crc<<8 ^ crcTable[byte(crc>>8)^b]
	}
	return crc % Count
}

// crcTable is what each byte contributes to a CRC16 with the polynomial x^16 + x^12 + x^5 + 1.
var crcTable = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
		table[i] = crc
	}
	return table
}()
