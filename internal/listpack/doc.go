// Package listpack reads and writes Redis's listpacks: runs of elements, each a text or an integer.
//
//	offset  bytes
//	     0      4  the size of all, little-endian
//	     4      2  the number of elements, 65535 for more
//	     6      …  the elements
//	  last      1  0xff
//
// An element is its encoding with its text or integer, and the size of that in groups of 7 bits, readable from its end:
//
//	0nnnnnnn                 an integer from 0 to 127
//	110nnnnn nnnnnnnn        one of 13 bits
//	11110001 … 11110100      one of 16, 24, 32 and 64 bits, which follows, little-endian
//	10nnnnnn                 a text of n bytes, which follow
//	1110nnnn nnnnnnnn        the same
//	11110000 n (4 bytes)     the same, little-endian
//
// A [Pack] is one that is kept and grows; what reads it trusts it. A [Writer] makes one from its beginning to its end. A [Reader] trusts
// nothing: what it has read to its end without an error is a Pack.
package listpack
