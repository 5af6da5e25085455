// Package respcmd writes commands as clients send them: arrays of bulk strings, see https://redis.io/docs/latest/develop/reference/protocol-spec/.
// Its functions append to a buffer and allocate nothing else.
package respcmd

import "strconv"

// Append appends a command.
func Append[T []byte | string](dst []byte, words ...T) []byte {
	dst = AppendHeader(dst, '*', int64(len(words)))
	for _, word := range words {
		dst = AppendBulk(dst, word)
	}
	return dst
}

// AppendBulk appends one word of a command, a bulk string.
func AppendBulk[T []byte | string](dst []byte, word T) []byte {
	dst = AppendHeader(dst, '$', int64(len(word)))
	dst = append(dst, word...)
	return append(dst, '\r', '\n')
}

// AppendHeader appends a line that is a RESP type byte and a number. Those of one or two digits, which most are, take no conversion.
func AppendHeader(dst []byte, kind byte, n int64) []byte {
	switch {
	case 0 <= n && n < 10:
		return append(dst, kind, byte('0'+n), '\r', '\n')
	case 10 <= n && n < 100:
		return append(dst, kind, byte('0'+n/10), byte('0'+n%10), '\r', '\n')
	}
	dst = strconv.AppendInt(append(dst, kind), n, 10)
	return append(dst, '\r', '\n')
}
