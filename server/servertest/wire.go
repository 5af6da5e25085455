package servertest

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// EncodeCommand returns a command as clients send it.
func EncodeCommand(words ...string) []byte {
	b := []byte("*" + strconv.Itoa(len(words)) + "\r\n")
	for _, word := range words {
		b = append(b, "$"+strconv.Itoa(len(word))+"\r\n"+word+"\r\n"...)
	}
	return b
}

// PlainReply renders the first reply of some RESP, and returns what follows it.
func PlainReply(wire string) (text, rest string) {
	line, rest, _ := strings.Cut(wire, "\r\n")
	switch line[0] {
	case '$':
		if line == "$-1" {
			return "nil", rest
		}
		var n int
		_, _ = fmt.Sscan(line[1:], &n)
		return rest[:n], rest[n+2:]
	case '*':
		if line == "*-1" {
			return "nil", rest
		}
		var n int
		_, _ = fmt.Sscan(line[1:], &n)
		items := make([]string, n)
		for i := range items {
			items[i], rest = PlainReply(rest)
		}
		return "[" + strings.Join(items, " ") + "]", rest
	case '-':
		return line[1:], rest
	}
	return line[1:], rest
}

// Sha1Hex returns the name by which EVALSHA knows a script.
func Sha1Hex(script string) string {
	sum := sha1.Sum([]byte(script))
	return hex.EncodeToString(sum[:])
}

// WireOOM is what commands that add something are answered with when memory is short, as PlainReply renders it.
const WireOOM = "OOM command not allowed when used memory > 'maxmemory'."
