// Package structlib is the Lua library "struct" of Redis: pack, unpack and
// size for C structures.
//
// A format is a sequence of options, read up to its end or its first NUL byte:
//
//	<  >        little-endian (the default), big-endian
//	![n]        align to n bytes at most, a power of 2; 8 without n
//	x           one byte of padding
//	b B         signed, unsigned char
//	h H         signed, unsigned short, 2 bytes
//	l L         signed, unsigned long, 8 bytes
//	T           size_t, 8 bytes
//	i[n] I[n]   signed, unsigned integer of n bytes, at most 32; 4 without n
//	f d         float, double
//	s           string that ends with a NUL byte
//	c[n]        string of n bytes; 1 without n. c0 packs the whole string, and
//	            unpacks as many bytes as the value read before it says
//	space       nothing
//
// Numbers are converted between doubles and integers as C code compiled for
// x86-64 does it, whatever machine this runs on.
package structlib
